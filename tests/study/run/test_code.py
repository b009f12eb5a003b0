"""What counts as the same code: the files that a step imports, and no others."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest
from reliability.figures import SOAK

from treesyntax import source
from treesyntax.study.provenance import PACKAGES, commit, revision_of, version_of
from treesyntax.study.run import code
from treesyntax.study.run.code import code_of, merged, mixed_parts, of_first_rule, unknown_parts

TRAINING = ("fairseq-train", "--arch", "tree_stack_pe_mini", "--decoder-injection=pushdown")
METHODS = ("treesyntax.methods.encodings.stack_pe", "treesyntax.methods.pairs.pushdown")
EDIT = "\nEDITED = True\n"
USER = ("-c", "user.name=a", "-c", "user.email=a@b.c")


def now(kind: str, *words: str) -> dict[str, str]:
    code.look_again()
    return code_of(kind, words)


def moves(file: Path, kind: str, *words: str, edit: str = EDIT) -> bool:
    """Whether an edit of a file moves the code of a step."""
    before, text = now(kind, *words), file.read_text("utf-8")
    file.write_text(text + edit, "utf-8")
    try:
        return now(kind, *words) != before
    finally:
        file.write_text(text, "utf-8")


IMPORTED = """
import importlib, json, os, pkgutil, sys, types
import torch  # once for all steps
sys.modules["fairseq_plugins.scoring"] = types.ModuleType("fairseq_plugins.scoring")
walk = pkgutil.walk_packages
pkgutil.walk_packages = lambda path, prefix: [] if prefix == "treesyntax.methods." else walk(path, prefix)
for number, names in enumerate(json.loads(sys.argv[1])):
    if not os.fork():
        for name in names:
            importlib.import_module(name)
        for name, module in sorted(sys.modules.items()):
            if name.startswith(("treesyntax", "fairseq_plugins")) and getattr(module, "__file__", None):
                print(number, module.__file__)
        sys.stdout.flush()
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"{names} cannot be imported")
"""
STEPS = [
    ("train", TRAINING, ["fairseq_plugins", *METHODS]),
    ("binarize", (), ["treesyntax.commands.binarize", "treesyntax.data.binarize.write"]),
    ("score", (), ["treesyntax.commands.score"]),
    ("prepare", ("treesyntax", "data", "get", "slog"), ["treesyntax.data.sets.making"]),
]
STEPS += [
    ("average", (), ["treesyntax.commands.average"]),
    ("hypotheses", (), ["treesyntax.study.run.hypotheses"]),
    ("prepare", ("treesyntax", "generate", "for2lam"), ["treesyntax.data.sets.for2lam"]),
    ("prepare", ("treesyntax", "parse", "a"), ["treesyntax.parsers.parse_file"]),
] if SOAK else []  # fmt: skip


def files_imported() -> list[set[str]]:
    """The files of ours that Python imports for each of `STEPS`."""
    modules = json.dumps([names for _, _, names in STEPS])
    command = [sys.executable, "-c", IMPORTED, modules]
    printed = subprocess.check_output(command, text=True, cwd="/")
    imported: list[set[str]] = [set() for _ in STEPS]
    for line in printed.splitlines():
        number, _, file = line.partition(" ")
        imported[int(number)].add(str(Path(file).relative_to(Path(source.__file__).parents[1])))
    return imported


def test_an_edit_of_each_file_that_a_step_imports_is_seen(package: Path):
    """Python itself says what is imported. Files that no step imports leave it as it is."""

    def rooms_moved(
        before: Mapping[str, str], step: Sequence[str], names: Iterable[str]
    ) -> set[str]:
        texts = {name: (package / name).read_text("utf-8") for name in names}
        for name, text in texts.items():
            (package / name).write_text(text + EDIT, "utf-8")
        after = now(*step)
        for name, text in texts.items():
            (package / name).write_text(text, "utf-8")
        return {re.split(": |/", x)[-1] for x in after if after[x] != before[x]}

    for (kind, words, _), imported in zip(STEPS, files_imported(), strict=True):
        moved = partial(rooms_moved, now(kind, *words), (kind, *words))
        by_room = defaultdict(list)
        for name in sorted(imported):
            if name.startswith(code.METHODS) and kind != "train":
                continue
            if not name.startswith((*code.NO_NUMBERS, code.PRESETS)):
                by_room[Path(name).parts[name.startswith("treesyntax/")]].append(name)
        assert by_room
        for names in zip_longest(*by_room.values()):  # at once a file of each room
            of_round = {room: name for room, name in zip(by_room, names, strict=True) if name}
            seen = moved(of_round.values())
            for room, name in of_round.items():
                # Methods, and what they alone import, are in the parts of methods.
                assert room in seen or moved([name]), (kind, name)


def test_edits_of_other_files_are_not(package: Path):
    first = now("train", *TRAINING)
    others = (
        "study",
        "analysis",
        "commands",
        "parsers",
        "bridges",
        "jobs",
        "data/sets",
    )
    files = [file for name in others for file in (package / "treesyntax" / name).rglob("*.py")]
    files += [
        package / name
        for name in ("treesyntax/errors.py", "fairseq_plugins/engine.py", "fairseq_plugins/help.py")
    ]
    methods = (package / "treesyntax/methods").rglob("[!_]*.py")
    files += [file for file in methods if file.stem not in ("stack_pe", "pushdown")]
    assert len(files) > 150
    for file in files:
        file.write_text(file.read_text("utf-8") + EDIT, "utf-8")
    assert now("train", *TRAINING) == first


@pytest.mark.parametrize(
    ("file", "kind", "words"),
    [
        ("treesyntax/nn/kernels/softmax.py", "train", TRAINING),
        ("fairseq_plugins/training/updates.py", "train", TRAINING),
        ("treesyntax/data/sets/scan.py", "prepare", ("treesyntax", "data", "get", "scan_length")),
        ("treesyntax/data/sets/scan.py", "prepare", ("bash", "-c", "treesyntax data get scan_length x")),
        ("treesyntax/data/sets/compile_coffeescript.js", "prepare", ("treesyntax", "generate", "coffeescript")),
        ("treesyntax/parsers/benepar_parser.py", "prepare", ("treesyntax", "parse", "a", "--parser", "benepar")),
    ],
)  # fmt: skip
def test_files_that_the_list_of_folders_forgot(
    package: Path, file: str, kind: str, words: tuple[str, ...]
):
    assert moves(package / file, kind, *words)


def test_a_module_that_is_added_or_removed_is_seen(package: Path):
    file = package / "treesyntax/nn/attention.py"
    file.write_text(f"{file.read_text('utf-8')}\nimport treesyntax.nn.added\n", "utf-8")
    first, added = now("train"), package / "treesyntax/nn/added.py"
    added.write_text("x = 1\n", "utf-8")
    assert now("train") != first
    added.unlink()
    assert now("train") == first


def named(*words: str) -> set[str]:
    """The methods and presets that count for a training."""
    parts = [part.removeprefix("train: ") for part in now("train", *words)]
    return {part for part in parts if part.startswith(("method ", "preset "))}


def test_facts_are_numbers_in_a_checkpoint_whatever_the_model(package: Path):
    for name, counts in {
        "analysis/facts": True,
        "model/checkpoint": True,
        "nn/attention": False,
    }.items():
        assert moves(package / f"treesyntax/{name}.py", "facts") is counts


def test_methods_are_those_of_architecture_and_injections_alone(package: Path):
    assert named(
        "--arch", "tree_sequence_mini", "/data/relation_mask", "--save-dir", "stack_pe"
    ) == {"method sequence"}
    assert named("--arch", "tree_random_walk_pairs_mini") == {"method random_walk_pairs"}
    assert named("--arch", "tree_tree_rotary") == {"method tree_rotary"}
    assert named("--encoder-injection", "stack_pe(depth=2) + relation_mask") == {
        "method stack_pe",
        "method relation_mask",
    }
    assert named("--arch", "tree_relative_depth") == {
        "method relative_depth", "method relative_position", "preset relative_position_omote",
    }  # fmt: skip
    assert named("--encoder_injection=relative_depth") == {"method relative_depth"}


def test_all_presets_count_with_their_methods(package: Path):
    from treesyntax.model.presets import PRESETS

    for name, preset in PRESETS.items():
        parts = named("--encoder-injection", name)
        assert f"preset {name}" in parts
        assert {f"method {part.split('(')[0]}" for part in preset.spec.split("+")} <= parts
    file = package / "treesyntax/model/presets.py"
    words = ("--arch", "tree_sequence", "--encoder-injection", "stack_pe_paper")
    text = file.read_text("utf-8")
    before = {
        name: now("train", *words[:3], name) for name in ("stack_pe_paper", "stack_pe_icecaps")
    }
    file.write_text(text.replace("start='high'", "start='low'"), "utf-8")
    assert now("train", *words) != before["stack_pe_paper"]
    assert now("train", *words[:3], "stack_pe_icecaps") == before["stack_pe_icecaps"]


def test_words_for_readers_are_no_code(package: Path):
    file = package / "treesyntax/nn/pairs.py"
    text = file.read_text("utf-8")
    assert not moves(file, "train", edit="\n\n# A comment.\n    # another\n")
    first = now("train")
    start = text.index('"""') + 3
    file.write_text(f"{text[:start]}Other words. {text[start:]}", "utf-8")
    assert now("train") == first
    for edit in ('\nX = """\n# no comment\n"""\n', "\nX = 1\n"):
        assert moves(file, "train", edit=edit)
    file.write_text('X = """\n# no comment\n"""\n', "utf-8")
    before = now("train")
    file.write_text('X = """\n# another text\n"""\n', "utf-8")
    assert now("train") != before


