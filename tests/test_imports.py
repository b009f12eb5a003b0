"""Who may import whom: the rooms of the house, read from the source of every file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import treesyntax

ROOT = Path(__file__).parents[1]
GROUND = {"ground"}
ALLOWED = {
    "ground": GROUND,
    "trees": GROUND,
    "data": {"trees"} | GROUND,
    "parsers": {"trees", "transformers"} | GROUND,
    "metrics": {"trees"} | GROUND,
    "nn": {"trees", "torch"} | GROUND,
    "methods": {"nn", "trees", "torch"} | GROUND,
    "model": {"methods", "nn", "trees", "torch"} | GROUND,
    "decoding": {"nn", "data", "parsers", "trees", "torch"} | GROUND,
    "study": {"metrics", "data", "trees"} | GROUND,
    "analysis": {"model", "methods", "nn", "metrics", "data", "trees", "torch", "study"} | GROUND,
    "bridges": {"model", "methods", "nn", "trees", "torch", "parsers"} | GROUND,
    "finetune": {
        "bridges", "model", "methods", "nn", "metrics", "parsers", "data", "trees", "torch", "transformers",
    } | GROUND,
    "testing": {"model", "methods", "metrics", "data", "nn", "trees", "torch"} | GROUND,
    "commands": {
        "study", "model", "methods", "decoding", "nn", "metrics", "parsers", "data", "trees",
        "analysis", "finetune", "torch",
    } | GROUND,
    "fairseq_plugins": {
        "model", "methods", "decoding", "nn", "metrics", "parsers", "data", "trees", "torch",
        "fairseq",
    } | GROUND,
}  # fmt: skip
"""Each room and what it may import beside itself. ``ground`` is the files at the top of the package;
``torch``, ``fairseq`` and ``transformers`` are those libraries, which all other rooms do without."""

FACE = "face"
"""The public names of the package itself. They come from all rooms that need no fairseq; no room may
import them from there."""
ALLOWED[FACE] = {
    "bridges",
    "data",
    "model",
    "methods",
    "metrics",
    "nn",
    "parsers",
    "study",
    "trees",
} | GROUND

NARROW = {
    "analysis": {"study": ("study.recipe", "study.results")},
    "bridges": {"parsers": ("parsers.torchaudio_remedy",)},
    "finetune": {
        "data": ("data.tables",),
        "parsers": ("parsers.torchaudio_remedy",),
        "torch": ("finetune.command", "finetune.models", "finetune.outputs", "finetune.training"),
    },
    "commands": {"torch": ("commands.average", "commands.methods", "commands.study", "commands.translate")},
    FACE: {"data": ("data.sets.base",), "parsers": ("parsers.torchaudio_remedy",), "study": ("study.read",)},
    "decoding": {"torch": ("decoding.constraints", "decoding.grammar", "decoding.learned_grammar",
                           "decoding.notation_grammar")},
}  # fmt: skip
"""Where a room may not use all it is allowed: of ``study`` only these parts; ``torch`` only in these
files."""

LIBRARIES = {
    "torch": "torch", "fairseq": "fairseq", "fairseq_cli": "fairseq", "transformers": "transformers",
    "accelerate": "transformers",
}  # fmt: skip
FILES = [
    file
    for package in ("treesyntax", "fairseq_plugins")
    for file in sorted((ROOT / package).rglob("*.py"))
]


def module_of(file: Path, root: Path = ROOT) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts)


def imported(source: str) -> Iterator[str]:
    """The modules that a file imports, at any place in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    """The room, or the library of the table, that a module belongs to; None for any other."""
    top, *inner = module.split(".")
    if top == "treesyntax" and inner in (["__init__"], *([name] for name in treesyntax.__all__)):
        return FACE
    if top == "treesyntax":
        return inner[0] if inner and inner[0] in ALLOWED else "ground"
    return LIBRARIES.get(top) or (top if top in ALLOWED else None)


