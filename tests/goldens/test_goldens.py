"""What users see stays as it was recorded: keys of recipes, messages, data, outputs.

Record anew, where a change is meant, with ``GOLDENS=write pytest tests/goldens``, and look at the difference.
The tables of committed results are goldens too, see ``tests/docs/test_reproduction.py``.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest
from support import ROOT
from support.study_helpers import RECIPES

from goldens.refusals import REFUSALS, write_files
from treesyntax.__main__ import main
from treesyntax.made.digests import Digests
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.plan import Plan, make_plan

FOLDER = Path(__file__).parent
RECORD = "if the change is meant: GOLDENS=write pytest tests/goldens"
WRITE = os.environ.get("GOLDENS") == "write"


def check(name: str, value: dict[str, object], others: bool = False) -> None:
    """Hold a value against the recorded one, part by part, or record it.

    Args:
        name: of the file.
        value: of JSON types.
        others: whether there may be parts that are not recorded, such as new recipes.
    """
    file = FOLDER / f"{name}.json"
    if WRITE:
        text = json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
        file.write_text(f"{text}\n", "utf-8")
    recorded, now = json.loads(file.read_text("utf-8")), json.loads(json.dumps(value))
    changed = [part for part in recorded if part in now and now[part] != recorded[part]]
    assert {part: now[part] for part in changed} == {part: recorded[part] for part in changed}, (
        RECORD
    )
    assert others or now.keys() == recorded.keys(), RECORD


def short(text: str | bytes) -> str:
    return sha256(text.encode() if isinstance(text, str) else text).hexdigest()[:16]


def test_keys_of_all_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One hash of all commands of a recipe and kind of step. A changed key trains the studies of users anew."""
    monkeypatch.chdir(tmp_path)  # where no data lie: files count by their names
    keys = {}
    for path in RECIPES:
        recipe = read_recipe(path)
        plan = make_plan(recipe)
        # A recipe whose content was edited is another one, which is not recorded.
        name = (
            f"{path.relative_to(ROOT).as_posix()} {short(json.dumps(recipe.content, default=str))}"
        )
        key_of = Keys(plan, Digests(tmp_path), {}).of
        keys[name] = by_kind(plan, {step.name: key_of[step.name] for step in plan.steps})
    check("keys", keys, others=True)
    assert len(keys.keys() & json.loads((FOLDER / "keys.json").read_text("utf-8")).keys()) > 20


def by_kind(plan: Plan, facts: Mapping[str, object]) -> dict[str, str]:
    """The number of steps of each kind, with a hash of a fact of each step."""
    steps: dict[str, list[object]] = defaultdict(list)
    for step in plan.steps:
        steps[step.kind].append([step.name, facts[step.name]])
    return {kind: f"{len(own)} {short(json.dumps(own))}" for kind, own in steps.items()}


def plain(text: str, folder: Path) -> str:
    """A text without what differs between machines and days."""
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "ROOT")
    text = re.sub(r"\b[0-9a-f]{12,64}\b", "HASH", text)
    return re.sub(r"\b20\d\d-\d\d-\d\d[T\d:.Z]*", "DATE", text)


@pytest.mark.usefixtures("quick_flags")
def test_messages_of_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    recorded, accepted = {}, []
    for command in REFUSALS:
        try:
            status = main(command.split())
        except SystemExit as end:  # of argparse
            status = int(end.code or 0)
        message = capsys.readouterr().err.strip().splitlines()
        if status == 2:
            # Other tests in the same process may have registered parsers of their own.
            recorded[command] = re.sub(r", fake-\w+", "", plain(message[-1], tmp_path))
        else:
            accepted.append(command)
    assert accepted == []
    check("refusals", recorded)


def hashes(folder: Path) -> dict[str, str]:
    """A hash of each file; of records of origin only their names."""
    return {
        file.relative_to(folder).as_posix(): ""
        if file.suffix in (".json", ".log")
        else short(file.read_bytes())
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same sentences as text and trees of several kinds, as data of fairseq."""
    from support.translate_helpers import binarize, write_texts

    folder = tmp_path_factory.mktemp("data")
    write_texts(folder)
    folders = {
        "text": binarize(folder, "text", "txt", "target"),
        "conllu": binarize(folder, "conllu", "conllu", "target", "--source-format", "conllu"),
        "ptb": binarize(
            folder,
            "ptb",
            "ptb",
            "target",
            "--source-format",
            "ptb",
            "--source-linearization",
            "lcrs_dfs",
        ),
        "trees": binarize(
            folder,
            "trees",
            "txt",
            "sexpr",
            "--target-format",
            "sexpr",
            "--target-linearization",
            "nary_dfs",
        ),
    }
    return folders


def test_bytes_of_binarized_data(data: dict[str, Path]):
    check("binarized", {name: hashes(folder) for name, folder in data.items()})


def test_outputs_of_a_beam_search(data: dict[str, Path], tmp_path: Path):
    """Of models with random weights, which depend on everything: without trees, over trees, that grow trees."""
    from support.translate_helpers import generate, save_model

    archs = {
        "text": ("tree_sequence_tiny",),
        "conllu": ("tree_stack_pe_tiny", "--encoder-injection", "stack_pe+relation_mask"),
        "ptb": ("tree_tree_distance_tiny",),
        "trees": ("tree_sequence_tiny", "--decoder-injection", "stack_pe+relation_mask"),
    }
    outputs = {}
    for name, (arch, *flags) in archs.items():
        model = save_model(data[name], tmp_path / f"{name}.pt", "--arch", arch, *flags)
        lines = generate(data[name], model, tmp_path / name)
        outputs[name] = [f"{score:.3f} {text}" for score, text in lines]
    check("beam", outputs)
