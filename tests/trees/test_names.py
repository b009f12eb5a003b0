"""The names in help texts are those of the tables."""

from __future__ import annotations

from treesyntax.trees import controls, formats, linearizations, names, subwords


def test_the_names_are_those_of_the_tables():
    assert tuple(controls.CONTROLS) == names.CONTROLS
    assert tuple(formats.FORMATS) == names.FORMATS
    assert tuple(linearizations.LINEARIZATIONS) == names.LINEARIZATIONS
    assert tuple(subwords.POLICIES) == names.POLICIES
