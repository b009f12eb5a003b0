"""Studies: a YAML recipe to trained, scored and reported runs, by calling command lines only."""
