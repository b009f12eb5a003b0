"""Studies over stand-ins that act in the test's own process, so that a test may have several."""

from __future__ import annotations

from pathlib import Path

from support.fake_programs import study as study_here
from support.study_helpers import recipe_content, write_recipe
from support.study_runs import commands_in, journal

from treesyntax.study.report.report import read_study


def content(folder: Path, **changes: object) -> dict:
    """A recipe that reads files from outside, for a study without many runs."""
    found = {**recipe_content(), "seeds": [1, 2], "score": ["exact"]}
    found["methods"] = {name: found["methods"][name] for name in ("sequence", "stack_pe")}
    found["vars"] = {"size": 8, "root": str(folder / "files")}
    found["prepare"] = ["treesyntax generate for2lam --out {data}/p --size {size} --like {root}/a"]
    found["data"]["target"]["test"] = "{root}/test.tgt"
    files = folder / "files"
    files.mkdir(exist_ok=True)
    for name in ("a", "test.tgt"):
        if not (files / name).exists():
            (files / name).write_text("x\ny\n")
    return {**found, **changes}


def run(folder: Path, *arguments: str, out: str = "out", status: int = 0, **changes: object) -> str:
    """Run the study in this process; what it starts since, in a few words each."""
    write_recipe(folder, **content(folder, **changes))
    before = len(commands_in(folder, "start"))
    words = [str(folder / "recipe.yaml"), "--out", str(folder / out), *arguments]
    assert study_here(folder / "journal", words) == status
    return " ".join(kind(text) for text in commands_in(folder, "start")[before:])


def kind(command: str) -> str:
    words = command.split("\x1f")
    if words[0] != "fairseq-train":
        return words[1] if words[0] == "treesyntax" else words[0]
    return "train:" + Path(words[words.index("--save-dir") + 1]).parent.name


def trained(started: str) -> list[str]:
    return sorted(word[6:] for word in started.split() if word.startswith("train:"))


def updates(folder: Path) -> list[str]:
    return [words[1] for words in journal(folder) if words[0] == "update"]


def table(folder: Path, out: str = "out") -> dict[str, str]:
    return {row.method: row.seeds for row in read_study(folder / out).table.rows}