def test_what_changes_no_number_is_there_and_has_a_reason():
    for name, reason in code.NO_NUMBERS.items():
        assert (code.ROOT / name).exists()
        assert reason


def test_a_script_of_the_recipe_counts_with_what_it_imports(tmp_path: Path, package: Path):
    (helper := tmp_path / "helper.py").write_text("x = 1\n")
    (script := tmp_path / "make.py").write_text("import helper\n")
    assert moves(helper, "prepare", "python", str(script), "out")
    assert not now("prepare", "cp", "a", "b")
    assert moves(helper, "prepare", "bash", "-c", f"python {script} out", edit="y = 1\n")


def test_a_module_that_the_recipe_runs_counts_with_what_it_imports(
    tmp_path: Path, package: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    for name in ("made", "whole"):
        (tmp_path / name).mkdir()
    (helper := tmp_path / "made/helper.py").write_text("x = 1\n")
    (tmp_path / "made/pairs.py").write_text("import made.helper\n")
    (main := tmp_path / "whole/__main__.py").write_text("x = 1\n")
    assert moves(helper, "prepare", "python", "-m", "made.pairs", "out")
    assert moves(main, "prepare", "python", "-m", "whole", "out")
    assert not now("prepare", "git", "commit", "-m", "made")


def test_records_of_several_steps_and_rules():
    old = {"train: nn/*.py": "a", "train: torch": "2"}
    older = {**old, "train: nn/*.py": "b"}
    new = {"train: nn": "c", "train: rule": "2", "train: torch": "2"}
    newer = {**new, "train: nn": "d"}
    assert mixed_parts([old, older]) == ["train: nn/*.py"]
    assert unknown_parts([old, older]) == []
    assert mixed_parts([new, newer]) == ["train: nn"]
    assert mixed_parts([old, new]) == []
    assert unknown_parts([old, new]) == ["train"]
    assert mixed_parts([old, {**new, "train: torch": "3"}]) == ["train: torch"]
    assert mixed_parts([new, {"score: metrics": "x", "score: rule": "2"}]) == []
    resumed = merged([old, new])
    assert resumed["train: rule"] == "1 and 2"
    assert resumed["train: nn"] == "c"
    assert unknown_parts([resumed]) == ["train"]
    assert merged([new, newer])["train: nn"] == "c and d"
    assert mixed_parts([merged([new, newer])]) == ["train: nn"]
    assert [of_first_rule(one) for one in (old, new, resumed, {}, {"train: torch": "2"})] == [True, False, True, False, False]  # fmt: skip


FINETUNING = ("finetune", "data", "--model", "x", "--set", "metric_for_best_model=bleu")
COUNTED = {
    ("prepare", "treesyntax", "parse", "a", "b", "--parser", "stanza-dep"): {"stanza"},
    ("prepare", "sh", "-c", "treesyntax parse a b --parser=benepar"): {"benepar"},
    ("prepare", "treesyntax", "data", "get", "cs2js"): {"tree_sitter", "tree_sitter_javascript"},
    ("binarize",): {"sentencepiece", "lark"},
    ("train", *TRAINING): {"torch", "fairseq"},
    ("generate", *TRAINING): {"torch", "fairseq"},
    ("train", *FINETUNING): {"torch", "transformers", "accelerate", "tokenizers", "sacrebleu"},
    ("score", "treesyntax", "score"): {"sacrebleu", "seqeval", "lark"},
}


@pytest.mark.parametrize("step", COUNTED, ids=lambda step: " ".join(step[:3]))
def test_versions_of_what_a_step_uses_count_and_no_others(
    step: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    before = now(*step)
    seen = set()
    for package in PACKAGES:
        with monkeypatch.context() as patch:
            patch.setattr(
                code, "version_of", lambda name, p=package: "9" if name == p else version_of(name)
            )
            if mixed_parts([before, now(*step)]):
                seen.add(package)
    assert COUNTED[step] <= seen
    assert not ({"stanza", "benepar", "spacy"} - COUNTED[step]) & seen
    assert ("fairseq" in seen) == (step[1:] == TRAINING)


def test_the_revision_of_a_model_in_the_cache_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(code, "revision_of", lambda name: f"of {name}")
    words = ("finetune", "data", "--model", "bert-small")
    assert code_of("train", words)["train: model bert-small"] == "of bert-small"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert-small").mkdir()
    assert "train: model bert-small" not in code_of("train", words)  # its files are in the key


def test_a_revision_is_read_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is no part of the base")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / "models--bert-small"
    assert revision_of("bert-small") == "not cached"
    assert revision_of("no/name/of/any") == "not cached"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs/main").write_text("abc")
    (folder / "snapshots/abc").mkdir(parents=True)
    (folder / "snapshots/abc/config.json").write_text("{}")
    assert revision_of("bert-small") == "abc"


def test_the_metric_that_chooses_a_checkpoint_counts(tmp_path: Path):
    own = tmp_path / "own.py"
    own.write_text(
        "from treesyntax.metrics import register_metric\n@register_metric('mine')\ndef f(): ...\n"
    )
    for setting, counts in {"metric_for_best_model=mine": True, "metric_for_best_model=bleu": False}.items():  # fmt: skip
        words = ("finetune", "data", "--model", "x", "--set", setting)
        assert ("train: own/own.py" in code_of("train", words, (own,))) == counts


def test_an_edit_of_a_trainer_that_is_installed_where_it_is_edited_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """``pip install -e`` of fairseq leaves its version as it is, whatever is edited."""
    trainer = tmp_path / "src/some_trainer/optim/adam.py"
    trainer.parent.mkdir(parents=True)
    for file in (trainer, tmp_path / "src/some_trainer/__init__.py"):
        file.write_text("rate = 1\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.setattr(code, "TRAINER", ("torch", "some_trainer"))
    first = now("train", *TRAINING)
    (trainer.parent / "notes.txt").write_text("no code", "utf-8")
    assert now("train", *TRAINING) == first
    trainer.write_text("rate = 2\n", "utf-8")
    second = now("train", *TRAINING)
    assert [label for label in first if first[label] != second[label]] == ["train: some_trainer"]
    assert "edited" not in first["train: torch"]
    metadata = tmp_path / "src/some_trainer-3.1.dist-info/METADATA"  # as pip install --target has
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: some-trainer\nVersion: 3.1\n", "utf-8")
    assert now("train", *TRAINING)["train: some_trainer"] == "3.1"


def test_the_commit_is_not_that_of_a_repository_whose_hook_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = commit()
    (tmp_path / "__init__.py").touch()
    for words in (["init", "-q"], ["add", "."], [*USER, "commit", "-qm", "theirs"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    assert commit() == before


def test_a_package_that_is_missing_has_no_version():
    assert version_of("no-such-package") == "not installed"


def test_a_package_of_which_pip_has_left_an_empty_folder_has_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As where its removal was interrupted; a study ended in a traceback."""
    (tmp_path / "left_behind-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert version_of("left_behind") == "not installed"
