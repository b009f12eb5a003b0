"""The options of ``treesyntax translate``, checked against each other and against the data."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from treesyntax.data.binarize.encode import CONLLU, TEXT
from treesyntax.data.manifest import Data, SideData
from treesyntax.decoding.engine import Search
from treesyntax.decoding.input import STDIN
from treesyntax.errors import InputError, OptionError
from treesyntax.parsers import PARSERS, get_kind

CONSTRAINTS = ("auto", "none", "tree", "grammar")
MAX_TOKENS = 12000
"""As fairseq-generate has it where neither limit is given."""
BRACKETS = ("ptb", "mrg")
PARSER_WRITES = (CONLLU, *BRACKETS)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("data", metavar="DATA", help="folder written by treesyntax binarize")
    add("--path", required=True, metavar="FILE", help="checkpoint, or several separated by ':'")
    add("--input", default="-", metavar="FILE", help="UTF-8 text (.gz is unpacked); - is stdin (-)")
    add(
        "--output", default="-", metavar="FILE", help="written whole or not at all; - is stdout (-)"
    )
    add("--buffer", type=int, default=1000, metavar="N", help="most sentences that are sorted by length and translated together; stdin is not waited for (1000)")  # fmt: skip
    _add_parsing(parser.add_argument_group("raw text to trees, where the model reads trees"))
    _add_search(parser.add_argument_group("search"))
    _add_output(parser.add_argument_group("output"))
    _add_machine(parser.add_argument_group("machine"))


def _add_parsing(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    models = "; ".join(f"{name}: {kind.model}" for name, kind in PARSERS.items())
    add("--parsed", action="store_true", help="the input is trees in the format of the training data")  # fmt: skip
    add("--parser", metavar="NAME", help=", ".join(PARSERS))
    add("--model", metavar="MODEL", help=models)
    add("--lang", default="en", help="language code, for word and sentence boundaries (en)")
    add("--pretokenized", action="store_true", help="white space separates words, a line is one sentence")  # fmt: skip
    add("--download", action="store_true", help="download a parser's model known by name")
    add("--max-words", type=int, default=150, metavar="N", help="longer lines get flat trees (150)")


def _add_search(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--beam", type=int, default=5, metavar="N", help="hypotheses kept at every step (5)")
    add("--max-len-a", type=float, default=0, metavar="A", help="at most A x + B tokens, x those of the longest source of a batch (0)")  # fmt: skip
    add("--max-len-b", type=int, default=200, metavar="B", help="see there (200)")
    add("--lenpen", type=float, default=1, metavar="P", help="below 1 favours short translations, above 1 long ones (1)")  # fmt: skip
    add("--tree-constraints", choices=CONSTRAINTS, default="auto", help="generate whole trees (tree), those of parents and children seen in training (grammar), or anything (none); auto: tree where target tokens grow trees, else none")  # fmt: skip


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--tokens", action="store_true", help="target tokens as the model writes them")
    add("--nbest", type=int, metavar="N", help="the N best as tab-separated line number, score and text")  # fmt: skip


def _add_machine(group: argparse._ArgumentGroup) -> None:
    devices, precisions = (group.add_mutually_exclusive_group() for _ in range(2))
    devices.add_argument("--device", metavar="NAME", help="cpu, cuda or cuda:N (cuda where there is one)")  # fmt: skip
    devices.add_argument("--cpu", dest="device", action="store_const", const="cpu")
    for name in ("fp16", "bf16"):
        precisions.add_argument(f"--{name}", dest="precision", action="store_const", const=name)
    group.set_defaults(precision="fp32")
    group.add_argument("--max-tokens", type=int, metavar="N", help=f"tokens in a batch, with padding ({MAX_TOKENS})")  # fmt: skip
    group.add_argument("--batch-size", type=int, metavar="N", help="sentences in a batch")


def check_numbers(args: argparse.Namespace) -> None:
    """Refuse numbers that make no sense.

    Raises:
        OptionError: with the option.
    """
    for name in ("buffer", "beam", "max_len_b", "max_words", "nbest", "max_tokens", "batch_size"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise OptionError(f"--{name.replace('_', '-')} must be at least 1")
    if args.max_len_a < 0:
        raise OptionError("--max-len-a must not be negative")
    if (args.nbest or 1) > args.beam:
        raise OptionError(
            f"--nbest {args.nbest} asks for more hypotheses than --beam {args.beam} keeps"
        )


def input_path(name: str) -> Path:
    """The input as a path, that of standard input for ``-``.

    Raises:
        InputError: if there is no such file.
    """
    if name == "-":
        return STDIN
    path = Path(name)
    if not path.exists() or path.is_dir():
        cause = "is a folder" if path.is_dir() else "is not there"
        raise InputError(path, None, cause, "name a file, or leave out --input to read stdin")
    return path


def input_format(args: argparse.Namespace, source: SideData) -> str:
    """The notation of the input, ``text`` for what is to be parsed.

    Raises:
        OptionError: if the options for parsing do not fit the source of the data.
    """
    wanted = source.encoding.format_name
    if source.pieces:
        raise OptionError(
            f"the source of {args.data} was segmented elsewhere (binarize --source-pieces), so "
            "nobody knows how to segment new text; binarize with --source-subword-model"
        )
    if not args.parser:
        if args.model:
            raise OptionError("--model is that of a parser; name it with --parser")
        if wanted in PARSER_WRITES and not args.parsed:
            raise OptionError(
                f"the model reads trees: for raw text give --parser ({_parsers_of(wanted)}) and "
                f"--model, for input that is {wanted} already --parsed"
            )
        if source.encoding.units and wanted != CONLLU:
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


def _parsers_of(notation: str) -> str:
    plain = "ptb" if notation in BRACKETS else notation
    return ", ".join(name for name, kind in PARSERS.items() if kind.notation == plain)


def find_device(name: str | None) -> str:
    """The device of that name; without a name a GPU, where there is one.

    Raises:
        OptionError: if there is no such device.
    """
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    found = re.fullmatch(r"cpu|cuda(?::([0-9]{1,3}))?", name)
    if not found:
        raise OptionError(f"--device {name!r} is neither cpu, cuda nor cuda:N")
    if name != "cpu" and int(found[1] or 0) >= torch.cuda.device_count():
        raise OptionError(f"--device {name}: there is no such GPU, or torch cannot use it")
    return name


def search_of(args: argparse.Namespace, data: Data, device: str) -> Search:
    """What the search is to do."""
    unlimited = args.max_tokens is None and args.batch_size is None
    return Search(
        checkpoints=tuple(Path(path) for path in args.path.split(os.pathsep)),
        data=data.folder,
        pair=(data.source.language, data.target.language),
        device=device,
        precision=args.precision,
        beam=args.beam,
        nbest=args.nbest or 1,
        max_len_a=args.max_len_a,
        max_len_b=args.max_len_b,
        lenpen=args.lenpen,
        constraints=args.tree_constraints,
        max_tokens=MAX_TOKENS if unlimited else args.max_tokens,
        batch_size=args.batch_size,
    )
