"""Names for methods with the settings of a paper or of an implementation."""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """A specification under a name of its own.

    Attributes:
        spec: what it stands for, see :func:`treesyntax.composition.parse_spec`.
        source: whose settings these are, and what is open in it.
    """

    spec: str
    source: str


PRESETS = {
    "stack_pe_paper": Preset(
        "stack_pe(degree=2, depth=32, parameters=32, tree='lcrs', start='high')",
        "Shiv & Quirk 2019: d_pos = 2048 over left-child-right-sibling trees. The text does not say "
        "where p begins; here in [0.60, 0.76], as in later implementations.",
    ),
    "stack_pe_icecaps": Preset(
        "stack_pe(degree=2, depth=32, parameters=32, tree='lcrs', start='icecaps')",
        "microsoft/icecaps, the authors' published code: as the paper, and p = tanh(raw) with raw "
        "from U(-a, a), a = sqrt(3 / parameters), so |p| <= 0.30 at the start.",
    ),
    "dependency_and_position": Preset(
        "relative_position(clip=2)+relative_depth(clip=2)",
        "Omote, Tamura & Ninomiya 2019, their hybrid dep+rel with k = l = 2.",
    ),
}
"""All presets by name. Where a preset is one method, its arguments can be overridden."""
