"""Methods that add something to pairs of tokens."""
