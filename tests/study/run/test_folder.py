"""The folder of a study: its lock, what a kill leaves in it, and its recipe that is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import pytest
from support.study_helpers import write_recipe
from support.study_runs import check_complete, study

from treesyntax.__main__ import main
from treesyntax.errors import InputError, OptionError
from treesyntax.files import sha256_of
from treesyntax.made.digests import Digests
from treesyntax.study.recipe import identity
from treesyntax.study.recipe.identity import IDENTITY_FILE, Identity, write_identity
from treesyntax.study.recipe.recipe import RECIPE_FILE, read_recipe
from treesyntax.study.run.folder import held_alone, remove_leftovers


def test_what_a_kill_leaves_is_removed_wherever_it_lies(tmp_path: Path):
    """But not from another study in the folder, which may be at work."""
    files = [
        ".study.json.12.part", "data/.a.12.part", "runs/a-1/.checkpoint_average.pt.9.part",
        "runs/a-1/generated/.x.1.part", "done/binarize/.a.json.1.part", "search/trials/.t.json.3.part",
        "cluster/tickets/.a.json.7.part",
    ]  # fmt: skip
    folders = ["runs/a-1/.analyses.ab12.part", "runs/a-1/.analyses.ab12.old", ".tables.x.part"]
    kept = ["runs/a-1/analyses/fig.svg", "data/.hidden", "data/a.part", "inner/study.json"]
    kept += ["inner/.runs.jsonl.3.part"]
    for name in [*files, *(f"{folder}/fig.svg" for folder in folders), *kept]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "runs/.link.part").symlink_to(tmp_path / "outside")
    remove_leftovers(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {*kept}
    assert (tmp_path / "outside").is_dir()
    assert not (tmp_path / "runs/.link.part").is_symlink()


def test_a_disk_without_locks_is_not_taken_for_another_study(tmp_path: Path, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", fail)
    message = r"cannot be locked \(No locks available\)"
    with pytest.raises(OptionError, match=message) as caught, held_alone(tmp_path):
        pass
    assert "in use" not in str(caught.value)


def test_an_edit_in_place_with_the_same_size_and_time_is_seen(tmp_path: Path):
    file, old = tmp_path / "a", time.time_ns() - 10**10
    file.write_text("one")
    os.utime(file, ns=(old, old))
    digests = Digests(tmp_path)
    before = digests.of(file)
    state = file.stat()
    digests.known[str(file)] = [
        state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino, before,
    ]  # fmt: skip
    with file.open("r+") as stream:
        stream.write("two")
    os.utime(file, ns=(old, old))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (3, old)
    assert digests.of(file) == sha256_of(file) != before


def test_other_permissions_or_a_second_name_are_no_change(tmp_path: Path):
    file, digests = tmp_path / "a", Digests(tmp_path)
    file.write_text("one")
    before = digests.of(file)
    file.chmod(0o600)
    os.link(file, tmp_path / "b")
    digests.check(file, before, "x", "y", "z")


def test_a_recipe_that_is_lost_or_damaged_is_written_again(tmp_path: Path, capsys):
    write_recipe(tmp_path, seeds=[1], methods={"sequence": {"arch": "tree_sequence_mini"}})
    assert study(tmp_path).returncode == 0
    file = tmp_path / "out" / RECIPE_FILE
    whole = file.read_bytes()
    file.unlink()
    assert main(["report", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "run the study again" in said
    for content in (None, "", "a: [", "\0", "a: 1"):
        if content is not None:
            file.write_text(content)
        again = study(tmp_path)
        assert again.returncode == 0, again.output()
        assert "fairseq-train" not in again.output()
        assert file.read_bytes() == whole
        check_complete(tmp_path)


def test_a_full_disk_leaves_neither_the_identity_nor_the_recipe(tmp_path: Path, monkeypatch):
    recipe = read_recipe(write_recipe(tmp_path))

    def full(*_: object, **__: object) -> str:
        raise InputError("x", None, "cannot be written (No space left on device)")

    for name in ("write_json", "atomic_file"):
        with monkeypatch.context() as patch:
            patch.setattr(identity, name, full)
            with pytest.raises(InputError):
                write_identity(tmp_path / "out", recipe, Identity("h", "0", {}, {}))
        assert not (tmp_path / "out" / IDENTITY_FILE).exists()
        assert not (tmp_path / "out" / RECIPE_FILE).exists()
