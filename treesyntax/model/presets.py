"""Specifications under names of their own: the settings of a paper or a program."""

from __future__ import annotations

from typing import NamedTuple


class Preset(NamedTuple):
    """A specification under a name of its own.

    Attributes:
        spec: what it stands for, see :func:`treesyntax.model.composition.parse_spec`.
        source: the paper or program with these settings, and what it leaves open.
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
    "ast_trans_mask": Preset(
        "constrained_mask(views='ancestors<=7|descendants<=7, siblings<=7')",
        "Tang et al. 2022 (AST-Trans), with at most 7 steps as in their published configuration, "
        "which has 1 head for ancestors and descendants and 7 for siblings; here half of the heads "
        "for each. Their vectors by distance are not built. Their encoder has no absolute positions; "
        "here they stay unless you add absolute=False.",
    ),
    "relative_position_shaw": Preset(
        "relative_position(clip=16, per_head=True)",
        "Shaw, Uszkoreit & Vaswani 2018, section 4.1, the base model: in encoder and decoder, in "
        "place of absolute positions.",
    ),
    "relative_position_omote": Preset(
        "relative_position(clip=2, absolute=True)",
        "Omote, Tamura & Ninomiya 2019, their rel with k = 2: in encoder and decoder, beside "
        "absolute positions.",
    ),
    "relative_depth_omote": Preset(
        "relative_depth(clip=2)",
        "Omote, Tamura & Ninomiya 2019, the encoder of their dep with l = 2; the decoder has "
        "relative_position_omote.",
    ),
    "depth_and_position_omote": Preset(
        "relative_position(clip=2, absolute=True)+relative_depth(clip=2)",
        "Omote, Tamura & Ninomiya 2019, the encoder of their hybrid dep+rel with k = l = 2; the "
        "decoder has relative_position_omote.",
    ),
    "tree_rotation_paper": Preset(
        "tree_rotation(degree=2, block=0, tree='nary', start='rotary')",
        "Kogkalidis, Bernardy & Garg 2024: full matrices, binary trees. Their published program "
        "also damps attention by 0.98^(path length), maps the attention to the source, and starts "
        "two pairs of channels at each angle, as start='published' does.",
    ),
    "dependency_and_position": Preset(
        "relative_position(clip=2)+relative_depth(clip=2)",
        "A variant of depth_and_position_omote without absolute positions. Checkpoints of earlier "
        "versions have it under this name.",
    ),
}
"""All presets by name. Where a preset is one method, its arguments can be overridden."""
