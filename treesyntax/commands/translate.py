"""Translate text or trees with a trained model, line by line, as they come.

With the best model of a study, or that of a run; data and parser are found too:

  treesyntax translate runs/my --input test.en --output test.sv
  treesyntax translate runs/my/runs/relation_mask-1

DATA is the folder that treesyntax binarize wrote for the training of the model. It says how input
becomes tokens and trees and how output becomes text again.

Every line of input (every record of CoNLL-U) gives one line of output; an empty one gives an empty one.
Translations of standard input are written as soon as they are found. What is done of a file is kept
(--resume).

A checkpoint in the folder of a study is searched with the flags that the study generated
with, unless they are given here.

Raw text, parsed like the training data, one sentence answered after the other:

  treesyntax translate data-bin/en-sv --path checkpoint_best.pt --parser stanza-dep --model models/en

Text as it is, words with spaces between them as in the training data, where trees were needed in
training alone (parent_head, distance_head, tree_reg) or not at all:

  treesyntax translate data-bin/en-sv --path checkpoint_best.pt --input test.en --output test.sv

Trees in the format of the training data, with an ensemble of two models:

  treesyntax translate data-bin/en-sv --path a/checkpoint_best.pt:b/checkpoint_best.pt \\
      --parsed --input test.conllu --output test.sv

Questions to logical forms, with the scores (base-2 logarithms, as fairseq-generate prints them) of
the three best:

  echo what states border texas | treesyntax translate data-bin/geo --path checkpoint_best.pt --nbest 3
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from treesyntax.commands.parse import add_arguments as add_parse_arguments
from treesyntax.commands.parse import add_parser_arguments
from treesyntax.commands.study_search import take_search
from treesyntax.data.encoding import MANIFEST
from treesyntax.errors import InputError, OptionError
from treesyntax.files import check_path, read_object, sha256_of
from treesyntax.jobs.terminal import console_of
from treesyntax.made.reuse import differences
from treesyntax.parsers import ParserConfig, get_kind, load_parser

if TYPE_CHECKING:  # run() imports the rest, so that --help is quick
    from treesyntax.data.manifest import Data
    from treesyntax.decoding.engine import Search
    from treesyntax.decoding.input import ParsedBatches, SourceEncoder
    from treesyntax.parsers.progress_bar import Advance

CONSTRAINTS = ("auto", "none", "tree", "grammar")
MAX_TOKENS = 12000
"""As fairseq-generate has it where neither limit is given."""
READING = ("lang", "pretokenized", "max_words")
"""Options of ``treesyntax parse`` that say how a parser reads lines."""
SHOWN = 5
"""Lines that were too long that are named."""
SEARCH = "search (without a flag: as in the study that trained the checkpoint, else the default)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add = parser.add_argument
    add("data", metavar="STUDY|RUN|DATA", help="folder of a study (its best run translates), of a run, or of data that treesyntax binarize wrote")  # fmt: skip
    add("--path", metavar="FILE", help="with DATA: checkpoint, or several separated by ':'")
    add(
        "--input",
        default="-",
        metavar="FILE",
        help="UTF-8 text (.gz is unpacked); - is stdin (default)",
    )
    add(
        "--output", default="-", metavar="FILE", help="file of the translations, FILE.part until it is whole; - is stdout (default)"
    )  # fmt: skip
    add("--resume", action="store_true", help="go on with FILE.part, which an interrupted call has left, if model, data, options and input are the same")  # fmt: skip
    add("--skip-long", action="store_true", help="write an empty line for a source that is too long for the model; without it nothing is translated if there is such a source")  # fmt: skip
    add("--buffer", type=int, default=1000, metavar="N", help="most sentences that are sorted by length and translated together; input from stdin is translated as it comes (default 1000)")  # fmt: skip
    parsing = parser.add_argument_group(
        "raw text to trees, where the model reads trees (without a flag: as the study parsed)"
    ).add_argument
    parsing("--parsed", action="store_true", help="the input is trees in the format of the training data")  # fmt: skip
    add_parser_arguments(parsing, required=False)
    parser.set_defaults(
        **dict.fromkeys(READING)
    )  # so that what is given is seen, a default's value too
    _add_search(parser.add_argument_group(SEARCH))
    _add_output(parser.add_argument_group("output"))
    _add_machine(parser.add_argument_group("machine"))


def _add_search(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--beam", type=int, metavar="N", help="hypotheses kept at every step (default 5)")
    add("--max-len-a", type=float, metavar="A", help="at most A x + B tokens, x those of the longest source of a batch (default 0)")  # fmt: skip
    add("--max-len-b", type=int, metavar="B", help="the B of --max-len-a (default 200)")
    add("--lenpen", type=float, metavar="P", help="below 1 favours short translations, above 1 long ones (default 1)")  # fmt: skip
    add("--tree-constraints", choices=CONSTRAINTS, help="generate whole trees (tree), those of parents and children seen in training (grammar), or anything (none). auto is tree where target tokens grow trees, else none. For JavaScript and CoffeeScript it is grammar if the training data is there")  # fmt: skip


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("-q", "--quiet", action="store_true", help="no progress, and do not tell on standard error of unknown words, and of sources longer or deeper than those of the training")  # fmt: skip
    add("--tokens", action="store_true", help="target tokens as the model writes them")
    add("--nbest", type=int, metavar="N", help="the N best as tab-separated line number, score and text")  # fmt: skip


def _add_machine(group: argparse._ArgumentGroup) -> None:
    devices, precisions = (group.add_mutually_exclusive_group() for _ in range(2))
    devices.add_argument("--device", metavar="NAME", help="cpu, cuda or cuda:N (default: cuda where there is one)")  # fmt: skip
    devices.add_argument(
        "--cpu", dest="device", action="store_const", const="cpu", help="the same as --device cpu"
    )
    for name in ("fp16", "bf16"):
        precisions.add_argument(
            f"--{name}",
            dest="precision",
            action="store_const",
            const=name,
            help=f"compute in {name} in place of fp32",
        )
    group.set_defaults(precision="fp32")
    group.add_argument("--max-tokens", type=int, metavar="N", help=f"tokens in a batch, with padding (default {MAX_TOKENS})")  # fmt: skip
    group.add_argument("--batch-size", type=int, metavar="N", help="sentences in a batch")


def run(args: argparse.Namespace) -> int:
    """Translate.

    Raises:
        OptionError: if options do not fit together, the data or the model.
        InputError: if something cannot be read, a record is malformed, or one is too long; the output
            has the translations of all records before it. The lengths in a file are looked at first.
        KeyboardInterrupt: with how to go on.
    """
    from treesyntax.data.encoding import TEXT
    from treesyntax.data.manifest import read_data
    from treesyntax.decoding.engine import load_engine
    from treesyntax.decoding.growing_output import growing_output
    from treesyntax.decoding.input import (
        ParsedBatches,
        ReadBatches,
        SourceEncoder,
        chunks,
        input_path,
    )
    from treesyntax.decoding.input_format import BRACKETS, WORDS, input_format, words_alone
    from treesyntax.decoding.output import Writer, make_to_text
    from treesyntax.decoding.remarks import Remarks
    from treesyntax.decoding.translate import translate
    from treesyntax.parsers.cases import in_words
    from treesyntax.trees.formats import reader_of

    check_path(args.data, "DATA")
    _take_run(args)
    defaults = argparse.ArgumentParser()
    add_parser_arguments(defaults.add_argument, required=False)
    _set_missing(args, defaults.parse_args([]), READING)
    _check_checkpoints(args.path)
    take_search(args)
    _check_numbers(args)
    path = input_path(args.input)
    if args.output != "-" and Path(args.output).is_file() and path.samefile(args.output):
        raise InputError(args.output, None, "is the input", "name another file for the output")
    data = read_data(args.data)
    source_format = input_format(args, data.source)
    to_text = " ".join if args.tokens else make_to_text(data.target)
    device = _find_device(args.device)
    with growing_output(args.output, lambda: _made_of(args, data), args.resume) as output:
        batches = _parsed_batches(args, path, device) if args.parser else ReadBatches(path)
        engine = load_engine(_search_of(args, data, device))
        encoding = data.source.encoding
        if source_format == WORDS:
            source_format, encoding = TEXT, words_alone(args, encoding, engine)
            if not args.quiet:
                print(
                    "the model needs no trees here: lines are text (of trees: --parsed)",
                    file=sys.stderr,
                )
        if args.parser and encoding.format_name in BRACKETS:
            encoding = encoding._replace(format_name=get_kind(args.parser).notation)
        dictionary = data.dictionary(data.source)
        remarks = Remarks(data.source.longest, data.source.deepest, args.quiet)
        labels = data.labels(data.source)
        encoder = SourceEncoder(
            encoding, dictionary, batches, engine.longest_source, remarks, labels, args.skip_long
        )
        read = reader_of(source_format)
        if path.is_file() and not args.skip_long:
            encoder.check_lengths(path, read(path), bool(args.parser))
        with _progress(args, path, source_format, output.done.records) as advance:
            records = output.rest(read(path), path)
            lots = chunks(records, args.buffer, path.is_file(), output.done.records)
            writer = Writer(output.stream, to_text, args.nbest is not None, Counter())
            linearization = data.target.encoding.linearization
            translate(lots, encoder, engine, writer, output, advance, linearization)
    malformed = output.done.malformed + writer.written["malformed"]
    remarks.close(malformed, str(data.target.encoding.format_name))
    _tell_long(output.done.long, encoder)
    if engine.cut and not args.quiet:
        print(
            f"outputs that are as long as they may be, and so may be cut: {engine.cut} (--max-len-a "
            f"{args.max_len_a:g} --max-len-b {args.max_len_b})",
            file=sys.stderr,
        )
    if isinstance(batches, ParsedBatches):
        print(f"{batches.cases.lines} lines: {in_words(batches.cases)}", file=sys.stderr)
    return 0


def _tell_long(before: int, encoder: SourceEncoder) -> None:
    """Say how many sources were too long for the model, ``before`` of them in an earlier call."""
    count = before + len(encoder.skipped)
    if not count:
        return
    shown = encoder.skipped[:SHOWN]
    more = ", …" if count > len(shown) else ""
    print(
        f"sources of more than {encoder.longest} tokens, answered by an empty line: {count} "
        f"(line {', '.join(map(str, shown))}{more})",
        file=sys.stderr,
    )


def _take_run(args: argparse.Namespace) -> None:
    """Take model, data and parser of a study's or a run's folder, as far as they are not given."""
    from treesyntax.study.trained import find_trained, studies_here, study_of

    data_path = Path(args.data)
    if study_of(data_path) is None:
        if args.path is None and (data_path / MANIFEST).is_file():
            raise OptionError(
                f"--path is missing: {data_path} is data; name a checkpoint, or the folder of a study or a run in "
                f"place of DATA{studies_here(data_path)}"
            )
        if args.path is None:
            raise OptionError(
                f"{data_path} is the folder of no study and of no run{studies_here(data_path)}"
            )
        return
    trained = find_trained(data_path)
    args.data = str(trained.data)
    args.path = args.path or str(trained.checkpoint)
    how_parsed = []
    if not args.parsed and trained.parsing:
        words = argparse.ArgumentParser()
        add_parse_arguments(words)
        made = words.parse_args(trained.parsing[0])
        if args.parser in (None, made.parser):
            _set_missing(args, made, ("parser", "model"))
            how_parsed = [f"parsed by {args.parser} with {args.model}"]
        _set_missing(args, made, READING)
        if how_parsed:
            _remark_other_parser(args, made.output)
    if not args.quiet:
        how = "; ".join(filter(None, [trained.why, *how_parsed]))
        print(f"{trained.folder} translates" + f" ({how})" * bool(how), file=sys.stderr)


def _set_missing(
    args: argparse.Namespace, others: argparse.Namespace, names: Sequence[str]
) -> None:
    for name in names:
        if getattr(args, name) is None:
            setattr(args, name, getattr(others, name))


def _remark_other_parser(args: argparse.Namespace, trees: Path) -> None:
    """Say what the parser has that the one of the study's trees had not, by the report beside them."""
    from treesyntax.parsers.parse_file import report_of
    from treesyntax.parsers.parse_task import parser_identity

    before = read_object(report_of(trees)).get("identity")
    if not isinstance(before, dict):
        return
    now = parser_identity(ParserConfig(args.parser, args.model, args.lang, args.pretokenized))
    names = differences({name: before.get(name) for name in now}, now)
    if names:
        print(
            f"{trees}, which the study reads, was made with other {' and '.join(names)} than the input is parsed "
            f"with: trees may differ; {report_of(trees).name} says with which",
            file=sys.stderr,
        )


