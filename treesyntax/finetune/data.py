"""Data files as examples: JSON lines, tables and CoNLL-U, with named columns and trees in any format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.files import atomic_file, parse_json, read_lines, write_text
from treesyntax.finetune.job import CLASSES, COLUMNS, TAGS, WRITES, Job
from treesyntax.trees.controls import control_tree
from treesyntax.trees.formats import conllu, get_format, parse_tree, read_trees
from treesyntax.trees.tree import Tree

CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel")
PAIR = " ||| "
"""Between both texts of a pair, in the lines of sources."""
NEEDS = {CLASSES: "label", TAGS: "label"} | dict.fromkeys(WRITES, "target")
"""The column with the answer of each task."""


class Example(NamedTuple):
    """An example of a data file.

    Attributes:
        inputs: its text or words and its trees, by the keys of a collator.
        answer: its class, the classes of its words, or its output text; None where the file has none.
    """

    inputs: dict[str, Any]
    answer: Any

    @property
    def source(self) -> str:
        """The input in one line."""
        texts = [
            self.inputs.get(f"text{end}") or " ".join(self.inputs.get(f"words{end}") or ())
            for end in ("", "_pair")
        ]
        return PAIR.join(" ".join(text.split()) for text in texts if text)

    @property
    def target(self) -> str:
        """The answer in one line."""
        words = self.answer if isinstance(self.answer, list) else str(self.answer).split()
        return " ".join(words)


def read_examples(
    job: Job,
    file: str | Path,
    trees: str | Path | None = None,
    targets: str | Path | None = None,
) -> list[Example]:
    """Read a data file by its suffix: ``.jsonl``, ``.tsv`` or ``.conllu``, else text; each may have ``.gz``.

    Args:
        job: says which columns are what, and in what format trees are.
        file: one example a line; in CoNLL-U one a sentence, tagged by its column ``upos``.
        trees: a file in the format of the job with the tree of each example.
        targets: a file with the answer of each example, one a line.

    Raises:
        InputError: for a file that cannot be read, a line without a column that is needed, or a tree
            that is malformed.
    """
    path = Path(file)
    rows = list(_each(job, path))
    if not rows:
        raise InputError(path, None, "is empty", "give one example a line")
    given: list[Tree] = []
    if trees is not None:
        given = list(read_trees(trees, _format(job)))
        if len(given) != len(rows):
            cause = f"has {len(given)} trees, but {path} has {len(rows)} examples"
            raise InputError(trees, None, cause, "give one tree an example")
    if targets is not None:
        lines = list(read_lines(targets))
        if len(lines) != len(rows):
            cause = f"has {len(lines)} lines, but {path} has {len(rows)} examples"
            raise InputError(targets, None, cause, "give one answer an example")
        column = job.columns.get(NEEDS[job.task], NEEDS[job.task])
        rows = [(at, {**row, column: text}) for (at, row), text in zip(rows, lines, strict=True)]
    examples = []
    for number, (line, row) in enumerate(rows):
        try:
            examples.append(_example(job, row, given[number] if given else None))
        except (TreeError, OptionError) as error:
            raise InputError(path, line, str(error)) from None
    return examples


def _each(job: Job, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line and the columns of each example; a line may hold several."""
    for line, row in _rows(job, path):
        if not job.each:
            yield line, row
            continue
        items = row.get(job.each)
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            cause = f"has no list of objects {job.each!r}"
            raise InputError(path, line, cause, f"it has {', '.join(row)}; give another --each")
        for item in items:
            yield line, {**row, **item}


