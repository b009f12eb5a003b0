"""Pairs that a step leaves out are counted in its log; where none is left, one line says so."""

from __future__ import annotations

import json
import logging
import sys
import zlib
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import interactive
from support import PLUGINS
from support.translate_helpers import binarize, save_model
from support.translate_helpers import generate as run_generate

from fairseq_plugins.pairs import UsedPairs
from fairseq_plugins.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_plugins.training import launch
from treesyntax.data.pairs import Lengths
from treesyntax.errors import InputError, OptionError
from treesyntax.files import check_path

LANGUAGES = ("--source-lang", "src", "--target-lang", "tgt")
ARCH = ("--arch", "tree_sequence_tiny", *LANGUAGES)
LENGTHS = (1, 2, 3, 4, 5, 0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of 1 to 5 tokens, and one without."""
    folder = tmp_path_factory.mktemp("pairs")
    lines = [" ".join(["a"] * size) for size in LENGTHS]
    (folder / "all.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "all.target").write_text("".join(f"{line}\n" for line in lines))
    return binarize(folder, "data", "txt", "target")


def task_of(data: Path, **flags: object) -> TreeTranslationTask:
    general = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    task = TreeTranslationTask.setup_task(
        TreeTranslationConfig(data=str(data), **{**general, **flags})
    )
    task.load_dataset("train")
    return task


def used(task: TreeTranslationTask, **limits: object) -> list[int]:
    """The numbers of the pairs in the batches of an epoch."""
    batches = task.get_batch_iterator(task.dataset("train"), max_sentences=2, seed=1, **limits)
    return sorted(number for batch in batches.frozen_batches for number in map(int, batch))


def noted(caplog: pytest.LogCaptureFixture) -> list[dict]:
    texts = [record.getMessage() for record in caplog.records]
    return [json.loads(text.removeprefix("pairs | ")) for text in texts if text.startswith("pairs")]


def test_pairs_that_are_too_long_are_counted_once_for_all_epochs(data, caplog):
    task = task_of(data)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert used(task, max_positions=(5, 4), ignore_invalid_inputs=True) == [0, 1, 2, 5]
    assert noted(caplog) == [
        {"split": "train", "pairs": 6, "left_out": 0, "too_long": 2, "empty": 1, "limits": [5, 4],
         "crc32": zlib.crc32(np.array([0, 1, 2, 5], "<i8").tobytes())}
    ]  # fmt: skip
    (warning,) = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert (
        "2 of 6 pairs are left out, longer than 5 source and 4 target tokens (number 4, 5)"
        in warning
    )


def test_pairs_of_a_list_are_left_out_and_counted(data, tmp_path, caplog):
    listed = tmp_path / "left_out.json"
    listed.write_text('{"train": [5, 0], "valid": [1]}')
    task = task_of(data, leave_out=str(listed))
    with caplog.at_level(logging.INFO):
        assert used(task, max_positions=(5, 5), ignore_invalid_inputs=True) == [1, 2, 3]
    (counts,) = noted(caplog)
    assert (counts["left_out"], counts["too_long"], counts["empty"]) == (2, 1, 0)
    task.load_dataset("test")
    batches = task.get_batch_iterator(task.dataset("test"), max_sentences=9, max_positions=(9, 9))
    assert sum(map(len, batches.frozen_batches)) == 6, "the list names no pairs of this split"


def test_a_list_of_pairs_is_of_one_folder(data: Path, tmp_path: Path):
    """fairseq takes the folders in turn, and pairs of the same numbers were left out of each."""
    (listed := tmp_path / "list.json").write_text('{"train": [0]}')
    with pytest.raises(OptionError, match="^--leave-out numbers the pairs of one data folder"):
        task_of(f"{data}:{data}", leave_out=str(listed))


def test_what_a_training_left_out_is_not_left_out_of_other_data(data, tmp_path):
    """fairseq-validate takes the settings of the checkpoint, and what its command line says."""
    listed, gone = tmp_path / "left_out.json", tmp_path / "gone.json"
    listed.write_text('{"test": [5, 0]}')
    model = save_model(data, tmp_path / "model.pt", *ARCH, "--leave-out", str(gone))
    for overrides, number in (({}, 6), ({"leave_out": str(listed)}, 4), (None, 6)):
        _, _, task = checkpoint_utils.load_model_ensemble_and_task([str(model)], overrides)
        task.load_dataset("test")
        batches = task.get_batch_iterator(task.dataset("test"), max_positions=(9, 9))
        assert sum(map(len, batches.frozen_batches)) == number


@pytest.mark.parametrize("text", ['{"train": [-1]}', '{"train": 3}', "[1]", '{"train": [true]}'])
def test_a_list_that_is_none_is_refused_with_its_name(data, tmp_path, text):
    listed = tmp_path / "left_out.json"
    listed.write_text(text)
    with pytest.raises(
        InputError, match=r"left_out.json: is no list of pairs by split; write as in"
    ):
        used(task_of(data, leave_out=str(listed)), max_positions=(9, 9))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"max_positions": (0, 0), "ignore_invalid_inputs": True},
            r"all 6 pairs of train are longer than 0 tokens on either side, such as number 1 with 2 "
            r"and 2; give a larger --max-tokens",
        ),
        (
            {"max_positions": (9, 5)},
            r"train: 1 of 6 pairs are longer than 9 source and 5 target tok",
        ),
        (
            {"max_tokens": 4},
            r"2 of 6 pairs have more tokens than a batch may have \(--max-tokens 4; the longest has 6",
        ),
    ],
)
def test_what_fits_no_batch_is_one_line(data, limits, message):
    with pytest.raises(OptionError, match=message):
        used(task_of(data), **limits)


def test_the_flag_that_is_in_the_way_is_named():
    lengths = Lengths(np.array([3, 3]), np.array([8, 8]))
    pairs, everything = UsedPairs("", (1024, 7)), np.arange(2)
    with pytest.raises(OptionError, match="give a larger --max-source-positions and --max-target-"):
        pairs.choose("train", everything, lengths, (1024, 7), True)
    with pytest.raises(OptionError, match="give a larger --max-tokens"):
        pairs.choose("train", everything, lengths, (6, 6), True)


def test_a_model_with_more_positions_than_fairseq_has_by_default_may_use_them(tmp_path):
    """fairseq-generate has flags of its own, which the model's training does not set."""
    for name in ("txt", "target"):
        (tmp_path / f"all.{name}").write_text("a b\n" * 11 + f"a{' b' * 1100}\n")
    data = binarize(tmp_path, "data", "txt", "target")
    more = ("--max-source-positions", "1200", "--max-target-positions", "1200")
    model = save_model(data, tmp_path / "model.pt", *ARCH, *more)
    assert len(run_generate(data, model, tmp_path / "out")) == 12
    few = save_model(data, tmp_path / "few.pt", *ARCH)
    with pytest.raises(OptionError, match=r"test: 1 of 12 pairs are longer than 1024 tokens on"):
        run_generate(data, few, tmp_path / "out")


def test_another_task_is_told_which_to_add(data, tmp_path):
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, [str(data), "--optimizer", "adam", *ARCH])
    cfg = convert_namespace_to_omegaconf(args)
    with pytest.raises(OptionError, match="--task translation .*; add --task tree_translation"):
        tasks.setup_task(cfg.task).build_model(cfg.model)


