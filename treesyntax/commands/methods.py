"""List the injection methods: paper, formula, arguments, cost, hooks, sides.

A method is chosen by its architecture (tree_NAME) or with --encoder-injection, where methods
compose and take arguments: --encoder-injection 'stack_pe(depth=16)+relation_mask'.

Name some to see these alone: treesyntax methods relation_mask stack_pe. With --bibtex their papers are
printed as BibTeX.

Methods of your own are listed too, if an installed package has them in the entry-point group
treesyntax.methods, or the environment variable TREESYNTAX_IMPORT names their files.
"""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.references import cited_in

D_MODEL, HEADS, LAYERS = 512, 8, 6
CATALOGUE = Path(__file__).parents[1] / "methods" / "catalogue.json"
"""What :func:`catalogue` returns of the shipped methods, written by ``make figures``: listing them
then needs no torch, which takes longer to load than everything else. A test compares the two."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which, and how to print."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="methods or presets to describe; all without any"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="print one JSON object with methods and presets"
    )
    form.add_argument("--bibtex", action="store_true", help="print the papers as BibTeX")


def facts_of(name: str) -> dict[str, Any]:
    """What there is to know of a method, as plain values.

    ``hooks`` are those of :class:`treesyntax.nn.injection.Injection` that it uses, ``sides`` where it
    can be built in, ``parameters`` their number at width 512 with 8 heads and 6 layers.
    """
    from treesyntax.methods import METHODS
    from treesyntax.model.composition import Composition, options_of
    from treesyntax.nn.injection import Site, hooks_of

    method = METHODS[name]
    built = Composition(name, Site(D_MODEL, HEADS, LAYERS))
    leak = built.leaks_future()
    encoder, decoder = method.of_the_paper or (name, "nothing")
    return {
        "name": name,
        "paper": method.paper,
        "equation": method.equation,
        "arguments": options_of(name),
        "cost": method.cost,
        "parameters": sum(parameter.numel() for parameter in built.parameters()),
        "hooks": [hook for hook in hooks_of(method) if hook != "leaks_future"],
        "sides": [side for side in method.sides if side == "encoder" or not leak],
        "not_on_decoder": leak or "",
        "architecture": {"encoder": encoder, "decoder": decoder},
        "linearization": method.linearization,
        "needs_tree": method.needs_tree,
        "needs_labels": method.needs_labels,
        "training_only": method.training_only,
        "replaces_positions": method.replaces_positions,
        "file": _file(method),
    }


def _file(method: type) -> str:
    import inspect

    if method.__module__.startswith("treesyntax.methods"):
        return method.__module__.replace(".", "/") + ".py"
    try:
        return inspect.getsourcefile(method) or method.__module__
    except (OSError, TypeError):
        return method.__module__


def catalogue() -> dict[str, list[dict[str, Any]]]:
    """The facts of all methods and presets, as ``--json`` prints them."""
    from treesyntax.methods import METHODS
    from treesyntax.model.presets import PRESETS

    presets = [{"name": name, **preset._asdict()} for name, preset in PRESETS.items()]
    return {"methods": [facts_of(name) for name in METHODS], "presets": presets}


def described(facts: Mapping[str, Any]) -> str:
    """A method in a few lines."""
    arguments = ", ".join(f"{key}={value!r}" for key, value in facts["arguments"].items())
    trees = "needed" if facts["needs_tree"] else "not needed"
    return _entry(
        facts["name"],
        {
            "paper": facts["paper"],
            "adds": facts["equation"],
            "arguments": arguments or "none",
            "cost": facts["cost"],
            "parameters": f"{facts['parameters']:,} at width {D_MODEL}, {HEADS} heads, {LAYERS} layers",
            "hooks": ", ".join(facts["hooks"]) or "none",
            "sides": " and ".join(facts["sides"])
            + (f" ({facts['not_on_decoder']})" if facts["not_on_decoder"] else ""),
            "architecture": "{encoder} in the encoder, {decoder} in the decoder".format(
                **facts["architecture"]
            ),
            "linearization": facts["linearization"],
            "trees": trees
            + (" with labels (--source-labels)" if facts["needs_labels"] else "")
            + (" in training only" if facts["training_only"] else ""),
            "positions": "takes their place" if facts["replaces_positions"] else "kept",
            "file": facts["file"],
        },
    )


def _entry(name: str, facts: dict[str, str]) -> str:
    return "\n".join([name, *(f"  {key:<13} {value}" for key, value in facts.items())])


def run(args: argparse.Namespace) -> int:
    """Print all methods, then the presets; or those that are named."""
    known = catalogue() if _own_methods() else json.loads(CATALOGUE.read_text("utf-8"))
    if args.names:
        known = _named(known, args.names)
    if args.json:
        print(json.dumps(known, indent=2, ensure_ascii=False))
        return 0
    if args.bibtex:
        from treesyntax.study.recipe.backbone import papers_of  # --help needs no numpy

        texts = [facts["paper"] for facts in known["methods"]]
        for facts in known["presets"]:
            method_papers = papers_of("", {"encoder-injection": facts["spec"]})
            texts += [facts["source"], *method_papers.values()]
        unknown = [
            f"% {facts['name']} ({facts['paper']}): add its paper"
            for facts in known["methods"]
            if not cited_in(facts["paper"])
        ]
        papers = [reference.bibtex for reference in cited_in("; ".join(texts))]
        print("\n\n".join([*papers, *unknown]))
        return 0
    if known["methods"]:
        print("\n\n".join(map(described, known["methods"])))
    if known["presets"]:
        print("\nPresets, to be used like methods:\n" if known["methods"] else "A preset:\n")
        print("\n\n".join(map(_preset, known["presets"])))
    return 0


def _own_methods() -> bool:
    """Whether there may be methods that are not the shipped ones."""
    import os
    import sys

    from treesyntax.jobs.imports import METHODS, entries_of, listed

    loaded = "treesyntax.methods" in sys.modules
    return loaded or bool(listed(os.environ)) or bool(entries_of(METHODS))


def _named(
    known: dict[str, list[dict[str, Any]]], names: list[str]
) -> dict[str, list[dict[str, Any]]]:
    every = [facts["name"] for kind in known.values() for facts in kind]
    for name in names:
        if name not in every:
            near = difflib.get_close_matches(name, every, 3, 0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "treesyntax methods lists all"
            raise OptionError(f"there is no method {name!r}; {hint}")
    return {
        kind: [facts for facts in entries if facts["name"] in names]
        for kind, entries in known.items()
    }


def _preset(facts: Mapping[str, Any]) -> str:
    return _entry(facts["name"], {key: value for key, value in facts.items() if key != "name"})
