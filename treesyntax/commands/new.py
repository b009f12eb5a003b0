"""Write a recipe for data of your own: a dozen lines that extend one that comes with treesyntax.

  treesyntax new my.yaml --source corpus/train.en --target corpus/train.de --parser benepar --model MODEL
  treesyntax new my.yaml --source corpus/train.conllu --source-format conllu --target corpus/train.de
  treesyntax new my.yaml --source questions.tsv --target-format sexpr

What is missing is asked for, on a terminal. Text to text needs valid and test files beside the training
files, with valid and test for train in their names (treesyntax data make split draws them).

Questions with logical forms come in a TSV, a question, a tab and its form on each line, no header; or in
a folder with train.src and train.tgt. Missing sets are drawn, a tenth of the pairs each.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import InputError, OptionError
from treesyntax.files import count_lines, plain_name, read_lines, there_or_packed, write_text

if TYPE_CHECKING:
    from treesyntax.study.run.plan import Plan

SPLITS = ("train", "valid", "test")
FIRST = {
    "semantic_parsing": ("sequence", "nary_dfs", "lcrs_dfs"),
    "nmt": ("sequence", "relation_mask", "relation_mask/random"),
}
"""By the folder of the recipe that is extended, the rows of a first table."""
TEXT, TABLE = "text", ".tsv"
TREE_SUFFIXES = (".conllu", ".ptb", ".mrg")
"""Of files that hold trees whatever the options say; other formats share theirs with languages."""
VOCAB, SMALL_VOCAB = 8000, 4000
"""Subwords at most: that of the recipes for a GPU, and for two CPU cores."""
FEWEST_SUBWORDS = 500
TRIED_LINES = 20_000
"""Lines that tell whether so many subwords can be had."""
SMALL: dict[str, dict[str, Any]] = {
    "vars": {"size": "compact"},
    "train": {
        "max-update": 2000, "patience": 3, "save-interval-updates": 100, "validate-interval-updates": 100,
        "batch-size": 64, "lr": 0.002, "warmup-updates": 300,
    },
}  # fmt: skip
"""Sizes of a translation study for two CPU cores; on 2,000 lines it is best after some 500 updates."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The recipe, the two files, and where trees come from."""
    add = parser.add_argument
    add("recipe", type=Path, metavar="RECIPE.yaml", help="file to write")
    add("--source", type=Path, metavar="FILE", help="training sources; or a TSV, or a folder")
    add("--target", type=Path, metavar="FILE", help="training targets, in the same order")
    add("--title", help="title of the report (default: the name of the data)")
    add("--parser", metavar="NAME", help="makes trees of source text, see treesyntax parse")
    add("--model", metavar="MODEL", help="model of the parser: a folder, or a name")
    add("--source-format", metavar="FORMAT", help="if the sources are trees: conllu, ptb, sexpr, …")
    add("--target-format", metavar="FORMAT", help="if the targets are trees: sexpr, prolog, …")
    add("--gpu", action="store_true", help="sizes for a GPU instead of two CPU cores")


def run(args: argparse.Namespace) -> int:
    """Write the recipe and say how to go on."""
    import yaml

    from treesyntax.study.data_summary import data_summaries, summary_lines

    if os.path.lexists(args.recipe):  # a link to nothing too
        raise InputError(args.recipe, None, "already exists", "choose another name")
    source = _existing(_value(args.source, "--source", "file with the training sources"))
    whole = source.is_dir() or plain_name(source).endswith(TABLE)
    content = _forms(args, source) if whole else _translation(args, source)
    content = {"name": args.recipe.stem, **content}
    if args.title:
        content["title"] = args.title
    if not whole:
        fitted = _fitted(
            args.source, args.target, VOCAB if args.gpu else SMALL_VOCAB, args.source_format
        )
        content["vars"] = {**content.get("vars", {}), **fitted.pop("vars")}
        content |= fitted
    if not args.gpu and not whole:
        content |= {"budget": "rest", "train": SMALL["train"]}
        content["vars"] |= SMALL["vars"]
    if not args.gpu:
        content["seeds"] = [1, 2, 3]  # with fewer there is no verdict
    command = f"treesyntax study {shlex.quote(str(args.recipe))}"
    rows = FIRST[content["extends"].partition("/")[0]]
    first = f"{command} --only {' '.join(rows)}"
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
    plan = _plan(args.recipe, content)
    summary = summary_lines(data_summaries(plan.recipe))
    write_text(args.recipe, f"# {first}\n# {command}\n#\n# {_sizes(plan)}\n#\n{_rows(plan)}{text}")
    print("\n".join([*summary, ""]), end="")
    print(
        "\n".join(_next_commands(args, plan, plan.of_rows(rows), content["vars"], [first, command]))
    )
    return 0


