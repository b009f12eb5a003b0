"""Processes of a study: how they start and end, and the GPUs that they see."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence

from treesyntax.errors import OptionError

GPU = re.compile(r"[0-9]{1,3}|(?:GPU|MIG)-[\w/-]+")
VISIBLE, FIRST = "CUDA_VISIBLE_DEVICES", "0"
TRAIN = "fairseq-train"
FINETUNE = "finetune"
USERS = (TRAIN, "fairseq-generate", FINETUNE)
"""The programs that get GPUs of their own; the others see those of the study."""


def read_slots(gpus: Sequence[str] | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs of each command that runs at a time, such as ``("0", "1")`` or ``("0,1", "2,3")``.

    Args:
        gpus: as given; by default each GPU that CUDA_VISIBLE_DEVICES names.
        environment: the environment variables.
    """
    if gpus is None:
        visible = environment.get(VISIBLE, "").split(",")
        return tuple(visible) if all(map(GPU.fullmatch, visible)) else ()
    names = [name for slot in gpus for name in slot.split(",")]
    for name in names:
        if name and not GPU.fullmatch(name):
            raise OptionError(f"--gpus {' '.join(gpus)}: {name!r} is no number of a GPU")
    if len(set(names)) < len(names) or not all(names):
        raise OptionError(f"--gpus {' '.join(gpus)}: name each GPU once")
    if len({slot.count(",") for slot in gpus}) > 1:
        raise OptionError(
            f"--gpus {' '.join(gpus)}: give each run as many GPUs, since batches grow with them"
        )
    return tuple(gpus)


class Devices:
    """Hands out slots, the one with the fewest users first.

    Args:
        slots: as of `read_slots`. Without any and without `VISIBLE`, all commands share the first GPU: a training takes
            each GPU that it sees, and its batches grow with them.
        environment: the environment variables.
    """

    def __init__(self, slots: Sequence[str], environment: Mapping[str, str]) -> None:
        self.users = dict.fromkeys(slots or (() if VISIBLE in environment else (FIRST,)), 0)

    def take(self, program: str) -> str:
        """A slot for a command of that program, "" for none; return it with `give`."""
        if program not in USERS or not self.users:
            return ""
        slot = min(self.users, key=lambda name: self.users[name])
        self.users[slot] += 1
        return slot

    def give(self, slot: str) -> None:
        """Return a slot."""
        if slot:
            self.users[slot] -= 1

    @staticmethod
    def environment(program: str, slot: str) -> dict[str, str]:
        """The variables for a command with that slot; generation takes one GPU only."""
        if not slot:
            return {}
        return {VISIBLE: slot if program in (TRAIN, FINETUNE) else slot.split(",")[0]}


LAUNCHER = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
"""Variables by which torchrun, and containers of clusters, number the processes that they start. The processes of a
study are not those: with them fairseq refuses to train, and accelerate waits for the others for ever."""
SAFE = "-P"
"""Python's option that keeps the working folder off the import path. Without it, a file random.py or
treesyntax.py beside the recipe would take the place of the module of that name."""
PROGRAMS: dict[str, tuple[str, ...]] = {
    "treesyntax": (sys.executable, SAFE, "-m", "treesyntax.__main__"),
    "fairseq-train": (sys.executable, SAFE, "-m", "fairseq_cli.train"),
    "fairseq-generate": (sys.executable, SAFE, "-m", "fairseq_cli.generate"),
    FINETUNE: (sys.executable, SAFE, "-m", "treesyntax.__main__", "finetune"),
    "python": (sys.executable,),
}
"""The words that each program name in a plan stands for. Any other first word is run as it is. Tests
pass a mapping of their own."""
TYPED = {FINETUNE: ("treesyntax", "finetune")}
"""The programs that are typed by other words than their names."""


def resolve(
    command: Sequence[str], programs: Mapping[str, Sequence[str]], replace: Mapping[str, str]
) -> list[str]:
    """A symbolic command as the words to execute."""
    words = [*programs.get(command[0], command[:1]), *command[1:]]
    for placeholder, value in replace.items():
        words = [word.replace(placeholder, value) for word in words]
    return words


def common_environment(step: str, threads: int) -> dict[str, str]:
    """The variables for the command of a step: its threads, and the name of its run in Weights & Biases.

    Without that, fairseq names a run there after the folder of its checkpoints.
    """
    run, _, _ = step.partition("/")
    return dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(threads)) | {"WANDB_NAME": run}


def safe_environment(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep the working folder off the import path of a command's own children.

    Args:
        words: a command of `resolve`; one without `SAFE` is the user's own and gets none.
        environment: the environment of the study.
    """
    if SAFE not in words[:2]:
        return {}
    variables = {"PYTHONSAFEPATH": "1"}
    if path := environment.get("PYTHONPATH"):
        kept = filter(os.path.isabs, path.split(os.pathsep))  # others are of the working folder
        variables["PYTHONPATH"] = os.pathsep.join(kept)
    return variables
