"""Print the folder to give to fairseq as --user-dir.

Example: fairseq-train DATA --user-dir "$(treesyntax plugins)" --task tree_translation …
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from treesyntax.errors import OptionError


def plugin_folder() -> Path:
    """The folder of the fairseq plugins, wherever the package is installed.

    Raises:
        OptionError: if the plugins are not installed beside this package.
    """
    spec = find_spec("fairseq_plugins")
    if spec is None or spec.origin is None:
        raise OptionError("fairseq_plugins is not installed; install treesyntax with pip")
    return Path(spec.origin).parent


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Print the folder."""
    print(plugin_folder())
    return 0