@pytest.mark.parametrize("task", [["--task", "tree_translation"], []])
def test_commands_of_fairseq_that_carry_no_trees_name_another(data, tmp_path, monkeypatch, task):
    model = save_model(data, tmp_path / "model.pt", *ARCH)
    words = [str(data), "--path", str(model), "--cpu", *LANGUAGES, *task]
    args = options.parse_args_and_arch(options.get_interactive_generation_parser(), words)
    (tmp_path / "in.txt").write_text("a b\n")
    args.input = str(tmp_path / "in.txt")
    expected = "treesyntax translate" if task else "add --task tree_translation"
    with pytest.raises(OptionError, match=expected):
        interactive.main(convert_namespace_to_omegaconf(args))


@pytest.mark.parametrize(
    ("parser", "task", "message"),
    [
        (options.get_validation_parser, [], "no --task is given; add --task tree_translation"),
        (
            options.get_validation_parser,
            ["--task", "language_modeling"],
            "holds pairs, not text of one language; add --task tree_translation",
        ),
    ],
)
def test_a_forgotten_task_of_other_commands_is_told(data, monkeypatch, parser, task, message):
    monkeypatch.setattr(sys, "argv", ["fairseq", str(data), "--user-dir", str(PLUGINS)])
    with pytest.raises(OptionError, match=message):
        options.parse_args_and_arch(parser(), [str(data), "--path", "m.pt", *task])


@pytest.mark.parametrize("task", [["--task", "tree_translation"], []])
def test_fairseq_eval_lm_is_refused_before_anything_is_missing(data, task):
    """It asked for the task, for --batch-size and for an optimizer, and then was the wrong command."""
    with pytest.raises(OptionError, match="use fairseq-validate"):
        options.parse_args_and_arch(options.get_eval_lm_parser(), [str(data), *task])


def test_paths_that_fairseq_would_split_are_refused(data, tmp_path):
    folder = tmp_path / "at 10:30"
    folder.symlink_to(data)
    with pytest.raises(
        OptionError, match=r"the data folder .*10:30: fairseq takes ':' for the end"
    ):
        task_of(folder)
    assert task_of(f"{data}:{data}"), "several folders are what fairseq splits for"
    model = save_model(data, tmp_path / "a:b.pt", *ARCH)
    with pytest.raises(OptionError, match=r"--path .*a:b.pt: fairseq takes ':' for the end"):
        run_generate(data, model, tmp_path / "out")
    with pytest.raises(InputError, match=r"none.pt: does not exist; give a checkpoint with --path"):
        run_generate(data, tmp_path / "none.pt", tmp_path / "out")
    checkpoint = Namespace(save_dir="runs/10:30", no_save=False)
    with pytest.raises(OptionError, match=r"--save-dir runs/10:30: fairseq takes ':'"):
        launch.check_launch(Namespace(checkpoint=checkpoint), {}, 0)


def test_a_path_that_fairseq_would_look_up_is_refused():
    with pytest.raises(OptionError, match=r"--out a\$\{b\}: fairseq takes '\$\{' for the name of"):
        check_path("a${b}", "--out")
    with pytest.raises(
        OptionError, match="take '-' at its beginning for an option; give the whole path"
    ):
        check_path("-runs/a", "--out")
    check_path("runs/-a", "--out")
