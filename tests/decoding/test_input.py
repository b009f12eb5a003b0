"""Input of ``treesyntax translate``: raw text parsed on the fly, streams, and what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from reliability.test_untrusted import torch_archive
from support.fake_parser import KINDS
from support.translate_helpers import (
    binarize,
    generate,
    lines_of,
    save_model,
    translate,
    write_texts,
)

from treesyntax.__main__ import main
from treesyntax.decoding.input import chunks
from treesyntax.parsers import PARSERS
from treesyntax.trees.formats import Record

CONLLU = ("--source-format", "conllu", "--subword-policy", "copy", "--subword-vocab", "40")
ARCH = ("--arch", "tree_relation_mask_tiny")
RAW = [
    "The cat sees. A dog likes",
    "",
    "the BAD tree",
    " Every  parser often finds today ",
    "a " * 9,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translate")
    write_texts(folder)
    binarize(folder, "conllu", "conllu", "target", *CONLLU)
    binarize(folder, "ptb", "ptb", "target", "--source-format", "ptb")
    binarize(folder, "mrg", "ptb", "target", "--source-format", "mrg")
    binarize(folder, "text", "txt", "target")
    binarize(folder, "sexpr", "sexpr", "target", "--source-format", "sexpr")
    for name in ("conllu", "ptb", "text", "sexpr"):
        save_model(folder / name, folder / f"{name}.pt", *ARCH[:1], ARCH[1] if name != "text" else "tree_sequence_tiny")  # fmt: skip
    (folder / "raw").write_text("".join(f"{line}\n" for line in RAW))
    return folder


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in KINDS.items():
        monkeypatch.setitem(PARSERS, name, kind)


@pytest.mark.usefixtures("parsers")
@pytest.mark.parametrize("name", ["conllu", "ptb", "mrg"])
def test_text_parsed_on_the_fly_is_text_parsed_before(folder, name, tmp_path, capsys):
    parser = "fake-dep" if name == "conllu" else "fake-con"
    model = folder / ("conllu.pt" if name == "conllu" else "ptb.pt")
    parsing = ("--parser", parser, "--model", "any", "--max-words", "7")
    words = [str(folder / "raw"), str(tmp_path / "trees"), "--workers", "1"]
    assert main(["parse", *words, *parsing]) == 0
    flags = ("--parsed", "--input", tmp_path / "trees")
    expected = translate(folder / ("conllu" if name == "conllu" else "ptb"), model, tmp_path / "a", *flags)  # fmt: skip
    capsys.readouterr()
    data = folder / name
    found = translate(data, model, tmp_path / "b", "--input", folder / "raw", *parsing)
    assert found == expected
    assert [not line for line in found] == [not line.strip() for line in RAW]
    assert "5 lines: 1 empty, 1 several sentences, 1 too long, 1 parser failed" in capsys.readouterr().err  # fmt: skip


@pytest.mark.usefixtures("parsers")
@pytest.mark.parametrize("units", ["token", "line"])
@pytest.mark.parametrize(("notation", "parser"), [("conllu", "fake-dep"), ("ptb", "fake-con")])
def test_subwords_stand_where_they_stood_in_training(
    folder, notation, parser, units, tmp_path, capsys
):
    raw, trees = folder / "all.txt", folder / f"all.{parser}"
    parsing = ("--parser", parser, "--model", "any")
    assert main(["parse", str(raw), str(trees), *parsing, "--workers", "1"]) == 0
    text = [] if notation == "conllu" else [str(raw)] * 3
    flags = ("--source-format", notation, "--source-text", *text, "--subword-units", units)
    data = binarize(folder, f"{parser}.{units}", parser, "target", *flags, *CONLLU[2:])
    model = save_model(data, tmp_path / "m.pt", *ARCH)
    expected = [text for _, text in generate(data, model, tmp_path)]
    found = translate(data, model, tmp_path / "a", "--input", raw, "--tokens", *parsing)
    assert found == expected
    parsed = ("--input", str(trees), "--tokens", "--parsed")
    if notation == "conllu":
        assert translate(data, model, tmp_path / "b", *parsed) == expected
        return
    capsys.readouterr()
    words = ["translate", str(data), "--path", str(model), *parsed]
    assert "which ptb does not hold; give raw text with --parser (" in refused(capsys, words)


def command(folder: Path, name: str, *flags: str | Path) -> list[str]:
    data, model = str(folder / name), str(folder / f"{name}.pt")
    return ["translate", data, "--path", model, "--cpu", "--max-len-b", "9", *map(str, flags)]


def test_a_pipe_is_answered_line_by_line_and_may_be_closed_early(folder, tmp_path):
    """In a process of its own, as a user has it."""
    lines = lines_of(folder / "all.txt")
    expected = translate(folder / "text", folder / "text.pt", tmp_path / "out", "--beam", "5", "--input", folder / "all.txt")  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "treesyntax", *command(folder, "text")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert None not in (process.stdin, process.stdout, process.stderr)
    for number in (3, 0, 5):
        process.stdin.write(f"{lines[number]}\n\n".encode())
        process.stdin.flush()
        assert process.stdout.readline().decode() == expected[number] + "\n"
        assert process.stdout.readline() == b"\n"
    process.stdout.close()
    process.stdin.write(f"{lines[0]}\n".encode())
    process.stdin.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == b""


def test_nothing_in_a_checkpoint_is_executed(folder, tmp_path, capsys):
    trace, path = tmp_path / "trace", tmp_path / "evil.pt"
    path.write_bytes(torch_archive(trace))
    words = ["translate", str(folder / "text"), "--path", str(path), "--input", str(folder / "raw")]
    assert main(words) == 2
    assert f"{path}: not a plain checkpoint" in capsys.readouterr().err
    assert not trace.exists()


def refused(capsys, words: list[str]) -> str:
    """The one line that the command ends with."""
    assert main(words) == 2
    (line,) = [x for x in capsys.readouterr().err.splitlines() if "sentences in" not in x]
    assert line.startswith("treesyntax translate: ")
    return line.removeprefix("treesyntax translate: ")


@pytest.mark.usefixtures("parsers")
@pytest.mark.parametrize(
    ("name", "flags", "message"),
    [
        ("conllu", [], "the model reads trees: for raw text give --parser (stanza-dep, spacy, fake-"),
        ("conllu", ["--parser", "fake-con", "--model", "x"], "fake-con writes ptb, but the model reads conllu; take stanza-dep"),
        ("conllu", ["--parser", "fake-dep"], "--parser fake-dep needs --model"),
        ("conllu", ["--parser", "fake-dep", "--parsed"], "--parsed and --parser exclude each other"),
        ("conllu", ["--parser", "no"], "no parser is named 'no'; there are "),
        ("sexpr", ["--parser", "fake-con", "--model", "x"], "but the model reads sexpr; leave out --parser"),
        ("text", ["--parser", "fake-con", "--model", "x"], "the model reads text without trees; leave out"),
        ("text", ["--parsed"], "the model reads text without trees; leave out --parsed"),
        ("text", ["--model", "x"], "--model is that of a parser; name it with --parser"),
        ("text", ["--beam", "0"], "--beam must be at least 1"),
        ("text", ["--buffer", "0"], "--buffer must be at least 1"),
        ("text", ["--max-len-a", "-1"], "--max-len-a must be a number from 0 to"),
        ("text", ["--nbest", "6"], "--nbest 6 asks for more hypotheses than --beam 5 keeps"),
        ("text", ["--device", "tpu"], "--device 'tpu' is neither cpu, cuda nor cuda:N"),
        ("text", ["--device", "cuda:99"], "--device cuda:99: there is no such GPU, or torch cannot use"),
        ("text", ["--input", "/no/such"], "/no/such: does not exist; name a file, or leave out --input"),
        ("text", ["--input", "/"], "/: is a folder; name a file"),
        ("text", ["--output", "/"], "/: is a folder; name a file"),
        ("text", ["--tree-constraints", "tree"], "--tree-constraints tree needs a target whose"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(folder, name, flags, message, capsys):
    words = command(folder, name, "--input", folder / "raw", *flags)
    if "--device" in flags:
        words.remove("--cpu")
    assert message in refused(capsys, words)


def changed(path: Path, new: Path, **changes: object) -> Path:
    """A checkpoint with other values, by place in it."""
    state = torch.load(path, weights_only=False)
    for place, value in changes.items():
        part, _, key = place.partition("__")
        if key:
            inner, _, name = key.partition("__")
            (state[part][inner] if name else state[part])[name or inner] = value
        else:
            state[part] = value
    torch.save(state, new)
    return new


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cfg": None}, "holds no settings of fairseq-train; give a checkpoint that fairseq 0.12 wrote"),
        ({"cfg__task___name": "translation"}, "was trained with --task translation; train the model"),
        ({"cfg__task__source_lang": "xx", "cfg__task__target_lang": "tgt"}, "was trained to translate xx-tgt, but "),
        ({"model": {"encoder.embed_tokens.weight": torch.zeros(9, 2)}}, "knows 9 source symbols, but the dictionary in "),
        ({"model": {"decoder.embed_tokens.weight": torch.zeros(9, 2)}}, "knows 9 target symbols, but the dictionary in "),
        ({"model": {"a": None}}, "holds no model"),
        ({"cfg__model__encoder_layers": 10**9}, "its setting model.encoder_layers does not fit the model"),
        ({"cfg__model__encoder_embed_dim": -1}, "its setting model.encoder_embed_dim does not fit the model"),
        ({"cfg__model__dropout": 7.0}, "its setting model.dropout does not fit the model"),
        ({"task_state": [1]}, "holds no record of its data"),
        ({"model": {}}, "does not fit its own settings (Error(s) in loading state_dict"),
        ({"task_state__target_view": "nary_dfs"}, "the model was trained on targets in the linearization nary_dfs, but"),
    ],
)  # fmt: skip
def test_checkpoints_that_do_not_fit_the_data_are_refused(
    folder, changes, message, tmp_path, capsys
):
    model = changed(folder / "text.pt", tmp_path / "m.pt", **changes)
    words = ["translate", str(folder / "text"), "--path", str(model), "--cpu"]
    assert message in refused(capsys, [*words, "--input", str(folder / "raw")])


def test_other_data_is_refused(folder, tmp_path, capsys):
    def said(data: Path, *flags: str) -> str:
        words = ["translate", str(data), "--path", str(folder / "conllu.pt"), "--cpu", *flags]
        return refused(capsys, [*words, "--input", str(folder / "raw")])

    assert "is not a folder; give the folder that" in said(tmp_path / "absent")
    assert "has no binarize.json; give the folder that" in said(tmp_path)
    for spoilt in ("{", "[]", '{"sides": {}, "options": {}}'):
        (tmp_path / "binarize.json").write_text(spoilt)
        assert "is not a record of treesyntax binarize; run" in said(tmp_path)
    assert "knows 40 source symbols, but" in said(folder / "text")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (folder / "conllu").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "subwords.tgt.model").write_bytes(b"no model")
    assert "subwords.tgt.model: cannot be read as a SentencePiece model; run" in said(copy, "--parsed")  # fmt: skip
    manifest = (copy / "binarize.json").read_text()
    (copy / "binarize.json").write_text(manifest.replace('"source_pieces": null', '"source_pieces": ["p"]'))  # fmt: skip
    assert "was segmented elsewhere (binarize --source-subwords), so nobody" in said(
        copy, "--parsed"
    )


def test_a_bad_record_ends_it_after_the_ones_before(folder, tmp_path, capsysbinary):
    lines = lines_of(folder / "all.sexpr")
    bad = tmp_path / "bad"
    for text, message in (
        ("( not p", "bad:4: "),
        ("p " * 2000, "bad:4: "),
        ("\xe9".encode("latin-1"), "bad:4: byte 1 is not UTF-8"),
    ):
        raw = text if isinstance(text, bytes) else text.encode()
        bad.write_bytes("".join(f"{line}\n" for line in lines[:3]).encode() + raw + b"\np\n")
        words = command(folder, "sexpr", "--input", bad)
        assert main(words) == 2
        out, err = capsysbinary.readouterr()
        assert message in err.decode()
        assert len(out.decode().splitlines()) == 3
        assert main([*words, "--output", str(tmp_path / "out")]) == 2
        assert "3 sentences are kept in" in capsysbinary.readouterr().err.decode()
        assert (tmp_path / "out.part").read_bytes() == out
        for left in tmp_path.glob("out*"):
            left.unlink()


def test_lots_grow_and_are_the_same_after_a_break():
    """An interrupt in the first minutes loses little, and one translation is not batched in two ways."""
    records = [Record(number, "x") for number in range(1, 201)]
    sizes = [len(lot) for lot in chunks(iter(records), 60, wait=True)]
    assert sizes == [10, 20, 40, 60, 60, 10]
    assert [len(lot) for lot in chunks(iter(records[30:]), 60, True, 30)] == sizes[2:]


@pytest.mark.usefixtures("parsers")
def test_raw_lines_with_too_many_words_are_refused_before_any_is_parsed(folder, tmp_path, capsys):
    (tmp_path / "in").write_text(f"the cat sees\n{'a ' * 1100}\n")
    words = command(
        folder, "conllu", "--input", tmp_path / "in", "--parser", "fake-dep", "--model", "x"
    )
    assert main(words) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert "in:2: has 1101 tokens with the end of the sentence, but the model takes" in shown.err
    assert main([*words, "--skip-long"]) == 0
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 2
    assert shown.out.endswith("\n\n")
    assert "answered by an empty line: 1 (line 2)" in shown.err


def test_a_source_without_its_trees_is_refused(folder, tmp_path, capsys):
    """The data has none, but the model was made for some."""
    save_model(folder / "text", tmp_path / "m.pt", *ARCH)
    words = [
        "translate",
        str(folder / "text"),
        "--path",
        str(tmp_path / "m.pt"),
        "--cpu",
        "--quiet",
    ]
    said = refused(capsys, [*words, "--input", str(folder / "raw")])
    assert "the method relation_mask needs trees, but the data has none" in said


def test_help_teaches_by_example(capsys):
    with pytest.raises(SystemExit):
        main(["translate", "--help"])
    assert capsys.readouterr().out.count("\n  treesyntax translate data-bin/") == 3


def test_unknown_words_and_long_and_deep_sources_are_told(folder, tmp_path, capsys):
    """Before, a model that knew none of the words answered as if nothing were wrong."""
    (tmp_path / "in").write_text(
        "( and p q )\n( foo p bar )\n" + "( not " * 30 + "p" + " )" * 30 + "\n"
    )
    words = command(folder, "sexpr", "--input", tmp_path / "in")
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "line 1" not in told
    assert "line 2: unknown to the model: foo, bar\n" in told
    assert re.search("line 3: 31 tokens, the longest sentence in training has [0-9]+; its tree is 30 "
                     "deep, the deepest in training is [0-9]", told)  # fmt: skip
    assert main([*words, "--quiet"]) == 0
    assert "line" not in capsys.readouterr().err
