"""``treesyntax parse``: files, resuming, workers, errors; parsers without models do the parsing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import support.fake_parser as fake_parser
from support import wait_until
from support.fake_parser import LINES, outputs, start
from support.fake_parser import words as arguments

from treesyntax.__main__ import main
from treesyntax.parsers import PARSERS
from treesyntax.parsers.record_text import read_offsets
from treesyntax.parsers.workers import _loaded
from treesyntax.trees.formats import read_trees


@pytest.fixture(autouse=True)
def fakes(monkeypatch):
    for name, kind in fake_parser.KINDS.items():
        monkeypatch.setitem(PARSERS, name, kind)
    _loaded.cache_clear()


@pytest.fixture
def text(tmp_path) -> Path:
    file = tmp_path / "in.txt"
    file.write_text("".join(line + "\n" for line in LINES))
    return file


def parse(text: Path, output: Path, *options: object) -> dict[str, bytes]:
    assert main(arguments(text, output, *options)) == 0
    return outputs(output)


def refused(capsys, *given: str) -> str:
    capsys.readouterr()
    assert main(list(given)) == 2
    message = capsys.readouterr().err
    assert message.startswith("treesyntax parse: ")
    assert message.count("\n") == 1
    return message


@pytest.mark.parametrize(("name", "notation"), [("fake-dep", "conllu"), ("fake-con", "ptb")])
def test_files_are_aligned_with_the_text(name, notation, text, tmp_path, capsys):
    files = parse(text, tmp_path / "out", "--parser", name)
    beside = {"out.offsets"} if notation == "ptb" else set()
    assert set(files) == {"out", "out.report.json"} | beside
    trees = list(read_trees(tmp_path / "out", notation))
    spans = list(read_offsets(tmp_path / "out", notation))
    assert [len(tree.word_nodes()) for tree in trees] == [len(line.split()) for line in LINES]
    for line, places in zip(LINES, spans, strict=True):
        assert [line[a:b] for a, b in places] == line.split()
    report = json.loads(files["out.report.json"])
    counts = {case: entry["count"] for case, entry in report["cases"].items()}
    assert counts == {"empty": 7, "several_sentences": 7, "too_long": 7, "parser_failed": 7}
    assert report["cases"]["parser_failed"]["first_lines"] == list(range(5, 50, 7))
    assert report["reasons"] == {"ValueError: bad word in two lines": 7}
    assert (report["lines"], report["identity"]["lines"]) == (49, 49)
    shown = capsys.readouterr().err
    assert "49 lines in" in shown
    assert "7 empty, 7 several sentences, 7 too long, 7 parser failed" in shown


def test_escapes_of_moses_in_the_text_are_counted_before_it_is_parsed(tmp_path, capsys):
    text = tmp_path / "in.txt"
    text.write_text("a plain one\nit &apos;s a well @-@ known &quot;fact&quot;\nR & D at x@y.z\n")
    files = parse(text, tmp_path / "out", "--parser", "fake-dep")
    said = f"{text}:2: 1 of 3 lines holds escapes of Moses' tokenizer"
    first, *_ = capsys.readouterr().err.splitlines()
    assert said in first
    assert ", 4 in all; they are read as words: detokenize both sides before" in first
    (remark,) = json.loads(files["out.report.json"])["remarks"]
    assert (remark["line"], remark["count"]) == (2, 4)
    assert said in remark["text"]


def test_text_that_is_not_split_is_counted_where_it_is_said_to_be(tmp_path, capsys):
    text = tmp_path / "in.txt"
    split = 'the U.S. army , etc. , said : no .\n12, 3.5 " wow ! "\n我 喜欢 你 。\n'
    raw = 'We ran home, tired.\nHe said: "Who is it?"\n我喜欢你。\n'
    text.write_text(split + raw, encoding="utf-8")
    files = parse(text, tmp_path / "out", "--parser", "fake-dep", "--pretokenized")
    first, *_ = capsys.readouterr().err.splitlines()
    assert (
        f"{text}:4: 3 of 6 lines hold punctuation at the end of words (home, or home.), 4" in first
    )
    (remark,) = json.loads(files["out.report.json"])["remarks"]
    assert remark["text"] in first
    assert "--pretokenized takes both for a single word" in remark["text"]
    files = parse(text, tmp_path / "raw", "--parser", "fake-dep")
    assert not json.loads(files["raw.report.json"])["remarks"]


def test_packed_text_and_no_text(text, tmp_path):
    packed = tmp_path / "in.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert parse(packed, tmp_path / "a")["a"] == parse(text, tmp_path / "b")["b"]
    (tmp_path / "none.txt").write_text("")
    assert parse(tmp_path / "none.txt", tmp_path / "none")["none"] == b""


@pytest.mark.parametrize("shard_lines", [1, 7, 1000])
def test_trees_of_separate_sentences_do_not_depend_on_shards(shard_lines, text, tmp_path):
    wanted = parse(text, tmp_path / "out")["out"]
    assert parse(text, tmp_path / "x", "--shard-lines", shard_lines)["x"] == wanted


def test_workers_do_not_change_a_byte(text, tmp_path):
    wanted = parse(text, tmp_path / "one" / "out")
    for count in (2, 3):
        output = tmp_path / str(count) / "out"
        start(text, output, "--workers", count).wait()
        assert outputs(output) == wanted


@pytest.mark.parametrize(
    ("value", "line", "message"),
    [
        ([], 4, "has more words than --max-words, or a word of 20 times as many characters; split it or raise "
         "the limit, or leave too_long out"),
        (["parser_failed"], 5, "cannot be parsed; correct it, or leave parser_failed out"),
        (["empty,parser_failed"], 2, "is empty; remove it on both sides"),
        (["several_sentences"], 3, "has several sentences; split it on both sides"),
    ],
)  # fmt: skip
def test_strict_names_the_first_line(value, line, message, text, tmp_path, capsys):
    given = arguments(text, tmp_path / "out", "--strict", *value)
    assert f"in.txt:{line}: {message}" in refused(capsys, *given)
    assert not (tmp_path / "out").exists()
    # Nothing is lost: without it the run goes on, and then the finished file is refused as well.
    assert main(arguments(text, tmp_path / "out")) == 0
    assert f"in.txt:{line}: " in refused(capsys, *given)


def test_strict_accepts_clean_text(tmp_path):
    text = tmp_path / "in.txt"
    text.write_text("a b\nc\n")
    parse(text, tmp_path / "out", "--strict", "empty,several_sentences,too_long,parser_failed")


def test_finished_shards_are_not_parsed_again(text, tmp_path, monkeypatch):
    wanted = parse(text, tmp_path / "whole" / "out")
    calls = []
    original = fake_parser.FakeParser.split

    def split(self, lines):
        calls.append(len(lines))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, lines)

    monkeypatch.setattr(fake_parser.FakeParser, "split", split)
    given = arguments(text, tmp_path / "out")
    assert main(given) == 130
    assert len(list((tmp_path / "out.parts").glob("*.trees"))) == 3
    (tmp_path / "out.parts" / ".000003.trees.1.part").write_text("half")
    assert main(given) == 0
    assert len(calls) == 4 + 7
    assert outputs(tmp_path / "out") == wanted
    assert main(given) == 0
    assert len(calls) == 4 + 7


def test_a_shard_that_lost_a_file_is_parsed_again(text, tmp_path, monkeypatch):
    given = ("--parser", "fake-con")
    wanted = parse(text, tmp_path / "whole" / "out", *given)
    original = fake_parser.FakeParser.split

    def split(self, lines):
        if (tmp_path / "out.parts" / "000002.trees").exists():
            raise KeyboardInterrupt
        return original(self, lines)

    with monkeypatch.context() as patch:
        patch.setattr(fake_parser.FakeParser, "split", split)
        assert main(arguments(text, tmp_path / "out", *given)) == 130
    (tmp_path / "out.parts" / "000001.offsets").unlink()
    assert parse(text, tmp_path / "out", *given) == wanted


def test_a_text_that_changes_while_it_is_parsed_is_refused(text, tmp_path, monkeypatch, capsys):
    """Lines are read one shard after the other: the trees would be of both texts."""
    original = fake_parser.FakeParser.split

    def split(self, lines):
        text.write_text("".join(f"{line}\n" for line in LINES[::-1]))
        return original(self, lines)

    with monkeypatch.context() as patch:
        patch.setattr(fake_parser.FakeParser, "split", split)
        message = refused(capsys, *arguments(text, tmp_path / "out"))
    assert "in.txt: has changed while it was parsed; run the command again" in message
    assert outputs(tmp_path / "out") == {}
    assert parse(text, tmp_path / "out")["out"]


def test_a_complete_output_is_not_made_again(text, tmp_path, capsys):
    parse(text, tmp_path / "out")
    time_of = (tmp_path / "out").stat().st_mtime_ns
    capsys.readouterr()
    parse(text, tmp_path / "out")
    assert "is complete already: 7 empty" in capsys.readouterr().err
    assert (tmp_path / "out").stat().st_mtime_ns == time_of


def test_shards_of_another_parse_are_not_mixed_in(text, tmp_path, capsys, monkeypatch):
    def interrupt(self, lines):
        if "z" in lines:
            raise KeyboardInterrupt
        return original(self, lines)

    original = fake_parser.FakeParser.split
    monkeypatch.setattr(fake_parser.FakeParser, "split", interrupt)
    assert main(arguments(text, tmp_path / "out")) == 130
    monkeypatch.undo()
    for name, kind in fake_parser.KINDS.items():
        monkeypatch.setitem(PARSERS, name, kind)
    other = arguments(text, tmp_path / "out", "--max-words", 25, "--model", "n")
    message = refused(capsys, *other)
    assert "out.parts has shards of another parse (different: model, max words)" in message
    assert "choose another OUTPUT or add --overwrite" in message
    text.write_text("other\n" + text.read_text())
    assert "(different: input, lines)" in refused(capsys, *arguments(text, tmp_path / "out"))
    files = parse(text, tmp_path / "out", "--overwrite")
    assert files["out"].startswith(b"# text = other\n")


def test_an_output_of_another_parse_is_replaced_only_on_request(text, tmp_path, capsys):
    first = parse(text, tmp_path / "out")
    other = arguments(text, tmp_path / "out", "--max-words", 50)
    message = refused(capsys, *other)
    assert "already exists, made from other max words; name" in message
    assert outputs(tmp_path / "out") == first
    assert parse(text, tmp_path / "out", "--max-words", 50, "--overwrite") != first


def test_the_text_and_what_stands_beside_a_failed_parse_are_never_replaced(text, tmp_path, capsys):
    given = arguments(text, text, "--overwrite")
    assert "is the text to parse; name another file" in refused(capsys, *given)
    packed = arguments(text, tmp_path / "out.gz")
    assert "would be plain text, not packed; leave out .gz" in refused(capsys, *packed)
    assert text.read_text().splitlines() == list(LINES)
    (tmp_path / "out.parts").mkdir()  # as a parse leaves it whose model cannot be loaded
    (tmp_path / "out").write_text("gold")
    assert "already exists" in refused(capsys, *arguments(text, tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "gold"


def test_a_model_at_a_path_is_known_by_its_content(text, tmp_path, capsys):
    model = tmp_path / "model"
    model.mkdir()
    (model / "weights").write_bytes(b"1")
    parse(text, tmp_path / "out", "--model", model)
    model.rename(tmp_path / "moved")
    parse(text, tmp_path / "out", "--model", tmp_path / "moved")
    (tmp_path / "moved" / "weights").write_bytes(b"2")
    assert "already exists" in refused(
        capsys, *arguments(text, tmp_path / "out", "--model", tmp_path / "moved")
    )


def test_a_model_given_by_name_is_known_by_its_content(text, tmp_path, capsys, monkeypatch):
    model = tmp_path / "home" / "m"
    model.mkdir(parents=True)
    (model / "weights").write_bytes(b"1")
    monkeypatch.setattr(fake_parser, "named_models", lambda name, kind: [tmp_path / "home" / name])
    parse(text, tmp_path / "out")
    parse(text, tmp_path / "out")
    assert "is complete already" in capsys.readouterr().err
    (model / "weights").write_bytes(b"2")
    message = refused(capsys, *arguments(text, tmp_path / "out"))
    assert "already exists, made from other model" in message


def test_a_model_that_is_a_package_is_known_by_its_version(text, tmp_path, capsys, monkeypatch):
    kind = fake_parser.KINDS["fake-dep"]._replace(packaged=True)
    monkeypatch.setitem(PARSERS, "fake-dep", kind)
    versions = {"m": "1.0"}
    monkeypatch.setattr(
        "treesyntax.parsers.parse_task.version", lambda name: versions.get(name, "0")
    )
    parse(text, tmp_path / "out")
    parse(text, tmp_path / "out")
    assert "is complete already" in capsys.readouterr().err
    versions["m"] = "1.1"
    message = refused(capsys, *arguments(text, tmp_path / "out"))
    assert "already exists, made from other versions" in message


def test_a_model_is_downloaded_once_and_only_on_request(text, tmp_path, monkeypatch):
    asked = []
    original = fake_parser.load

    def load(config, kind):
        asked.append(config.download)
        return original(config, kind)

    monkeypatch.setattr(fake_parser, "load", load)
    parse(text, tmp_path / "a")
    assert asked == [False]
    _loaded.cache_clear()
    parse(text, tmp_path / "b", "--download")
    assert asked == [False, True, False]


def test_spoilt_records_of_a_run_are_not_trusted(text, tmp_path, capsys):
    parse(text, tmp_path / "out")
    (tmp_path / "out.report.json").write_text("{")
    assert "already exists" in refused(capsys, *arguments(text, tmp_path / "out"))
    parts = tmp_path / "new.parts"
    parts.mkdir()
    (parts / "identity.json").write_text("[]")
    (parts / "000000.trees").write_text("")
    message = refused(capsys, *arguments(text, tmp_path / "new"))
    assert "(different: input, lines, parser" in message


def test_one_process_an_output(text, tmp_path, capsys):
    slow = start(text, tmp_path / "out", "--lang", "300")
    wait_until((tmp_path / "out.parts" / "identity.json").exists)
    try:
        given = arguments(text, tmp_path / "out", "--lang", "300")
        assert f"out.parts is in use by process {slow.pid} on " in refused(capsys, *given)
    finally:
        slow.kill()
        slow.wait()


@pytest.mark.parametrize(
    ("lines", "shard", "told"),
    [
        ("a\nb\nDIE\n", 1, "treesyntax parse: a worker process died, possibly out of memory"),
        ("BAD\n" * 30, 15, "fake-dep failed on all 15 lines that it was given from line 1 on "
         "(ValueError: bad word in two lines); check the model m"),
    ],
)  # fmt: skip
def test_a_fault_of_a_worker_reaches_the_user(lines, shard, told, tmp_path):
    text = tmp_path / "in.txt"
    text.write_text(lines)
    process = start(text, tmp_path / "out", "--workers", 2, "--shard-lines", shard)
    _, message = process.communicate()
    assert process.returncode == 2
    assert told in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--parser", "xyz"), "no parser is named 'xyz'; there are stanza-dep"),
        (
            ("--parser", "fake-absent"),
            "needs no_such_package_at_all, which is not installed; run: pip ",
        ),
        (("--model", "a/b/c"), "there is no model at a/b/c in /"),
        (("--max-words", 0), "--max-words must be at least 1"),
        (("--shard-lines", 0), "--shard-lines must be at least 1"),
        (("--workers", -1), "--workers must be at least 0"),
        (("--gpus", -1), "--gpus must be at least 0"),
        (("--strict", "all"), "--strict: no case is named 'all'; there are empty"),
    ],
)
def test_mistakes_in_options(options, message, text, tmp_path, capsys):
    assert message in refused(capsys, *arguments(text, tmp_path / "out", *options))
    assert not (tmp_path / "out").exists()


def test_mistakes_in_files(text, tmp_path, capsys):
    absent = arguments(tmp_path / "none.txt", tmp_path / "out")
    assert "none.txt: does not exist; give a text file" in refused(capsys, *absent)
    assert "is not a regular file" in refused(capsys, *arguments(tmp_path, tmp_path / "out"))
    text.write_bytes(b"good\n\xff\xfe\n")
    assert "in.txt:2: byte 1 is not UTF-8" in refused(capsys, *arguments(text, tmp_path / "out"))
    text.write_text("a\n")
    (tmp_path / "file").write_text("")
    under = arguments(text, tmp_path / "file" / "out")
    assert "cannot be written" in refused(capsys, *under)
