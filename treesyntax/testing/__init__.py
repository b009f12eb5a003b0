"""What every method, metric, tree format and data set promises: for the tests of your own.

They need no pytest: a broken promise is an AssertionError. What a thing of yours computes needs a test of its own.
"""

from treesyntax.testing.data_sets import check_data_set
from treesyntax.testing.formats import check_format
from treesyntax.testing.methods import check_method
from treesyntax.testing.metrics import check_metric

__all__ = ["check_data_set", "check_format", "check_method", "check_metric"]
