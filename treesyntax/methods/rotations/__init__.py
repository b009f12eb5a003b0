"""Methods that map the query and the key of each token by its place."""
