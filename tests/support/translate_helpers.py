"""Small data folders and checkpoints with random weights, for tests of ``treesyntax translate``."""

from __future__ import annotations

import random
from argparse import Namespace
from pathlib import Path

import torch
from fairseq import options, tasks, utils
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate as generate_command
from omegaconf import OmegaConf

import support
from support import PLUGINS
from support.forked_programs import parse_options_once
from support.parser_models import conllu, text_of, treebank
from treesyntax.__main__ import main
from treesyntax.study.run.hypotheses import main as collect

parse_options_once()
utils.import_user_module(Namespace(user_dir=str(PLUGINS)))

PAIRS = 12
SEARCH = ("--beam", "3", "--max-len-b", "9")


def formula(draw: random.Random, levels: int) -> str:
    """A random expression such as ``( and ( not p ) q )``."""
    if not levels or draw.random() < 0.3:
        return draw.choice("pqr")
    parts = [formula(draw, levels - 1) for _ in range(draw.choice([1, 2, 3]))]
    return f"( {('not', 'and', 'any')[len(parts) - 1]} {' '.join(parts)} )"


def write_texts(folder: Path) -> None:
    """The same sentences as text, dependencies, brackets, formulas and the text of a target."""
    gold, draw = treebank(PAIRS), random.Random(1)
    texts = {
        "txt": [text_of(g) for g in gold],
        "conllu": [f"{record}\n" for record in conllu(gold).split("\n\n")[:-1]],
        "ptb": [g.brackets for g in gold],
        "sexpr": [formula(draw, 3) for _ in gold],
        "target": [" ".join(reversed(text_of(g).lower().split())) for g in gold],
    }
    for suffix, lines in texts.items():
        (folder / f"all.{suffix}").write_text("".join(f"{line}\n" for line in lines))


def binarize(folder: Path, name: str, source: str, target: str, *flags: str) -> Path:
    """Data of a source and a target, which also stand for valid and test."""
    files = [folder / f"all.{suffix}" for suffix in (source, target)]
    languages = ("--source-lang", "src", "--target-lang", "tgt")
    return support.binarize(folder / name, *files, *languages, *flags)


def save_model(data: Path, path: Path, *flags: str, seed: int = 1) -> Path:
    """A checkpoint as fairseq-train writes it, of an untrained model in which everything counts."""
    torch.manual_seed(seed)
    command = [str(data), "--task", "tree_translation", "--optimizer", "adam", *flags]
    cfg = convert_namespace_to_omegaconf(
        options.parse_args_and_arch(options.get_training_parser(), command)
    )
    task = tasks.setup_task(cfg.task)
    model = task.build_model(cfg.model)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1 or "injections" in name:
            torch.nn.init.normal_(parameter, std=0.3)
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg, resolve=True, enum_to_str=True),
        "model": model.state_dict(),
        "task_state": task.state_dict(),
        "optimizer_history": [{"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 1}],
        "extra_state": {"train_iterator": {"epoch": 1}},
    }
    torch.save(state, path)
    return path


def translate(data: Path, model: Path | str, out: Path, *flags: str | Path) -> list[str]:
    """The lines that the command writes to a file."""
    words = ["translate", str(data), "--path", str(model), "--output", str(out), "--cpu", *SEARCH]
    assert main([*words, *map(str, flags)]) == 0
    return lines_of(out)


def generate(data: Path, model: Path | str, folder: Path, *flags: str) -> list[tuple[float, str]]:
    """Scores and texts of fairseq-generate on the test set, in its order."""
    command = [
        str(data), "--task", "tree_translation", "--path", str(model), "--batch-size", "40", "--cpu",
        "--num-workers", "0", "--gen-subset", "test", "--results-path", str(folder), *SEARCH, *flags,
    ]  # fmt: skip
    args = options.parse_args_and_arch(options.get_generation_parser(), command)
    generate_command.main(convert_namespace_to_omegaconf(args))
    found = (line.split("\t") for line in lines_of(folder / "generate-test.txt"))
    rows = [(int(f[0][2:]), float(f[1]), f[2]) for f in found if f[0].startswith("D-")]
    return [(score, text) for _, score, text in sorted(rows, key=lambda row: row[0])]


def study(
    data: Path, model: Path | str, folder: Path, linearization: str, *flags: str
) -> list[str]:
    """What a study makes of fairseq-generate's output: text, or trees in brackets."""
    generate(data, model, folder, *flags)
    trees = ["--linearization", linearization, "--notation", "sexpr"] if linearization else []
    files = [str(folder / "generate-test.txt"), str(folder / "hypotheses")]
    assert collect([*files, "--reference", str(data.parent / "all.target"), *trees]) == 0
    return lines_of(folder / "hypotheses")


def lines_of(path: Path) -> list[str]:
    """The lines of a file; every one has an end."""
    text = path.read_text(encoding="utf-8")
    assert not text or text.endswith("\n")
    return text.split("\n")[:-1]
