"""Print the folder to give to fairseq as --user-dir.

Example: fairseq-train DATA --user-dir "$(treesyntax plugins)" --task tree_translation …
"""

from __future__ import annotations

import argparse

from treesyntax.decoding.engine import plugin_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def run(args: argparse.Namespace) -> int:
    """Print the folder."""
    print(plugin_folder())
    return 0
