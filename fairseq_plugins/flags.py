"""Check command lines of fairseq-train and fairseq-generate without running them.

Run as ``python -m fairseq_plugins.flags`` it reads a JSON list of command lines from its standard
input and writes a JSON list with the fault of each, ``[flag, problem]`` or null.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence

from fairseq import options

from fairseq_plugins.limits import best_fault, misplaced_criterion
from fairseq_plugins.literals import parse_literal
from fairseq_plugins.model import is_ours
from fairseq_plugins.settings import TASK
from treesyntax.data.binarize.options import option_fault
from treesyntax.data.encoding import TEXT
from treesyntax.data.limits import MOST_A
from treesyntax.errors import OptionError
from treesyntax.jobs.flags import DATA_TREES, Fault, fault_of, find_fault
from treesyntax.methods import METHODS
from treesyntax.metrics import metric_fault
from treesyntax.model.bracket_growth import GROWING
from treesyntax.model.composition import Composition, parse_spec
from treesyntax.nn.growth import GROWING_LINEARIZATIONS
from treesyntax.nn.injection import Site

Ranges = Mapping[str, tuple[float, float]]
_SHARE, _COUNT, _POSITIVE = (0.0, 1.0), (1, math.inf), (sys.float_info.min, math.inf)
TRAINING: Ranges = {
    "encoder-layers": _COUNT, "decoder-layers": _COUNT, "lr": _POSITIVE, "batch-size": _COUNT, "max-tokens": _COUNT,
    "update-freq": _COUNT, "dropout": _SHARE, "attention-dropout": _SHARE,
    "activation-dropout": _SHARE, "label-smoothing": _SHARE, "clip-norm": (0, math.inf),
    "weight-decay": (0, math.inf), "warmup-updates": (0, math.inf),
    "save-interval": _COUNT, "validate-interval": _COUNT, "log-interval": _COUNT,
    "save-interval-updates": (0, math.inf), "validate-interval-updates": (0, math.inf),
}  # fmt: skip
"""The numbers of a training that fairseq takes as they are, with the least and the greatest that make sense."""
GENERATION: Ranges = {
    "beam": _COUNT, "nbest": _COUNT, "batch-size": _COUNT, "max-tokens": _COUNT, "max-len-b": _COUNT,
    "max-len-a": (0, MOST_A),
}  # fmt: skip

OURS = {"score": metric_fault, "binarize": option_fault}
PARSERS = {
    "fairseq-train": options.get_training_parser,
    "fairseq-generate": options.get_generation_parser,
}


def check(program: str, words: Sequence[str]) -> Fault | None:
    """The first fault of a command line: unknown flags, values, methods, trees that the data lacks, no end.

    Args:
        program: one of `PARSERS` or `OURS`.
        words: what follows it, without ``--user-dir``; one may say what trees the data has, see
            :data:`treesyntax.jobs.flags.DATA_TREES`.
    """
    if program in OURS:
        return OURS[program](words)
    parser = PARSERS[program]()
    data = next((word for word in words if word.startswith(DATA_TREES)), "")
    words = [word for word in words if word != data]
    try:
        args, fault = find_fault(
            parser,
            lambda: options.parse_args_and_arch(parser, list(words), parse_known=True),
            program,
        )
    except OptionError as error:
        return fault_of(str(error))
    if args is None:
        return fault
    if program != "fairseq-train":
        return _number_fault(args, GENERATION)
    return (
        _method_fault(args)
        or (_tree_fault(args, words, *data.removeprefix(DATA_TREES).split(":")) if data else None)
        or _batch_fault(args)
        or _number_fault(args, TRAINING)
        or _betas_fault(args)
        or _end_fault(args)
        or _best_fault(args)
        or _idle_fault(args)
    )


def _method_fault(args: Namespace) -> Fault | None:
    if args.task == TASK and not is_ours(args.arch):
        return Fault("arch", f"is {args.arch}, which --task {TASK} does not build")
    if args.task == TASK and (unfit := misplaced_criterion(args.criterion)):
        return Fault("criterion", unfit)
    for side in ("encoder", "decoder"):
        if (spec := getattr(args, f"{side}_injection", None)) is None:
            continue  # another task's model
        width, heads, layers = (
            int(getattr(args, f"{side}_{size}"))
            for size in ("embed_dim", "attention_heads", "layers")
        )
        shared = int(getattr(args, f"share_{side}_layers", 0))
        if shared and (shared < 0 or layers % shared):
            return Fault(
                f"share-{side}-layers", f"is {shared}, which is no divisor of {layers} layers"
            )
        if width % heads:
            return Fault(
                f"{side}-embed-dim", f"is {width}, which {heads} attention heads do not divide"
            )
        site = Site(width, heads, shared or layers)
        try:
            methods = Composition(str(spec), site)
        except OptionError as error:
            return Fault(f"{side}-injection", str(error))
        if misplaced := methods.misplaced(side):
            return Fault(f"{side}-injection", misplaced)
        if side == "decoder" and (leak := methods.leaks_future()) is not None:
            return Fault("decoder-injection", f"would see the future: {leak}")
    return None


def _tree_fault(args: Namespace, words: Sequence[str], source: str, target: str) -> Fault | None:
    """Methods that need trees, over data that has none.

    Args:
        args: the command line, read.
        words: the same as it is.
        source: the format of the source; ``text`` has no trees.
        target: the linearization of the target.
    """
    if args.task != TASK:
        return None
    given = str(getattr(args, "target_view", ""))
    target = given if given in GROWING else target
    for side, has_trees in (("encoder", source != TEXT), ("decoder", target in GROWING)):
        spec, flag = str(getattr(args, f"{side}_injection", "none")), f"{side}-injection"
        if has_trees or not any(METHODS[name].needs_tree for name in parse_spec(spec)):
            continue
        lacks = "the source of the row is text: name the format of its tree files, source-format"
        if side == "decoder":
            lacks = (
                f"the target's tokens grow none: take target-linearization: {' or '.join(GROWING)}"
            )
        named = any(word.partition("=")[0] == f"--{flag}" for word in words)
        return Fault(flag if named else "arch", f"{spec} needs trees, and {lacks}")
    if getattr(args, "no_target_eos_loss", False) and target not in GROWING_LINEARIZATIONS:
        grown = " or ".join(GROWING_LINEARIZATIONS)
        return Fault(
            "no-target-eos-loss",
            f"is for targets that say where they end; take target-linearization: {grown}",
        )
    return None


def _number_fault(args: Namespace, ranges: Ranges) -> Fault | None:
    for flag, (least, greatest) in ranges.items():
        given = getattr(args, flag.replace("-", "_"), None)
        for value in given if isinstance(given, Sequence) else [given]:
            if isinstance(value, int | float) and not least <= value <= greatest:
                bound = "above 0" if (least, greatest) == _POSITIVE else f"{least:g} or more"
                if greatest < math.inf:
                    bound = f"from {least:g} to {greatest:g}"
                return Fault(flag, f"is {value}; it must be {bound}")
    return None


def _betas_fault(args: Namespace) -> Fault | None:
    """Adam's two averages, which fairseq takes as text and as numbers alike."""
    if (given := getattr(args, "adam_betas", None)) is None:
        return None  # another optimizer
    try:
        betas = parse_literal(str(given))
    except OptionError:
        betas = None
    fits = isinstance(betas, Sequence) and len(betas) == 2
    if not fits or not all(isinstance(beta, int | float) and 0 <= beta < 1 for beta in betas):
        return Fault("adam-betas", f"is {given}; it must be two numbers below 1: (0.9, 0.98)")
    return None


