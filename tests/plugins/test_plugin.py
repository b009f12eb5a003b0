"""fairseq's own commands with the plugin, as a user runs them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import support.forked_programs as forked_programs
from reliability.figures import SOAK
from support import PLUGINS, binarize

from treesyntax.methods import METHODS

FOR = ["a0 = 1 ; a1 = a0", "a0 = a0 + 2", "if a0 > 1 then a0 = 3 else a1 = 4 endif", ""] * 6
LAMBDA = [
    "let a0 = 1 in let a1 = a0 in unit",
    "let a0 = a0 + 2 in unit",
    "if a0 > 1 then let a0 = 3 in unit else let a1 = 4 in unit",
    "unit",
] * 6


def fairseq(command: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run fairseq's command line in a fork of this process, which has loaded fairseq, on one thread."""
    forked_programs.load(*forked_programs.LOADED)
    words = [sys.executable, "-P", "-m", f"fairseq_cli.{command}", *map(str, arguments)]
    environment = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "out"), Path(place, "log")
        code = forked_programs.start(words, log, out, environment).wait()
        return subprocess.CompletedProcess(words, code, out.read_text(), log.read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name, lines in (("for", FOR), ("lambda", LAMBDA)):
        (folder / f"text.{name}").write_text("".join(f"{line}\n" for line in lines))
    files = [folder / "text.for", folder / "text.lambda"]
    source = ("--source-format", "for", "--source-linearization", "preorder")
    binarize(folder / "bin", *files, *source)
    binarize(folder / "plain", *files)
    return folder


def train(data: Path, save: Path, *extra: str | Path, arch: str = "tree_stack_pe_tiny"):
    return fairseq(
        "train", data, "--user-dir", PLUGINS, "--task", "tree_translation", "--arch", arch,
        "--max-update", "4", "--max-tokens", "200", "--optimizer", "adam", "--lr", "0.005",
        "--save-dir", save, "--no-progress-bar", "--no-epoch-checkpoints", *extra,
    )  # fmt: skip


@pytest.fixture(scope="module")
def checkpoint(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    save = tmp_path_factory.mktemp("save")
    done = train(data / "bin", save)
    assert done.returncode == 0, done.stderr
    return save / "checkpoint_last.pt"


def test_saves_are_kept_at_ends_of_epochs_too(data: Path, tmp_path: Path):
    def saves(*extra: str) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        # 24 pairs: an epoch has 3 updates.
        done = train(
            data / "bin", folder, "--batch-size", "8", "--max-update", "12", "--encoder-layers", "1",
            "--decoder-layers", "1", "--encoder-injection", "none", "--save-interval-updates", *extra,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert not list(folder.glob("*.tmp"))
        assert {"checkpoint_best.pt", "checkpoint_last.pt"} < {p.name for p in folder.iterdir()}
        return sorted(
            (path.name for path in folder.glob("checkpoint_*_*.pt")),
            key=lambda name: int(name.removesuffix(".pt").split("_")[2]),
        )

    inside, at_end = ["checkpoint_1_2.pt", "checkpoint_2_4.pt"], "checkpoint_2_6.pt"
    later = ["checkpoint_3_8.pt", "checkpoint_4_10.pt", "checkpoint_4_12.pt"]
    assert saves("2", "--keep-interval-updates", "9") == [*inside, at_end, *later]
    # What fairseq itself does stays where not more than one is to be kept, or all are.
    assert saves("2", "--keep-interval-updates", "1") == ["checkpoint_4_10.pt"]
    if SOAK:
        assert saves("2") == [*inside, *later[:2]]
        assert saves("3", "--keep-interval-updates", "3") == [
            "checkpoint_2_6.pt", "checkpoint_3_9.pt", "checkpoint_4_12.pt",
        ]  # fmt: skip


def test_train_help_lists_the_task_and_every_architecture():
    done = fairseq("train", "--user-dir", PLUGINS, "--help")
    assert done.returncode == 0, done.stderr
    assert "tree_translation" in done.stdout
    for method in METHODS:
        for suffix in ("", "_iwslt", "_small", "_program", "_compact", "_mini", "_tiny"):
            assert f"tree_{method}{suffix}" in done.stdout


def test_generate_puts_out_every_sentence(data: Path, checkpoint: Path, tmp_path: Path):
    done = fairseq(
        "generate", data / "bin", "--user-dir", PLUGINS, "--task", "tree_translation",
        "--path", checkpoint, "--beam", "3", "--batch-size", "5", "--max-len-b", "20",
    )  # fmt: skip
    # Batches of 5 are no multiple of 8: fairseq alone would leave the last one out.
    assert done.returncode == 0, done.stderr
    hypotheses = dict(re.findall(r"^D-(\d+)\t\S+\t(.*)$", done.stdout, re.M))
    assert sorted(map(int, hypotheses)) == list(range(len(FOR)))
    references = dict(re.findall(r"^T-(\d+)\t(.*)$", done.stdout, re.M))
    assert [references[str(row)] for row in range(len(LAMBDA))] == LAMBDA

    for name, lines in (("sys", hypotheses), ("ref", references)):
        rows = (lines[str(row)] for row in range(len(FOR)))
        (tmp_path / name).write_text("".join(f"{row}\n" for row in rows))
    scored = fairseq("score", "--sys", tmp_path / "sys", "--ref", tmp_path / "ref")
    assert scored.returncode == 0, scored.stderr
    assert "BLEU4" in scored.stdout


def test_validate_gives_the_loss_of_training(data: Path, checkpoint: Path):
    done = fairseq(
        "validate", data / "bin", "--user-dir", PLUGINS, "--task", "tree_translation",
        "--path", checkpoint, "--valid-subset", "valid", "--batch-size", "5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert re.search(r"valid.*loss [\d.]+", done.stdout + done.stderr)


def test_training_resumes_from_its_checkpoint(data: Path, checkpoint: Path):
    done = train(data / "bin", checkpoint.parent, "--max-update", "6")
    assert done.returncode == 0, done.stderr
    log = done.stdout + done.stderr
    assert re.search(r"Loaded checkpoint .*checkpoint_last.pt \(epoch \d+ @ 4 updates\)", log)
    assert "'num_updates': '6'" in log or "num_updates 6" in log


@pytest.mark.parametrize(("folder", "method", "said"), [
    ("plain", "stack_pe", "the method stack_pe needs trees, but the data has none"),
    ("bin", "labelled_relation", "needs the labels of nodes, but .* binarize it with --source-labels"),
])  # fmt: skip
def test_data_without_what_a_method_reads_is_refused_before_training(
    data: Path, tmp_path: Path, folder: str, method: str, said: str
):
    done = train(
        data / folder, tmp_path / "save", "--encoder-injection", method, arch="tree_sequence_tiny"
    )
    assert done.returncode == 1
    assert re.search(said, done.stderr.splitlines()[-1])
    assert "begin training" not in done.stdout + done.stderr
    assert not list((tmp_path / "save").glob("*.pt"))


def test_data_without_trees_trains_the_plain_transformer(data: Path, tmp_path: Path):
    assert train(data / "plain", tmp_path, arch="tree_sequence_tiny").returncode == 0


def test_trees_of_other_data_are_refused(data: Path, tmp_path: Path):
    mixed = tmp_path / "mixed"
    shutil.copytree(data / "bin", mixed)
    for name in ("bin", "idx"):
        file = f"train.for-lambda.for.{name}"
        shutil.copy(data / "plain" / file, mixed / file)
    done = train(mixed, tmp_path / "save")
    assert done.returncode != 0
    assert "the trees do not belong to this data" in done.stderr
    assert "run treesyntax binarize again" in done.stderr


def test_options_that_part_trees_from_tokens_are_refused(data: Path, tmp_path: Path):
    for option in (["--truncate-source"], ["--upsample-primary", "2"]):
        done = train(data / "bin", tmp_path, *option)
        assert done.returncode != 0
        assert option[0] in done.stderr.splitlines()[-1]
