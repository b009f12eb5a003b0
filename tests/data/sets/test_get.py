"""``treesyntax data``: folders of data sets, from a user's files and from their address."""

from __future__ import annotations

import gzip
import hashlib
import json
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from treesyntax.__main__ import main
from treesyntax.data.sets import SETS, base, drawing, reading
from treesyntax.data.sets.base import Input, Part, hold_out, sample
from treesyntax.errors import InputError, OptionError

ROWS = ["Otto saw a lamp .\tsee ( agent = Otto , theme = lamp )\tin_distribution"]


def slog_folder(folder: Path) -> Path:
    """A folder with the files of SLOG, of one made-up line each, some of them packed."""
    folder.mkdir()
    (folder / "train.tsv").write_text(f"{ROWS[0]}\n" * 3)
    for name in ("dev", "test"):
        with gzip.open(folder / f"{name}.tsv.gz", "wt") as stream:
            stream.write(f"{ROWS[0]}\n")
    with zipfile.ZipFile(folder / "generalization_sets.zip", "w") as archive:
        lines = [
            f"Who saw a lamp ?\tsee ( agent = ? , theme = lamp )\tQ_{n % 2}\n" for n in range(8)
        ]
        archive.writestr("generalization_sets/gen_varfreeLF.tsv", "".join(lines))
    return folder


def get(*words: object) -> int:
    return main(["data", "get", *map(str, words)])


def test_the_list_names_every_set_with_licence_and_paper(capsys):
    assert main(["data", "list"]) == 0
    text = capsys.readouterr().out
    for data in SETS.values():
        assert f"{data.name} " in text
        assert data.citation in text
        assert data.licence in text


def test_a_set_from_a_folder(tmp_path, capsys):
    source, folder = slog_folder(tmp_path / "slog"), tmp_path / "out"
    assert get("slog", folder, "--from", source, "--sample", 3) == 0
    said = capsys.readouterr()
    assert "licence: MIT" in said.out
    assert "Li et al. 2023" in said.out
    assert said.err.count("differs from the published file") == 4
    assert (folder / "train.src").read_text() == "Otto saw a lamp .\n" * 3
    assert (folder / "gen.tgt").read_text().splitlines()[0] == "see ( agent = ? , theme = lamp )"
    tree = "(TOP (SQ (WH Who) (VP (VERB saw) (NP (DET a) (NOUN lamp)))) (. ?))"
    assert (folder / "gen.ptb").read_text().splitlines()[0] == tree
    assert (folder / "gen.category").read_text().split() == ["Q_0", "Q_1"] * 4
    assert sorted((folder / "gen.sample.category").read_text().split()) == ["Q_0"] * 3 + ["Q_1"] * 3
    for suffix in ("src", "tgt"):  # in and out of distribution as one test set
        lines = [
            (folder / f"{part}.sample.{suffix}").read_text() for part in ("test", "gen", "both")
        ]
        assert lines[0] + lines[1] == lines[2]
    categories = (folder / "both.sample.category").read_text().split()
    assert categories[-6:] == [
        f"gen/{name}" for name in (folder / "gen.sample.category").read_text().split()
    ]
    assert {name.partition("/")[0] for name in categories[:-6]} == {"test"}
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = hashlib.sha256((source / "train.tsv").read_bytes()).hexdigest()
    assert manifest["options"]["inputs"]["train.tsv"] == digest
    assert manifest["notes"]["test_in_train"] == 1
    assert get("slog", folder, "--from", source, "--sample", 3) == 0
    assert "up to date" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slug"], "no data set is named 'slug'; did you mean 'slog'?"),
        (["slog", "--from", "SOURCE", "--sample", "-1"], "--sample and --seed must be 0 or more"),
        (["slog", "--from", "EMPTY"], "has no train.tsv or varfree_LF/train.tsv"),
        (["slog", "--from", "ABSENT"], "is no folder"),
        (["slog", "--from", "OTHER"], "train.tsv:1: has 2 columns or an empty one"),
        (["slog", "--from", "HOLLOW"], "have no examples for train"),
        (["slog", "--from", "WRONG"], "train.tsv:1: 'Otto was was .' is no sentence"),
    ],
)
def test_one_line_for_what_cannot_be_made(tmp_path, capsys, words, message):
    slog_folder(tmp_path / "SOURCE")
    (tmp_path / "EMPTY").mkdir()
    (slog_folder(tmp_path / "OTHER") / "train.tsv").write_text("a\tb\n")
    (slog_folder(tmp_path / "WRONG") / "train.tsv").write_text("Otto was was .\thum\tx\n")
    (slog_folder(tmp_path / "HOLLOW") / "train.tsv").write_text("")
    name, *rest = (str(tmp_path / word) if word.isupper() else word for word in words)
    assert get(name, tmp_path / "out", *rest) == 2
    error = capsys.readouterr().err
    assert message in error.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_taken_stays_as_it_is(tmp_path, capsys):
    source, folder = slog_folder(tmp_path / "slog"), tmp_path / "out"
    assert get("slog", folder, "--from", source) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert get("slog", folder, "--from", source, "--sample", 1) == 2
    assert "was not made with these options" in capsys.readouterr().err
    assert get("slog", source, "--from", source) == 2
    assert "is the folder of --from" in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_fetched_and_checked(tmp_path, capsys, monkeypatch):
    content = {f"https://example.org/{name}": (ROWS[0] + "\n").encode() for name in "abc"}
    archive = (slog_folder(tmp_path / "slog") / "generalization_sets.zip").read_bytes()
    content["https://example.org/zip"] = archive
    monkeypatch.setattr(reading, "urlopen", lambda address, timeout: BytesIO(content[address]))
    inputs = [
        Input(one.names, address, hashlib.sha256(content[address]).hexdigest())
        for one, address in zip(SETS["slog"].inputs, content, strict=True)
    ]
    monkeypatch.setitem(SETS, "slog", replace(SETS["slog"], inputs=tuple(inputs)))
    assert get("slog", tmp_path / "out") == 0
    assert (tmp_path / "out" / "valid.src").read_text() == "Otto saw a lamp .\n"
    inputs[0] = replace(inputs[0], sha256="0" * 64)
    monkeypatch.setitem(SETS, "slog", replace(SETS["slog"], inputs=tuple(inputs)))
    assert get("slog", tmp_path / "other") == 2
    assert "is not the file that was published" in capsys.readouterr().err
    inputs[0] = replace(inputs[0], address="")
    monkeypatch.setitem(SETS, "slog", replace(SETS["slog"], inputs=tuple(inputs)))
    assert get("slog", tmp_path / "other") == 2
    assert "has no public address" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_samples_have_each_category_and_are_always_the_same():
    part = Part()
    for n in range(100):
        part.add(f"s{n}", f"t{n}", "", "ab"[n % 2])
    few = sample(part, 10)
    assert few == sample(part, 10)
    assert sorted(few.categories) == ["a"] * 10 + ["b"] * 10
    assert [int(s[1:]) for s in few.sources] == sorted(int(s[1:]) for s in few.sources)
    assert sample(part, 1000) == part


