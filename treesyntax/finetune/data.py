"""Data files as examples: JSON lines, tables and CoNLL-U, with named columns and trees in any format."""

from __future__ import annotations

import csv
import json
import re
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax.data.tables import check_separator, read_table
from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.files import atomic_file, parse_json, read_lines, write_lines
from treesyntax.finetune.job import CLASSES, COLUMNS, TAGS, WRITES, Job
from treesyntax.remarks import Remark, Remarks, at_line, remark, remarks_of
from treesyntax.trees.alignment import check_words, trees_of, without_words, word_spans
from treesyntax.trees.controls import control_tree
from treesyntax.trees.formats import (
    conllu,
    get_format,
    parse_record,
    parse_tree,
    parse_tree_over,
)
from treesyntax.trees.formats.moses import check_characters, check_line, check_tool_words
from treesyntax.trees.formats.offsets import offsets_path, read_offsets
from treesyntax.trees.labels import WORD, node_labels
from treesyntax.trees.merging import merge_words, units
from treesyntax.trees.tree import Tree

CONLLU_COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel")
PAIR = " ||| "
"""Between both texts of a pair, in the lines of sources."""
NEEDS = {CLASSES: "label", TAGS: "label"} | dict.fromkeys(WRITES, "target")
"""The column with the answer of each task."""
EMPTY = {
    name: Remark(f"an empty {name}", "pandas writes a missing value so: take them out if they are")
    for name in ("text", "text_pair", "words", "words_pair", "target")
}
MISSING = Remark(
    "the class nan, as pandas prints a missing value",
    "it is a class of its own: take them out if none",
)
_NOTHING = ("nan", "<na>")
NO_TEXT = Remark(
    "the text nan, as pandas prints a missing value", "it is read as text: take them out if none"
)
UNDECIDED = Remark(
    "the class - or -1, as SNLI marks examples without a label that annotators agree on",
    "it is a class of its own: take them out if none",
)
SPELT_TWICE = Remark(
    "a class that other examples spell with other capitals (Yes, yes)",
    "each spelling is a class of its own: spell them alike",
)
SPACED = Remark(
    "spaces before double quotes",
    "the quotes are read as text: write no space behind a comma",
)
FRACTIONS = Remark(
    "classes such as 1.0, as pandas writes whole numbers beside missing ones",
    "1.0 and 1 are two classes: write all files alike",
)
_ITEM = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.0*)?)"""
_LIST = re.compile(rf"\[{_ITEM}(?:,\s*{_ITEM})*\]", re.DOTALL)
_PRINTED = re.compile(r"""\[(?:['"].*|\s*-?[0-9][-0-9.,\s]*)(?<!\s)\]""", re.DOTALL)
"""What is no words: a list, or an array of numpy, whose items have no commas between them."""


class Example(NamedTuple):
    """An example of a data file.

    Attributes:
        inputs: its text or words and its trees, by the keys of a collator.
        answer: its class, the classes of its words, or its output text; None where the file has none.
        line: of the file, on which it begins.
    """

    inputs: dict[str, Any]
    answer: Any
    line: int

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
    most: int | None = None,
) -> list[Example]:
    """Read a data file by its suffix: ``.jsonl``, ``.tsv``, ``.csv`` or ``.conllu``, else text; or with ``.gz``.

    Args:
        job: says which columns are what, and in what format trees are.
        file: one example a line; in CoNLL-U one a sentence, tagged by its column ``upos``.
        trees: a file in the format of the job with the tree of each example.
        targets: a file with the answer of each example, one a line.
        most: how many examples to read, from the first; None for all.

    Raises:
        InputError: for a file that cannot be read, a line without a column that is needed, or a tree
            that is malformed.
    """
    return _read(job, file, trees, targets, most)[0]


def _read(
    job: Job,
    file: str | Path,
    trees: str | Path | None,
    targets: str | Path | None,
    most: int | None,
) -> tuple[list[Example], Remarks]:
    """As `read_examples`, and what was remarked on in the file of trees."""
    path = Path(file)
    rows = list(islice(_each(job, path), most))
    if not rows:
        raise InputError(path, None, "is empty", "give one example a line")
    with remarks_of(trees or file) as remarks:
        given = [] if trees is None else list(islice(_read_given(trees, _format(job)), most))
    remarks.records = len(given)
    if trees is not None and len(given) != len(rows):
        cause = f"has {len(given)} trees, but {path} has {len(rows)} examples"
        raise InputError(trees, None, cause, "give one tree an example")
    if targets is not None:
        lines = list(islice(read_lines(targets), most))
        if len(lines) != len(rows):
            cause = f"has {len(lines)} lines, but {path} has {len(rows)} examples"
            raise InputError(targets, None, cause, "give one answer an example")
        column = job.columns.get(NEEDS[job.task], NEEDS[job.task])
        rows = [(at, {**row, column: text}) for (at, row), text in zip(rows, lines, strict=True)]
    examples = []
    for number, (line, row) in enumerate(rows):
        at_line(line)
        try:
            examples.append(_example(job, line, row, given[number] if given else None))
        except (TreeError, OptionError) as error:
            raise InputError(path, line, str(error)) from None
    if job.task == CLASSES:
        _remark_classes(examples)
    return examples, remarks


class _Given(NamedTuple):
    """A tree of a file of its own.

    Attributes:
        tree: over its words.
        record: its text in CoNLL-U, if it has multi-word tokens.
        spans: those of its words in the line that was parsed, for brackets of a parser, if some are equal.
    """

    tree: Tree
    record: str = ""
    spans: Sequence[tuple[int, int]] = ()

    def over(self, text: str) -> Tree:
        """The tree over the words of its text, in which a multi-word token (French ``du`` = de + le) is one."""
        if self.record:
            return conllu.over_text(self.tree, self.record, text)
        if len(self.spans) != len(words_of(self.tree)):
            return self.tree
        groups, line = units(self.spans), " ".join(text.split())
        forms = [line[slice(*self.spans[first])] for first, _ in groups]
        return merge_words(self.tree, groups, forms)


def _read_given(path: str | Path, format_name: str) -> Iterator[_Given]:
    """The trees of a file, with what says where their words are in a text."""
    tree_format, path = get_format(format_name), Path(path)
    with_spans = format_name == "ptb" and offsets_path(path).is_file()
    spans = read_offsets(path, format_name) if with_spans else iter(())
    for record in tree_format.records(path):
        tree = parse_record(tree_format, path, record)
        tokens = format_name == "conllu" and conllu.has_tokens(record.text)
        of_words = next(spans, ())
        shared = len(set(of_words)) < len(of_words)
        yield _Given(tree, record.text if tokens else "", of_words if shared else ())


def _remark_classes(examples: Sequence[Example]) -> None:
    """Remark on classes that another one differs from in capitals alone, and on what may be no class.

    That is ``-`` where ``+`` is none, and -1 beside 0, 1 and 2, but no other below 0.
    """
    classes = Counter(example.answer for example in examples if example.answer is not None)
    usual: dict[str, str] = {}
    for name, _ in classes.most_common():
        usual.setdefault(name.casefold(), name)
    undecided = {"-"} if "+" not in classes else set()
    if classes.keys() >= {"-1", "0", "1", "2"} and "-2" not in classes:
        undecided.add("-1")
    for example in examples:
        at_line(example.line)
        if example.answer in undecided:
            remark(UNDECIDED)
        if example.answer in classes and usual[example.answer.casefold()] != example.answer:
            remark(SPELT_TWICE)


def read_noted(
    job: Job,
    file: str | Path,
    trees: str | Path | None = None,
    targets: str | Path | None = None,
) -> tuple[list[Example], list[str]]:
    """As `read_examples`, and a line for each kind of thing that was left out of the files or looks odd in them."""
    with remarks_of(file) as remarks:
        examples, of_trees = _read(job, file, trees, targets, None)
    remarks.records = len(examples)
    return examples, [*of_trees.texts("trees"), *remarks.texts("examples")]


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
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind == ".conllu":
        yield from _of_treebank(path)
    elif kind in (".tsv", ".csv"):
        yield from _of_table(
            path, read_table(path) if kind == ".tsv" else _commas(path), job.header
        )
    elif kind in (".jsonl", ".json", ".ndjson"):
        for line, text in enumerate(read_lines(path), start=1):
            if not text.strip():
                continue
            try:
                row = parse_json(text, by_user=True)
            except ValueError as error:
                cause = f"cannot be read as JSON ({str(error)[:80]})"
                raise InputError(path, line, cause, "write one object a line") from None
            if not isinstance(row, dict):
                raise InputError(path, line, "is no object", 'write {"text": …, "label": …}')
            yield line, row
    else:
        for line, text in enumerate(read_lines(path), start=1):
            at_line(line)
            check_line(text)
            yield line, {"text": text}


def _commas(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The line and the fields of each row of a file of comma-separated values."""
    reader = csv.reader((f"{line}\n" for line in read_lines(path)), strict=True)
    before = 0
    try:
        for fields in reader:
            at_line(before + 1)
            if spaced := sum(re.fullmatch(r' +".*"\s*', field) is not None for field in fields):
                remark(SPACED, spaced)
            yield before + 1, fields
            before = reader.line_num
    except csv.Error as error:
        raise InputError(path, before + 1, f"is no CSV ({error})", "write it again") from None


def _of_table(
    path: Path, rows: Iterator[tuple[int, list[str]]], header: Sequence[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    names = list(header)
    for line, fields in rows:
        if line == 1 and len(header) != 1:  # a single column may hold any text
            check_separator(
                path, fields, "write tabs between columns in a .tsv, and commas in a .csv"
            )
        if not names:
            names = [name.strip() for name in fields]
            if twice := [name for name in names if names.count(name) > 1]:
                raise InputError(path, line, f"has two columns {twice[0]!r}", "rename one of them")
            continue
        if not any(map(str.strip, fields)):
            continue
        if line == 1 and fields == names:
            raise InputError(path, line, "has the names of the columns", "leave --header out")
        if len(fields) != len(names):
            cause = f"has {len(fields)} columns, but {', '.join(names)} are {len(names)}"
            remedy = "name the columns in the first line, or by --header"
            raise InputError(path, line, cause, remedy)
        yield line, dict(zip(names, fields, strict=True))


def _of_treebank(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    tree_format = get_format("conllu")
    for record in tree_format.records(path):
        tree = parse_record(tree_format, path, record)
        words = [cells for cells in conllu.rows(record.text) if cells and cells[0].isdecimal()]
        if not words:  # empty nodes alone
            continue
        row: dict[str, Any] = {
            name: [word[index] for word in words] for index, name in enumerate(CONLLU_COLUMNS)
        }
        row |= {"words": row["form"], "label": row["upos"], "tree": tree}
        yield record.line, row


def _example(job: Job, line: int, row: Mapping[str, Any], given: _Given | None) -> Example:
    for name, column in job.columns.items():
        if column not in row:
            raise OptionError(f"has no column {column!r} ({name}); it has {', '.join(row)}")
    columns = {name: job.columns.get(name, name) for name in COLUMNS}
    values = {name: row[column] for name, column in columns.items() if row.get(column) is not None}
    if not {"text", "words"} & values.keys():
        raise OptionError(
            f"has no column text or words; name it by --columns text=NAME; it has {', '.join(row)}"
        )
    inputs: dict[str, Any] = {}
    for end in ("", "_pair"):
        text, words = f"text{end}", f"words{end}"
        if words in values and (text not in values or words in job.columns):
            inputs[words] = _words(words, values[words])
        elif text in values:
            inputs[text] = _text(text, values[text])
    for name, value in inputs.items():
        if not value or (isinstance(value, str) and not value.strip()):
            remark(EMPTY[name])
        elif isinstance(value, str) and value.strip().lower() in _NOTHING:
            remark(NO_TEXT)
        if not isinstance(values.get("tree"), Tree):  # whose words were checked as it was read
            spelling = value if isinstance(value, str) else " ".join(value)
            check_tool_words(spelling)
            check_characters(spelling)
    words_of_tree = columns["words"] == columns["tree"]
    surface = None if words_of_tree else _spelling(inputs)
    if given is None:
        inputs["tree"] = _tree(job, values, inputs, surface)
    else:
        inputs["tree"] = given.tree if surface is None else given.over(surface)
    if words_of_tree:
        inputs["words"] = words_of(inputs["tree"])
        if not inputs["words"]:
            raise OptionError(f"has no tree in {columns['tree']!r}, whose words are to be taken")
    ends = [values.get("start"), values.get("end")]
    if ends != [None, None]:
        if "words" not in inputs:
            raise OptionError("start and end are of words; name the column by --columns words=NAME")
        first, last = (_whole("start and end", value) for value in ends)
        if not 0 <= first < last <= len(inputs["words"]):
            count = len(inputs["words"])
            raise OptionError(
                f"has the start and end {ends}; they must be within its {count} words"
            )
        inputs["words_pair"] = inputs["words"][first:last]
    if "tree_pair" in values:
        inputs["tree_pair"] = _trees(job, values["tree_pair"], _spelling(inputs, "_pair"))
    for end in ("", "_pair"):  # before anything is trained, also of the test set
        _check_fit(inputs.get(f"text{end}"), inputs.get(f"words{end}"), inputs.get(f"tree{end}"))
    if job.control:
        inputs = controlled(inputs, job.control, job.control_seed)
    return Example(inputs, _answer(job, values.get(NEEDS[job.task]), inputs), line)


def _spelling(inputs: Mapping[str, Any], end: str = "") -> str:
    """The text of an example, or its words as one."""
    return str(inputs.get(f"text{end}") or " ".join(inputs.get(f"words{end}", ())))


def _check_fit(text: str | None, words: list[str] | None, trees: Any) -> None:
    """Refuse a tree that is not over the words of its text."""
    if words is not None:
        check_words(words, trees)
    elif text is not None and (nodes := sum(map(len, trees_of(trees)))):
        if text.strip() and not words_of(trees):
            raise without_words(nodes)
        word_spans(text, words_of(trees))


def _tree(job: Job, values: Mapping[str, Any], inputs: Mapping[str, Any], text: str | None) -> Any:
    """The tree of the columns of an example, a list of those of its sentences, or None."""
    given = [name for name in ("heads", "tree") if name in values]
    if len(given) > 1:
        given = [name for name in given if name in job.columns]
        if len(given) != 1:
            raise OptionError("has heads and a tree; choose by --columns heads=NAME or tree=NAME")
    if given != ["heads"]:
        return _trees(job, values.get("tree"), text)
    words = inputs.get("words") or inputs.get("text", "").split()
    heads = [_whole("heads", head) for head in _list("heads", values["heads"])]
    return Tree.from_heads(heads, words, _list("relations", values.get("relations", [])))


def controlled(inputs: Mapping[str, Any], control: str, seed: int) -> dict[str, Any]:
    """The inputs of an example with trees without syntax in place of its own."""

    changed = dict(inputs)
    for name in ("tree", "tree_pair"):
        if given := inputs.get(name):
            others = [control_tree(tree, control, seed) for tree in trees_of(given)]
            changed[name] = others[0] if isinstance(given, Tree) else others
    return changed


def words_of(trees: Any) -> list[str]:
    """The words of a tree, or of the trees of several sentences."""
    return [tree.labels[node] for tree in trees_of(trees) for node in tree.word_nodes()]


def _text(name: str, value: Any) -> str:
    """A text of a column; a number is one, what is missing in a table of pandas (nan) is not."""
    if not isinstance(value, str) and (type(value) not in (int, float) or value != value):
        raise OptionError(f"has the {name} {value!r}; it must be text")
    text = str(value)
    if re.search("[\ud800-\udfff]", text):
        raise OptionError(f"has half a surrogate pair in {name}, which is no character")
    return text


def _list(name: str, value: Any) -> list[str]:
    """A list of a column: of JSON, as pandas writes it into a table, or words with spaces between them."""
    if not isinstance(value, list):
        value = _items(name, _text(name, value).strip())
    return [_text(f"{name} with", item) for item in value]


def _words(name: str, value: Any) -> list[str]:
    """The words of a column; none is empty, as no token would stand on it."""
    words = _list(name, value)
    if empty := [number for number, word in enumerate(words, start=1) if not word.strip()]:
        raise OptionError(
            f"has an empty word in {name}, number {empty[0]}; take it and its tag out"
        )
    return words


def _items(name: str, text: str) -> list[Any]:
    """The items of a list that was printed into a table, or the words of any other text."""
    may_be_numbers = not name.startswith("words")  # "[1]" is a word, but a list of heads
    if not _PRINTED.fullmatch(text) or not (may_be_numbers or text[1] in "'\""):
        return text.split()
    if _LIST.fullmatch(text):
        for read in (parse_json, literal_eval):
            with suppress(ValueError, SyntaxError):
                return list(read(text))
    raise OptionError(
        f"has the {name} {text[:40]!r}, a list as Python prints it; write words with spaces, or JSON lines"
    )


def _whole(name: str, value: Any) -> int:
    """A whole number of a column; pandas may write 2 as 2.0."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.5
    if not number.is_integer():
        raise OptionError(f"has the {name} {value!r}; they must be whole numbers")
    return int(number)


def _format(job: Job) -> str:
    if not job.tree_format:
        raise OptionError("trees are text, but of no known format; give --tree-format, such as ptb")
    return job.tree_format


def _is_nested(value: Any) -> bool:
    """Whether a list begins with the label of a node, and not with the JSON of a tree."""
    label = value[0] if isinstance(value, list) and value else None
    return isinstance(label, str) and re.match(r'\s*[\[{"0-9-]', label) is None


def _trees(job: Job, value: Any, text: str | None) -> Any:
    """A tree, a list of those of several sentences, or None; over the words of a text, if there is one."""
    if value is None or isinstance(value, Tree):
        return value
    if isinstance(value, dict) or (job.tree_format == "jsonl" and _is_nested(value)):
        raise OptionError("has a tree that is JSON itself; write the tree as a string of JSON")
    if isinstance(value, list):
        return trees_of([_trees(job, item, text) for item in value])
    record = _text("tree", value)
    if not record.strip():
        return None
    if text is None:
        return parse_tree(record, _format(job))
    return parse_tree_over(text, record, _format(job))


def _answer(job: Job, value: Any, inputs: Mapping[str, Any]) -> Any:
    if value is None:
        return None
    if job.task == TAGS:
        tags = _list("label", value)
        if "words" not in inputs:
            raise OptionError(
                "tags are of words; name the column with words by --columns words=NAME"
            )
        if len(tags) != len(inputs["words"]):
            raise OptionError(f"has {len(tags)} tags for {len(inputs['words'])} words")
        if spaced := [tag for tag in tags if not tag or tag.split() != [tag]]:
            raise OptionError(f"has the tag {spaced[0]!r}; a tag is one word")
        return tags
    if job.task != CLASSES:
        text = _text("target", value)
        if not text.strip():
            remark(EMPTY["target"])
        elif text.strip().lower() in _NOTHING:
            remark(NO_TEXT)
        return text
    name = " ".join(str(value).split()) if type(value) in (str, int) else ""
    if not name:
        raise OptionError(f"has the label {value!r}; a class is a name or a whole number")
    if name.lower() in _NOTHING:
        remark(MISSING)
    elif re.fullmatch(r"-?[0-9]+\.0", name):
        remark(FRACTIONS)
    return name


def held_out(examples: Sequence[Example], count: int) -> tuple[list[Example], list[Example]]:
    """Part examples into those to train on and about so many to validate on; no input is in both.

    Which ones depends on their inputs alone, not on their order.
    """

    def digest(example: Example) -> bytes:
        return blake2b(example.source.partition(PAIR)[0].encode(), digest_size=8).digest()

    last = sorted(map(digest, examples))[: max(count, 0)][-1:]
    chosen = [bool(last) and digest(example) <= last[0] for example in examples]
    pairs = list(zip(examples, chosen, strict=True))
    return (
        [example for example, out in pairs if not out],
        [example for example, out in pairs if out],
    )


def classes_of(examples: Sequence[Example]) -> tuple[str, ...]:
    """The classes of some examples, whole numbers by size and names by the alphabet."""
    classes: set[str] = set()
    for example in examples:
        classes.update(example.answer if isinstance(example.answer, list) else [example.answer])
    numbers = all(name.removeprefix("-").isdecimal() for name in classes)
    return tuple(sorted(classes, key=lambda name: (int(name) if numbers else 0, name)))


def with_classes(job: Job, examples: Sequence[Example], file: str | Path) -> Job:
    """Return a job with the classes of its training data, if its task has some.

    Raises:
        InputError: for an example without an answer, and for fewer than two classes.
    """
    if not examples:
        raise InputError(file, None, "has nothing left to train on", "hold out fewer examples")
    check_answers(examples, file, job)
    if job.task in WRITES:
        return job
    labels = classes_of(examples)
    if len(labels) < 2:
        cause = f"has one class alone, {', '.join(labels)}"
        raise InputError(file, None, cause, "give examples of two or more")
    return replace(job, labels=labels)


def with_node_labels(job: Job, examples: Sequence[Example], file: str | Path) -> Job:
    """Return a job with the labels of the nodes of its training data, for a method that reads them.

    Raises:
        InputError: for trees of words alone, without relations or categories.
    """
    counts: Counter[str] = Counter()
    for example in examples:
        for name in ("tree", "tree_pair"):
            for tree in trees_of(example.inputs.get(name)):
                counts.update(node_labels(tree))
    if counts.keys() == {WORD}:
        cause = "has trees without relations or categories, which a method of --injection reads"
        raise InputError(file, None, cause, "give relations, or take another method")
    return replace(
        job, node_labels=tuple(sorted(counts, key=lambda label: (-counts[label], label)))
    )


def check_answers(examples: Sequence[Example], file: str | Path, job: Job) -> None:
    """Make sure that all examples have an answer, of the classes of the job if these are known.

    Raises:
        InputError: with the line of the first that has none, or another.
    """
    for example in examples:
        if example.answer is None:
            column = NEEDS[job.task]
            cause = f"has no column {job.columns.get(column, column)!r}"
            raise InputError(file, example.line, cause, f"name it by --columns {column}=NAME")
        answers = example.answer if isinstance(example.answer, list) else [example.answer]
        other = [answer for answer in answers if job.labels and answer not in job.labels]
        if other:
            cause = f"has the class {other[0]!r}, which the training data lacks"
            raise InputError(file, example.line, cause, f"its classes are {', '.join(job.labels)}")


def check_trees(examples: Sequence[Example], file: str | Path) -> int:
    """Make sure that an example or more of a file has a tree, for methods that need them.

    Returns:
        How many have none.

    Raises:
        InputError: if none has one.
    """
    lacking = sum(
        not (example.inputs.get("tree") or example.inputs.get("tree_pair")) for example in examples
    )
    if lacking == len(examples):
        remedy = "name their column by --columns tree=NAME or heads=NAME, or give a file of trees"
        raise InputError(
            file, None, "has no tree in any example, but the methods need some", remedy
        )
    return lacking


def check_first(job: Job, file: Path, trees: Path | None, targets: Path | None) -> None:
    """Read the first example of a file, so that a fault of all is told before anything is prepared.

    Files that a study is yet to make are left out. A job with methods needs a tree somewhere.
    """
    if any(path is not None and not path.is_file() for path in (file, targets)):
        return
    later = trees is not None and not trees.is_file()
    first = read_examples(job, file, None if later else trees, targets, 1)
    check_answers(first, file, job)
    if job.injection and not later:
        try:
            check_trees(first, file)
        except InputError:  # the others may have some
            check_trees(read_examples(job, file, trees, targets), file)


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
    write_lines(folder / f"{name}.source", (example.source for example in examples))
    write_lines(folder / f"{name}.target", (example.target for example in examples))


def write_texts(name: str, examples: Sequence[Example], folder: Path) -> None:
    """Write the first text of each example, for a parser: ``NAME.text``."""
    texts = (
        example.inputs.get("text") or " ".join(example.inputs.get("words") or ())
        for example in examples
    )
    write_lines(folder / f"{name}.text", (" ".join(text.split()) for text in texts))
