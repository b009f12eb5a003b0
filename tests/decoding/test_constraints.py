"""Legal continuations against the enumeration of all trees."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import SPECIALS

from treesyntax.decoding.constraints import Constraints
from treesyntax.decoding.grammar import any_tree
from treesyntax.decoding.learned_grammar import learn_grammar, learn_sibling_grammar
from treesyntax.decoding.notation_grammar import notation_grammar
from treesyntax.errors import OptionError, TreeError
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.controls import unshuffled
from treesyntax.trees.formats import FORMATS
from treesyntax.trees.formats.base import Children, any_label
from treesyntax.trees.symbols import from_nary, from_siblings, sibling_tokens

EOS = 2
NARY = [*SPECIALS, "a/0", "f/1", "g/3", "word"]
BINARY = [*SPECIALS, "a/0", "b/L", "c/R", "d/LR"]
LIMIT = 5
ORDERS = ("dfs", "bfs")


def triples(row, symbols, order):
    """(parent symbol or None, slot, symbol) of every node, or None if it is no whole tree."""
    places, open_slots = oracles.grow([symbols[token] for token in row], order)
    if open_slots or len(places) < len(row):
        return None
    names = [None, *row]
    return [
        (names[max(above, 0)], slot, token)
        for (above, slot), token in zip(places, row, strict=True)
    ]


def all_trees(symbols, order, limit, grammar=None):
    """Every whole tree of at most ``limit`` tokens, one tuple of token ids each."""
    trees = triples_by_tree(tuple(symbols), order, limit)
    return [row for row, found in trees.items() if not grammar or grammar(found)]


@cache
def triples_by_tree(symbols, order, limit):
    nodes = [token for token in range(len(symbols)) if oracles.slots_of(symbols[token]) is not None]
    rows = [row for size in range(1, limit + 1) for row in product(nodes, repeat=size)]
    return {row: found for row in rows if (found := triples(row, symbols, order))}


def expected_continuations(trees):
    following: dict[tuple, set[int]] = {(): set()}
    for row in trees:
        for size in range(len(row)):
            following.setdefault(row[:size], set()).add(row[size])
        following.setdefault(row, set()).add(EOS)
    return following


def check_all(constraints, trees, limit):
    """Every prefix of every tree has exactly the continuations that some tree has."""
    expected = expected_continuations(trees)
    for size in range(limit + 1):
        prefixes = [prefix for prefix in expected if len(prefix) == size]
        if prefixes:
            allowed = allowed_after(constraints, [[EOS, *p] for p in prefixes], limit)
            for row, prefix in zip(allowed, prefixes, strict=True):
                assert set(row.nonzero().flatten().tolist()) == expected[prefix], prefix


def growing(symbols, order="dfs", form="nary"):
    return GrowingTrees(symbols, f"{form}_{order}")


def make(symbols, order, form="nary"):
    trees = growing(symbols, order, form)
    return Constraints(trees, EOS, any_tree(trees))


def allowed_after(constraints, rows, limit):
    return constraints.allowed(constraints.trees.grow(torch.tensor(rows)), limit)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 2, 3, LIMIT])
@pytest.mark.parametrize("form", ["nary", "lcrs"])
def test_exactly_the_prefixes_of_trees_are_legal(order, limit, form):
    """A root in left-child-right-sibling form has no sibling."""
    symbols = BINARY if form == "lcrs" else NARY
    trees = all_trees(symbols, order, limit, lambda found: found[0][2] not in siblings(symbols))
    check_all(make(symbols, order, form), trees, limit)


def family_of(tree):
    """(label, labels of the children) of every node."""
    return [
        (tree.labels[node], [tree.labels[child] for child in children])
        for node, children in enumerate(tree.children())
    ]


def one_of(labels):
    return lambda label: label in labels


WISHES = {
    "several": {"b": Children((any_label, any_label), more=True)},
    "several or none": {"b": Children((any_label, any_label), more=True, optional=True)},
    "one": {"b": Children((any_label,)), "d": Children((any_label,), optional=True)},
    "two of their own": {"b": Children((one_of("bd"), one_of("a")))},
    "leaves": {"a": Children(), "b": Children((one_of("ab"), one_of("bd")), more=True)},
}


def keeps_to(wishes, roots, tree):
    """Whether a tree is what a notation wants, from the definition."""
    for label, children in family_of(tree):
        if wanted := wishes.get(label):
            least = len(wanted.child_labels)
            if not children and wanted.optional:
                continue
            if len(children) < least or (len(children) > least and not wanted.more):
                return False
            places = [*wanted.child_labels, *wanted.child_labels[-1:] * len(children)]
            if not all(place(child) for place, child in zip(places, children, strict=False)):
                return False
    return tree.labels[0] in roots


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", ["nary", "lcrs"])
@pytest.mark.parametrize("wishes", WISHES)
def test_a_notation_has_exactly_the_trees_it_wants(order, form, wishes):
    suffixes = ["0", "L", "R", "LR"] if form == "lcrs" else ["0", "1", "2", "3"]
    read = from_siblings if form == "lcrs" else from_nary
    symbols = [*SPECIALS, *(f"{label}/{suffix}" for label in "abd" for suffix in suffixes)]
    notation = FORMATS["sexpr"]._replace(root=one_of("bd"), children=WISHES[wishes].get)
    growth = growing(symbols, order, form)
    grammar = notation_grammar(symbols, growth, notation)
    whole = all_trees(symbols, order, 4, lambda found: found[0][2] not in siblings(symbols))
    trees = [
        row
        for row in whole
        if keeps_to(WISHES[wishes], "bd", read([symbols[t] for t in row], order == "bfs"))
    ]
    assert 0 < len(trees) < len(whole)
    check_all(Constraints(growth, EOS, grammar), trees, 4)


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize("form", ["nary", "lcrs"])
@pytest.mark.parametrize("wishes", WISHES)
def test_shuffled_trees_are_those_that_a_notation_wants(form, wishes, seed):
    """Exactly, but where a left-child-right-sibling symbol does not tell how many siblings follow."""
    suffixes = ["0", "L", "R", "LR"] if form == "lcrs" else ["0", "1", "2", "3"]
    read = from_siblings if form == "lcrs" else from_nary
    symbols = [*SPECIALS, *(f"{label}/{suffix}" for label in "abd" for suffix in suffixes)]
    notation = FORMATS["sexpr"]._replace(root=one_of("bd"), children=WISHES[wishes].get)
    growth = growing(symbols, "dfs", form)
    grammar = notation_grammar(symbols, growth, notation, seed)
    whole = all_trees(symbols, "dfs", 4, lambda found: found[0][2] not in siblings(symbols))
    trees = [
        row
        for row in whole
        if keeps_to(WISHES[wishes], "bd", unshuffled(read([symbols[t] for t in row], False), seed))
    ]
    assert 0 < len(trees) < len(whole)
    constraints = Constraints(growth, EOS, grammar)
    if form == "nary" or wishes != "leaves":
        check_all(constraints, trees, 4)
        return
    for row in trees:
        for length in range(len(row)):
            allowed = allowed_after(constraints, [[EOS, *row[:length]]], 4)
            assert allowed[0, row[length]]


def siblings(symbols):
    return {token for token, symbol in enumerate(symbols) if "R" in symbol.rpartition("/")[2]}


def test_what_no_symbol_can_do_is_not_wanted():
    """b may be no parent, as there are no two children for it."""
    symbols = [*SPECIALS, "a/0", "b/L", "c/0"]
    wishes = {"b": Children((any_label, any_label), more=True)}
    growth = growing(symbols, form="lcrs")
    notation = FORMATS["sexpr"]._replace(children=wishes.get)
    constraints = Constraints(growth, EOS, notation_grammar(symbols, growth, notation))
    allowed = allowed_after(constraints, [[EOS]], 4)
    assert allowed.nonzero()[:, 1].tolist() == [4, 6]


def test_unknown_symbols_may_be_anything():
    symbols = [*SPECIALS, "a/0", "b/2", "<unk>/0", "<unk>/3"]
    notation = FORMATS["sexpr"]._replace(children={"b": Children((one_of("b"),) * 2)}.get)
    growth = growing(symbols)
    constraints = Constraints(growth, EOS, notation_grammar(symbols, growth, notation))
    allowed = allowed_after(constraints, [[EOS, 5, 7]], 20)
    assert allowed.nonzero()[:, 1].tolist() == [4, 5, 6, 7]
    allowed = allowed_after(constraints, [[EOS, 7, 5]], 20)
    assert allowed.nonzero()[:, 1].tolist() == [5, 6, 7]


@settings(deadline=None, max_examples=40)
@given(st.data(), st.sampled_from(ORDERS))
def test_a_learned_grammar_allows_exactly_what_was_seen(data, order):
    symbols = NARY
    known = all_trees(symbols, order, 4)
    training = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=5))
    seen = {triple for row in training for triple in triples(row, symbols, order)}
    growth = growing(symbols, order)
    grammar = learn_grammar([[*row, EOS] for row in training], growth, EOS)
    assert len(grammar.fills) == len({triple[:2] for triple in seen})
    trees = all_trees(symbols, order, LIMIT, lambda found: set(found) <= seen)
    least = min(map(len, trees))
    constraints = Constraints(growth, EOS, grammar)
    assert constraints.least == least
    for limit in (least, LIMIT):
        check_all(constraints, [row for row in trees if len(row) <= limit], limit)


FAMILIES = [*SPECIALS, "a/0", "a/R", "a/L", "a/LR", "b/0", "b/LR"]


def sibling_places(row, order, counts):
    """(label of the parent, which child, symbol) of every node of a tree, as rows tell them apart.

    The number of a child counts where ``counts`` has one number for the label.
    """
    tree = from_siblings([FAMILIES[token] for token in row], order == "bfs")
    # In preorder of the tree itself the tokens of the row are in another order if breadth first.
    symbols = sibling_tokens(tree)
    found = {(None, 0, symbols[0])}
    for node, children in enumerate(tree.children()):
        label = tree.labels[node]
        for number, child in enumerate(children):
            kept = number if len(counts.get(label, ())) == 1 else min(number, 1)
            found.add((label, kept, symbols[child]))
    return found


@settings(deadline=None, max_examples=30)
@given(st.data(), st.sampled_from(ORDERS))
def test_a_grammar_learned_from_siblings_is_that_of_the_trees(data, order):
    """The children of a label, whatever siblings the form makes of them."""
    known = all_trees(FAMILIES, order, 4, lambda found: found[0][2] not in siblings(FAMILIES))
    training = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=6))
    counts = {}
    for row in training:
        tree = from_siblings([FAMILIES[token] for token in row], order == "bfs")
        for label, children in family_of(tree):
            if children:
                counts.setdefault(label, set()).add(len(children))
    seen = set().union(*(sibling_places(row, order, counts) for row in training))
    growth = growing(FAMILIES, order, "lcrs")
    grammar = learn_sibling_grammar([[*row, EOS] for row in training], FAMILIES, growth, EOS)
    assert len(grammar.fills) == len({place[:2] for place in seen})
    whole = all_trees(FAMILIES, order, LIMIT, lambda found: found[0][2] not in siblings(FAMILIES))
    trees = [row for row in whole if sibling_places(row, order, counts) <= seen]
    constraints = Constraints(growth, EOS, grammar)
    least = min(map(len, trees))
    assert constraints.least == least
    for limit in (least, LIMIT):
        check_all(constraints, [row for row in trees if len(row) <= limit], limit)


def test_many_children_are_not_kept_apart():
    """A label with always 70 children: the 64th and all later ones are alike, and any number."""
    symbols = [*SPECIALS, "f/L", "x/R", "x/0"]
    growth = growing(symbols, form="lcrs")
    grammar = learn_sibling_grammar([[4, *[5] * 69, 6]], symbols, growth, EOS)
    assert len(grammar.fills) == 3
    allowed = allowed_after(Constraints(growth, EOS, grammar), [[EOS, 4, 5]], 20)
    assert allowed.nonzero()[:, 1].tolist() == [5, 6]


def test_a_slot_may_need_more_than_one_token():
    """f needs g, g needs h and i: f's slot is only closed by three more tokens."""
    growth = growing([*SPECIALS, "f/2", "g/2", "h/0", "i/0", "x/0"])
    constraints = Constraints(growth, EOS, learn_grammar([[4, 8, 5, 6, 7], [4, 8, 8]], growth, EOS))
    for limit, legal in ((4, [8]), (5, [5, 8])):
        allowed = allowed_after(constraints, [[EOS, 4, 8]], limit)
        assert allowed.nonzero()[:, 1].tolist() == legal


