"""The mask of Transformer Grammars, against a machine that pushes, composes and pops token by token."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import encoded, stored
from support.strategies import trees

from treesyntax.model.bracket_growth import BRACKETS, GrowingBrackets
from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

SITE = Site(d_model=12, heads=3, layers=2)
SENTENCE = Tree([-1, 0, 1, 1, 0], ["S", "NP", "the", "dog", "sleeps"])
forests = st.lists(trees(max_nodes=9), min_size=1, max_size=2)
few = settings(deadline=None, max_examples=15)


def seen_by(tokens):
    """What each token sees, the token itself among it."""
    machine = Machine()
    return [machine.read(token) for token in tokens]


class Machine:
    """The stack, as positions with whether they are open brackets."""

    def __init__(self):
        self.stack, self.position, self.composed = [], -1, False

    def read(self, token):
        self.position += 1
        if token == ")" and not self.composed:
            self.composed, taken = True, []
            while not (taken and taken[-1][1]):
                taken.append(self.stack.pop())
            self.stack.append((self.position, False))
            return sorted([*(at for at, _ in taken), self.position])
        if token == ")":
            self.composed = False
        else:
            self.stack.append((self.position, token.startswith("(")))
        return sorted({*(at for at, _ in self.stack), self.position})


def method_of(spec="transformer_grammar"):
    return Composition(spec, SITE)["transformer_grammar"]


def linearized(forest, linearization=BRACKETS, left_pad=False, specials=1):
    """Trees with the tokens of a linearization, and the tokens."""
    read = get_linearization(linearization)
    lines = [read.tokens(tree) for tree in forest]
    width = max(map(len, lines)) + specials
    batch = collate(
        [stored(tree, read.token_nodes(tree)) for tree in forest], width, left_pad, specials
    )
    return batch, lines


@settings(few, max_examples=5)
@given(forests, st.booleans())
def test_attention_is_a_softmax_over_what_the_machine_sees(forest, left_pad):
    batch, lines = linearized(forest, left_pad=left_pad)
    rows, width = batch.token_node.shape
    shape = (3, rows, 3, width, 4)
    generator = torch.Generator().manual_seed(rows * width)
    ours = torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
    slow = ours.detach().clone().requires_grad_()
    real = torch.zeros(rows, 1, 1, width, dtype=torch.bool)
    starts = [width - 1 - len(line) if left_pad else 0 for line in lines]
    for row, (start, line) in enumerate(zip(starts, lines, strict=True)):
        real[row, ..., start : start + len(line) + 1] = True
    attended = attend(*ours, real, Composition("transformer_grammar", SITE).relate(batch)(1))
    found, wanted = [], []
    for row, (start, line) in enumerate(zip(starts, lines, strict=True)):
        for i, keys in enumerate(seen_by([*line, "</s>"])):
            at = [start + j for j in keys]
            for head in range(3):
                q, k, v = (part[row, head] for part in slow)
                weights = torch.softmax(k[at] @ q[start + i] / math.sqrt(4), 0)
                found.append(attended[row, head, start + i])
                wanted.append(weights @ v[at])
    torch.testing.assert_close(torch.stack(found), torch.stack(wanted))
    torch.stack(found).square().sum().backward()
    torch.stack(wanted).square().sum().backward()
    torch.testing.assert_close(ours.grad, slow.grad)


@few
@given(forests)
def test_a_decoder_sees_the_stack_of_what_it_has_written(forest):
    """The start symbol stays on it, as the paper's does; each prefix sees what the whole one does."""
    tokens, symbols = encoded(forest, BRACKETS)
    growing, method = GrowingBrackets(symbols), method_of()
    ids = method.relation_ids(growing.grow(tokens).tree)
    for row, length in enumerate(tokens.ne(1).sum(1).tolist()):
        for i, keys in enumerate(seen_by([symbols[one] for one in tokens[row, :length]])):
            assert ids[row, i].nonzero().flatten().tolist() == keys
    for size in range(1, tokens.shape[1]):
        prefix = method.relation_ids(growing.grow(tokens[:, :size]).tree)
        assert torch.equal(prefix, ids[:, :size, :size])


def test_what_a_sentence_sees():
    """(S (NP the dog ) ) sleeps ) ), and the end mark."""
    batch, _ = linearized([SENTENCE])
    assert [row.nonzero().flatten().tolist() for row in method_of().relation_ids(batch)[0]] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 4], [0, 4, 5], [0, 4, 6],
        [0, 4, 6, 7], [7, 8], [7, 9],
    ]  # fmt: skip


def test_one_closing_bracket_composes_too():
    batch, _ = linearized([SENTENCE], "bracketed", specials=0)
    assert [row.nonzero().flatten().tolist() for row in method_of().relation_ids(batch)[0]] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 4], [0, 4, 5], [0, 4, 5, 6],
    ]  # fmt: skip


@few
@given(forests)
def test_without_closing_tokens_it_is_the_stack_of_nodes(forest):
    batch, _ = linearized(forest, "preorder", specials=0)
    nodes = Composition("constrained_mask(views='stack')", SITE)["constrained_mask"]
    ids, wanted = (one.relation_ids(batch) for one in (method_of(), nodes))
    for row, tree in enumerate(forest):
        inner = (row, slice(len(tree)), slice(len(tree)))
        assert torch.equal(ids[inner], wanted[inner].tril())


def test_subwords_of_a_node_are_on_the_stack_together():
    """A head (ran away) with a dependent (dogs, which is dog + s), every subword on its node."""
    tree = Tree([-1, 0], ["ran", "dogs"])
    batch = collate([stored(tree, [0, 0, 1, 1, 0, 0])], 6, specials=0)
    assert [row.nonzero().flatten().tolist() for row in method_of().relation_ids(batch)[0]] == [
        [0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3, 4], [4, 5],
    ]  # fmt: skip


@few
@given(forests)
def test_the_id_of_a_pair_is_the_stored_one(forest):
    batch, _ = linearized(forest)
    method = method_of()
    ids, relation_of = method.relation_ids(batch).long(), method.relation_of_pair(batch)
    b, i, j = (
        one.flatten() for one in torch.meshgrid(*map(torch.arange, ids.shape), indexing="ij")
    )
    assert torch.equal(relation_of(b, i, j).long(), ids.flatten())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_masks_as_well_beside_depths(dtype):
    composition = Composition("transformer_grammar+relative_depth", SITE).to(dtype)
    batch, _ = linearized([SENTENCE])
    ids = method_of().relation_ids(batch)[0].bool()
    q, k = torch.randn(2, 1, 3, 10, 4).to(dtype) * 10
    terms = [term for term in composition.relate(batch)(0) if term.bias is not None]
    weights = attend(q, k, torch.eye(10, dtype=dtype).expand(1, 3, 10, 10), None, terms)
    assert weights[..., ~ids].eq(0).all()
    v = torch.randn(1, 3, 10, 4).to(dtype)
    assert attend(q, k, v, None, composition.relate(batch)(0)).isfinite().all()