def _check_checkpoints(names: str) -> None:
    """Refuse checkpoints in a path with the character that separates several."""
    paths = names.split(os.pathsep)
    if len(paths) > 1 and Path(names).exists():
        check_path(names, "--path")
    lost = [path for path in paths if not Path(path).is_file()]
    if len(paths) > 1 and lost:
        raise OptionError(
            f"--path {names}: no such file: {lost[0]}; {os.pathsep!r} separates checkpoints, so no path "
            "may hold it"
        )


def _made_of(args: argparse.Namespace, data: Data) -> dict[str, str]:
    """What decides the output beside the input: only the same goes on with a part of it."""
    from treesyntax import __version__
    from treesyntax.data.manifest import dictionary_file

    names = ["beam", "max_len_a", "max_len_b", "lenpen", "tree_constraints", "nbest", "tokens", "precision",
             "parsed", "parser", "model", "lang", "pretokenized", "max_words"]  # fmt: skip
    # How many sentences are translated together decides nothing but limits that depend on the longest.
    names += ["buffer", "max_tokens", "batch_size"] if args.max_len_a else []
    files = [Path(args.data, dictionary_file(side.language)) for side in (data.source, data.target)]
    return {
        "version of treesyntax": __version__,
        "checkpoint": " ".join(sha256_of(path) for path in args.path.split(os.pathsep)),
        "data folder": " ".join(map(sha256_of, [Path(args.data, MANIFEST), *files])),
        **{f"--{name.replace('_', '-')}": str(getattr(args, name)) for name in names},
    }