@pytest.mark.parametrize("order", ORDERS)
def test_trees_of_one_branch(order):
    """No symbol has a second slot, so that a table of slots has one column."""
    symbols = [*SPECIALS, "a/0", "f/1"]
    check_all(make(symbols, order), all_trees(symbols, order, LIMIT), LIMIT)


def test_sequences_of_training_trees_may_be_tensors_of_any_number():
    trees = [torch.tensor([5, 4, EOS]), torch.tensor([4]), [6, 4, 4, 4]] * 400
    grammar = learn_grammar(iter(trees), growing(NARY, "bfs"), EOS)
    assert grammar.fills[0].nonzero().flatten().tolist() == [4, 5, 6]
    assert len(grammar.fills) == 5


@pytest.mark.parametrize("tree", [[5], [4, 4], [], [5, 3, 4], [4, EOS, 4], [7]])
def test_what_is_no_whole_tree_cannot_be_learned_from(tree):
    with pytest.raises(TreeError, match="training tree 2 are not one whole tree; learn from"):
        learn_grammar([[4], tree], growing(NARY), EOS)


def test_no_trees_teach_nothing():
    with pytest.raises(OptionError, match="from no trees; give training data"):
        learn_grammar([], growing(NARY), EOS)


def test_a_dictionary_without_leaves_is_refused():
    for symbols in ([*SPECIALS, "f/1", "g/2"], SPECIALS):
        with pytest.raises(OptionError, match="no symbol without slots"):
            make(symbols, "dfs")


def test_a_limit_below_the_smallest_tree_is_refused():
    with pytest.raises(OptionError, match="no tree fits into 0 tokens, the smallest has 1; raise"):
        allowed_after(make(NARY, "dfs"), [[EOS]], 0)


@pytest.mark.parametrize("order", ORDERS)
def test_a_long_prefix_and_an_illegal_one(order):
    """Beams hold illegal rows of probability 0; they must not disturb the others."""
    constraints = make(NARY, order)
    rows = [[EOS, *[5] * 999], [EOS, *[1] * 999], [EOS, 4, EOS, *[3] * 997]]
    allowed = allowed_after(constraints, rows, 1000)
    assert allowed[0].nonzero().flatten().tolist() == [4]
