"""States of small encoders and what they compute, as an earlier build saved them.

``python tests/support/golden_states.py`` adds a state for every method that has none; states that are there
stay, as they stand for the checkpoints of users.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from support.helpers import batch_of
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.injection import methods_of
from treesyntax.trees.tree import Tree

FILE = Path(__file__).parent / "golden" / "encoder_states.pt"
SMALL = {"stack_pe": "stack_pe(depth=3, parameters=2)", "depth_sibling": "depth_sibling(depths=4)"}
COMPOSED = ("stack_pe(depth=3, parameters=2)+relation_mask+relative_depth",)
TREES = [Tree([-1, 0, 1, 1, 0, 4], list("abcdef")), Tree([-1, 0], list("ab"))]
PADDING = 1


def build(spec: str) -> Encoder:
    """A new encoder of fixed size."""
    settings = TransformerConfig(d_model=8, d_ff=8, heads=2, layers=1, injection=spec)
    return Encoder(settings, nn.Embedding(8, 8, PADDING)).eval()


def output(encoder: Encoder) -> Tensor:
    """Its memory of two fixed sentences [2, 7, 8]."""
    tokens = torch.tensor([[4, 5, 6, 7, 4, 5, 2], [6, 7, 2, 1, 1, 1, 1]])
    return encoder.encode(tokens, batch_of(TREES)).memory.detach()


def saved() -> dict[str, dict[str, Tensor | dict[str, Tensor]]]:
    """State and output by specification."""
    return torch.load(FILE, weights_only=True) if FILE.exists() else {}


def main() -> None:
    """Add what is missing."""
    states = saved()
    torch.manual_seed(1)
    for spec in (*(SMALL.get(name, name) for name in methods_of("encoder")), *COMPOSED):
        if spec not in states:
            encoder = build(spec)
            for name, parameter in encoder.named_parameters():
                if name.startswith("injections"):
                    nn.init.normal_(parameter, std=0.3)
            states[spec] = {"state": encoder.state_dict(), "output": output(encoder)}
    torch.save(states, FILE)


if __name__ == "__main__":
    main()
