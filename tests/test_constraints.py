"""Legal continuations against the enumeration of all trees."""

from __future__ import annotations

from collections import deque
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.child_grammar import any_tree, learn_grammar
from treesyntax.constraints import Constraints
from treesyntax.errors import OptionError, TreeError
from treesyntax.formats.base import ONE, SEVERAL
from treesyntax.growth import ORDERS, SlotTable

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
EOS = 2
NARY = [*SPECIALS, "a/0", "f/1", "g/3", "word"]
BINARY = [*SPECIALS, "a/0", "b/L", "c/R", "d/LR"]
COUNTS = {"0": 0, "1": 1, "2": 2, "3": 3, "L": 1, "R": 1, "LR": 2}
LIMIT = 5


def count_of(symbols, token):
    symbol = symbols[token]
    return COUNTS[symbol.rpartition("/")[2]] if "/" in symbol and token >= 4 else None


def triples(row, symbols, order):
    """(parent symbol or None, slot, symbol) of every node, or None if it is no whole tree."""
    open_slots, found = deque([(None, 0)]), []
    for token in row:
        count = count_of(symbols, token)
        if count is None or not open_slots:
            return None
        found.append((*open_slots.popleft(), token))
        new = [(token, slot) for slot in range(count)]
        open_slots = deque([*open_slots, *new] if order == "bfs" else [*new, *open_slots])
    return None if open_slots else found


def all_trees(symbols, order, limit, grammar=None):
    """Every whole tree of at most ``limit`` tokens, one tuple of token ids each."""
    nodes = [token for token in range(len(symbols)) if count_of(symbols, token) is not None]
    rows = [row for size in range(1, limit + 1) for row in product(nodes, repeat=size)]
    trees = [(row, triples(row, symbols, order)) for row in rows]
    return [row for row, found in trees if found and (not grammar or grammar(found))]


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
            allowed = constraints.allowed(torch.tensor([[EOS, *p] for p in prefixes]), limit)
            for row, prefix in zip(allowed, prefixes, strict=True):
                assert set(row.nonzero().flatten().tolist()) == expected[prefix], prefix


def make(symbols, order, binary=False):
    slots = SlotTable.of(symbols)
    return Constraints(slots, order, EOS, any_tree(slots, binary))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("limit", [1, 2, 3, LIMIT])
def test_exactly_the_prefixes_of_trees_are_legal(order, limit):
    trees = all_trees(NARY, order, limit)
    check_all(make(NARY, order), trees, limit)


@pytest.mark.parametrize("order", ORDERS)
def test_a_binary_root_has_no_sibling(order):
    trees = all_trees(BINARY, order, LIMIT, lambda found: "R" not in BINARY[found[0][2]])
    check_all(make(BINARY, order, binary=True), trees, LIMIT)


@pytest.mark.parametrize("order", ORDERS)
def test_a_notation_may_want_one_child_or_several(order):
    children = {"b/L": SEVERAL, "d/LR": ONE}

    def holds(found):
        first = [(BINARY[parent], BINARY[token]) for parent, slot, token in found[1:] if not slot]
        wanted = [(children[parent], token) for parent, token in first if parent in children]
        has_one = "R" not in BINARY[found[0][2]]
        return has_one and all(("R" in token) == (number == SEVERAL) for number, token in wanted)

    slots = SlotTable.of(BINARY)
    grammar = any_tree(slots, True, [children.get(symbol) for symbol in BINARY])
    constraints = Constraints(slots, order, EOS, grammar)
    check_all(constraints, all_trees(BINARY, order, LIMIT, holds), LIMIT)


def test_what_no_symbol_can_do_is_not_wanted():
    slots = SlotTable.of([*SPECIALS, "a/0", "b/L"])
    grammar = any_tree(slots, True, [None] * 5 + [SEVERAL])
    allowed = Constraints(slots, "dfs", EOS, grammar).allowed(torch.tensor([[EOS, 5]]), 4)
    assert allowed.nonzero()[:, 1].tolist() == [4, 5]


