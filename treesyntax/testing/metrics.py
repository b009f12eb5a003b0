"""What every metric promises, for the test of a metric of your own."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.errors import TreeSyntaxError
from treesyntax.metrics import Measured, measured
from treesyntax.testing.expect import expect

ODD = ("", " ", "(", ") (", "\\", "a\u2028b", "🌲 ü ｆ", "0", "( " * 2_000, "word " * 2_000)
"""Outputs of a model that has learnt nothing."""


def check_metric(name: str, references: Sequence[str]) -> None:
    """Check that a metric keeps all that metrics promise.

    A reference against itself is right, and an empty output is not always. A line is judged by itself, whatever
    stands beside it, and alike each time. Any output is judged, and nothing is changed in place.

    Args:
        name: the metric.
        references: some lines of your data, all different and none empty.

    Raises:
        AssertionError: for the first broken promise.
        OptionError: if there is no such metric, or a value is of the wrong kind.
    """
    references = list(references)
    expect(name, len(references) > 1 and all(references), "give two references or more, none empty")
    expect(name, len({*references}) == len(references), "give references that differ")
    perfect = _judged(name, references, references).score().value
    expect(
        name, abs(perfect - 100) < 1e-6, f"references against themselves score {perfect:g}, not 100"
    )
    empty = _judged(name, [""] * len(references), references).score().value
    expect(name, empty < 100, "empty outputs are all right")
    odd = [*ODD, *references, *(" ".join(reversed(line.split())) for line in references)]
    outputs = [output for output in odd for _ in references]
    wanted = references * len(odd)
    kept = [*outputs], [*wanted]
    together = _judged(name, outputs, wanted).lines.tolist()
    expect(name, (outputs, wanted) == kept, "the lines are changed in place")
    expect(
        name,
        _judged(name, outputs, wanted).lines.tolist() == together,
        "the same lines are judged otherwise the second time",
    )
    backward = _judged(name, outputs[::-1], wanted[::-1]).lines.tolist()[::-1]
    expect(name, backward == together, "a line is judged otherwise beside other lines")
    for output, reference, among in zip(outputs, wanted, together, strict=True):
        alone = _judged(name, [output], [reference]).lines.tolist()
        expect(name, alone == [among], f"{output[:40]!r} is judged otherwise alone")


def _judged(name: str, outputs: Sequence[str], references: Sequence[str]) -> Measured:
    try:
        return measured(name, outputs, references)
    except TreeSyntaxError:
        raise
    except Exception as error:
        raise AssertionError(f"{name}: some outputs raise {error!r}") from error
