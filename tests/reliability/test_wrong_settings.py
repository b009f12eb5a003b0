"""Checkpoints whose settings have wrong values in the right file: used, or refused in one line."""

from __future__ import annotations

import copy
import signal
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate, validate
from reliability.fairseq_jobs import SOAK
from reliability.figures import count
from support import PLUGINS
from support.translate_helpers import binarize, save_model, write_texts

from treesyntax.__main__ import main
from treesyntax.errors import TreeSyntaxError

SECONDS, MOST = 60, 2000
SETTINGS = {
    "model": (
        "encoder_layers", "decoder_layers", "encoder_embed_dim", "decoder_embed_dim",
        "encoder_ffn_embed_dim", "encoder_attention_heads", "max_source_positions",
        "max_target_positions", "encoder_injection", "decoder_injection", "encoder_positions",
        "dropout", "activation_fn", "share_all_embeddings", "encoder_learned_pos",
        "encoder_layerdrop", "decoder_next_slot",
    ),
    "task": (
        "data", "source_lang", "target_lang", "target_view", "tree_constraints", "left_pad_source",
        "max_source_positions", "max_target_positions",
    ),
    "criterion": ("_name", "label_smoothing"),
    "common": ("seed",),
}  # fmt: skip
VALUES = (None, -1, 0, 3, 10**9, 2**70, 0.5, 1e300, "", "x" * 9999, [], {"a": 1})
KEYS = [(section, key) for section, keys in SETTINGS.items() for key in keys]
CASES = [*product(KEYS, VALUES)] if SOAK else [
    (("model", "max_source_positions"), 3), (("model", "max_target_positions"), -1), (("task", "max_target_positions"), -1),
    (("model", "encoder_layers"), 10**9), (("model", "decoder_embed_dim"), 0),
    (("model", "encoder_layers"), -1), (("model", "encoder_injection"), "x" * 9999),
    (("task", "data"), "x" * 9999), (("task", "source_lang"), 0), (("criterion", "label_smoothing"), 3),
    (("task", "data"), ""), (("task", "target_lang"), []), (("criterion", "_name"), "x" * 9999),
    (("model", "dropout"), 1e300), (("model", "max_source_positions"), 2**70),
]  # fmt: skip


class Commands:
    """The commands that use a checkpoint, in this process, on a path that is given to each."""

    def __init__(self, folder: Path) -> None:
        data, self.text, self.out = folder / "data", folder / "one.txt", folder / "out"
        self.data = data
        self.text.write_text("the cat sleeps\n")
        common = [
            "--user-dir",
            str(PLUGINS),
            "--task",
            "tree_translation",
            "--cpu",
            "--path",
            "m.pt",
            "--num-workers",
            "0",
        ]
        parsers = {
            "generate": options.get_generation_parser(), "validate": options.get_validation_parser(),
        }  # fmt: skip
        more = {"generate": ["--max-len-b", "5", "--gen-subset", "test", "--beam", "1"],
                "validate": ["--valid-subset", "valid"]}  # fmt: skip
        self.configs = {
            name: convert_namespace_to_omegaconf(
                options.parse_args_and_arch(
                    parser, [str(data), *common, "--batch-size", "9", *more[name]]
                )
            )
            for name, parser in parsers.items()
        }

    def run(self, name: str, path: Path) -> None:
        """Run one: an exception but ours, or a message of more than a line, fails the test."""
        if name in self.configs:
            cfg = copy.deepcopy(self.configs[name])
            cfg.common_eval.path = str(path)
            {"generate": generate, "validate": validate}[name].main(cfg)
            return
        words = {
            "translate": ["translate", self.data, "--path", path, "--input", self.text, "--cpu",
                          "--max-len-b", "5", "--beam", "1", "--output", self.out],
            "average": ["average", path.parent, "--last", "1", "--out", self.out],
        }[name]  # fmt: skip
        self.out.unlink(missing_ok=True)
        assert main([str(word) for word in words]) in (0, 2)


NAMES = ("generate", "validate", "translate", "average")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    write_texts(folder)
    arch = ("--arch", "tree_sequence_tiny", "--source-lang", "src", "--target-lang", "tgt")
    save_model(binarize(folder, "data", "txt", "target"), folder / "whole.pt", *arch)
    return folder


@pytest.fixture(scope="module")
def commands(folder: Path) -> Commands:
    return Commands(folder)


@pytest.fixture
def in_time() -> Iterator[None]:
    def refuse(*_: object) -> None:
        raise AssertionError(f"took more than {SECONDS} s of a processor")

    before = signal.signal(signal.SIGPROF, refuse)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, before)


def written(folder: Path, to: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    state = torch.load(folder / "whole.pt", weights_only=True)
    change(state["cfg"])
    torch.save(state, to / "checkpoint_1_9.pt")
    return to / "checkpoint_1_9.pt"


@pytest.mark.parametrize(("place", "value"), CASES, ids=lambda part: str(part)[:40])
def test_a_wrong_value_is_used_or_refused_in_one_line(
    place, value, folder: Path, commands: Commands, tmp_path: Path, in_time
):
    section, key = place
    path = written(folder, tmp_path, lambda cfg: cfg[section].update({key: value}))
    for name in NAMES:
        said = ""
        try:
            commands.run(name, path)
        except TreeSyntaxError as error:
            said = str(error)
        assert "\n" not in said
        assert len(said) < MOST
        count("checkpoints with wrong values tried")
