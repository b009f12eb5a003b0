"""``python -m treesyntax`` is ``treesyntax``."""

import sys

from treesyntax.cli import main

if __name__ == "__main__":
    sys.exit(main())