def _plan(recipe: Path, content: Mapping[str, Any]) -> Plan:
    """What a recipe that is not written yet would do."""
    from treesyntax.study.recipe.reading import EXTENDS, laid_over, read_extended
    from treesyntax.study.recipe.recipe import read_recipe, with_content
    from treesyntax.study.recipe.shipped import shipped_recipe
    from treesyntax.study.run.plan import make_plan

    base = shipped_recipe(content[EXTENDS])
    changes = {key: value for key, value in content.items() if key != EXTENDS}
    whole = laid_over(read_extended(base), changes)
    return make_plan(with_content(replace(read_recipe(base), path=recipe), whole))


def _sizes(plan: Plan) -> str:
    """What a training is: its size, its updates, and when it ends."""
    recipe = plan.recipe
    flags = recipe.flags(recipe.methods[0], "train")
    batch = f" of {pairs} pairs" if (pairs := flags.get("batch-size")) else ""
    size, updates = recipe.content["vars"]["size"], f"{int(flags['max-update']):,} updates{batch}"
    if patience := flags.get("patience"):
        every = int(flags["validate-interval-updates"])
        return (
            f"A training: size {size}, at most {updates}; it ends after {patience} validations, one in {every} "
            "updates, that were not better (patience)."
        )
    return (
        f"A training: size {size}, {updates}, no early stopping (budget: fixed), so conclusions are of so many "
        "updates; others may differ."
    )


def _rows(plan: Plan) -> str:
    """The rows with what each is, as comments."""
    about = {method.name: method.about for method in plan.recipe.methods}
    width = max(map(len, about))
    lines = (f"#   {name:<{width}}  {text}" for name, text in about.items())
    head = "# The rows. To leave one out: methods: {ROW: null}"
    return "\n".join([head, *lines, ""])


def _next_commands(
    args: argparse.Namespace,
    plan: Plan,
    few: Plan,
    drawn: Mapping[str, Any],
    commands: Sequence[str],
) -> list[str]:
    """The commands to go on with, the shortest first: those of a first table and of the whole."""
    from treesyntax.jobs import cores
    from treesyntax.study.estimate import how_long

    recipe, (first, command) = plan.recipe, commands
    rest = " if none ends before its cap" if recipe.budget == "rest" else ""
    sets = [f"{drawn[split]} for {split}" for split in SPLITS[1:] if type(drawn.get(split)) is int]
    return [
        f"{args.recipe} is written: {len(recipe.methods)} rows, which it explains, and "
        f"{len(recipe.seeds)} seeds",
        *([f"of the pairs are drawn: {', '.join(sets)}"] if sets else []),
        _sizes(plan),
        "look at it first; nothing is trained:",
        f"  {command} --plan",
        f"then a first table, of {len(few.runs)} trainings:",
        f"  {first}",
        *([] if args.gpu else [f"  ({how_long(few, cores())}{rest})"]),
        f"and the whole study, of {len(plan.runs)}, which trains nothing twice:",
        f"  {command}",
        "p is corrected for all rows in the table (Holm), so rows added later change it: choose them first",
    ]