def broken(module: str, source: str) -> list[str]:
    """What a file imports against the table, as ``room: module``."""
    room = room_of(module)
    assert room is not None, f"{module} is in no room of the table"
    found = []
    for other in imported(source):
        wanted = room_of(other)
        if wanted is None or wanted == room:
            continue
        parts = NARROW.get(room, {}).get(wanted)
        subject = module if wanted in LIBRARIES.values() else other
        narrow = parts is None or subject.removeprefix("treesyntax.").startswith(parts)
        if wanted not in ALLOWED[room] or not narrow:
            found.append(f"{room}: {other}")
    return found


@pytest.mark.parametrize("file", FILES, ids=module_of)
def test_a_file_imports_what_its_room_may(file: Path):
    assert not broken(module_of(file), file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("treesyntax.trees.made_up", "from treesyntax.data import manifest", "trees"),
        ("treesyntax.study.run.made_up", "def late():\n    import torch", "study"),
        (
            "treesyntax.study.run.made_up",
            "def late():\n    from transformers import Trainer",
            "study",
        ),
        ("treesyntax.nn.made_up", "import fairseq.utils", "nn"),
        ("treesyntax.analysis.made_up", "import treesyntax.study.run.plan", "analysis"),
        ("treesyntax.commands.made_up", "import torch", "commands"),
        ("fairseq_plugins.made_up", "from treesyntax.commands.study import run", "fairseq_plugins"),
        ("treesyntax.made_up", "from treesyntax.trees.tree import Tree", "ground"),
        ("treesyntax.nn.made_up", "from treesyntax import Tree", "nn"),
        ("treesyntax.__init__", "import fairseq", "face"),
    ],
)
def test_a_made_up_file_that_breaks_the_table_is_found(module: str, source: str, fault: str):
    assert [row.split(":")[0] for row in broken(module, source)] == [fault]


def test_a_made_up_file_that_keeps_to_the_table_is_not():
    source = "import numpy\nfrom treesyntax.study.results.results import read\nimport torch.nn"
    assert not broken("treesyntax.analysis.made_up", source)


STUDY = ("recipe", "run", "results", "search", "report")
"""The parts of ``study``: each may import those before it."""


def backward(part: str, source: str) -> list[str]:
    """The later parts of ``study`` that a file of one part imports."""
    later = tuple(f"treesyntax.study.{one}." for one in STUDY[STUDY.index(part) + 1 :])
    return [name for name in imported(source) if name.startswith(later)]


@pytest.mark.parametrize("part", STUDY)
def test_the_parts_of_a_study_go_one_way(part: str):
    files = sorted((ROOT / "treesyntax" / "study" / part).glob("*.py"))
    assert files
    assert not {file.name for file in files if backward(part, file.read_text("utf-8"))}


def test_a_step_backward_in_a_study_is_found():
    assert backward("run", "from treesyntax.study.results.current import mixed_parts")


def test_one_file_knows_which_trainers_a_study_has():
    """Plan, checks and executor ask the trainer of a recipe, whichever it is."""
    trainers = {f"treesyntax.study.run.{name}" for name in ("fairseq", "huggingface")}
    knowing = {
        module_of(file)
        for file in (ROOT / "treesyntax").rglob("*.py")
        for name in imported(file.read_text("utf-8"))
        if name in trainers
        or name.rpartition(".")[0] in trainers
        or name.endswith(".is_huggingface")
    }
    assert knowing == {"treesyntax.study.run.trainers", "treesyntax.commands.finetune"}


METHOD_FILES = sorted((ROOT / "treesyntax" / "methods").rglob("[!_]*.py"))


@pytest.mark.parametrize("file", METHOD_FILES, ids=lambda file: file.stem)
def test_a_method_does_not_import_another(file: Path):
    names = imported(file.read_text(encoding="utf-8"))
    assert not [name for name in names if name.startswith("treesyntax.methods")]