def _end_fault(args: Namespace) -> Fault | None:
    """A training without an end, of which fairseq says nothing."""
    ends = (args.max_update, args.max_epoch, args.patience, args.stop_time_hours, args.stop_min_lr)
    if not any(end is not None and end > 0 for end in ends):
        return Fault(
            "max-update", "is missing or 0, so training would never end; give it or max-epoch"
        )
    return None


def _best_fault(args: Namespace) -> Fault | None:
    if args.task != TASK or args.disable_validation:
        return None
    return best_fault(args, args.criterion, args, args)


def _idle_fault(args: Namespace) -> Fault | None:
    """What costs memory and changes no number of a study."""
    if args.store_ema:
        return Fault(
            "store-ema",
            "keeps a mean of weights that no validation and no search reads; leave it out, and give the row average",
        )
    return None


def _batch_fault(args: Namespace) -> Fault | None:
    if args.batch_size is None and args.max_tokens is None:
        return Fault("batch-size", "is missing; fairseq-train needs it or max-tokens")
    return None


def main() -> None:
    """Answer for all command lines of the standard input."""
    logging.disable()  # fairseq would log what it lacks
    gc.freeze()  # each command has a parser of its own: they are collected, what is loaded is not looked through
    commands = json.load(sys.stdin)
    print(json.dumps([check(program, words) for program, *words in commands]))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    os._exit(0)  # taking torch and fairseq apart takes as long as all the answers