def _forms(args: argparse.Namespace, source: Path) -> dict[str, Any]:
    """Questions with logical forms, all of which are read."""
    from treesyntax.data.sets.questions import read_parts

    flags = {"--target": args.target, "--parser": args.parser, "--model": args.model,
              "--source-format": args.source_format}  # fmt: skip
    flags_given = [flag for flag, value in flags.items() if value]
    if flags_given or args.target_format == TEXT:
        forms = f"for questions with logical forms leave out {', '.join(flags_given)} and name"
        forms = forms if flags_given else "for questions with logical forms name"
        raise OptionError(
            f"{source} has both sides: {forms} the notation of the forms, --target-format sexpr; "
            f"for text to text {_two_files(source)}"
        )
    notation = _format(_value(args.target_format, "--target-format", "format of the forms"))
    splits = read_parts(source, notation)
    size = len({*splits["train"]})  # copies of a pair are drawn together
    draw = {split: max(size // 10, 1) for split in SPLITS[1:] if split not in splits}
    if sum(draw.values()) >= size:
        raise InputError(
            source,
            None,
            f"has {size} different pair{'s' * (size != 1)} to train on",
            "give some dozens at least",
        )
    return {
        "extends": "semantic_parsing/geo",
        "vars": {
            "corpus": plain_name(source.resolve()).removesuffix(TABLE),
            "root": str(source),
            "notation": notation,
            **draw,
        },
    }


def _two_files(source: Path) -> str:
    """How text to text in one place becomes the files that a parser and a study read."""
    if source.is_dir():
        return "name two files, such as --source corpus/train.en --target corpus/train.de"
    table = shlex.quote(str(source))
    return (
        "make files, with the suffixes of your languages: "
        f"cut -f 1 {table} > all.en; cut -f 2 {table} > all.de; treesyntax data make split --source all.en "
        f"--target all.de --out corpus {_drawn_sizes(source)}; and give --source corpus/train.en --target "
        "corpus/train.de --parser NAME --model MODEL"
    )


def _translation(args: argparse.Namespace, source: Path) -> dict[str, Any]:
    """Text to text, with trees of the sources by a parser or from files."""
    from treesyntax.data.encoding import WORD_FORMATS
    from treesyntax.parsers import get_kind

    if not args.target and plain_name(source).endswith(".csv"):
        remedy = "write a TSV: a question, a tab and its form on each line, no header"
        raise InputError(source, None, "a .csv is not read", remedy)
    if not args.target and Path(plain_name(source)).suffix in (".jsonl", ".json"):
        remedy = (
            "for questions with forms give a .tsv or a folder, for trees give --target; examples in JSON lines are "
            "for treesyntax finetune, see docs/pretrained.md"
        )
        raise InputError(source, None, "is no file with both sides", remedy)
    target = _existing(_value(args.target, "--target", "file with the training targets"))
    if args.target_format not in (None, TEXT):
        raise OptionError(
            "--target-format is for questions with logical forms in one file; make it with: "
            f"paste {shlex.quote(str(source))} {shlex.quote(str(target))} > pairs.tsv"
        )
    languages = [Path(plain_name(file)).suffix.removeprefix(".") for file in (source, target)]
    if not all(languages) or languages[0] == languages[1]:
        raise OptionError(f"{source} and {target} need different suffixes, such as .en and .de")
    files = (source, target)
    source_format = args.source_format or TEXT
    suffix = Path(plain_name(source)).suffix
    if source_format == TEXT and suffix in TREE_SUFFIXES:
        raise InputError(
            source, None, f"would be parsed as text, and {suffix} is for trees",
            f"give --source-format {suffix[1:]} in place of --parser and --model",
        )  # fmt: skip
    if source_format != TEXT and (args.parser or args.model):
        raise OptionError(f"{source} has trees: leave out --parser and --model")
    sets = {
        file: [_of_split(file, split, files, source_format) for split in SPLITS] for file in files
    }
    for texts, translations in zip(*(sets[file] for file in files), strict=True):
        _check_aligned(texts, translations, source_format)
    if source_format != TEXT:
        sides = zip(("source", "target"), sets.values(), ("tree", languages[1]), strict=True)
        nodes_are_words = _format(source_format) in WORD_FORMATS
        return {
            "extends": "nmt/dependency" if nodes_are_words else "nmt/constituency",
            "title": f"{source.resolve().parent.name}: trees to {languages[1]}",
            "vars": {"corpus": source.resolve().parent.name, "root": str(source.parent)},
            "prepare": [],
            "data": {
                side: {"lang": language, **dict(zip(SPLITS, map(str, files), strict=True))}
                for side, files, language in sides
            },
            "binarize": {"source-format": source_format, "source-text": None},
        }
    for source_file, target_file in zip(sets[source], sets[target], strict=True):
        named = source_file.with_name(f"{_split_name(source_file)}.{languages[1]}")
        if target_file.with_name(plain_name(target_file)).resolve() != named.resolve():
            raise InputError(
                target_file, None, f"is not beside {source_file} under its name",
                f"put both sides into one folder, as {source_file.name} and {named.name}",
            )  # fmt: skip
    parser = _value(args.parser, "--parser", "parser of the sources (treesyntax parse --help)")
    constituents = get_kind(parser).annotation == "constituency"
    return {
        "extends": "nmt/constituency" if constituents else "nmt/dependency",
        "vars": {
            "corpus": source.resolve().parent.name,
            "root": str(source.parent),
            "source": languages[0],
            "target": languages[1],
            **{split: _split_name(file) for split, file in zip(SPLITS, sets[source], strict=True)},
            "parser": parser,
            "model": str(_value(args.model, "--model", "model of the parser")),
        },
    }


def _check_aligned(source: Path, target: Path, source_format: str) -> None:
    """Refuse two files with different numbers of examples."""
    from treesyntax.trees.formats import reader_of

    unit = "lines" if source_format == TEXT else "trees"
    examples = sum(1 for _ in reader_of(source_format)(source))
    translations = count_lines(target)
    if examples == translations:
        return
    remedy = f"line N of {target.name} must translate number N of {source.name}: mend them"
    cause = f"has {examples:,} {unit}, and {target} {translations:,} lines"
    raise InputError(source, None, cause, remedy)


def _fitted(source: Path, target: Path, most: int, source_format: str | None) -> dict[str, Any]:
    """What the text itself decides: how many subwords, and which metrics."""
    from itertools import islice

    from treesyntax.data.sentencepiece import fitting_size
    from treesyntax.metrics.text import metrics_for

    references = list(read_lines(target))
    text = references[:TRIED_LINES]
    if source_format in (None, TEXT):
        text += islice(read_lines(source), TRIED_LINES)
    wanted = min(most, max(len(references) // 100 * 100, FEWEST_SUBWORDS))
    content: dict[str, Any] = {"vars": {"vocab": fitting_size(text, wanted, target)}}
    metrics = metrics_for(references[:TRIED_LINES])
    if metrics != metrics_for([]):
        content["score"] = metrics
    return content


def _of_split(train: Path, split: str, files: Sequence[Path], source_format: str) -> Path:
    """The file of a set beside a training file: valid or dev, or test in place of train."""
    if split != "train" and "train" not in train.name:
        raise InputError(
            train, None, f"has no «train» in its name, so the {split} set beside it has no name",
            "rename it, such as train.en, with valid.en and test.en beside it",
        )  # fmt: skip
    names = [
        train.name.replace("train", name) for name in ((split, "dev")[: 1 + (split == "valid")])
    ]
    for name in names:
        if path := there_or_packed(train.with_name(name)):
            return path
    needed = f"a study needs a {split} set beside {train.name}"
    if source_format != TEXT:
        remedy = f"{needed}: cut train, valid and test from your trees and their targets by hand"
    else:
        source, target = (shlex.quote(str(file)) for file in files)
        folder = shlex.quote(f"{files[0].resolve().parent.name}-split")
        remedy = (
            f"{needed}; to draw sets from it: treesyntax data make split --source {source} --target {target} "
            f"--out {folder} {_drawn_sizes(files[0])}, and then give --source {folder}/train{files[0].suffix}"
        )
    raise InputError(train.with_name(names[0]), None, "does not exist", remedy)


def _drawn_sizes(path: Path) -> str:
    """The options of a split that leave most lines of a file for training."""
    size = min(max(count_lines(path) // 10, 1), 200)
    return f"--valid {size} --test {size}"


def _split_name(file: Path) -> str:
    return Path(plain_name(file)).stem


def _existing(name: str | Path) -> Path:
    from treesyntax.study.recipe.checks import PLACEHOLDER

    path = Path(name)
    if not path.exists():
        raise InputError(path, None, "does not exist", "check the name")
    named = path.resolve()  # its own name and that of its folder become names in the recipe
    if PLACEHOLDER.search(f"{path} {named.parent.name} {named.name}"):
        cause = "a recipe takes what is in braces for a variable"
        raise InputError(path, None, cause, "choose a path without braces")
    return path


def _format(name: str) -> str:
    from treesyntax.trees.formats import get_format

    get_format(name)
    return name


def _value(given: Any, flag: str, what: str) -> Any:
    """What was given, or what the user types."""
    if given:
        return given
    answer = ""
    if sys.stdin.isatty():
        print(f"{what}: ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip()
    if not answer:
        raise OptionError(f"{flag} is missing: the {what}")
    return answer
