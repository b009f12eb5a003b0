"""Text of target tokens, where the segmentation is known by its marks alone."""

from types import SimpleNamespace

import pytest

from treesyntax.decoding.output import make_to_text


@pytest.mark.parametrize(
    ("style", "tokens"),
    [
        ("sentencepiece", ["▁a", "▁lo", "ng", "er", "▁line"]),
        ("subword-nmt", ["a", "lo@@", "ng@@", "er", "line"]),
    ],
)
def test_pieces_are_joined_by_their_marks(style: str, tokens: list[str]):
    encoding = SimpleNamespace(
        format_name=None, linearization=None, control=None, control_seed=None,
        model=None, subwords_style=style,
    )  # fmt: skip
    to_text = make_to_text(SimpleNamespace(encoding=encoding, segmented=True))
    assert to_text(tokens) == "a longer line"