def test_no_copy_of_what_is_held_out_stays_in_train():
    part = Part()
    for n in range(100):
        part.add(f"s{n % 40}", f"t{n % 40}", f"(X {n})")
    train, valid = hold_out(part, 7, 1)
    assert len(valid) == len(set(valid.sources)) == 7
    assert not set(train.sources) & set(valid.sources)
    assert all(tree == f"(X {s[1:]})" for s, tree in zip(valid.sources, valid.trees, strict=True))
    assert len(train) == sum(f"s{n % 40}" not in valid.sources for n in range(100))


def test_no_more_is_held_out_than_there_is():
    part = Part()
    part.add("s", "t", "")
    with pytest.raises(OptionError, match="1 examples are to be held out, but the published file"):
        hold_out(part, 1, 1)


def test_every_address_is_checked():
    for data in SETS.values():
        for one in data.inputs:
            assert not one.address or (one.address.startswith("https://") and len(one.sha256) == 64)


def test_brackets_are_those_of_the_format():
    from treesyntax.data.sets.english import parse
    from treesyntax.trees.formats.ptb import PTB

    tree = parse("Otto gave a bird that was lent the lamp a cup in the attic .")
    assert base.brackets(tree) == PTB.write(tree)


def test_training_sets_of_several_sizes_are_nested_and_the_other_parts_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "NUMBERS", {"train": 60, "valid": 9, "test": 9, "gen": 9})
    read = {}
    for name, options in {
        "usual": (), "large": ("--train", 90, "--small-train", 20, 50, 90), "small": ("--train", 30),
    }.items():  # fmt: skip
        assert get("listops", tmp_path / name, *options) == 0
        read[name] = {
            file.name: file.read_text().splitlines()
            for file in (tmp_path / name).glob("*.*")
            if file.suffix != ".json"
        }
    large = read["large"]
    for part in ("src", "tgt", "ptb", "category"):
        assert large[f"train.{part}"][:60] == read["usual"][f"train.{part}"]
        assert read["usual"][f"train.{part}"][:30] == read["small"][f"train.{part}"]
        for other in ("valid", "test", "gen"):
            same = [files[f"{other}.{part}"] for files in read.values()]
            assert same[0] == same[1] == same[2]
    assert len(large["train.src"]) == 90
    pairs = {
        size: set(zip(large[f"train{size}.src"], large[f"train{size}.tgt"], strict=True))
        for size in (".20", ".50", "")
    }
    assert pairs[".20"] < pairs[".50"] < pairs[""]
    assert (len(pairs[".20"]), len(pairs[".50"])) == (20, 50)
    assert large["train.90.src"] == large["train.src"]
    everything = [
        line for name in ("train", "valid", "test", "gen") for line in large[f"{name}.src"]
    ]
    assert len(set(everything)) == len(everything)


@pytest.mark.parametrize(
    ("options", "told"),
    [(("--train", 4), "slog has 3 training examples; ask for as many or fewer"),
     (("--small-train", 4), "small-train is 4; it must be 1 to 3, as train has"),
     (("--train", -1), "--train is -1; it must be 0 or more")],
)  # fmt: skip
def test_a_training_set_that_cannot_be_is_refused(tmp_path, capsys, options, told):
    source = slog_folder(tmp_path / "slog")
    assert get("slog", tmp_path / "out", "--from", source, *options) == 2
    assert told in capsys.readouterr().err


def test_lines_of_published_files_end_where_those_of_others_do():
    content = "\ufeffa\u2028b\x85c\r\n\nd\x0b\n".encode()
    assert reading.lines_of(content, "x.tsv") == ["a\u2028b\x85c", "", "d\x0b"]
    with pytest.raises(InputError, match="x.tsv:2: byte 1 is not UTF-8"):
        reading.lines_of(b"a\n\xff\n", "x.tsv")
