"""Penn Treebank brackets (Marcus et al. 1993): ``ptb``, one tree a line, and ``mrg``, the files
of the release, where trees span lines and blank lines are skipped.

Interior nodes are categories, leaves are words. Brackets inside words are written ``-LRB-``,
``-RRB-``, ``-LCB-``, ``-RCB-``, ``-LSB-``, ``-RSB-`` (of lower-cased text in small letters), a
slash and an asterisk ``\\/`` and ``\\*``; a Tree holds the sign itself. (Words that have a
backslash there of their own get one more: ``\\\\/``.) Categories are left as they are. Only ASCII
white space separates tokens.

Traces, the leaves of ``-NONE-``, stand for no word of the text: they are removed with the brackets
that this empties. So are those of ``NP+-NONE-``, as nltk joins labels. Words like ``*T*-1``
elsewhere are counted and stay. Unlabelled brackets around a whole tree, ``( (S …) )``, are dropped.
Others get a label, since a label becomes a token: ``TOP`` at the root, ``X`` elsewhere. The name that
historical corpora give a tree, ``( (IP-MAT …) (ID NAME))``, is no word of its text and is dropped; their
marks, ``(CODE <P_1>)``, lemmas in words, and marks of spoken language, ``(-DFL- E_S)``, are counted. Graphs of AMR,
derivations of CCGbank and trees of discourse (RST) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import LONGEST_LINE, read_lines
from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats.base import (
    Format,
    Record,
    RecordError,
    exact,
    line_records,
    refuse_graph,
    subtrees_ending,
)
from treesyntax.trees.formats.moses import FACTOR_SIGNS, check_escapes, check_penn, check_tags
from treesyntax.trees.tree import Tree

_TOKEN = re.compile(r"\(\s*[^\s()]*|\)|[^\s()]+", re.ASCII)
_BRACKETS = {"(": "LRB", ")": "RRB", "{": "LCB", "}": "RCB", "[": "LSB", "]": "RSB"}
_ESCAPES = {bracket: f"-{name}-" for bracket, name in _BRACKETS.items()}
_UNESCAPES = {escape: bracket for bracket, escape in _ESCAPES.items()}
_UNESCAPES |= {escape.lower(): bracket for escape, bracket in _UNESCAPES.items()}
_BRACKET = re.compile("|".join(_UNESCAPES))
_ESCAPED = re.compile(rf"{_BRACKET.pattern}|(\\+)(?=[/*])")
_TO_ESCAPE = str.maketrans(_ESCAPES)
_BACKSLASH = re.compile(r"\\+(?=[/*])")
_QUOTE_SIGN = "[\"'`«»‹›“”‘’‚„]"
_QUOTES = re.compile(f"{_QUOTE_SIGN}+")
_ANY_QUOTE = re.compile(f"(?:``|''|{_QUOTE_SIGN}){_QUOTE_SIGN}*?")
_APOSTROPHES = "'’"
_SIGNS = {"--": re.compile("--|[—–]"), "...": re.compile(r"\.\.\.|…")}
"""Signs that CoreNLP and others write in the ASCII of the treebank."""
_TRACE, _NAME, _MARKUP = "-NONE-", "ID", ("CODE", "METADATA", "-DFL-")
# Each begins with a literal sign, which makes the search three times as fast.
_AFTER_WORD, _BEFORE_WORD = re.compile(r"\((?<=[^\s()]\()", re.A), re.compile(r"\)[^\s()]", re.A)
_SCORE = re.compile(r"\[-?[0-9]+\.[0-9]+\]")
_INDEXED = re.compile(r"([0-9]{1,9})=\S+")
_TRACE_SIGN = re.compile(
    r"\*-[0-9]+|\*(?:T|U|ICH|EXP|RNR|PPA|NOT|\?|pro|PRO|OP|con|exp|arb|(?:speaker|hearer)(?:\+hearer|\+pro)?)\*"
    r"(?:-[0-9]+)?"
)
_UNSAID = re.compile(r"C|W[A-Z]+P(?:-[0-9]+)?")
"""Above a 0 that stands for a word which is not said, as in ``(CP-REL (WNP-1 0) (C 0) …``."""
_WITH_LEMMAS = {",-,", ".-."}
"""Commas and full stops of corpora in which each word has its lemma behind it."""
_ODD_SIGNS = (*FACTOR_SIGNS, "[", "&", "@", *sorted(_WITH_LEMMAS))
"""A text without any of them has no word that `_check_words` counts."""
_OTHER_TREEBANKS = {
    "(<T ": (
        "is a derivation of CCGbank, whose categories and tags would be read as words",
        "make brackets of it first, such as (S[dcl] (NP dogs) (S[dcl]\\NP bark))",
    ),
    "(rel2par ": (
        "is a tree of discourse (.dis), whose spans and relations would be read as words",
        "make brackets of it first, such as (elaboration (Nucleus they ran) (Satellite home))",
    ),
}
"""What is wrong with brackets that hold such a sign, and what to do."""
_IN_WORDS = "brackets that belong to words are written -LRB- and -RRB-"
TOP, NO_LABEL = "TOP", "X"
"""The labels of unlabelled brackets: of the root, and of others."""
TRACES = Remark(f"traces ({_TRACE})", "they are removed, with the brackets that this empties")
ONLY_TRACES = Remark("traces alone", "nothing is left of them: they are empty sentences")
UNTAGGED = Remark(
    f"words that look like traces (*T*-1, or 0 below C) but are not under {_TRACE}",
    f"they are read as words: write ({_TRACE} *T*-1), or remove them",
)
SCORES = Remark(
    "numbers in brackets as words ([12.3])", "scores of a parser are no words: print none"
)
NAMES = Remark(
    "the name of the tree, (ID …), beside it", "it is no word of the text and is left out"
)
MARKUP = Remark(
    "brackets CODE, METADATA or -DFL-, as in historical and spoken corpora",
    "what is in them is read as words: take out those that stand for no word of the text",
)
LEMMAS = Remark(
    "lemmas in words (lét-láta ,-,), as in historical corpora",
    "the words are read with their lemmas: take them off",
)
UNLABELLED = Remark(
    "brackets without a label",
    f"they get one, {TOP} for the root and {NO_LABEL} elsewhere; check that (the cat) is nowhere meant "
    "as two words, as its first word is read as a label",
)


def parse(text: str) -> Tree:
    """The constituency tree of one line."""
    if "\n" in text:
        raise RecordError("a tree spans several lines", "use the format mrg for such files")
    return _parse(text, "if trees span several lines, use the format mrg")


def parse_mrg(text: str) -> Tree:
    """The constituency tree of a text that may span lines."""
    tree = _parse(text, "balance the brackets of the tree that begins here")
    if not len(tree) and not text.strip():
        raise RecordError("no tree", "mrg has no empty trees; use the format ptb")
    return tree


def _parse(text: str, remedy_if_open: str) -> Tree:
    for sign, (cause, remedy) in _OTHER_TREEBANKS.items():
        if sign in text:
            raise RecordError(cause, remedy)
    parents, labels, words = _scan(text, remedy_if_open)
    if labels[-2:-1] == [_NAME] and _ends_with_name(parents, labels, words):
        remark(NAMES)
        parents, labels, words = parents[:-2], labels[:-2], words[:-2]
    if _TRACE in text:
        parents, labels, words = _without_traces(parents, labels, words)
    if any(mark in text for mark in _MARKUP):
        marks = [label in _MARKUP and word < 0 for label, word in zip(labels, words, strict=True)]
        if any(marks):
            remark(MARKUP, sum(marks))
    if ("*" in text or " 0)" in text) and (signs := _trace_signs(parents, labels, words)):
        remark(UNTAGGED, signs)
    if "\\" in text or _BRACKET.search(text):
        labels = [_unescaped(x) if w >= 0 else x for x, w in zip(labels, words, strict=True)]
    outer = _outer_brackets(parents, labels) if labels and not labels[0] else 0
    if outer:
        parents = [-1, *(parent - outer for parent in parents[outer + 1 :])]
        labels, words = labels[outer:], words[outer:]
    if "=" in text:
        _refuse_discontinuous(
            [label for label, word in zip(labels, words, strict=True) if word >= 0]
        )
    if " / " in text:
        refuse_graph(text)
    if any(sign in text for sign in _ODD_SIGNS):
        _check_words([label for label, word in zip(labels, words, strict=True) if word >= 0], text)
    if "" in labels:
        remark(UNLABELLED, labels.count(""))
        labels = [label or (NO_LABEL if node else TOP) for node, label in enumerate(labels)]
    return Tree(parents, labels, words)


def _refuse_discontinuous(words: list[str]) -> None:
    """Refuse the words of discbracket, ``0=The``, which need not stand in the order of the sentence."""
    if are_numbered(words):
        raise RecordError(
            f"the words have their places ({words[0][:40]}), as in discbracket",
            "make the trees continuous, with words in the order of the sentence and without numbers",
        )


def are_numbered(words: list[str]) -> bool:
    """Whether words look like those of discbracket: all have their number in the sentence, ``0=The``."""
    numbers = [int(match[1]) for word in words if (match := _INDEXED.fullmatch(word))]
    return bool(words) and sorted(numbers) == list(range(len(words)))


def _check_words(words: list[str], text: str) -> None:
    """Remark on words that look like something else."""
    check_escapes(text, words)
    check_penn(words)
    if not _WITH_LEMMAS.isdisjoint(words) and 2 * sum("-" in x[1:-1] for x in words) > len(words):
        remark(LEMMAS)
    check_tags(text, words)
    if scores := sum(map(bool, map(_SCORE.fullmatch, words))):
        remark(SCORES, scores)


def _without_traces(
    parents: list[int], labels: list[str], words: list[int]
) -> tuple[list[int], list[str], list[int]]:
    """The nodes above words that are no traces."""
    size = len(labels)
    inside = [False] * size  # of a bracket -NONE-
    for node, above in enumerate(parents):
        is_trace = labels[node] == _TRACE and words[node] < 0
        inside[node] = is_trace or (above >= 0 and inside[above])
    leaves = [node for node in range(size) if words[node] >= 0]
    kept = [False] * size
    for node in leaves:
        kept[node] = not inside[node] and _TRACE not in labels[parents[node]]
    traces = sum(not kept[node] for node in leaves)
    if not traces:
        return parents, labels, words
    for node in range(size - 1, 0, -1):
        if kept[node]:
            kept[parents[node]] = True
    remark(TRACES, traces)
    nodes = [node for node in range(size) if kept[node]]
    if not nodes:
        remark(ONLY_TRACES)
    number = {node: index for index, node in enumerate(nodes)}
    word_indices = count()
    return (
        [number.get(parents[node], -1) for node in nodes],
        [labels[node] for node in nodes],
        [next(word_indices) if words[node] >= 0 else -1 for node in nodes],
    )


def _ends_with_name(parents: list[int], labels: list[str], words: list[int]) -> bool:
    """Whether ``(ID NAME)`` stands last in an unlabelled bracket around a tree."""
    bracket = len(labels) - 2
    return bracket > 1 and not labels[0] and parents[-2:] == [0, bracket]


def _trace_signs(parents: list[int], labels: list[str], words: list[int]) -> int:
    """How many words look like traces; a lone asterisk does right below a noun phrase, and a 0 below `_UNSAID`."""
    return sum(
        word >= 0
        and (
            _TRACE_SIGN.fullmatch(label) is not None
            or (label == "*" and labels[above].startswith("NP"))
            or (label == "0" and _UNSAID.fullmatch(labels[above]) is not None)
        )
        for above, label, word in zip(parents, labels, words, strict=True)
    )


def _scan(text: str, remedy_if_open: str) -> tuple[list[int], list[str], list[int]]:
    """Parents, labels and words before unescaping, in one pass: every training line comes here."""
    if _AFTER_WORD.search(text) or _BEFORE_WORD.search(text):
        _check_brackets_in_words(text)
    parents: list[int] = []
    labels: list[str] = []
    words: list[int] = []
    current = -1
    word = 0
    for index, token in enumerate(_TOKEN.findall(text)):
        first = token[0]
        if first == "(":
            if current < 0 and parents:
                raise _fault(text, index, "a second tree begins", "write one tree a record")
            parents.append(current)
            current = len(labels)
            labels.append(token[1:].lstrip())
            words.append(-1)
        elif first == ")":
            if current < 0:
                raise _fault(text, index, "a ')' closes nothing", f"{remedy_if_open}; {_IN_WORDS}")
            if current == len(labels) - 1:
                cause = f"the constituent ({labels[current]:.40} ) is empty"
                raise _fault(text, index, cause, f"give it a word or remove it; {_IN_WORDS}")
            current = parents[current]
        else:
            if current < 0:
                cause = f"{token[:40]!r} stands outside the brackets"
                raise _fault(text, index, cause, "put every word inside a bracket like (NN cat)")
            parents.append(current)
            labels.append(token)
            words.append(word)
            word += 1
    if current >= 0:
        count = text.count("(") - text.count(")")
        plural = "s are" if count > 1 else " is"
        raise RecordError(f"{count} bracket{plural} still open at the end", remedy_if_open)
    return parents, labels, words


def _check_brackets_in_words(text: str) -> None:
    """Refuse ``(VB like(d))``: a word right before a bracket, or right behind one."""
    for index, match in enumerate(_TOKEN.finditer(text)):
        word = match[0]
        if word[0] in "()":
            continue
        before, behind = text[match.start() - 1 : match.start()], text[match.end() :][:1]
        if behind == "(" or before == ")":
            cause = f"the word {word[:40]!r} stands right {'before a (' if behind == '(' else 'behind a )'}"
            raise _fault(text, index, cause, _IN_WORDS)


def _outer_brackets(parents: list[int], labels: list[str]) -> int:
    """How many unlabelled brackets with a single child enclose the whole tree."""
    arity = [0] * len(parents)
    for parent in parents[1:]:
        arity[parent] += 1
    outer = 0
    while not labels[outer] and arity[outer] == 1:
        outer += 1
    return outer


def _unescaped(word: str) -> str:
    return _ESCAPED.sub(lambda match: match[1][1:] if match[1] else _UNESCAPES[match[0]], word)


def _escaped(word: str) -> str:
    word = word.translate(_TO_ESCAPE)
    return _BACKSLASH.sub(r"\\\g<0>", word) if "\\" in word else word


def spellings(word: str) -> re.Pattern[str]:
    """The pattern of a word that a text may spell with a treebank's escapes, quotes and dashes or without them.

    Matched at a place of a text, quotes are as few signs as can be: the next word may be a quote, too.
    """
    word = _UNESCAPES.get(word, word)  # CoNLL-U may have the escape
    if _QUOTES.fullmatch(word):
        return _ANY_QUOTE
    if word in _SIGNS:
        return _SIGNS[word]

    def spelling(sign: str) -> str:
        if sign in _APOSTROPHES:
            return f"[{_APOSTROPHES}]"
        if escape := _ESCAPES.get(sign):
            return f"(?:{re.escape(sign)}|{escape}|{escape.lower()})"
        return (r"\\?" if sign in "/*" else "") + re.escape(sign)

    return re.compile("".join(map(spelling, word)))


def _fault(text: str, index: int, cause: str, remedy: str) -> RecordError:
    """The error for a token; its line and column are found here, the fast loop does not track them."""
    start = next(islice(_TOKEN.finditer(text), index, None)).start()
    offset = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return RecordError(f"{cause} (character {column})", remedy, offset)


def _render(tree: Tree) -> str:
    arities = tree.arities.tolist()
    return " ".join(
        "(" + label if arity else _escaped(label) + ")" * endings
        for label, arity, endings in zip(tree.labels, arities, subtrees_ending(tree), strict=True)
    )


def write(tree: Tree) -> str:
    """The tree in brackets on one line."""
    return exact("ptb", parse, tree, _render(tree))


def write_mrg(tree: Tree) -> str:
    """The tree on one line, in an outer unlabelled bracket as in the release; no tree may be empty."""
    return exact("mrg", parse_mrg, tree, f"( {_render(tree)} )")


def mrg_records(path: Path) -> Iterator[Record]:
    """The trees of a file; one ends with the line on which all its brackets are closed."""
    start, depth, size = 0, 0, 0
    lines: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not lines and not line.strip():
            continue
        start, size = (start, size + len(line)) if lines else (number, len(line))
        if size > LONGEST_LINE:
            raise InputError(
                path,
                start,
                f"the tree that begins here is longer than {LONGEST_LINE >> 20} MiB",
                "balance its brackets",
            )
        lines.append(line)
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            yield Record(start, "\n".join(lines))
            lines, depth = [], 0
    if lines:
        yield Record(start, "\n".join(lines))


PTB = Format("ptb", ".ptb", line_records, parse, write)
MRG = Format("mrg", ".mrg", mrg_records, parse_mrg, write_mrg)
