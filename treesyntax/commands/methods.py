"""List the injection methods: paper, formula, arguments, cost.

A method is chosen by its architecture (tree_NAME) or with --encoder-injection, where methods
compose and take arguments: --encoder-injection 'stack_pe(depth=16)+relation_mask'.
"""

from __future__ import annotations

import argparse

D_MODEL, HEADS, LAYERS = 512, 8, 6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def describe(name: str) -> str:
    """A method in a few lines."""
    from treesyntax.methods import METHODS
    from treesyntax.model.composition import Composition, options_of
    from treesyntax.nn.injection import Site

    method = METHODS[name]
    arguments = ", ".join(f"{key}={value!r}" for key, value in options_of(name).items())
    built = Composition(name, Site(D_MODEL, HEADS, LAYERS))
    size = sum(parameter.numel() for parameter in built.parameters())
    encoder, decoder = method.of_the_paper or (name, "nothing")
    facts = {
        "paper": method.paper,
        "adds": method.equation,
        "arguments": arguments or "none",
        "cost": method.cost,
        "parameters": f"{size:,} at width {D_MODEL}, {HEADS} heads, {LAYERS} layers",
        "architecture": f"{encoder} in the encoder, {decoder} in the decoder",
        "linearization": method.linearization,
        "positions": "takes their place" if method.replaces_positions else "kept",
        "file": method.__module__.replace(".", "/") + ".py",
    }
    return _entry(name, facts)


def _entry(name: str, facts: dict[str, str]) -> str:
    return "\n".join([name, *(f"  {key:<13} {value}" for key, value in facts.items())])


def run(args: argparse.Namespace) -> int:
    """Print all methods, then the presets."""
    from treesyntax.methods import METHODS
    from treesyntax.model.presets import PRESETS

    print("\n\n".join(describe(name) for name in METHODS))
    print("\nPresets, to be used like methods:\n")
    print("\n\n".join(_entry(name, preset._asdict()) for name, preset in PRESETS.items()))
    return 0
