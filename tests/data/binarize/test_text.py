"""``treesyntax binarize`` with --source-text: what it writes and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.binarize_helpers import SENTENCES, read, sentences_of, small_corpus, write

from treesyntax.__main__ import main
from treesyntax.data.binarize import read as binarize_read
from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.encode import encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.encoding import Encoding
from treesyntax.data.tree_store import TreeStore
from treesyntax.errors import InputError

PTB = ["(S (NP (D the) (N cat)) (. .))", "", "(S (V barks))"]
LINES = ["the  cat.", "", " barks"]
OFFSETS = ["0:3 5:8 8:9", "", "1:6"]


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    data = tmp_path / "in"
    data.mkdir()
    write(data / "t.ptb.offsets", OFFSETS)
    conllu_file = data / "t.conllu"
    conllu_file.write_text("".join(record.text + "\n\n" for record in small_corpus()))
    texts = [text for text, _ in SENTENCES] * 4
    return {
        "ptb": write(data / "t.ptb", PTB),
        "text": write(data / "t.en", LINES),
        "target": write(data / "t.sv", ["a", "b", "c"]),
        "conllu": conllu_file,
        "conllu_text": write(data / "c.en", texts),
        "conllu_target": write(data / "c.sv", texts),
        "dest": tmp_path / "out",
    }


def call(files, *options: object, trees="ptb") -> list[str]:
    target = "target" if trees == "ptb" else "conllu_target"
    given = ["binarize", files["dest"], "--source-lang", "en", "--target-lang", "sv", "--workers"]
    given += ["1", "--train", files[trees], files[target], "--source-format", trees, "--overwrite"]
    return [str(option) for option in (*given, *options)]


def refused(files, capsys, *options: object, trees="ptb") -> str:
    assert main(call(files, *options, trees=trees)) == 2
    assert not files["dest"].exists()
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_brackets_with_their_text_and_offsets(files):
    options = ("--source-text", files["text"], "--source-linearization", "words")
    assert main(call(files, *options)) == 0
    assert read(files["dest"], "train", "en") == [["the", "cat", "."], [], ["barks"]]
    pieces = write(files["text"].with_name("p"), ["t@@ he ca@@ t.", "", "bar@@ ks"])
    given = ("--source-pieces", pieces, "--pieces-style", "subword-nmt")
    assert main(call(files, *options, *given, "--subword-policy", "copy")) == 0
    assert read(files["dest"], "train", "en")[0] == ["t@@", "he", "ca@@", "t."]
    store = TreeStore(files["dest"] / "train.en-sv.en.tree")
    # (S (NP (D the) (N cat.))): the full stop shares a piece with cat.
    assert store[0].parents.tolist() == [-1, 0, 1, 2, 1, 4]
    assert store[0].token_nodes.tolist() == [3, 3, 5, 5]
    manifest = json.loads((files["dest"] / "binarize.json").read_text())
    source = manifest["sides"]["source"]
    assert source["subword_units"] == "token"
    assert set(source["sha256"]) == {
        str(files["ptb"]), str(pieces), str(files["text"]), f"{files['ptb']}.offsets",
    }  # fmt: skip
    assert manifest["sides"]["target"]["subword_units"] is None


@pytest.mark.parametrize("units", ["token", "line"])
def test_comments_and_files_of_text_give_the_same_data(files, units):
    options = ("--subword-vocab", 46, "--subword-units", units, "--source-text")
    folders = []
    for text in ([], [files["conllu_text"]]):
        assert main(call(files, *options, *text, trees="conllu")) == 0
        names = sorted(path for path in files["dest"].iterdir() if path.name != "binarize.json")
        folders.append({path.name: path.read_bytes() for path in names})
    assert folders[0] == folders[1]
    # The kept model decodes what was written, as any SentencePiece does.
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(
        model_file=str(files["dest"] / "subwords.en.model")
    )
    lines = [text for text, _ in SENTENCES] * 4
    for tokens, line in zip(read(files["dest"], "train", "en"), lines, strict=True):
        if "<unk>" not in tokens:
            assert model.decode(tokens) == model.decode(model.encode(line, out_type=str))


def test_in_memory_text_and_spans_are_taken_as_given():
    batch = Batch(
        Path("x"), Records([1], ["(S (N a) (N b))"]), text=["a-b"], spans=[[(0, 1), (1, 3)]]
    )
    encoded = encode_batch(Encoding("ptb", "words", "copy", "sentencepiece", units="token"), batch)
    assert sentences_of(encoded) == [["a", "-b"]]
    short = batch._replace(spans=[[(0, 1)]])
    with pytest.raises(
        InputError, match="x:1: 1 words have offsets, but the tree has 2 words; the"
    ):
        encode_batch(Encoding("ptb", "words", "copy", "sentencepiece", units="token"), short)


def test_text_that_does_not_fit_is_refused_with_file_and_line(files, capsys):
    wrong = write(files["text"].with_name("wrong"), ["the cat.", "", " barks"])
    message = refused(files, capsys, "--source-text", wrong)
    assert f"{files['ptb']}:1: word 3 has the character span 8:9, which is not after" in message
    write(files["ptb"].with_name("t.ptb.offsets"), ["0:3 5:8 8:9", "", "x"])
    message = refused(files, capsys, "--source-text", files["text"])
    assert "t.ptb.offsets:3: is not a list of START:END; parse the text again" in message
    files["ptb"].with_name("t.ptb.offsets").unlink()
    message = refused(files, capsys, "--source-text", files["text"])
    assert "t.ptb.offsets: does not exist; with the raw text of brackets it says where" in message
    assert (
        "parse the text with treesyntax parse, which writes it, or leave out --source-text"
        in message
    )
    write(wrong, ["a"])
    message = refused(files, capsys, "--source-text", wrong, trees="conllu")
    assert f"{wrong}: has 1 sentences, but {files['conllu']} has 24" in message
    write(wrong, ["He didn't go!", *(text for text, _ in (SENTENCES * 4)[1:])])
    message = refused(files, capsys, "--source-text", wrong, trees="conllu")
    assert f'{files["conllu"]}:1: the tree is that of "He didn\'t go.", but the text is' in message
    content = files["conllu"].read_text()
    files["conllu"].write_text(content.replace("He didn't go.", "He did not go."))
    message = refused(files, capsys, "--source-text", trees="conllu")
    assert f'{files["conllu"]}:4: the word "didn\'t" is not at character 3 of the text' in message
    files["conllu"].write_text(content.replace("# text = He didn't go.", "# id = 1"))
    message = refused(files, capsys, "--source-text", trees="conllu")
    assert ":1: the sentence has no comment '# text ='; give its text with --source-text" in message
    files["conllu"].write_text("# text = a\n\n" * 24)
    message = refused(files, capsys, "--source-text", trees="conllu")
    assert ":1: the sentence with the text 'a' has no words; take out the blank line" in message


def test_offsets_of_other_words_are_refused(files, capsys):
    text = write(files["text"].with_name("long"), ["on the  cat . up", "", " barks"])
    write(files["ptb"].with_name("t.ptb.offsets"), ["0:2 3:6 8:11", "", "1:6"])
    message = refused(files, capsys, "--source-text", text)
    assert (
        f"{files['ptb']}:1: the word 'the' is not at 0:2 of the text, where 'on' stands" in message
    )
    write(files["ptb"].with_name("t.ptb.offsets"), ["3:6 8:11 12:13", "", "1:6"])
    assert main(call(files, "--source-text", text)) == 0
    told = f"{files['ptb']}:1: 1 of 3 trees holds text that no word of the tree covers, 2 in all"
    assert told in capsys.readouterr().out


def test_pieces_that_do_not_spell_the_text_are_refused_with_file_and_line(files, capsys):
    pieces = write(files["text"].with_name("p"), ["▁the ▁cat .", "", "▁bark"])
    message = refused(files, capsys, "--source-text", files["text"], "--source-pieces", pieces)
    assert f"{pieces}:3: the subwords end before 's' at character 5 of the text" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--target-text", "f"],
            "--target-text: the character spans of words are kept with trees ",
        ),
        (["--source-text"], "--source-text: ptb has no comments with the text; name files"),
        (["--source-text", "f", "g"], "--source-text has 2 files for 1 splits (train); give one"),
        (["--subword-units", "line"], "--subword-units line needs raw text: give --source-text or"),
    ],
)
def test_options_that_do_not_fit_are_refused(files, capsys, options, message):
    assert message in refused(files, capsys, *options)


@pytest.mark.parametrize("name", ["ptb", "text", "target"])
@pytest.mark.parametrize("more", [True, False])
def test_a_file_that_changes_while_it_is_read_is_told(files, capsys, monkeypatch, name, more):
    path, survey = files[name], binarize_read.survey

    def survey_then_change(plan):
        found = survey(plan)
        lines = path.read_text().splitlines()
        path.write_text("".join(f"{line}\n" for line in (lines + lines if more else lines[:-1])))
        return found

    monkeypatch.setattr(binarize_read, "survey", survey_then_change)
    told = refused(files, capsys, "--source-text", files["text"])
    assert "has changed while it was read; run the command again" in told