def _rows(job: Job, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The line and the columns of each example."""
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind == ".conllu":
        yield from _of_treebank(path)
    elif kind == ".tsv":
        yield from _of_table(path, job.header)
    elif kind in (".jsonl", ".json", ".ndjson"):
        for line, text in enumerate(read_lines(path), start=1):
            if not text.strip():
                continue
            try:
                row = parse_json(text)
            except ValueError as error:
                cause = f"is not JSON ({str(error)[:80]})"
                raise InputError(path, line, cause, "write one object a line") from None
            if not isinstance(row, dict):
                raise InputError(path, line, "is no object", 'write {"text": …, "label": …}')
            yield line, row
    else:
        for line, text in enumerate(read_lines(path), start=1):
            yield line, {"text": text}


def _of_table(path: Path, header: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    names = list(header)
    for line, text in enumerate(read_lines(path), start=1):
        fields = text.split("\t")
        if not names:
            names = fields
            continue
        if not text.strip():
            continue
        if len(fields) != len(names):
            cause = f"has {len(fields)} columns, but {', '.join(names)} are {len(names)}"
            remedy = "name the columns in the first line, or by --header"
            raise InputError(path, line, cause, remedy)
        yield line, dict(zip(names, fields, strict=True))


def _of_treebank(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    tree_format = get_format("conllu")
    for record in tree_format.records(path):
        words = [cells for cells in conllu.rows(record.text) if cells and cells[0].isdecimal()]
        if not words:
            continue
        row: dict[str, Any] = {
            name: [word[place] for word in words] for place, name in enumerate(CONLLU_COLUMNS)
        }
        row |= {"words": row["form"], "label": row["upos"]}
        try:
            row["tree"] = tree_format.parse(record.text)
        except TreeError as error:
            raise InputError(path, record.line, error.cause, error.remedy) from None
        yield record.line, row


def _example(job: Job, row: Mapping[str, Any], tree: Tree | None) -> Example:
    values = {
        name: row.get(job.columns.get(name, name))
        for name in COLUMNS
        if job.columns.get(name, name) in row
    }
    for name, column in job.columns.items():
        if column not in row:
            raise OptionError(f"has no column {column!r} ({name}); it has {', '.join(row)}")
    if not {"text", "words"} & values.keys():
        raise OptionError(
            f"has no column text or words; name it by --columns text=NAME; it has {', '.join(row)}"
        )
    inputs: dict[str, Any] = {}
    for end in ("", "_pair"):
        text, words = values.get(f"text{end}"), values.get(f"words{end}")
        if words is not None and (text is None or f"words{end}" in job.columns):
            inputs[f"words{end}"] = _list(words)
        elif text is not None:
            inputs[f"text{end}"] = str(text)
    heads = values.get("heads")
    if tree is not None:
        inputs["tree"] = tree
    elif heads is not None:
        relations = _list(values["relations"]) if values.get("relations") is not None else ()
        words = inputs.get("words") or inputs["text"].split()
        inputs["tree"] = Tree.from_heads([int(head) for head in _list(heads)], words, relations)
    else:
        inputs["tree"] = _trees(job, values.get("tree"))
    if job.columns.get("words") == job.columns.get("tree", "tree"):
        inputs["words"] = words_of(inputs["tree"])
    first, last = values.get("start"), values.get("end")
    if first is not None and last is not None:
        if "words" not in inputs:
            raise OptionError("start and end are of words; name the column by --columns words=NAME")
        inputs["words_pair"] = inputs["words"][int(first) : int(last)]
    if "tree_pair" in values:
        inputs["tree_pair"] = _trees(job, values["tree_pair"])
    for name in ("tree", "tree_pair") if job.control else ():
        if isinstance(inputs.get(name), Tree):
            inputs[name] = control_tree(inputs[name], job.control, job.control_seed)
        elif inputs.get(name):
            inputs[name] = [
                control_tree(tree, job.control, job.control_seed) for tree in inputs[name]
            ]
    return Example(inputs, _answer(job, values.get(NEEDS[job.task]), inputs))


def words_of(tree: Any) -> list[str]:
    """The words of a tree, or of the trees of several sentences."""
    trees = [tree] if isinstance(tree, Tree) else tree or []
    return [one.labels[node] for one in trees for node in one.word_nodes()]


def _list(value: Any) -> list[str]:
    """A list of a column: of JSON, or words with spaces between them."""
    return value.split() if isinstance(value, str) else [str(item) for item in value]


def _format(job: Job) -> str:
    if not job.tree_format:
        raise OptionError("trees are text, but of no known format; give --tree-format, such as ptb")
    return job.tree_format


def _trees(job: Job, value: Any) -> Any:
    """A tree, a list of those of several sentences, or None."""
    if value is None or isinstance(value, Tree):
        return value
    if value == "":
        return None
    if isinstance(value, list):
        return [_trees(job, item) for item in value]
    return parse_tree(str(value), _format(job))


def _answer(job: Job, value: Any, inputs: Mapping[str, Any]) -> Any:
    if value is None:
        return None
    if job.task == TAGS:
        tags = _list(value)
        if "words" not in inputs:
            raise OptionError(
                "tags are of words; name the column with words by --columns words=NAME"
            )
        if len(tags) != len(inputs["words"]):
            raise OptionError(f"has {len(tags)} tags for {len(inputs['words'])} words")
        if spaced := [tag for tag in tags if not tag or tag.split() != [tag]]:
            raise OptionError(f"has the tag {spaced[0]!r}; a tag is one word")
        return tags
    if job.task == CLASSES and (isinstance(value, float | bool | list) or not str(value).strip()):
        raise OptionError(f"has the label {value!r}; a class is a name or a whole number")
    return str(value)


def held_out(examples: Sequence[Example], count: int) -> tuple[list[Example], list[Example]]:
    """Part examples into those to train on and about so many to validate on; no input is in both.

    Which ones depends on their inputs alone, not on their order.
    """

    def place(example: Example) -> bytes:
        return blake2b(example.source.partition(PAIR)[0].encode(), digest_size=8).digest()

    last = sorted(map(place, examples))[: max(count, 0)][-1:]
    chosen = [bool(last) and place(example) <= last[0] for example in examples]
    pairs = list(zip(examples, chosen, strict=True))
    return [one for one, out in pairs if not out], [one for one, out in pairs if out]


def classes_of(examples: Sequence[Example]) -> tuple[str, ...]:
    """The classes of some examples, whole numbers by size and names by the alphabet."""
    found: set[str] = set()
    for example in examples:
        found.update(example.answer if isinstance(example.answer, list) else [example.answer])
    numbers = all(name.lstrip("-").isdecimal() for name in found)
    return tuple(sorted(found, key=lambda name: (int(name) if numbers else 0, name)))


def check_answers(examples: Sequence[Example], file: str | Path, job: Job) -> None:
    """Make sure that all examples have an answer, of the classes of the job if these are known.

    Raises:
        InputError: with the number of the first that has none, or another.
    """
    for number, example in enumerate(examples, start=1):
        if example.answer is None:
            column = NEEDS[job.task]
            cause = f"example {number} has no column {job.columns.get(column, column)!r}"
            raise InputError(file, None, cause, f"name it by --columns {column}=NAME")
        answers = example.answer if isinstance(example.answer, list) else [example.answer]
        other = [answer for answer in answers if job.labels and answer not in job.labels]
        if other:
            cause = f"example {number} has the class {other[0]!r}, which the training data lacks"
            raise InputError(file, None, cause, f"its classes are {', '.join(job.labels)}")


def write_data(job: Job, name: str, examples: Sequence[Example], folder: Path) -> None:
    """Write a data set as a study keeps it: ``NAME.jsonl`` with trees, ``NAME.source`` and ``NAME.target``."""
    write = get_format("jsonl").write
    with (
        atomic_file(folder / f"{name}.jsonl") as staged,
        staged.open("w", encoding="utf-8", newline="\n") as stream,
    ):
        for example in examples:
            row = dict(example.inputs)
            for key in ("tree", "tree_pair"):
                tree = row.get(key)
                if isinstance(tree, Tree):
                    row[key] = write(tree)
                elif tree:
                    row[key] = [write(inner) for inner in tree]
            row[NEEDS[job.task]] = example.answer
            written = {key: value for key, value in row.items() if value is not None}
            stream.write(json.dumps(written, ensure_ascii=False) + "\n")
    write_text(folder / f"{name}.source", "".join(f"{example.source}\n" for example in examples))
    write_text(folder / f"{name}.target", "".join(f"{example.target}\n" for example in examples))


def write_texts(name: str, examples: Sequence[Example], folder: Path) -> None:
    """Write the first text of each example, for a parser: ``NAME.text``."""
    texts = (
        example.inputs.get("text") or " ".join(example.inputs.get("words") or ())
        for example in examples
    )
    write_text(folder / f"{name}.text", "".join(f"{' '.join(text.split())}\n" for text in texts))