def _parsed_batches(args: argparse.Namespace, path: Path, device: str) -> ParsedBatches:
    from treesyntax.decoding.input import ParsedBatches

    kind = get_kind(args.parser)
    gpu = device != "cpu" and "torch" in kind.packages  # for spaCy a GPU needs more packages
    settings = ParserConfig(
        args.parser, args.model, args.lang, args.pretokenized, gpu, args.download
    )
    dependencies = kind.notation == "conllu"
    return ParsedBatches(path, load_parser(settings), dependencies, args.max_words)


@contextmanager
def _progress(
    args: argparse.Namespace, path: Path, format_name: str, before: int
) -> Iterator[Advance]:
    """A bar on a terminal while a file is translated, and the speed at the end.

    ``before`` sentences were translated by an earlier call.
    """
    from treesyntax.parsers.progress_bar import shown
    from treesyntax.trees.formats import reader_of

    if not path.is_file():
        if args.input == "-" and sys.stdin.isatty():
            print("one sentence a line; Ctrl-D ends", file=sys.stderr)
        yield lambda lines: None
        return
    console = console_of(stderr=True)
    drawn = (
        console.is_terminal and not args.quiet and not (args.output == "-" and sys.stdout.isatty())
    )
    total = sum(1 for _ in reader_of(format_name)(path)) if drawn else 0
    done, begin = 0, time.perf_counter()
    with shown(total, before, console) if drawn else nullcontext() as bar:

        def advance(lines: float) -> None:
            nonlocal done
            done += int(lines)
            if bar is not None:
                bar(lines)

        yield advance
    seconds = time.perf_counter() - begin
    speed = done / max(seconds, 1e-9)
    earlier = f" after {before} of an earlier call" if before else ""
    print(
        f"{done} sentences in {seconds:.1f} s, {speed:,.1f} sentences/s{earlier}", file=sys.stderr
    )


