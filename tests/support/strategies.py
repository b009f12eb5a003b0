"""Hypothesis strategies for random trees, shared by all tests."""

from __future__ import annotations

from hypothesis import strategies as st

from treesyntax.trees.tree import Tree

# Few symbols, so that labels repeat; brackets, commas and an escape character to provoke mistakes.
SYMBOLS = ["NP", "VP", "a", "b", "x1", "=", "é", "(", ")", ",", "\\", "-LRB-", "0", '"']
PLAIN_SYMBOLS = ["S", "NP", "VP", "X", "f", "g", "+", "x1", "é"]

any_labels = st.sampled_from(SYMBOLS)
plain_labels = st.sampled_from(PLAIN_SYMBOLS)
words_of_text = st.sampled_from(["the", "cat", "sleeps", "(", ")", "[", "1.5", "naïve", "猫", ","])


@st.composite
def shapes(draw: st.DrawFn, min_nodes: int = 1, max_nodes: int = 30) -> list[int]:
    """The preorder parents of a random ordered tree; every shape can come up."""
    size = draw(st.integers(min_nodes, max_nodes))
    path: list[int] = []
    parents = []
    for node in range(size):
        parents.append(path[-1] if path else -1)
        path.append(node)
        # The next node hangs below this one or below an ancestor: close some, never the root.
        closed = draw(st.integers(0, len(path) - 1))
        del path[len(path) - closed :]
    return parents


@st.composite
def trees(
    draw: st.DrawFn,
    labels: st.SearchStrategy[str] = plain_labels,
    min_nodes: int = 1,
    max_nodes: int = 30,
) -> Tree:
    """General trees without words: programs, logical forms."""
    parents = draw(shapes(min_nodes, max_nodes))
    return Tree(parents, draw(_one_each(labels, len(parents))))


@st.composite
def rich_trees(
    draw: st.DrawFn,
    labels: st.SearchStrategy[str] = any_labels,
    min_nodes: int = 0,
    max_nodes: int = 20,
) -> Tree:
    """Trees with everything a Tree can hold: words on any nodes, relations, gaps in branches."""
    parents = draw(shapes(min_nodes, max_nodes))
    size = len(parents)
    worded = draw(st.lists(st.integers(0, size - 1), unique=True)) if size else []
    words = [-1] * size
    for word, node in enumerate(worded):
        words[node] = word
    relations = draw(st.one_of(st.just(()), _one_each(plain_labels, size)))
    branches = draw(st.one_of(st.none(), _branches(parents)))
    return Tree(parents, draw(_one_each(labels, size)), words, relations, branches)


@st.composite
def constituency_trees(
    draw: st.DrawFn,
    labels: st.SearchStrategy[str] = plain_labels,
    words: st.SearchStrategy[str] = words_of_text,
    min_nodes: int = 2,
    max_nodes: int = 30,
) -> Tree:
    """Trees whose leaves are the words of a sentence; the root is never a leaf."""
    parents = draw(shapes(max(min_nodes, 2), max_nodes))
    interior = set(parents)
    size = len(parents)
    leaves = [node for node in range(size) if node not in interior]
    word_of = {node: word for word, node in enumerate(leaves)}
    texts = draw(_one_each(words, len(leaves)))
    categories = draw(_one_each(labels, size))
    return Tree(
        parents,
        [texts[word_of[n]] if n in word_of else categories[n] for n in range(size)],
        [word_of.get(n, -1) for n in range(size)],
    )


@st.composite
def head_lists(draw: st.DrawFn, min_words: int = 1, max_words: int = 20) -> list[int]:
    """CoNLL heads of a random dependency tree, projective or not."""
    parents = draw(shapes(min_words, max_words))
    position = draw(st.permutations(range(1, len(parents) + 1)))
    heads = [0] * len(parents)
    for node, parent in enumerate(parents):
        heads[position[node] - 1] = position[parent] if parent >= 0 else 0
    return heads


@st.composite
def dependency_trees(
    draw: st.DrawFn,
    forms: st.SearchStrategy[str] = words_of_text,
    relations: st.SearchStrategy[str] = plain_labels,
    min_words: int = 1,
    max_words: int = 20,
) -> Tree:
    """Trees built with `Tree.from_heads`: every node is a word and has a relation."""
    heads = draw(head_lists(min_words, max_words))
    size = len(heads)
    return Tree.from_heads(heads, draw(_one_each(forms, size)), draw(_one_each(relations, size)))


def _one_each(values: st.SearchStrategy[str], size: int) -> st.SearchStrategy[list[str]]:
    return st.lists(values, min_size=size, max_size=size)


@st.composite
def _branches(draw: st.DrawFn, parents: list[int]) -> list[int]:
    free = [0] * len(parents)
    branches = []
    for parent in parents:
        branch = free[parent] + draw(st.integers(0, 2)) if parent >= 0 else 0
        branches.append(branch)
        if parent >= 0:
            free[parent] = branch + 1
    return branches
