"""The tokens of any tokenizer, aligned with the words of a tree by character spans."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.tree import Tree

Span = tuple[int, int]

NO_NODE = -1
POLICIES = ("copy", "first", "last")


def word_spans(text: str, words: Sequence[str]) -> list[Span]:
    """Where words stand in a text, from left to right; only white space may stand between them.

    Raises:
        TreeError: for a word that is not at its place.
    """
    spans: list[Span] = []
    position = 0
    for number, word in enumerate(words, start=1):
        while text[position : position + 1].isspace():
            position += 1
        if not word or not text.startswith(word, position):
            raise TreeError(
                f"word {number} ({word[:40]!r}) is not at character {position} of the text, where "
                f"{text[position : position + 20]!r} stands",
                "give the very text of the tree, or the spans of its words",
            )
        spans.append((position, position + len(word)))
        position += len(word)
    return spans


def align(
    tree: Tree,
    offsets: Sequence[Sequence[int]],
    text: str = "",
    spans: Sequence[Span] | None = None,
    policy: str = "copy",
) -> list[int]:
    """The node of each token of any tokenizer that says where its tokens stand in the text.

    A token belongs to the word that it overlaps; one that overlaps several, to the highest of them in
    the tree, and the first of those. A token between words (a lone ``▁``, say) belongs to the next
    word, at the end of the text to the last one. The tree stays as it is.

    Args:
        tree: a tree with words.
        offsets: ``(start, end)`` of each of T tokens in characters, as Hugging Face's fast tokenizers
            give them with ``return_offsets_mapping=True``. Special tokens and padding have an empty
            span.
        text: the text that was tokenized; its words must be the tree's.
        spans: the character span of each word, where the tree's words are not the text's.
        policy: which tokens of a word stand on its node: all (``copy``), the ``first`` or the
            ``last``; the others have none.

    Returns:
        T nodes, -1 for special tokens and padding.

    Raises:
        TreeError: if the words of the tree are not those of the text.
        OptionError: if there is no such policy.
    """
    nodes = tree.word_nodes()
    known = word_spans(text, [tree.labels[node] for node in nodes]) if spans is None else spans
    if len(known) != len(nodes):
        raise TreeError(
            f"{len(known)} spans, but the tree has {len(nodes)} words", "give one span a word"
        )
    depths = tree.depths.tolist()
    words: list[int | None] = []
    first = 0
    for start, end in ((int(one[0]), int(one[1])) for one in offsets):
        if start >= end or not known:
            words.append(None)
            continue
        while first and known[first - 1][1] > start:
            first -= 1
        while first < len(known) and known[first][1] <= start:
            first += 1
        last = first
        while last < len(known) and known[last][0] < end:
            last += 1
        overlapped = range(first, last) or [min(first, len(known) - 1)]
        words.append(min(overlapped, key=lambda word: depths[nodes[word]]))
    return align_words(tree, words, policy)


def align_words(tree: Tree, words: Sequence[int | None], policy: str = "copy") -> list[int]:
    """The node of each token, where the tokenizer knows the word of each.

    Args:
        tree: a tree with words.
        words: the index of the word of each of T tokens, None for special tokens and padding, as
            ``encoding.word_ids()`` of Hugging Face's fast tokenizers with ``is_split_into_words=True``.
        policy: as in :func:`align`.

    Returns:
        T nodes, -1 for tokens without one.

    Raises:
        TreeError: if a word is none of the tree's.
        OptionError: if there is no such policy.
    """
    if policy not in POLICIES:
        raise OptionError(f"no subword policy is named {policy!r}; there are {', '.join(POLICIES)}")
    nodes = tree.word_nodes()
    largest = max((word for word in words if word is not None), default=-1)
    if largest >= len(nodes):
        raise TreeError(
            f"a token is of word {largest + 1}, but the tree has {len(nodes)} words",
            "tokenize the very words of the tree",
        )
    found = [NO_NODE if word is None else nodes[word] for word in words]
    if policy == "copy":
        return found
    order = range(len(found)) if policy == "first" else reversed(range(len(found)))
    seen: set[int] = set()
    for token in order:
        if found[token] in seen:
            found[token] = NO_NODE
        else:
            seen.add(found[token])
    return found
