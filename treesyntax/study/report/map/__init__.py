"""The map of a study over several test sets: which row helps on which."""
