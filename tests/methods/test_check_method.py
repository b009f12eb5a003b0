"""``check_method`` finds each kind of broken promise: methods that are wrong in one way."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import treesyntax as ts
from treesyntax.testing.methods import PROMISES, check_method


class Right(ts.Injection):
    """A bias for pairs of siblings."""

    paper, equation, cost = "me", "b [siblings]", "a table lookup"

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.bias = nn.Parameter(torch.zeros(site.layers, site.heads, 2))

    def relation_ids(self, tree):
        parent = tree.at_tokens(tree.parent, -2)
        siblings = (parent.unsqueeze(1) == parent.unsqueeze(2)) & (parent >= 0).unsqueeze(1)
        return siblings.byte()

    def bias_table(self, layer):
        return self.bias[layer]


class OfLabels(ts.Injection):
    """An encoding of the label of each token's node."""

    paper, equation, cost, needs_labels = "me", "E[label]", "a table lookup", True

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.labels = nn.Parameter(torch.randn(4, site.d_model))

    def node_encoding(self, tree):
        label = tree.at_tokens(tree.label, -1)
        return self.labels[label.clamp(0, 3)] * (label >= 0).unsqueeze(2)


class Undescribed(Right):
    """No formula."""

    equation = ""


class LooksAtTheBatch(Right):
    """Ids that depend on the other sentences."""

    def relation_ids(self, tree):
        return super().relation_ids(tree).roll(1, dims=0)


class NoTree(Right):
    """Says that it needs a tree, and reads none."""

    def relation_ids(self, tree):
        width = tree.token_node.shape[1]
        return torch.eye(width, dtype=torch.uint8).unsqueeze(0)


class SaysThatItNeedsNoTree(Right):
    """Computes nothing where data or decoders have no trees, and is not refused there."""

    needs_tree = False


class SaysThatItIsForTraining(Right):
    """The same once it is trained: then it is given no trees."""

    training_only = True


class Unlearnt(Right):
    """A table of which no gradient comes."""

    def bias_table(self, layer):
        return self.bias[layer].detach()


class NotSaved(Right):
    """A random number that the state dict lacks."""

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.factor = next(NotSaved.factors)

    factors = iter(range(1, 1000))

    def bias_table(self, layer):
        return self.bias[layer] * self.factor


class LosesWhatItKeptInTraining(Right):
    """A number that training changes, and that the state dict lacks."""

    factor = 1.0

    def bias_table(self, layer):
        self.factor *= 0.9 if self.training else 1.0
        return self.bias[layer] * self.factor


class SaysNothingOfLabels(OfLabels):
    """Reads labels where there are some, and does not say that it needs them."""

    needs_labels = False

    def node_encoding(self, tree):
        none = ts.TreeBatch(tree.parent, tree.branch, tree.token_node, tree.parent * 0)
        return super().node_encoding(none if tree.label is None else tree)


class LooksAtOtherTargets(LooksAtTheBatch):
    """The same in a decoder alone."""

    sides = ("decoder",)


class UnlearntInADecoder(Unlearnt):
    """The same in a decoder alone."""

    sides = ("decoder",)


class SeesTheFuture(Right):
    """Counts children that a decoder does not know yet, and does not say so."""

    def relation_ids(self, tree):
        children = torch.zeros_like(tree.parent)
        children = children.scatter_add(1, tree.parent.clamp(min=0), (tree.parent >= 0).long())
        count = tree.at_tokens(children, 0)
        return (count.unsqueeze(1) == count.unsqueeze(2)).byte()


class LossOfTheBatch(Right):
    """A loss that is a mean over the batch, where a sum over tokens is promised."""

    def leaks_future(self):
        return "supervises states with the whole tree"

    def loss(self, layer, states, tree):
        return states.outputs.square().mean()


class LooksAtTheBatchInTraining(Right):
    """Ids that depend on the other sentences, while it learns."""

    def relation_ids(self, tree):
        ids = super().relation_ids(tree)
        return ids.roll(1, dims=0) if self.training else ids


class SeesTheFutureInTraining(SeesTheFuture):
    """The same while it learns, and not in evaluation."""

    def relation_ids(self, tree):
        return super().relation_ids(tree) if self.training else Right.relation_ids(self, tree)


