"""The tokens of any tokenizer, aligned with the words of a tree by character spans.

A row of a model's input may hold several trees: the sentences of a document, or a pair of texts. Such a
forest numbers its nodes through: those of its second tree follow those of its first.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import index

from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.formats.moses import after_nothing
from treesyntax.trees.formats.offsets import (
    OTHER_FORM,
    begin_of,
    check_spelling,
    end_of,
    not_there,
    refuse_other_units,
)
from treesyntax.trees.formats.ptb import spellings
from treesyntax.trees.tree import Tree

Span = tuple[int, int]
Trees = Tree | Sequence[Tree] | None
"""What stands over a text: a tree, one for each of its sentences, or none."""

NO_NODE = -1
POLICIES = ("copy", "first", "last")


def trees_of(nested: Trees | Sequence[Trees]) -> list[Tree]:
    """Return the trees of a row one after another, however they are nested.

    Raises:
        TreeError: for what is no tree.
    """
    if nested is None:
        return []
    if isinstance(nested, Tree):
        return [nested]
    if isinstance(nested, str) or not isinstance(nested, Sequence):
        raise TreeError(
            f"a {type(nested).__name__} is no tree",
            "give a Tree, such as parse_tree returns, or a list of them",
        )
    return [tree for inner in nested for tree in trees_of(inner)]


def word_spans(text: str, words: Sequence[str]) -> list[Span]:
    """Find where words stand in a text, from left to right; only what nobody sees may stand between them.

    The text may spell brackets and slashes as a treebank does (``-LRB-``, ``\\/``).

    Raises:
        TreeError: for a word that is not at its place.
    """
    spans: list[Span] = []
    position = 0
    for number, word in enumerate(words, start=1):
        position = begin_of(word, text, position)
        end = end_of(word, text, position)
        if end == position:
            raise TreeError(
                f"word {number} ({word[:40]!r}) {not_there(word, text, position)}",
                "give the very text of the tree, or the spans of its words",
            )
        spans.append((position, end))
        position = end
    if words and (rest := text[after_nothing(text, position) :].rstrip()):
        raise TreeError(
            f"the text goes on after the last word of the tree, with {rest[:20]!r}",
            "give the very text of the tree, or the spans of its words",
        )
    return spans


def without_words(nodes: int) -> TreeError:
    """The error for trees over a text whose nodes are no words."""
    return TreeError(
        f"a tree of {nodes} nodes has no words, so no token can stand on one",
        "read it in a format that says which nodes are words, such as ptb or conllu",
    )


def check_words(words: Sequence[str], trees: Trees) -> None:
    """Make sure that words are those of their trees, if they have any.

    Raises:
        TreeError: with the first that is not.
        OptionError: for what is no list of strings.
    """
    if not all(isinstance(word, str) for word in words):
        raise OptionError("words are strings; give a text as text")
    if trees is None:
        return
    known = [tree.labels[node] for tree in trees_of(trees) for node in tree.word_nodes()]
    if len(known) != len(words):
        raise TreeError(
            f"{len(words)} words, but the tree has {len(known)}",
            "give the words of the tree, or parse these by treesyntax parse --pretokenized",
        )
    for number, (word, label) in enumerate(zip(words, known, strict=True), start=1):
        if word != label and not spellings(label).fullmatch(word):
            alike = unicodedata.normalize("NFC", word) == unicodedata.normalize("NFC", label)
            raise TreeError(
                f"word {number} is {word[:40]!r}, but {label[:40]!r} in the tree{OTHER_FORM * alike}",
                "give the words of the tree",
            )


def align(
    tree: Trees | Sequence[Trees],
    offsets: Sequence[Sequence[int]],
    text: str | Sequence[str] = "",
    spans: Sequence[Sequence[int]] | None = None,
    policy: str = "copy",
    sequence_ids: Sequence[int | None] | None = None,
) -> list[int]:
    """Return the node of each token of any tokenizer that says where its tokens stand in the text.

    A token belongs to the word that it overlaps; one that overlaps several, to the highest of them in
    the tree, and the first of those. A token of white space (a lone ``▁``, say) belongs to the next
    word, right behind the last word to that one. Other text around the words, such as a prompt, has no
    node, and neither has the space before it, or at the end of the text behind it. The tree stays as it is.

    Offsets that cannot be of this text are refused: those of single words
    (``is_split_into_words=True``), those of a second text, and those of tokenizers that give words
    empty spans.

    Args:
        tree: a tree with words, or one for each sentence of the text. Of a pair of texts: for each
            text a tree, a list of them, or None.
        offsets: ``(start, end)`` of each of T tokens in characters, as Hugging Face's fast tokenizers
            give them with ``return_offsets_mapping=True``. Special tokens and padding have an empty
            span.
        text: the text that was tokenized; its words must be the tree's. Or a pair of texts.
        spans: the character span of each word, where the text holds more than the tree's words, or
            spells some of them otherwise.
        policy: which tokens of a word stand on its node: all (``copy``), the ``first`` or the
            ``last``; the others have none.
        sequence_ids: which of the texts each token is of, None for special tokens and padding, as
            ``encoding.sequence_ids(row)`` says; needed for a pair of texts. Of one text it tells
            special tokens from others.

    Returns:
        T nodes, -1 for special tokens and padding. Nodes of several trees are numbered through.

    Raises:
        TreeError: if the words of the tree are not those of the text, or the offsets are not of it.
        OptionError: if there is no such policy.
    """
    words = token_words(tree, offsets, text, spans, sequence_ids)
    return _Words(trees_of(tree)).of_tokens(words, policy)


def token_words(
    tree: Trees | Sequence[Trees],
    offsets: Sequence[Sequence[int]],
    text: str | Sequence[str] = "",
    spans: Sequence[Sequence[int]] | None = None,
    sequence_ids: Sequence[int | None] | None = None,
) -> list[int | None]:
    """Return the word of each token, None for tokens without one; arguments as of :func:`align`.

    The words of several trees are numbered through.
    """
    if isinstance(text, str):
        words = _Words(trees_of(tree))
        known = (
            word_spans(text, words.texts)
            if spans is None
            else _pairs_of(spans, "spans", "give one pair a word")
        )
        if len(known) != len(words.nodes):
            raise TreeError(
                f"{len(known)} spans, but the tree has {len(words.nodes)} words",
                "give one span a word",
            )
        within = [(0, 0), *known, (len(text) if text else max(map(max, known), default=0),) * 2]
        if any(a > b or c > d or a > c or b > d for (a, b), (c, d) in pairwise(within)):
            if text:
                refuse_other_units(words.texts, known, text)  # such spans may end out of it
            raise TreeError("spans go back or out of the text", "give them from left to right")
        if text and spans is not None:
            check_spelling(words.texts, known, text)
        return _words_of_tokens(words, known, offsets, text, sequence_ids)
    if spans is not None:
        raise TreeError("spans are of one text", "align the texts of a pair one by one")
    if sequence_ids is None:
        raise TreeError(
            "the offsets of several texts do not say of which text a token is",
            "give sequence_ids=encoding.sequence_ids(row)",
        )
    trees_by_text = _trees_by_text(tree)
    if len(trees_by_text) != len(text):
        raise TreeError(
            f"{len(text)} texts, but trees for {len(trees_by_text)}",
            "give one entry for each text, None where it has no tree",
        )
    ids = _checked(sequence_ids, len(offsets), len(trees_by_text))
    joined: list[int | None] = [None] * len(offsets)
    first = 0
    for number, text_trees in enumerate(trees_by_text):
        text_ids = [0 if sequence_id == number else None for sequence_id in ids]
        for token, word in enumerate(
            token_words(text_trees, offsets, text[number], None, text_ids)
        ):
            if word is not None:
                joined[token] = first + word
        first += len(_Words(trees_of(text_trees)).nodes)
    return joined


def align_words(
    tree: Trees | Sequence[Trees],
    words: Sequence[int | None],
    policy: str = "copy",
    sequence_ids: Sequence[int | None] | None = None,
) -> list[int]:
    """Return the node of each token, where the tokenizer knows the word of each.

    Args:
        tree: a tree with words, or one for each sentence. With ``sequence_ids``: for each list of
            words a tree, a list of them, or None.
        words: the index of the word of each of T tokens, None for special tokens and padding, as
            ``encoding.word_ids()`` of Hugging Face's fast tokenizers with ``is_split_into_words=True``.
        policy: as in :func:`align`.
        sequence_ids: of a pair of lists of words, which of them each token is of, as
            ``encoding.sequence_ids(row)`` says.

    Returns:
        T nodes, -1 for tokens without one. Nodes of several trees are numbered through.

    Raises:
        TreeError: if a word is none of the tree's, or words come again, as of a pair they do.
        OptionError: if there is no such policy.
    """
    if sequence_ids is None:
        _refuse_words_that_come_again(words)
        return _Words(trees_of(tree)).of_tokens(words, policy)
    trees_by_text = _trees_by_text(tree)
    ids = _checked(sequence_ids, len(words), len(trees_by_text))
    joined, first = [NO_NODE] * len(words), 0
    for number, text_trees in enumerate(trees_by_text):
        text_words = [
            word if sequence_id == number else None
            for sequence_id, word in zip(ids, words, strict=True)
        ]
        if text_trees is not None:
            for token, node in enumerate(align_words(text_trees, text_words, policy)):
                joined[token] = joined[token] if node < 0 else first + node
        first += sum(map(len, trees_of(text_trees)))
    return joined


def _trees_by_text(tree: Trees | Sequence[Trees]) -> list[Trees | Sequence[Trees]]:
    """What stands over each text of a pair."""
    return [tree] if isinstance(tree, Tree) or tree is None else list(tree)


class _Words:
    """The words of a row's trees, in their order.

    Attributes:
        nodes: the node of each word, numbered through.
        depths: the depths of these nodes.
        texts: the words themselves.
        size: how many nodes there are.
    """

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.nodes: list[int] = []
        self.depths: list[int] = []
        self.texts: list[str] = []
        first = 0
        for tree in trees:
            nodes, depths = tree.word_nodes(), tree.depths.tolist()
            self.nodes += [first + node for node in nodes]
            self.depths += [depths[node] for node in nodes]
            self.texts += [tree.labels[node] for node in nodes]
            first += len(tree)
        self.size = first

    def highest(self, words: Iterable[int]) -> int:
        """The one that is highest in its tree, and the first of those."""
        return min(words, key=lambda word: self.depths[word])

    def of_tokens(self, words: Sequence[int | None], policy: str) -> list[int]:
        """The node of each token, from its word."""
        if policy not in POLICIES:
            raise OptionError(
                f"no subword policy is named {policy!r}; there are {', '.join(POLICIES)}"
            )
        largest = max((word for word in words if word is not None), default=-1)
        if largest >= len(self.nodes):
            raise TreeError(
                f"a token is of word {largest + 1}, but the tree has {len(self.nodes)} words",
                "tokenize the very words of the tree",
            )
        nodes = [NO_NODE if word is None else self.nodes[word] for word in words]
        if policy == "copy":
            return nodes
        order = range(len(nodes)) if policy == "first" else reversed(range(len(nodes)))
        seen: set[int] = set()
        for token in order:
            if nodes[token] in seen:
                nodes[token] = NO_NODE
            else:
                seen.add(nodes[token])
        return nodes


def _pairs_of(spans: Sequence[Sequence[int]], name: str, remedy: str) -> list[Span]:
    """Spans as pairs of whole numbers; JSON gives them as lists, numpy and torch as arrays."""
    try:
        return [(index(start), index(end)) for start, end in spans]
    except (TypeError, ValueError):
        cause = f"{name} {str(spans)[:40]!r} are no list of (start, end) in whole numbers"
        raise TreeError(cause, remedy) from None


def _checked(sequence_ids: Sequence[int | None], width: int, texts: int) -> Sequence[int | None]:
    """Sequence ids that are of these tokens and texts."""
    if len(sequence_ids) != width:
        raise TreeError(
            f"{len(sequence_ids)} sequence ids, but {width} tokens",
            "give those of the same row, encoding.sequence_ids(row)",
        )
    largest = max(
        (sequence_id for sequence_id in sequence_ids if sequence_id is not None), default=-1
    )
    if largest >= texts:
        raise TreeError(
            f"a token is of text {largest + 1}, but there are trees for {texts}",
            "give one entry for each text, None where it has no tree",
        )
    return sequence_ids


def _refuse_words_that_come_again(words: Sequence[int | None]) -> None:
    """Words of one list never go back, and nothing stands between the tokens of one."""
    last, apart = -1, False
    for token, word in enumerate(words):
        if word is None:
            apart = True
            continue
        if word < last or (word == last and apart):
            raise TreeError(
                f"token {token} is of word {word + 1} again, after word {last + 1}: these are words "
                "of a pair",
                "give align_words the trees of both and sequence_ids=encoding.sequence_ids(row)",
            )
        last, apart = word, False


def _words_of_tokens(
    words: _Words,
    known: Sequence[Span],
    offsets: Sequence[Sequence[int]],
    text: str,
    sequence_ids: Sequence[int | None] | None,
) -> list[int | None]:
    """The word of each token of one text, None for tokens without one.

    Raises:
        TreeError: for offsets that cannot be of this text.
    """
    ids = None if sequence_ids is None else _checked(sequence_ids, len(offsets), 1)
    spans = _pairs_of(offsets, "offsets", 'give those of one row, encoding["offset_mapping"][row]')
    for token, (start, end) in enumerate(spans):
        if end < start:
            raise TreeError(
                f"token {token} has the span ({start}, {end}), which ends before it begins",
                "give start and end, not start and length",
            )
    # Where nothing says what is special, a span of no width at the start is.
    real = [
        start < end or start > 0 if ids is None else ids[token] is not None
        for token, (start, end) in enumerate(spans)
    ]
    if words.size and not known and any(real):
        raise without_words(words.size)
    if not known or not spans or (ids is not None and not any(real)):
        return [None] * len(spans)
    _refuse_spans_that_go_back(spans, real, known, text)
    aligned: list[int | None] = []
    met: set[int] = set()
    empty: list[tuple[int, int]] = []
    first = 0
    for token, (start, end) in enumerate(spans):
        if not real[token]:
            aligned.append(None)
            continue
        while first and known[first - 1][1] > start:
            first -= 1
        while first < len(known) and known[first][1] <= start:
            first += 1
        last = first
        while last < len(known) and known[last][0] < end:
            last += 1
        if start < end and first < last:
            met.update(range(first, last))
            aligned.append(words.highest(range(first, last)))
        elif text[start : known[first][0] if first < len(known) else None].strip():
            aligned.append(None)  # other text follows
        elif first == len(known) and text[known[-1][1] : start].strip():
            aligned.append(None)  # other text stands between the last word and this space
        else:
            aligned.append(min(first, len(known) - 1))
            if start >= end:
                empty.append((token, min(first, len(known) - 1)))
    # What is cut off before its words may be a prompt or a space alone.
    harmless = any(real) and all(
        word is None or start < end <= len(text)
        for word, (start, end) in zip(aligned, spans, strict=True)
    )
    if not met and not harmless:
        raise TreeError(
            "no token stands on a word: the offsets are not of this text, or are of a tokenizer that "
            "gives empty spans",
            "split the text into words, tokenize with is_split_into_words=True, and use "
            "align_words(tree, encoding.word_ids(row))",
        )
    # At the end of tokens that are cut off it may be the space before a word.
    last = max(
        (token for token, (start, end) in enumerate(spans)
         if real[token] and start < end and not text[start:end].isspace()),
        default=-1,
    )  # fmt: skip
    for token, word in empty:
        if word not in met and token < last:
            raise TreeError(
                f"token {token} has the empty span {spans[token]}, and no other token stands on word "
                f"{word + 1} there: the tokenizer gives words empty spans",
                "split the text into words, tokenize with is_split_into_words=True, and use "
                "align_words(tree, encoding.word_ids(row))",
            )
    return aligned


def _refuse_spans_that_go_back(
    of_tokens: Sequence[Span], real: Sequence[bool], known: Sequence[Span], text: str
) -> None:
    """The tokens of one text go from left to right within it, and share single characters at most.

    Tokens of bytes share one, so do the parts of a character that was taken apart, and a ``▁`` that
    was put before the text and the token after it. No special token stands between these.
    """
    tokens = [token for token, (start, end) in enumerate(of_tokens) if real[token] and start < end]
    spans = [of_tokens[token] for token in tokens]
    holders = 1
    for token, after in pairwise(tokens):
        before, span = of_tokens[token], of_tokens[after]
        is_apart = span[0] < before[1] and not all(real[token:after])
        if span[0] < before[0] or span[1] < before[1] or is_apart:
            raise _going_back(before, span)
        if span[0] >= before[1]:
            holders = 1
            continue
        holders = holders + 1 if span[0] == before[0] else 2
        shared = text[span[0] : before[1]] if text else "\0" * (before[1] - span[0])
        if not _is_one_character(shared) or (text and holders > _most_holders(shared)):
            raise _going_back(before, span)
    if text and spans and spans[-1][1] > len(text):
        raise _of_another_text(
            f"a token has the span {spans[-1]} in a text of {len(text)} characters"
        )
    # A few words of one letter, tokenized one by one, share no more than that: then each begins where
    # the first does, and the text goes on behind them.
    beginnings = sum(span[0] == spans[0][0] for span in spans)
    letters = all(
        end - start == 1 or _is_one_character(text[start:end]) for start, end in known[:-1]
    )
    if 1 < len(known) <= beginnings and spans[-1][1] <= known[-1][0] and letters:
        raise _going_back(spans[-2], spans[-1])


def _is_one_character(text: str) -> bool:
    """Whether a reader sees one: a letter with its marks, or what composes to one."""
    marks = all(unicodedata.category(mark).startswith("M") for mark in text[1:])
    return marks or len(unicodedata.normalize("NFC", text)) == 1


def _most_holders(character: str) -> int:
    """The most tokens that can be of a character: one a byte, taken apart or not, and a ``▁``."""
    forms = (character, unicodedata.normalize("NFKD", character))
    return 1 + max(len(form.encode("utf-8", "surrogatepass")) for form in forms)


def _going_back(before: Span, span: Span) -> TreeError:
    return _of_another_text(f"offsets go back, from {before} to {span}")


def _of_another_text(fault: str) -> TreeError:
    return TreeError(
        f"{fault}: the offsets are not of this text",
        "use align_words(tree, encoding.word_ids(row)) for words tokenized with "
        "is_split_into_words=True, or give both texts of a pair and "
        "sequence_ids=encoding.sequence_ids(row)",
    )
