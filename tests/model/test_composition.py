from contextlib import nullcontext

import pytest
import torch

from treesyntax.__main__ import main
from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition, compose, options_of, parse_spec
from treesyntax.model.presets import PRESETS
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.tree_batch import TreeBatch

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
        ("dependency_and_position(clip=3)", r"is relative_position\(clip=2\)\+.*write that out"),
        ("stack_pe_paper+stack_pe", "stack_pe is given twice"),
        ("stack_pe_paper(clip=3)", "stack_pe has no argument 'clip'"),
    ],
)
def test_a_wrong_spec_is_answered_with_the_right_ones(spec, message):
    with pytest.raises(OptionError, match=message):
        parse_spec(spec)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 0, 2), "^0 heads do not divide a width of 0$"),
        ((30, 4, 2), "^4 heads do not divide a width of 30$"),
        ((32, -4, 2), "^-4 heads do not divide a width of 32$"),
        ((-4, 4, 2), "^4 heads do not divide a width of -4$"),
        ((32, 4, 0), "^methods need 1 layer or more, not 0$"),
    ],
)
def test_sizes_that_no_model_has_are_refused(sizes, message):
    with pytest.raises(OptionError, match=message):
        compose("stack_pe", *sizes)


def test_state_keys_do_not_depend_on_what_is_composed():
    alone = set(Composition("relation_mask", SITE).state_dict())
    together = set(Composition("stack_pe+relation_mask", SITE).state_dict())
    assert alone == {"relation_mask.strengths"}
    assert alone < together


def test_every_method_says_where_it_comes_from():
    files = [method.__module__ for method in METHODS.values()]
    assert files == sorted(files)
    for name, method in METHODS.items():
        assert method.paper, name
        assert method.equation, name
        assert method.cost, name
        assert method.__doc__, name
        assert all(default is not None for default in options_of(name).values())


def test_a_preset_is_its_methods_and_their_settings():
    spec = "stack_pe_icecaps(depth=8)+relation_mask"
    found = parse_spec(spec)
    assert list(found) == ["stack_pe", "relation_mask"]
    assert found["stack_pe"]["depth"] == 8
    assert found["stack_pe"]["start"] == "icecaps"
    assert parse_spec("dependency_and_position") == {
        "relative_position": {"clip": 2},
        "relative_depth": {"clip": 2},
    }


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_can_be_built(name):
    assert Composition(name, SITE).methods


def test_the_listing_names_methods_presets_arguments_and_costs(capsys):
    assert main(["methods"]) == 0
    printed = capsys.readouterr().out
    for name, method in METHODS.items():
        assert method.equation in printed
        assert method.cost in printed
        for argument in options_of(name):
            assert f"{argument}=" in printed
    for name, preset in PRESETS.items():
        assert name in printed
        assert preset.spec in printed
    relation_mask = printed.split("\nrelation_mask\n")[1].split("\n\n")[0]
    assert "432 at width 512, 8 heads, 6 layers" in relation_mask


@pytest.mark.parametrize("name", ["none", "lambda", "Mine", "my-method"])
def test_a_name_that_a_list_of_methods_cannot_hold_is_refused(name):
    with pytest.raises(ValueError, match=f"{name!r} is no "):
        register(name)(Injection)


@pytest.mark.parametrize("sides", ["decoder", (), ("source",)])
def test_sides_that_no_model_has_are_refused(sides):
    with pytest.raises(ValueError, match=r"sides of mine is .*; write \('encoder',\) or"):
        register("mine")(type("Mine", (Injection,), {"sides": sides}))


@pytest.mark.parametrize("name", ["relate", "methods", "forward"])
def test_a_method_that_a_module_cannot_have_beside_its_own_attributes_is_refused(monkeypatch, name):
    monkeypatch.setitem(METHODS, name, METHODS["relation_mask"])
    with pytest.raises(OptionError, match=f"no method can be named {name}; choose another name"):
        Composition(name, Site(64, 4, 2))


def test_a_method_of_the_name_of_a_preset_is_refused_where_one_of_them_is_meant(monkeypatch):
    monkeypatch.setitem(METHODS, "stack_pe_paper", METHODS["relation_mask"])
    with pytest.raises(OptionError, match="a method and a preset are both named stack_pe_paper; g"):
        Composition("stack_pe_paper", Site(64, 4, 2))


@pytest.mark.parametrize(("dtype", "refused"), [(torch.uint8, True), (torch.int16, False)])
def test_ids_of_a_byte_for_a_larger_table_are_refused(monkeypatch, dtype, refused):
    class Distances(Injection):
        needs_tree = False

        def relation_ids(self, tree):
            return torch.arange(300).to(dtype).expand(1, 300, 300)

        def bias_table(self, layer):
            return torch.zeros(4, 300)

    monkeypatch.setitem(METHODS, "distances", Distances)
    methods = Composition("distances", Site(16, 4, 1))
    terms_of = methods.relate(TreeBatch.without_trees(torch.zeros(1, 300, dtype=torch.long)))
    message = r"Distances has tables of 300 rows, and relation ids of 8 bits.*to\(torch.int16\)"
    with pytest.raises(OptionError, match=message) if refused else nullcontext():
        assert len(terms_of(0)) == 1
