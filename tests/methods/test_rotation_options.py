"""What maps of queries and keys refuse."""

import pytest

from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site

SITE = Site(16, 2, 2)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("rotary(base=1.0)", "rotary: base must be above 1, not 1.0"),
        ("tree_rotary(coordinates='height')", "unknown coordinate 'height'; they are depth, branch"),
        ("tree_rotary(coordinates='position')", "position alone needs no tree; use the method rotary"),
        ("tree_rotation(block=3)", "block must be 0, or at least 2 and a divisor of the 8 channels"),
        ("tree_rotation(block=1)", "block must be 0, or at least 2"),
        ("tree_rotation(degree=1)", "tree='lcrs' needs degree=2 or more"),
        ("tree_rotation(degree=3)", "tree='lcrs' has two branches, so degree=2"),
        ("tree_rotary(per_head=True)", "per_head=True is for frequencies that are learned=True"),
        ("tree_rotation(degree=0, tree='nary')", "tree='nary' needs degree=1 or more"),
        ("tree_rotation(tree='heap')", "unknown tree 'heap'; it is one of lcrs, left, right, nary"),
        ("tree_rotation(start='zero')", "unknown start 'zero'; it is one of rotary, published, random"),
        ("tree_rotation(learned=False)", "no branch differs from another; give start='random'"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_built(spec, message):
    with pytest.raises(OptionError, match=message):
        Composition(spec, SITE)


def test_odd_heads_have_no_pairs():
    with pytest.raises(OptionError, match="the 3 channels of a head make no pairs"):
        Composition("rotary", Site(6, 2, 1))


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("tree_rotation(tree='left')", "tree='left' depends on later siblings"),
        ("tree_rotary(coordinates='depth, preorder')", "changes as a tree grows; use position"),
    ],
)
def test_a_decoder_refuses_what_changes_as_a_tree_grows(spec, reason):
    assert reason in (Composition(spec, SITE).leaks_future() or "")
