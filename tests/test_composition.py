import pytest

from treesyntax.composition import Composition, options_of, parse_spec
from treesyntax.errors import OptionError
from treesyntax.injection import Site
from treesyntax.methods import METHODS

SITE = Site(d_model=8, heads=2, layers=2)


def test_a_spec_names_methods_and_arguments_in_order():
    spec = "relation_mask + stack_pe(depth=4, tree='nary')"
    assert parse_spec(spec) == {"relation_mask": {}, "stack_pe": {"depth": 4, "tree": "nary"}}


@pytest.mark.parametrize("spec", ["", "none", "  "])
def test_the_empty_composition(spec):
    composition = Composition(spec, SITE)
    assert composition.methods == []
    assert composition.state_dict() == {}
    assert not composition.needs_tree


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stak_pe", r"unknown method 'stak_pe'; the methods are .*relation_mask.*stack_pe"),
        ("stack_pe(dept=3)", r"stack_pe has no argument 'dept'; it has degree=2, depth=32"),
        ("sequence(depth=3)", r"sequence has no argument 'depth'; it has none"),
        ("stack_pe(depth='3')", r"depth of stack_pe is '3'; it must be of the kind"),
        ("stack_pe(depth=True)", r"depth of stack_pe is True"),
        ("stack_pe(depth=k)", r"the value of depth .* is not a number"),
        ("stack_pe(3)", r"cannot read the methods"),
        ("stack_pe(**x)", r"cannot read the methods"),
        ("stack_pe+", r"cannot read the methods"),
        ("stack_pe-relation_mask", r"cannot read the methods"),
        ("stack_pe+stack_pe", r"stack_pe is given twice"),
        ("__import__('os')", r"cannot read the methods"),
        ("stack_pe(depth=__import__('os'))", r"is not a number"),
        ("a\0b", r"cannot read the methods"),
    ],
)
def test_a_wrong_spec_is_answered_with_the_right_ones(spec, message):
    with pytest.raises(OptionError, match=message):
        parse_spec(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stack_pe(depth=0)", "degree and depth must be 1 or more"),
        ("stack_pe(tree='heap')", "unknown tree 'heap'; it is one of lcrs, left, right, nary"),
        ("stack_pe(degree=1)", "needs degree=2"),
    ],
)
def test_arguments_that_cannot_be_built(spec, message):
    with pytest.raises(OptionError, match=message):
        Composition(spec, SITE)


def test_state_keys_do_not_depend_on_what_is_composed():
    alone = set(Composition("relation_mask", SITE).state_dict())
    together = set(Composition("stack_pe+relation_mask", SITE).state_dict())
    assert alone == {"relation_mask.strengths"}
    assert alone < together


def test_every_method_says_where_it_comes_from():
    assert list(METHODS) == sorted(METHODS)
    for name, method in METHODS.items():
        assert method.paper, name
        assert method.equation, name
        assert method.__doc__, name
        assert all(default is not None for default in options_of(name).values())
