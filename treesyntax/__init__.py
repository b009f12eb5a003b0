"""treesyntax: trees in Transformers, and whether they help."""

__version__ = "0.1.0"
