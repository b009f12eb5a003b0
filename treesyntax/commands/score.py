"""Score a file of outputs against a file of references, line by line.

  treesyntax score --reference test.tgt --hypothesis out.txt --metric exact --metric tree:lambda

Metrics, each in percent; FORMAT is the name of a tree format:

  exact, bleu, chrf, chrf++, ter   of text; ter counts errors, so lower is better
  first_word, main_verb, clause_verb   of questions and of tense: that word alone
  tree:FORMAT          the same tree
  program:FORMAT       the same by another name
  unordered:FORMAT     the same up to the order of conjuncts
  modulo:FORMAT        the same up to that and the names of bound variables
  dong_lapata:FORMAT   what the program of Dong & Lapata 2016 counts
  f1:FORMAT            nodes
  productions:FORMAT   F1 over productions
  wellformed:FORMAT    any tree at all
  compiled:coffeescript   both compile to the same JavaScript; nothing is run

Where modulo cannot tell in a bounded effort, or the compiler does not know a word of a program, a line
counts as wrong. The signature says how many are undecided.

Lines of labels, a class or the tags of a sentence, have accuracy (of whole lines), micro_f1 and macro_f1.
macro_f1 is the mean over the classes of the references. Tags have token_accuracy, and spans such as B-PER
I-PER have span_f1.

bleu takes what stands between spaces for words (sacreBLEU's tokenizer 13a). Other tokenizers are part
of the name: bleu:char, bleu:zh, bleu:ja-mecab and bleu:ko-mecab (they need packages, and a message
says which), bleu:flores101 and bleu:flores200 (sacreBLEU downloads a model once), bleu:intl, bleu:none.

With :unseen at its end a metric leaves out lines that, source and reference, are in the training
data as well:

  treesyntax score --reference test.tgt --hypothesis out.txt --metric exact \\
      --metric exact:unseen --source test.src --train-source train.src --train-target train.tgt

With --categories each category of lines is scored as well, such as the cases of COGS.

With @CATEGORY at its end a metric counts only the lines of that category, or of CATEGORY/ANYTHING. Files that
`treesyntax data get` makes of an ordinary and a harder test set together, both.tgt and both.category, have scores in
and out of distribution beside each other:

  treesyntax score --reference both.tgt --hypothesis out.txt --metric exact@test --metric exact@gen \\
      --counted-by both.category
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines, sha256_of
from treesyntax.jobs.terminal import tracked

if TYPE_CHECKING:
    from treesyntax.metrics import Measured, Score

_OF_GENERATE = re.compile(r"[STHDP]-[0-9]+\t")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the files, the metrics and the form of the output."""
    add = parser.add_argument
    add("--reference", type=Path, required=True, help="what the outputs should be, one a line")
    add("--hypothesis", type=Path, required=True, help="the outputs in the same order")
    add("--metric", action="append", help="name of a metric, may be repeated (default exact)")
    add("--source", type=Path, help="inputs of the same lines, for metrics with :unseen")
    add("--train-source", type=Path, help="inputs of the training data, for the same")
    add("--train-target", type=Path, help="references of the training data, for the same")
    add("--categories", type=Path, help="the category of each line, to score each by itself too")
    add("--counted-by", type=Path, help="the category of each line, for metrics with @CATEGORY")
    add("--json", action="store_true", help="print a JSON list instead of a table")
    add(
        "--lines",
        type=Path,
        metavar="FILE",
        help="also write what each line contributes to each score",
    )


def run(args: argparse.Namespace) -> int:
    """Print the scores; returns 0.

    What a metric or a library prints goes to standard error: standard output is the answer alone.

    Raises:
        OptionError: if there is no such metric, a reference is malformed, or a metric with :unseen
            lacks a file or any line to score.
        InputError: if a file cannot be read, or the files differ in their number of lines.
    """
    with redirect_stdout(sys.stderr):
        scores = _scores(args)
    print(
        json.dumps([_fields(score) for score in scores], indent=2) if args.json else _table(scores)
    )
    return 0


