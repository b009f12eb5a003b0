"""CoNLL-U (https://universaldependencies.org/format.html): dependency trees, one word a line.

A node has FORM as its label and DEPREL as its relation; if every DEPREL is ``_``, the tree has no
relations. Multi-word token ranges (``1-2``) and empty nodes (``1.1``) are skipped, other columns
are not kept. Blank lines separate sentences. ``# text =`` alone is an empty sentence, any other block of
comments belongs to the sentence behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from treesyntax.errors import TreeError
from treesyntax.files import read_lines
from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats.base import Format, Record, RecordError, exact
from treesyntax.trees.formats.moses import check_escapes, check_penn
from treesyntax.trees.merging import merge_words
from treesyntax.trees.tree import Tree

_COLUMNS = 10
ID, FORM, HEAD, DEPREL, MISC = 0, 1, 6, 7, 9
_RANGE = re.compile(r"[0-9]{1,9}-([0-9]{1,9})")
_TOKENS = re.compile(rf"^{_RANGE.pattern}\t", re.MULTILINE)
# Tables of pandas have words 1.0, 2.0, 3.0; the first empty node behind a word is 1.1.
_NOT_A_WORD = re.compile(r"[0-9]+(?:-[0-9]+|\.[1-9][0-9]*)")
_NUMBER = re.compile(r"[0-9]{1,9}")
_UNKNOWN = "_"
EMPTY = "# text ="
CONVERT = "convert the file to CoNLL-U, with ID, FORM, HEAD and DEPREL as columns 1, 2, 7 and 8"
_PLUS = re.compile(r"^#\s*global\.columns\s*=\s*(.*?)\s*$", re.MULTILINE)
_NAMES = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC"
_COMMENTS = re.compile("(?:#.*\n|\n)*")
TEXT = re.compile(r"^# text = ?(.*)$", re.MULTILINE)
HEADERS = Remark(
    "a blank line behind their first comments", "the comments are read as part of the sentence"
)
WITHHELD = Remark(
    "_ for most words",
    "the text of such a treebank is withheld: its README says how to get it and put it in",
)
PADDED = Remark(
    "spaces around a FORM or a DEPREL",
    "they are kept, and make another word or relation of it: take them off",
)
EXPANDED = Remark(
    "multi-word tokens (French du = de + le)",
    "their words are read, which the text does not have: give the text too (--source-text) for the tokens",
)
_IDS = ["1", *(f"\n{number}" for number in range(2, 1001))]
_HEADS = {str(number): number for number in range(1001)}


def records(path: Path) -> Iterator[Record]:
    """The sentences of a file, which blank lines separate."""
    start = 0
    lines: list[str] = []
    words = False
    for number, line in enumerate(read_lines(path), start=1):
        if line and (not line.isspace() or line.strip(" \t")):
            if not lines:
                start = number
            words = words or line[0] != "#" or line.startswith(EMPTY)
            lines.append(line)
        elif words:
            yield Record(start, "\n".join(lines))
            lines, words = [], False
        elif lines:
            lines.append("")
    if words:
        yield Record(start, "\n".join(lines))


def rows(text: str) -> list[list[str]]:
    """The columns of every line of a record; an empty list for a comment."""
    return [line.split("\t") if line and line[0] != "#" else [] for line in text.split("\n")]


def words_and_tokens(rows: list[list[str]]) -> Iterator[tuple[int, list[str], list[str] | None]]:
    """The offset and columns of every word, and those of the multi-word token it belongs to."""
    token, until, word = None, 0, 0
    for offset, row in enumerate(rows):
        if len(row) < 2 or "." in row[0]:
            continue
        if "-" in row[0]:
            last = _RANGE.fullmatch(row[0])  # others are refused where the tree is read
            token, until = row, int(last[1]) if last else 0
            continue
        word += 1
        yield offset, row, token if word <= until else None


def has_tokens(text: str) -> bool:
    """Whether a record has multi-word tokens."""
    return _TOKENS.search(text) is not None


def over_text(tree: Tree, record: str, text: str) -> Tree:
    """The tree of a record over the words of its text, in which a multi-word token is one.

    French ``du`` (de + le) has the place of ``de`` and ``le``; ``don't`` stays do + n't, which spell it, and so
    do the words of a text that has them in place of their token.
    """
    words_alone = "".join(tree.labels[node] for node in tree.word_nodes())
    if not has_tokens(record) or "".join(words_alone.split()) in "".join(text.split()):
        return tree
    groups: list[tuple[int, int]] = []
    forms: list[str] = []
    first = 0
    for token, words in _tokens(record):
        end = first + len(words)
        if "".join(words) == token:
            groups += [(number, number + 1) for number in range(first, end)]
            forms += words
        else:
            groups.append((first, end))
            forms.append(token)
        first = end
    return merge_words(tree, groups, forms)


def _tokens(record: str) -> Iterator[tuple[str, list[str]]]:
    """Each multi-word token, or other word, with the forms of its words."""
    members = [(token or row, row[FORM]) for _, row, token in words_and_tokens(rows(record))]
    for _, run in groupby(members, key=lambda member: id(member[0])):
        (token, form), *others = run
        yield token[FORM], [form, *(form for _, form in others)]


def check_tokens(record: str) -> None:
    """Remark on multi-word tokens of a record that are read without its text, if their words do not spell them."""
    if not has_tokens(record):
        return
    if count := sum("".join(words) != token for token, words in _tokens(record)):
        remark(EXPANDED, count)


def is_first_word(line: str) -> bool:
    """Whether a line is the first of a sentence: of its first word, or of a token or an empty node before it."""
    row = line.split("\t")
    numbered = len(row) == _COLUMNS and re.fullmatch(r"1(-[0-9]+)?|0\.1", row[ID])
    return bool(numbered) and (row[HEAD] == _UNKNOWN or row[HEAD].isdecimal())


# Cached, as the tree and the offsets of a record are read one after the other.
@lru_cache(maxsize=1)
def columns(text: str) -> dict[int, list[str]] | None:
    """The columns that are read, if a quick test finds that every line is a word, 1, 2, 3, …"""
    begin = _COMMENTS.match(text)
    # If a line has fewer or more columns, later line ends are not in the first column.
    body = text[begin.end() if begin else 0 :]
    cells = body.replace("\n", "\t\n").split("\t")
    by_column = {column: cells[column::_COLUMNS] for column in (ID, FORM, HEAD, DEPREL, MISC)}
    size = len(by_column[ID])
    plain = size * _COLUMNS == len(cells) and by_column[ID] == _IDS[:size]
    plain = plain and body.count("\n") == size - 1  # a short line and its rest are no word
    return by_column if plain and all(by_column[FORM]) and all(by_column[DEPREL]) else None


def parse(text: str) -> Tree:
    """The dependency tree of one sentence."""
    _check_names(text)
    forms, written, relations = _forms_heads_relations(text)
    try:
        heads = [_HEADS[head] for head in written]
    except KeyError:
        heads = [_head(row[HEAD], offset) for offset, row in _words(text)]
    if relations.count(_UNKNOWN) == len(relations):
        relations = []
    _check_forms(text, forms)
    if (" \t" in text or "\t " in text) and any(
        cell != cell.strip(" ") for cell in (*forms, *relations)
    ):
        remark(PADDED)
    try:
        return Tree.from_heads(heads, forms, relations)
    except TreeError as error:
        offset = [offset for offset, _ in _words(text)][_word_to_blame(heads)]
        raise RecordError(error.cause, error.remedy, offset) from None


def _check_names(text: str) -> None:
    """Refuse a file that names other columns, as CoNLL-U Plus does above its first sentence."""
    if "global.columns" not in text or not (named := _PLUS.search(text)):
        return
    if named[1].split() != _NAMES.split():
        cause = f"is CoNLL-U Plus, with the columns {named[1][:80]}"
        raise RecordError(cause, CONVERT, text.count("\n", 0, named.start()))


def _check_forms(text: str, forms: list[str]) -> None:
    """Refuse a text without words, and remark on what else looks wrong."""
    if len(forms) > 1 and 2 * sum(not form.strip(_UNKNOWN) for form in forms) > len(forms):
        remark(WITHHELD)
    check_escapes(text, forms)
    check_penn(forms)
    if not forms and (comment := TEXT.search(text)) and any(map(str.isalnum, comment[1])):
        offset = text.count("\n", 0, comment.start())
        cause = f"the sentence with the text {comment[1][:40]!r} has no words"
        raise RecordError(cause, "take out the blank line behind its comments", offset)
    if "\n\n" in text.rstrip("\n"):
        remark(HEADERS)


def _forms_heads_relations(text: str) -> tuple[list[str], list[str], list[str]]:
    if by_column := columns(text):
        return by_column[FORM], by_column[HEAD], by_column[DEPREL]
    words = [row for _, row in _words(text)]
    forms, heads, relations = ([row[column] for row in words] for column in (FORM, HEAD, DEPREL))
    return forms, heads, relations


def _words(text: str) -> Iterator[tuple[int, list[str]]]:
    """The offset and the columns of every line that is a word."""
    word = 1
    for offset, columns in enumerate(rows(text)):
        if not columns:
            continue
        if len(columns) != _COLUMNS:
            raise _wrong_columns("\t".join(columns), len(columns), offset)
        if columns[0] != str(word):
            if _NOT_A_WORD.fullmatch(columns[0]):
                continue
            if columns[0] == "1":
                raise _missing_blank_line(text, offset)
            cause = f"the ID is {columns[0][:40]!r}, not {word}"
            raise RecordError(cause, "words are numbered 1, 2, 3, … in every sentence", offset)
        if not columns[1] or not columns[7]:
            cause = f"the {'DEPREL' if columns[1] else 'FORM'} is empty"
            raise RecordError(cause, "no column is empty; write _ for an unknown value", offset)
        word += 1
        yield offset, columns


def _missing_blank_line(text: str, offset: int) -> RecordError:
    """The error for a word 1 behind other words; its sentence begins with the comments before it."""
    lines = text.split("\n")
    while lines[offset - 1].startswith("#"):
        offset -= 1
    if not lines[offset - 1]:  # a file is cut there, a string is not
        return RecordError(
            "several sentences in one string", "give a list of strings, one a sentence", offset
        )
    cause = "another sentence begins here (ID 1), but no blank line stands before it"
    return RecordError(cause, "put one before this line", offset)


def _head(text: str, offset: int) -> int:
    if _NUMBER.fullmatch(text):
        return int(text)
    if text == _UNKNOWN:
        raise RecordError("the word has no HEAD ('_')", "parse the sentence first", offset)
    raise RecordError(
        f"the HEAD is {text[:40]!r}, not a number", "heads are word numbers, 0 for the root", offset
    )


def _wrong_columns(line: str, count: int, offset: int) -> RecordError:
    if "\t" not in line and len(line.split()) >= _COLUMNS:
        return RecordError(
            "the columns are separated by spaces", "CoNLL-U separates them by tabs", offset
        )
    if "\t" not in line:
        cause = f"is not CoNLL-U, which has {_COLUMNS} columns separated by tabs"
        return RecordError(cause, "name the format that the file is in", offset)
    others = {12: "CoNLL-2008", 4: "CoNLL-2003 or a choice of columns"}
    other = "CoNLL-2009" if count >= 14 else others.get(count)  # a column more for each predicate
    if other:
        cause = f"{count} tab-separated columns instead of {_COLUMNS}, as in {other}"
        return RecordError(cause, CONVERT, offset)
    return RecordError(
        f"{count} tab-separated column{'s' if count > 1 else ''} instead of {_COLUMNS}",
        "write _ for a value that is not known, and a blank line after every sentence",
        offset,
    )


def _word_to_blame(heads: list[int]) -> int:
    """The word to name: the first head out of range, the second root or, in a cycle, the first word."""
    outside = [word for word, head in enumerate(heads) if head > len(heads)]
    roots = [word for word, head in enumerate(heads) if head == 0]
    return (outside or roots[1:] or [0])[0]


def write(tree: Tree) -> str:
    """The sentence with ID, FORM, HEAD and DEPREL, and ``_`` in the other columns."""
    if not len(tree):
        return EMPTY
    nodes = tree.word_nodes()
    rows = []
    for word, head in enumerate(tree.heads()):
        relation = tree.relations[nodes[word]] if tree.relations else _UNKNOWN
        form = tree.labels[nodes[word]]
        rows.append(f"{word + 1}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_")
    return exact("conllu", parse, tree, "\n".join(rows))


CONLLU = Format("conllu", ".conllu", records, parse, write, end="\n\n")