def _check_numbers(args: argparse.Namespace) -> None:
    """Refuse numbers that make no sense."""
    from treesyntax.data.limits import MOST_A, RANGE_OF_A, TOO_MANY

    for name in ("buffer", "beam", "max_len_b", "max_words", "nbest", "max_tokens", "batch_size"):
        value = getattr(args, name)
        if value is not None and value < 1:
            raise OptionError(f"--{name.replace('_', '-')} must be at least 1")
    if not 0 <= args.max_len_a <= MOST_A:
        raise OptionError(f"--max-len-a {RANGE_OF_A}")
    if not math.isfinite(args.lenpen):
        raise OptionError("--lenpen must be a number")
    if (args.nbest or 1) > args.beam:
        raise OptionError(TOO_MANY.format(nbest=args.nbest, beam=args.beam))


def _find_device(name: str | None) -> str:
    """The device of that name; without a name a GPU, where there is one."""
    import torch

    if name is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    match = re.fullmatch(r"cpu|cuda(?::([0-9]{1,3}))?", name)
    if not match:
        raise OptionError(f"--device {name!r} is neither cpu, cuda nor cuda:N")
    if name != "cpu" and int(match[1] or 0) >= torch.cuda.device_count():
        raise OptionError(f"--device {name}: there is no such GPU, or torch cannot use it")
    if match[1]:  # for the parser too, which asks for a GPU without its number
        torch.cuda.set_device(name)
    return name


def _search_of(args: argparse.Namespace, data: Data, device: str) -> Search:
    from treesyntax.decoding.engine import Search

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