def _scores(args: argparse.Namespace) -> list[Score]:
    """All scores that are asked for, of all lines and of categories; writes the lines' statistics too."""
    # --help needs none of it.
    from treesyntax.metrics import (
        composition_warning,
        get_metric,
        measured,
        plain_name,
        reference_warnings,
        subword_warning,
    )
    from treesyntax.metrics.counted import read_categories
    from treesyntax.metrics.kinds import PREFIX, formats_of, kinds_of, letters_as_numbers
    from treesyntax.metrics.line_file import write_line_file

    names = args.metric or ["exact"]
    for name in names:
        get_metric(plain_name(name))
    references = list(read_lines(args.reference))
    hypotheses = _as_many(
        args.hypothesis, args.reference, len(references), "score the output of the very same set"
    )
    if not references:
        raise InputError(args.reference, None, "is empty", "there is nothing to score")
    counted = _counted(args, names, references)
    for name in names:
        get_metric(name, counted[name])
    results = {
        name: measured(name, hypotheses, references, counted[name])
        for name in tracked([*dict.fromkeys(names)], "metrics")
    }
    scores = [results[name].score() for name in names]
    if args.lines:
        options = ("hypothesis", "reference", "source", "train_source", "train_target")
        files = {name: sha256_of(path) for name in options if (path := getattr(args, name))}
        files |= {"categories": sha256_of(args.counted_by)} if args.counted_by else {}
        kept = {name: result.lines for name, result in results.items()} | {
            PREFIX + form: letters_as_numbers(kinds_of(hypotheses, references, form))
            for form in formats_of(names)
        }
        write_line_file(args.lines, files, kept)
    if args.categories:
        categories = read_categories(args.categories, args.reference, len(references))
        scores += [
            score
            for category in dict.fromkeys(categories)
            for name in names
            if (score := _of_category(category, categories, results[name], counted[name]))
            is not None
        ]
    warnings = [
        *reference_warnings(names, references),
        subword_warning(names, hypotheses, "outputs"),
        composition_warning(hypotheses, references),
    ]
    for warning in filter(None, warnings):
        print(f"treesyntax score: {warning}", file=sys.stderr)
    return scores


def _of_category(
    category: str, categories: Sequence[str], result: Measured, counted: Sequence[bool] | None
) -> Score | None:
    """The score of the lines of a category; None if the metric counts none of them."""
    import numpy as np

    of_category = np.array([name == category for name in categories])
    if counted is not None:
        of_category = of_category[np.array(counted)]
    return result.score(of_category)._replace(category=category) if of_category.any() else None


def _fields(score: Score) -> dict[str, object]:
    return {name: value for name, value in score._asdict().items() if value != ""}


def _counted(
    args: argparse.Namespace, names: Sequence[str], references: list[str]
) -> dict[str, list[bool] | None]:
    """Which lines each metric counts, None for all."""
    from treesyntax.metrics import OF, UNSEEN, counted_lines
    from treesyntax.metrics.counted import read_categories

    of_category = next((name for name in names if OF in name), "")
    if of_category and args.counted_by is None:
        raise OptionError(
            f"{of_category} needs --counted-by, a file with the category of each line"
        )
    categories = None
    if of_category:
        categories = read_categories(args.counted_by, args.reference, len(references))
    unseen = _unseen(args, references) if any(UNSEEN in name for name in names) else None
    return {name: counted_lines(name, unseen, categories) for name in names}


def _unseen(args: argparse.Namespace, references: list[str]) -> list[bool]:
    from treesyntax.metrics import UNSEEN, unseen_lines

    for option in ("source", "train_source", "train_target"):
        if getattr(args, option) is None:
            raise OptionError(f"metrics with {UNSEEN} need --{option.replace('_', '-')}")
    remedy = "give the files of the very same set"
    sources = _as_many(args.source, args.reference, len(references), remedy)
    train_references = list(read_lines(args.train_target))
    train_sources = _as_many(args.train_source, args.train_target, len(train_references), remedy)
    return unseen_lines(sources, references, train_sources, train_references)


def _refuse_log(path: Path, lines: list[str]) -> None:
    """Refuse what fairseq-generate prints: its outputs are among other lines, and in another order."""
    if match := _OF_GENERATE.match("".join(lines[:1])):
        cause = f"is what fairseq-generate printed ({match[0].strip()} …), not one output a line"
        remedy = (
            f"take the outputs: grep ^D- {shlex.quote(str(path))} | sort -V | cut -f 3- > out.txt"
        )
        raise InputError(path, 1, cause, remedy)


def _as_many(path: Path, other: Path, size: int, remedy: str) -> list[str]:
    """The lines of a file that must have as many as another."""
    lines = list(read_lines(path))
    _refuse_log(path, lines)
    if len(lines) != size:
        raise InputError(path, None, f"has {len(lines)} lines, but {other} has {size}", remedy)
    return lines


def _table(scores: list[Score]) -> str:
    names = [" ".join(filter(None, (score.metric, score.category))) for score in scores]
    width = max(map(len, names))
    return "\n".join(
        f"{name:<{width}}  {score.value:6.2f}  n={score.n}  {score.signature}"
        + (f"  ({score.lengths})" if score.lengths else "")
        for name, score in zip(names, scores, strict=True)
    )
