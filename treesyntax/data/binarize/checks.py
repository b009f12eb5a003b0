"""Options of ``treesyntax binarize`` that do not fit together, and a destination that is taken."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from treesyntax.data.encoding import LINE_UNITS, STANDARD
from treesyntax.data.manifest import MANIFEST
from treesyntax.errors import InputError, OptionError

if TYPE_CHECKING:
    from treesyntax.data.binarize.options import BinarizeOptions

WRITTEN = re.compile(
    rf"{re.escape(MANIFEST)}|(dict|labels)\..+\.txt|subwords\..+\.model"
    r"|(train|valid|test)[0-9]*\..+\.(bin|idx|tree|unknown)"
)
"""The files of binarized data by name."""


def check_options(args: argparse.Namespace, options: BinarizeOptions) -> None:
    """Refuse what cannot be done.

    Args:
        args: as the user gave them.
        options: as read from these, each on its own.
    """
    _check_subwords(options)
    if args.subword_units == LINE_UNITS and not any(side.encoding.units for side in options.sides):
        raise OptionError(
            f"--subword-units {LINE_UNITS} needs raw text: give --source-text or --target-text"
        )
    for side in ("source", "target"):
        counted = getattr(args, f"{side}_threshold") or getattr(args, f"{side}_vocab_size")
        if getattr(args, f"{side}_dict") and counted:
            raise OptionError(
                f"--{side}-dict gives the dictionary as it is; leave out --{side}-threshold and "
                f"--{side}-vocab-size, which are for one that is counted here"
            )
    if options.joined_dictionary:
        _check_joined_dictionary(args)
    if options.copy_unknown < 0 or (
        options.copy_unknown and (args.source_dict or args.target_dict)
    ):
        raise OptionError(
            "--copy-unknown is a number of placeholders, 0 or more, for dictionaries that are counted "
            "here; given ones have those that they have"
        )
    if options.copy_words and (args.target_dict or (args.source_dict and args.joined_dictionary)):
        raise OptionError(
            "--copy-words adds to the dictionary that is counted here, and a given one stays as it "
            "is; leave it out"
        )
    if options.workers < 1:
        raise OptionError(f"--workers {options.workers}: at least 1 is needed")
    _check_destination(options, args.overwrite)


def _check_subwords(options: BinarizeOptions) -> None:
    free = [side for side in options.sides if side.wants_model]
    if options.subword_vocab < 0:
        raise OptionError("--subword-vocab must be a positive number of subwords")
    if options.subword_sample < 0:
        raise OptionError("--subword-sample must be a number of lines, or 0 for all")
    if not 0.98 <= options.training.coverage <= 1:
        raise OptionError("--subword-coverage must be from 0.98 to 1")
    if not options.subword_vocab and options.training != STANDARD:
        raise OptionError(
            "--subword-normalization, --subword-coverage and --subword-byte-fallback are about a "
            "model that is trained here: give --subword-vocab"
        )
    if options.subword_vocab and not free:
        raise OptionError("--subword-vocab: both sides already have subwords or a subword model")
    if options.joined_subwords and not options.subword_vocab:
        raise OptionError("--joined-subwords trains one model for both sides: give --subword-vocab")
    if options.joined_subwords and len(free) < 2:
        raise OptionError("--joined-subwords: one side already has subwords or a subword model")


def _check_joined_dictionary(args: argparse.Namespace) -> None:
    if args.source_dict and args.target_dict:
        raise OptionError("--joined-dictionary takes --source-dict or --target-dict, not both")
    for name in ("threshold", "vocab_size"):
        if getattr(args, f"source_{name}") != getattr(args, f"target_{name}"):
            option = name.replace("_", "-")
            raise OptionError(
                f"--joined-dictionary needs the same --source-{option} and --target-{option}"
            )


def _check_destination(options: BinarizeOptions, overwrite: bool) -> None:
    dest = options.dest
    if not dest.exists():
        return
    if not dest.is_dir():
        raise InputError(dest, None, "is a file", "name a folder")
    if not any(dest.iterdir()):
        return
    if not overwrite:
        raise InputError(
            dest, None, "already exists and is not empty", "name another folder or add --overwrite"
        )
    if not (dest / MANIFEST).is_file():
        raise InputError(
            dest,
            None,
            f"has no {MANIFEST}, so --overwrite could destroy other files",
            "name another folder or empty it yourself",
        )
    for path in (*options.source.inputs, *options.target.inputs):
        if path.resolve().is_relative_to(dest.resolve()):
            raise InputError(
                path, None, "lies in the folder to be overwritten", "move it elsewhere first"
            )
    for path in sorted(dest.iterdir()):
        if path.is_dir() or not WRITTEN.fullmatch(path.name):
            raise InputError(
                path, None, "was not written by binarize, and --overwrite would delete it",
                "move it elsewhere, or name another folder",
            )  # fmt: skip
