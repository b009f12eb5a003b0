"""Methods that add an encoding to each node."""
