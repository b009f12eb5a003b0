"""What the input of ``treesyntax translate`` is: trees, text to be parsed, or text alone."""

from __future__ import annotations

import argparse

from treesyntax.data.encoding import TEXT, TOKEN_UNITS, WORDS_LINEARIZATION, Encoding
from treesyntax.data.manifest import SideData
from treesyntax.decoding.engine import Engine
from treesyntax.errors import OptionError
from treesyntax.parsers import PARSERS, get_kind

BRACKETS = ("ptb", "mrg")
PARSER_WRITES = ("conllu", *BRACKETS)
WORDS = "words"
"""Text without trees, if the models need none: only the models know."""


def input_format(args: argparse.Namespace, source: SideData) -> str:
    """The format of the input: that of the trees, ``text`` where it is text or is to be parsed, or
    `WORDS`.

    Args:
        args: ``data``, ``parser``, ``model`` and ``parsed``, as on the command line.
        source: of the data folder.

    Raises:
        OptionError: for options that do not fit together, or the data.
    """
    wanted = source.encoding.format_name
    if source.segmented:
        raise OptionError(
            f"the source of {args.data} was segmented elsewhere (binarize --source-subwords), so "
            "nobody knows how to segment new text; binarize with --source-subword-model"
        )
    if args.parsed and wanted == TEXT:
        raise OptionError("the model reads text without trees; leave out --parsed")
    if not args.parser:
        if args.model:
            raise OptionError("--model is that of a parser; name it with --parser")
        if wanted in PARSER_WRITES and not args.parsed:
            if source.encoding.linearization != WORDS_LINEARIZATION:
                raise _reads_trees(wanted)
            return WORDS
        if source.encoding.units and wanted != "conllu":
            raise OptionError(
                f"the subwords of {args.data} were cut by the places of words in raw text, which "
                f"{wanted} does not hold; give raw text with --parser ({_parsers_of(wanted)})"
            )
        return wanted
    notation = get_kind(args.parser).notation
    if args.parsed:
        raise OptionError("--parsed and --parser exclude each other")
    if wanted == TEXT:
        raise OptionError("the model reads text without trees; leave out --parser")
    if notation != wanted and not {notation, wanted} <= {*BRACKETS}:
        use = f"take {_parsers_of(wanted)}" if wanted in PARSER_WRITES else "leave out --parser"
        raise OptionError(f"{args.parser} writes {notation}, but the model reads {wanted}; {use}")
    if not args.model:
        raise OptionError(f"--parser {args.parser} needs --model")
    return TEXT


def words_alone(args: argparse.Namespace, encoding: Encoding, engine: Engine) -> Encoding:
    """How text becomes the tokens that trees of it would become, for models that need no trees.

    SentencePiece never joins across white space, so a line of words gives the subwords of its words.

    Args:
        args: as of :func:`input_format`.
        encoding: of the data, whose tokens are the words of trees.
        engine: the models.

    Raises:
        OptionError: if a model needs trees, or the tokens depend on where a parser sees words.
    """
    if engine.needs_trees:
        raise _reads_trees(encoding.format_name)
    if encoding.units == TOKEN_UNITS:
        raise OptionError(
            f"the model needs no trees here, but the subwords of {args.data} were cut where a parser "
            f"saw words: give --parser ({_parsers_of(encoding.format_name)}) and --model, or train on "
            "data of binarize --subword-units line, which cuts text alike without a parser"
        )
    return encoding._replace(format_name=TEXT)


def _reads_trees(wanted: str) -> OptionError:
    return OptionError(
        f"the model reads trees: for raw text give --parser ({_parsers_of(wanted)}) and "
        f"--model, for input that is {wanted} already --parsed"
    )


def _parsers_of(notation: str) -> str:
    plain = "ptb" if notation in BRACKETS else notation
    return ", ".join(name for name, kind in PARSERS.items() if kind.notation == plain)
