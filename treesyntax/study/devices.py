"""Which GPUs each command sees, where a machine has several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treesyntax.errors import OptionError

VISIBLE = "CUDA_VISIBLE_DEVICES"
TRAIN = "fairseq-train"
USERS = (TRAIN, "fairseq-generate")
"""The programs that are given GPUs; the others see what the study sees."""


def read_slots(gpus: Sequence[str] | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs of each command that runs at a time, such as ``("0", "1")`` or ``("0,1", "2,3")``.

    Args:
        gpus: as given; by default each GPU of CUDA_VISIBLE_DEVICES, if that names several.
        environment: the environment variables.

    Raises:
        OptionError: if a GPU is given twice, or not the same number to each command: fairseq
            splits batches over the GPUs that it sees, so those runs would not be alike.
    """
    if gpus is None:
        visible = environment.get(VISIBLE, "").split(",")
        return tuple(visible) if len(visible) > 1 else ()
    names = [name for slot in gpus for name in slot.split(",")]
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
        slots: as of `read_slots`; without any, commands see all GPUs.
    """

    def __init__(self, slots: Sequence[str]) -> None:
        self.users = dict.fromkeys(slots, 0)

    def take(self, program: str) -> str:
        """A slot for a command of that program, "" for none; to be given back."""
        if program not in USERS or not self.users:
            return ""
        slot = min(self.users, key=lambda name: self.users[name])
        self.users[slot] += 1
        return slot

    def give(self, slot: str) -> None:
        """Give a slot back."""
        if slot:
            self.users[slot] -= 1

    @staticmethod
    def environment(program: str, slot: str) -> dict[str, str]:
        """The variables for a command with that slot; generation takes one GPU only."""
        if not slot:
            return {}
        return {VISIBLE: slot if program == TRAIN else slot.split(",")[0]}
