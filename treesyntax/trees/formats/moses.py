"""Text that Moses' tokenizer has escaped, ``&apos;`` for an apostrophe and ``@-@`` for a hyphen inside a word, or
HTML and SGML, as newswire has them: ``&ldquo;``, ``&#8220;``, ``&LR;``. And files of SGML or XML that were
meant as text, with a sentence in each ``<seg>``. And other text that is not what a parser or a subword model needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from treesyntax.remarks import Remark, remark

_ESCAPES = re.compile(r"&(?:apos|quot|amp|lt|gt|bar|bra|ket|#91|#93|#124);|(?<!\S)@[-/]@(?!\S)")
_ENTITIES = re.compile(r"&(?:[A-Za-z]{2,8}|#[0-9]{2,6}|#x[0-9A-Fa-f]{2,6});")
ENTITIES = Remark(
    "escapes of HTML or SGML (&ldquo; &#8220;)",
    "they are read as words: unescape them first, as with Python's html.unescape",
)
_MARKUP = re.compile(
    r"\s*<(?:\?xml|!doctype|/?(?:mteval|srcset|refset|tstset|doc|seg|hl|p|url|title|description|keywords|"
    r"talkid|speaker|translator|reviewer|transcript|tmx|tuv?)\b)",
    re.IGNORECASE,
)
MARKUP = Remark(
    "tags of SGML or XML (<seg id=1>, <url>, <title>)",
    "they are read as words: take the sentences out of the file, and leave the other lines out on both sides",
    ("begin with", "begins with"),
)
_BRACKETED = re.compile(r"(?=.*[^\s()]\))\s*(?:\([^\s()]*(?:\s+|(?=\())|[^\s()]+\)\s*|\)\s*)+")
"""Brackets with their label behind them, and each word before the end of one."""
TREES = Remark(
    "trees in brackets",
    "they are read as text: name their format, such as ptb, or take the words out of them",
)
_TABS = 9
COLUMNS = Remark(
    "ten columns, as CoNLL-U has",
    "they are read as text: name the format conllu",
    ("have", "has"),
)
TABS = Remark(
    "tabs between words",
    "they are read as spaces: if the file is a table, put the column that is meant in a file of its own",
)
INVISIBLE = Remark(
    "invisible characters (soft hyphens, zero-width spaces, byte order marks, marks of direction)",
    "words with them are other words: take them out on both sides before text is parsed",
)
_BETWEEN_WORDS = "\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_INVISIBLE = re.compile(f"[\u00ad{_BETWEEN_WORDS}]")
_NOTHING = re.compile(rf"[\s{_BETWEEN_WORDS}]*")
DECODED = Remark(
    "characters that were decoded wrongly (Ã© for é, â€™ for ’, or \ufffd)",
    "words with them are other words: decode the original file again, or mend them as with Python's ftfy",
)
_DECODED = re.compile("\ufffd|[ÃÐ][¡-ª¬-º¼-¿]|â€|â\u0080")
"""Without what follows a capital Ã or Ð in text: no-break spaces and guillemets."""
ESCAPES = Remark(
    "escapes of Moses' tokenizer (&apos; &quot; &amp; @-@)",
    "they are read as words: detokenize both sides before text is parsed: pip install sacremoses, then sacremoses -l en detokenize < old > new",
)

UNSPLIT = Remark(
    "punctuation at the end of words (home, or home.)",
    "--pretokenized takes both for a single word: leave it out, or split the text first",
)
_UNSPLIT = re.compile(
    r"[^\W\d_]{2}(?:,(?!\S)|[.?!][\"'”»)\]]*\s*$)|[^\W\d_][\N{FULLWIDTH COMMA}。\N{FULLWIDTH EXCLAMATION MARK}？、；]"
)
"""Not behind a single letter: of ``U.S.`` the full stop is a part."""

SUBWORD = re.compile(r"\w@@(?!\S)|(?<!\S)(?:▁|##)\w|\S￭(?!\S)|(?<!\S)￭\S")
_SUBWORD_SIGNS = ("@@", "▁", "##", "￭")
SUBWORDS = Remark(
    "subwords of another tool (@@, ▁, ## or ￭)",
    "they are taken for words: give text from before it was segmented, or leave it as it is",
)
_BRACKETS = [f"-{name}-" for name in ("LRB", "RRB", "LCB", "RCB", "LSB", "RSB")]
_PENN = frozenset([*_BRACKETS, *map(str.lower, _BRACKETS), "/.", "/?", "/-"])
PENN = Remark(
    "escapes of the Penn Treebank (-LRB-) or OntoNotes (/.)",
    "they are read as words: write the signs themselves on both sides before text is parsed",
)
TAGGED = Remark(
    "tags or factors in all words (cat/NN, cat|NN, cat#cat)",
    "the words are read with them: take them off",
)
_TAGGED = re.compile(r".+(?:/(?:[A-Z]{2,5}\$?|[^\w\s]{1,2})|[|￨#].+)")
"""A word with its tag, or a sign with its own, ``./.``; factors of Moses and OpenNMT; OntoNotes in Arabic."""
FACTOR_SIGNS = ("/", "|", "￨", "#")
"""A text without any of them has no such words."""


def after_nothing(text: str, position: int) -> int:
    """The position behind what nobody sees between words: white space, zero-width spaces, marks of direction."""
    nothing = _NOTHING.match(text, position)
    return nothing.end() if nothing else position


def check_raw(text: str) -> None:
    """Remark on what a line that is to be parsed should not have."""
    check_line(text)
    check_characters(text)
    check_tool_words(text)


def check_split(text: str) -> None:
    """Remark on a line of which white space does not separate the words."""
    if count := len(_UNSPLIT.findall(text)):
        remark(UNSPLIT, count)


def check_tool_words(text: str) -> None:
    """Remark on trees in place of text, and on words that another tool or a treebank spells otherwise."""
    check_trees(text)
    check_escapes(text)
    check_subwords(text)
    words = text.split()
    check_penn(words)
    check_tags(text, words)


def check_trees(text: str) -> None:
    """Remark on a line that is a tree in brackets over two words or more."""
    if text.lstrip()[:1] != "(" or text.count("(") <= 2 or text.count("(") != text.count(")"):
        return
    if _BRACKETED.fullmatch(text):
        remark(TREES)


def check_penn(words: Sequence[str]) -> None:
    """Remark on words that stand for a bracket or another sign in a treebank."""
    if not _PENN.isdisjoint(words):
        remark(PENN, sum(word in _PENN for word in words))


def check_tags(text: str, words: Sequence[str] | None = None) -> None:
    """Remark on a line, or a record with that text, all of whose words have tags or factors."""
    if not any(sign in text for sign in FACTOR_SIGNS):
        return
    words = text.split() if words is None else words
    if len(words) > 1 and all(map(_TAGGED.fullmatch, words)):
        remark(TAGGED)


def check_subwords(text: str) -> None:
    """Remark on a line that is segmented already and is to be segmented, or parsed."""
    if any(sign in text for sign in _SUBWORD_SIGNS) and (count := len(SUBWORD.findall(text))):
        remark(SUBWORDS, count)


def check_escapes(text: str, words: Iterable[str] | None = None) -> None:
    """Remark on escapes in a line, or in these words of a record with that text."""
    if "&" not in text and "@-@" not in text and "@/@" not in text:
        return
    strings = [text] if words is None else list(words)
    if count := sum(len(_ESCAPES.findall(string)) for string in strings):
        remark(ESCAPES, count)
    entities = (entity for string in strings for entity in _ENTITIES.findall(string))
    if others := sum(not _ESCAPES.fullmatch(entity) for entity in entities):
        remark(ENTITIES, others)


def check_markup(text: str) -> None:
    """Remark on a line of text that looks like another file's, or has words or characters that hardly any text has."""
    check_line(text)
    check_characters(text)
    check_tags(text)


def check_line(text: str) -> None:
    """Remark on a line that begins with a tag of the files of WMT or IWSLT, is a word of CoNLL-U or a row of a table."""
    if "<" in text and _MARKUP.match(text):
        remark(MARKUP)
    if "\t" in text and text.count("\t") == _TABS and text[0].isdecimal():
        remark(COLUMNS)
    elif "\t" in text.strip():
        remark(TABS)


def check_characters(text: str) -> None:
    """Remark on characters that nobody sees, and on those that a wrong decoding made."""
    if text.isascii():
        return
    for kind, characters in ((INVISIBLE, _INVISIBLE), (DECODED, _DECODED)):
        if count := len(characters.findall(text)):
            remark(kind, count)
