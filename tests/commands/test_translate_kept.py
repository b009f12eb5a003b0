"""What ``treesyntax translate`` has done is kept, and gone on with; long lines are found first."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.forked_programs import fork
from support.translate_helpers import SEARCH, binarize, lines_of, save_model, write_texts

from treesyntax.__main__ import main
from treesyntax.decoding import translate as translating
from treesyntax.decoding.growing_output import growing_output
from treesyntax.errors import InputError
from treesyntax.files import sha256_of
from treesyntax.trees.formats import Record

ARCH = ("--arch", "tree_relation_mask_tiny")
LONG = f"( and {'p ' * 1100})"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    write_texts(folder)
    binarize(folder, "data", "sexpr", "target", "--source-format", "sexpr")
    for seed in (1, 2):
        save_model(folder / "data", folder / f"{seed}.pt", *ARCH, seed=seed)
    return folder


@pytest.fixture
def source(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(folder / "all.sexpr", tmp_path / "in"))


def words(folder: Path, source: Path, *flags: str, model: int = 1) -> list[str]:
    """The command, which keeps what it has done after every three sentences."""
    out = str(source.with_name("out"))
    common = ["--path", str(folder / f"{model}.pt"), "--input", str(source), "--output", out]
    return ["translate", str(folder / "data"), *common, "--cpu", "--buffer", "3", *SEARCH, *flags]


def stopped(monkeypatch: pytest.MonkeyPatch, lots: int, error: BaseException) -> None:
    """Let the search fail after some lots of sentences."""
    search, calls = translating._search, []

    def fail_late(*given: object) -> object:
        calls.append(given)
        if len(calls) > lots:
            monkeypatch.setattr(translating, "_search", search)
            raise error
        return search(*given)

    monkeypatch.setattr(translating, "_search", fail_late)


def whole(folder: Path, source: Path, *flags: str) -> list[str]:
    """The output of a call that nothing interrupts."""
    assert main(words(folder, source, *flags)) == 0
    out = source.with_name("out")
    lines = lines_of(out)
    out.unlink()
    return lines


@pytest.mark.parametrize(
    ("error", "status"), [(KeyboardInterrupt(), 130), (OSError(28, "No space left on device"), 2)]
)
@pytest.mark.parametrize("flags", [(), ("--nbest", "2")])
def test_an_interrupt_keeps_what_is_done_and_resume_goes_on(
    folder, source, monkeypatch, capsys, error, status, flags
):
    expected = whole(folder, source, *flags)
    capsys.readouterr()
    stopped(monkeypatch, 2, error)
    assert main(words(folder, source, *flags)) == status
    told = capsys.readouterr().err
    part = source.with_name("out.part")
    assert "the first 6 sentences are kept in" in told
    assert "--resume" in told
    assert lines_of(part) == expected[: 6 * len(expected) // 12]
    assert main(words(folder, source, *flags)) == 2
    assert "out.part: holds 6 sentences of a translation that was interrupted; go on with --resume, or remove it" in capsys.readouterr().err  # fmt: skip
    assert main(words(folder, source, "--resume", *flags)) == 0
    assert "6 sentences in " in (told := capsys.readouterr().err)
    assert "after 6 of an earlier call" in told
    assert lines_of(source.with_name("out")) == expected
    assert sorted(path.name for path in source.parent.iterdir()) == ["in", "out"]


def test_a_kill_in_the_middle_of_a_line_leaves_whole_lots(folder, source, monkeypatch):
    """The last lot is cut, in the output, in its record or in both."""
    expected = whole(folder, source)
    out, part = source.with_name("out"), source.with_name("out.part")
    record = source.with_name("out.part.jsonl")
    for cut, also in ((part, False), (record, False), (part, True)):
        stopped(monkeypatch, 3, KeyboardInterrupt())
        assert main(words(folder, source)) == 130
        for file in {cut, record} if also else {cut}:
            os.truncate(file, file.stat().st_size - 3)
        assert main(words(folder, source, "--resume")) == 0
        assert lines_of(out) == expected
        out.unlink()


def test_a_part_without_whole_lots_is_refused(folder, source, monkeypatch, capsys):
    stopped(monkeypatch, 1, KeyboardInterrupt())
    assert main(words(folder, source)) == 130
    source.with_name("out.part").write_text("")
    assert main(words(folder, source, "--resume")) == 2
    assert "out.part: is not as it was left; remove it to begin again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "model", "told"),
    [
        (
            ["--beam", "2"],
            1,
            "was made with another --beam (3, now 2); go on with the same, or rem",
        ),
        (["--tokens"], 1, "another --tokens (False, now True)"),
        ([], 2, "another checkpoint ("),
    ],
)
def test_resume_refuses_other_models_and_options(
    folder, source, monkeypatch, capsys, flags, model, told
):
    stopped(monkeypatch, 2, KeyboardInterrupt())
    assert main(words(folder, source)) == 130
    before = sha256_of(source.with_name("out.part"))
    assert main(words(folder, source, "--resume", *flags, model=model)) == 2
    assert told in capsys.readouterr().err
    assert sha256_of(source.with_name("out.part")) == before


def test_resume_refuses_another_input_but_takes_a_mended_line_and_more_lines(
    folder, source, monkeypatch, capsys
):
    lines = lines_of(source)
    expected = whole(folder, source)
    source.write_text("".join(f"{line}\n" for line in [*lines[:7], "( not p", *lines[8:]]))
    assert main(words(folder, source)) == 2
    assert "in:8: " in (told := capsys.readouterr().err)
    assert "the first 7 sentences are kept in" in told
    for changed in ([lines[1], *lines[1:]], lines[:5]):
        source.write_text("".join(f"{line}\n" for line in changed))
        assert main(words(folder, source, "--resume")) == 2
        assert "in: does not begin with the 7 records that are translated already; give the same input" in capsys.readouterr().err  # fmt: skip
    source.write_text("".join(f"{line}\n" for line in [*lines, lines[0]]))
    assert main(words(folder, source, "--resume")) == 0
    assert lines_of(source.with_name("out")) == [*expected, expected[0]]


def test_resume_without_anything_to_go_on_with(folder, source, capsys):
    assert main(words(folder, source, "--resume")) == 0, "as well begun as gone on with"
    capsys.readouterr()
    assert main(words(folder, source, "--resume")) == 2
    assert "out: is there, and no out.part to go on with; it is whole; to translate again" in capsys.readouterr().err  # fmt: skip
    assert main([*words(folder, source), "--output", "-", "--resume"]) == 2
    assert "-: is no file that could be gone on with; give --output FILE" in capsys.readouterr().err


def test_lengths_are_looked_at_before_anything_is_translated(folder, source, capsys, monkeypatch):
    lines = lines_of(source)
    source.write_text("".join(f"{line}\n" for line in [*lines, LONG, lines[0], LONG]))
    stopped(monkeypatch, 0, AssertionError("it has translated"))
    assert main(words(folder, source)) == 2
    told = capsys.readouterr().err
    assert "in:13: has 1102 tokens with the end of the sentence, but the model takes at most 1024; lines that are too long: 2; split or shorten it, or give --skip-long" in told  # fmt: skip
    assert [path.name for path in source.parent.iterdir()] == ["in"]


def test_skip_long_writes_an_empty_line_and_counts(folder, source, capsys, monkeypatch):
    lines = lines_of(source)
    expected = whole(folder, source)
    source.write_text("".join(f"{line}\n" for line in [LONG, *lines, LONG]))
    stopped(monkeypatch, 2, KeyboardInterrupt())
    assert main(words(folder, source, "--skip-long")) == 130
    capsys.readouterr()
    assert main(words(folder, source, "--skip-long", "--resume")) == 0
    assert lines_of(source.with_name("out")) == ["", *expected, ""]
    assert "sources of more than 1024 tokens, answered by an empty line: 2 (line 14, …)" in capsys.readouterr().err  # fmt: skip


def test_two_calls_do_not_write_one_output(folder, source, tmp_path):
    """Also after the first has read back what it wrote, with which a lock could be given up."""
    name = str(source.with_name("out"))

    def resume() -> int:
        with growing_output(name, dict, True):
            return 0

    with growing_output(name, dict, False) as output:
        output.stream.write(b"a\n")
        output.keep([Record(1, "a")], 0, 0)
        other = fork(resume, tmp_path / "log")
        assert other.wait() == 1
    assert "out.part: is being written by another treesyntax translate; wait" in other.output()
    assert main(words(folder, source)) == 0


def test_paths_that_fairseq_would_split_are_refused_at_once(folder, source, tmp_path, capsys):
    place = tmp_path / "at 10:30"
    place.mkdir()
    model = shutil.copy(folder / "1.pt", place / "m.pt")
    (place / "data").symlink_to(folder / "data")
    common = ["--input", str(source), "--cpu"]
    for data, path, told in (
        (place / "data", folder / "1.pt", "DATA "),
        (folder / "data", model, "--path "),
    ):
        assert main(["translate", str(data), "--path", str(path), *common]) == 2
        assert f"{told}{place}" in (said := capsys.readouterr().err)
        assert "fairseq takes ':' for the end of a path; choose a name without it" in said
    both = f"{folder}/1.pt:{folder}/none.pt"
    assert main(["translate", str(folder / "data"), "--path", both, *common]) == 2
    assert f"no such file: {folder}/none.pt; ':' separates checkpoints" in capsys.readouterr().err


def test_the_record_says_what_the_part_is_made_of(folder, source, monkeypatch):
    stopped(monkeypatch, 2, KeyboardInterrupt())
    main(words(folder, source))
    first, *lots = source.with_name("out.part.jsonl").read_text().splitlines()
    assert json.loads(first)["checkpoint"] == sha256_of(folder / "1.pt")
    assert [json.loads(lot)["records"] for lot in lots] == [3, 6]


def test_outputs_that_are_as_long_as_they_may_be_are_counted(folder, source, capsys):
    """An untrained model hardly ever ends by itself."""
    lines = whole(folder, source)
    cut = sum(len(line.split()) == 9 for line in lines)
    assert cut
    told = capsys.readouterr().err
    assert f"may be cut: {cut} (--max-len-a 0 --max-len-b 9)" in told


@pytest.mark.parametrize("first", ["{", "[1]"])
def test_a_record_that_says_nothing_is_refused(tmp_path, first):
    name, record = str(tmp_path / "out"), tmp_path / "out.part.jsonl"
    with (
        pytest.raises(KeyboardInterrupt),
        growing_output(name, {"model": "a"}.copy, False) as output,
    ):
        output.stream.write(b"a\n")
        output.keep([Record(1, "a")], 0, 0)
        raise KeyboardInterrupt
    record.write_text("\n".join([first, *record.read_text().splitlines()[1:], ""]))
    with (
        pytest.raises(InputError, match="has a damaged record; remove it to begin again"),
        growing_output(name, {"model": "a"}.copy, True),
    ):
        raise AssertionError("nothing may be written")