@settings(deadline=None, max_examples=40)
@given(st.data(), st.sampled_from(ORDERS), st.sampled_from([NARY, BINARY]))
def test_a_learned_grammar_allows_exactly_what_was_seen(data, order, symbols):
    known = all_trees(symbols, order, 4)
    training = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=5))
    seen = {triple for row in training for triple in triples(row, symbols, order)}
    slots = SlotTable.of(symbols)
    grammar = learn_grammar([[*row, EOS] for row in training], slots, order, EOS)
    assert len(grammar.fills) == len({triple[:2] for triple in seen})
    trees = all_trees(symbols, order, LIMIT, lambda found: set(found) <= seen)
    least = min(map(len, trees))
    constraints = Constraints(slots, order, EOS, grammar)
    assert constraints.least == least
    for limit in (least, LIMIT):
        check_all(constraints, [row for row in trees if len(row) <= limit], limit)


def test_a_slot_may_need_more_than_one_token():
    """f needs g, g needs h and i: f's slot is only closed by three more tokens."""
    slots = SlotTable.of([*SPECIALS, "f/2", "g/2", "h/0", "i/0", "x/0"])
    grammar = learn_grammar([[4, 8, 5, 6, 7], [4, 8, 8]], slots, "dfs", EOS)
    constraints = Constraints(slots, "dfs", EOS, grammar)
    prefix = torch.tensor([[EOS, 4, 8]])
    assert constraints.allowed(prefix, 4).nonzero()[:, 1].tolist() == [8]
    assert constraints.allowed(prefix, 5).nonzero()[:, 1].tolist() == [5, 8]


def test_sequences_of_training_trees_may_be_tensors_of_any_number():
    slots = SlotTable.of(NARY)
    trees = [torch.tensor([5, 4, EOS]), torch.tensor([4]), [6, 4, 4, 4]] * 400
    grammar = learn_grammar(iter(trees), slots, "bfs", EOS)
    assert grammar.fills[0].nonzero().flatten().tolist() == [4, 5, 6]
    assert len(grammar.fills) == 5


@pytest.mark.parametrize("tree", [[5], [4, 4], [], [5, 3, 4], [4, EOS, 4], [7]])
def test_what_is_no_whole_tree_cannot_be_learned_from(tree):
    with pytest.raises(TreeError, match="training tree 2 are not one whole tree; learn from"):
        learn_grammar([[4], tree], SlotTable.of(NARY), "dfs", EOS)


def test_no_trees_teach_nothing():
    with pytest.raises(OptionError, match="from no trees; give training data"):
        learn_grammar([], SlotTable.of(NARY), "dfs", EOS)


def test_a_dictionary_without_leaves_is_refused():
    with pytest.raises(OptionError, match="no symbol without slots"):
        make([*SPECIALS, "f/1", "g/2"], "dfs")
    with pytest.raises(OptionError, match="no symbol without slots"):
        make(SPECIALS, "dfs")


def test_a_limit_below_the_smallest_tree_is_refused():
    with pytest.raises(OptionError, match="no tree fits into 0 tokens, the smallest has 1; raise"):
        make(NARY, "dfs").allowed(torch.tensor([[EOS]]), 0)


def test_an_unknown_order_is_refused():
    with pytest.raises(OptionError, match="unknown order 'up'"):
        make(NARY, "up")


@pytest.mark.parametrize("order", ORDERS)
def test_a_long_prefix_and_an_illegal_one(order):
    """Beams hold illegal rows of probability 0; they must not disturb the others."""
    constraints = make(NARY, order)
    rows = [[EOS, *[5] * 999], [EOS, *[1] * 999], [EOS, 4, EOS, *[3] * 997]]
    allowed = constraints.allowed(torch.tensor(rows), 1000)
    assert allowed[0].nonzero().flatten().tolist() == [4]