class ShortTable(ts.Injection):
    """An embedding of depths, of which there are only so many."""

    paper, equation, cost = "me", "E[depth]", "a table lookup"

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.depths = nn.Embedding(64, site.d_model)

    def node_encoding(self, tree):
        depth = torch.zeros_like(tree.parent)
        for _ in range(tree.parent.shape[1]):
            above = depth.gather(1, tree.parent.clamp(min=0)) + 1
            depth = torch.where(tree.parent < 0, 0, above)
        real = (tree.token_node >= 0).unsqueeze(2)
        return self.depths(tree.at_tokens(depth, 0)) * real


class NarrowTable(Right):
    """A bias by the branch of the key, of which there are only so many."""

    def __init__(self, site: ts.Site) -> None:
        super().__init__(site)
        self.bias = nn.Parameter(torch.zeros(site.layers, site.heads, 64))

    def relation_ids(self, tree):
        return tree.at_tokens(tree.branch + 1, 0).unsqueeze(1)


class ChangesTheTrees(Right):
    """Marks branches in place."""

    def relation_ids(self, tree):
        ids = super().relation_ids(tree)
        tree.branch.add_(1)
        return ids


class ReadsBack(Right):
    """Looks at a number to save work."""

    def relation_ids(self, tree):
        ids = super().relation_ids(tree)
        return ids if bool(ids.any()) else ids * 0


class OnTheCpu(Right):
    """Makes a tensor without saying where."""

    def relation_ids(self, tree):
        return super().relation_ids(tree) * torch.ones(4, 1, 1, dtype=torch.uint8)[:1]


@pytest.mark.parametrize(
    ("method", "told"),
    [
        (Right, None),
        (OfLabels, None),
        (Undescribed, "it describes itself: wrong has no equation"),
        (LooksAtTheBatch, "a batch of one equals the mixed batch: sentence 1 differs"),
        (NoTree, "the tree matters: another tree gives the same output"),
        (SaysThatItNeedsNoTree, "gives another output, but it says needs_tree = False"),
        (SaysThatItIsForTraining, "gives another output, but it says training_only"),
        (Unlearnt, "the gradient reaches every parameter: injections.wrong.bias gets no gradient"),
        (NotSaved, "saved equals loaded: the loaded one gives another output"),
        (LosesWhatItKeptInTraining, "saved equals loaded: the loaded one gives another output"),
        (SaysNothingOfLabels, "it reads labels, but does not say needs_labels = True"),
        (LooksAtOtherTargets, "a target is the same alone: target 1 differs in a batch, in nary"),
        (UnlearntInADecoder, "every parameter: injections.wrong.bias gets no gradient"),
        (
            SeesTheFuture,
            "a decoder sees no future: in nary_dfs, the first 4 steps differ when more follow",
        ),
        (LossOfTheBatch, "the loss of a batch is not the sum of its sentences' losses"),
        (LooksAtTheBatchInTraining, "sentence 1 differs in a batch, in training"),
        (SeesTheFutureInTraining, "a decoder sees no future: in training, the first"),
        (ShortTable, "deep and wide trees are read: index out of range"),
        (NarrowTable, "deep and wide trees are read: "),
        (
            ChangesTheTrees,
            "the trees stay as they are: the branch of the trees is changed in place",
        ),
        (ReadsBack, "it is ready for a gpu: "),
        (OnTheCpu, "it is ready for a gpu: "),
    ],
)
def test_what_is_wrong_is_told(monkeypatch: pytest.MonkeyPatch, method, told):
    monkeypatch.setitem(ts.METHODS, "wrong", method)
    if told is None:
        check_method("wrong")
        check_method("wrong+stack_pe(depth=4)")
        return
    with pytest.raises(AssertionError) as caught:
        check_method("wrong")
    assert str(caught.value).startswith("wrong: broken promise, ")
    assert told in str(caught.value)


def test_every_promise_says_what_it_is():
    assert len({promise.__name__ for promise in PROMISES}) == len(PROMISES)
    assert all(promise.__doc__ for promise in PROMISES)


def test_a_method_that_is_not_there_is_no_broken_promise():
    with pytest.raises(ts.OptionError, match="unknown method 'nothing'"):
        check_method("nothing")
