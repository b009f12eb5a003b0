"""A state saved by one build loads in the next, and computes the same."""

import pytest
import support.golden_states as golden_states
import torch

from treesyntax.model.composition import parse_spec
from treesyntax.nn.injection import methods_of

STATES = golden_states.saved()


@pytest.mark.parametrize("spec", STATES)
def test_the_state_of_an_earlier_build(spec):
    encoder = golden_states.build(spec)
    encoder.load_state_dict(STATES[spec]["state"], strict=True)
    assert torch.allclose(golden_states.output(encoder), STATES[spec]["output"], atol=1e-5)


def test_every_method_has_one():
    named = {name for spec in STATES for name in parse_spec(spec)}
    assert named == set(methods_of("encoder")), "run python tests/support/golden_states.py"
