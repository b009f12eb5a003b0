"""How ``treesyntax binarize`` trains subword models: on a sample, with which characters, and what it says."""

from __future__ import annotations

import re
import time
from itertools import count

import pytest
from support.binarize_helpers import binarize, make_files, refused, write

from treesyntax.data.binarize import models
from treesyntax.data.binarize.models import drawn
from treesyntax.data.encoding import Training
from treesyntax.data.sentencepiece import Segmenter, train_model
from treesyntax.study.run.hypotheses import main as collect

LINES = [f"w{number % 7} x{number % 3}" for number in range(200)]
RARE = "the cat sat on the mat and saw ½ of a rat"
TEXT = [RARE.replace("½", "half")] * 3000 + [f"{RARE} ẞ"]


@pytest.fixture
def files(tmp_path):
    return make_files(tmp_path)


@pytest.mark.parametrize("size", [1, 10, 199, 200, 500])
def test_a_sample_is_in_order_and_the_same_every_time(size):
    lines = list(range(200))
    found = list(drawn(lines, 200, size))
    assert found == sorted(set(found)) == list(drawn(lines, 200, size))
    assert len(found) == min(size, 200)


def test_a_sample_holds_no_line_that_is_not_drawn():
    """Five million lines are passed by one at a time."""
    lines = iter(count())
    taken = drawn(lines, 5_000_000, 10)
    first = next(taken)
    assert next(lines) == first + 1


def test_subwords_are_trained_on_a_sample_and_say_so(files, capsys):
    write(files["words"], LINES)
    write(files["text"], LINES)
    dest = binarize(files, "--subword-vocab", 15, "--subword-sample", 50, trees=False)
    said = capsys.readouterr().out
    assert "subwords.en.model was trained on 50 of 200 lines, drawn at random" in said
    assert "subwords.sv.model was trained on 50 of 200 lines" in said
    sampled = (dest / "subwords.en.model").read_bytes()
    joined = ("--subword-sample", 100, "--joined-subwords", "--overwrite")
    binarize(files, "--subword-vocab", 15, *joined, trees=False)
    assert "subwords.en.model was trained on 100 of 400 lines" in capsys.readouterr().out
    binarize(files, "--subword-vocab", 15, "--overwrite", trees=False)
    assert "was trained on" not in capsys.readouterr().out
    assert (dest / "subwords.en.model").read_bytes() != sampled


def model(folder, training: Training) -> Segmenter:
    train_model(TEXT, 290 if training.byte_fallback else 30, "bpe", folder / "m", "t", training)
    return Segmenter(folder / "m")


def test_what_a_model_can_output_is_a_choice(tmp_path):
    """With SentencePiece's own settings ½ is spelled 1⁄2, and ẞ is unknown."""
    usual = model(tmp_path, Training())
    assert usual.normalised("½ ẞ")[0].strip() == "1⁄2 ẞ"
    assert "▁½" not in usual.line("½")
    kept = model(tmp_path, Training("identity", 1.0))
    assert "".join(kept.line("½ ẞ")) == "▁½▁ẞ"
    assert {"½", "ẞ"} <= {kept._processor.id_to_piece(i) for i in range(30)}
    spelled = model(tmp_path, Training("identity", 0.9995, byte_fallback=True))
    assert spelled.line("ẞ") == ["▁", "<0xE1>", "<0xBA>", "<0x9E>"]
    assert spelled._processor.decode(spelled.line("ẞ½")) == "ẞ½"


def test_bytes_of_generated_text_become_characters(tmp_path):
    """fairseq joins subwords, but knows nothing of bytes."""
    (tmp_path / "made").write_text("D-0\t-1\ta<0xE1><0xBA><0x9E> b<0x0A>c <0xE1>\n")
    (tmp_path / "ref").write_text("x\n")
    words = [str(tmp_path / "made"), str(tmp_path / "out"), "--reference", str(tmp_path / "ref")]
    assert collect([*words, "--bytes"]) == 0
    assert (tmp_path / "out").read_text() == "aẞ b c \ufffd\n"
    assert collect(words) == 0
    assert "<0xE1>" in (tmp_path / "out").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--subword-coverage", 0.5), "--subword-coverage must be from 0.98 to 1"),
        (("--subword-sample", -1), "--subword-sample must be a number of lines, or 0 for all"),
        (("--subword-normalization", "identity"), "give --subword-vocab"),
        (("--subword-type", "bpe"), "about a model that is trained here: give --subword-vocab"),
        (("--subword-sample", 10), "about a model that is trained here: give --subword-vocab"),
    ],
)
def test_options_that_do_not_fit_are_refused(files, capsys, options, message):
    assert message in refused(files, capsys, *options)


def test_training_shows_a_sign_of_life(files, capsys, monkeypatch):
    """While lines are read, and while SentencePiece, which says nothing, trains on them."""

    def slowly(lines, *others):
        for _ in lines:
            time.sleep(0.001)
        time.sleep(0.2)
        train_model(LINES, *others)

    write(files["words"], LINES)
    write(files["text"], LINES)
    monkeypatch.setattr(models, "train_model", slowly)
    monkeypatch.setattr(models, "SAY_EVERY", 0.05)
    binarize(files, "--subword-vocab", 15, trees=False)
    said = capsys.readouterr().err
    assert re.search("the subword model for en: [0-9]+ lines read, [0-9]+ s so far", said)
    assert re.search("the subword model for sv: training on 200 lines, [0-9]+ s so far", said)
