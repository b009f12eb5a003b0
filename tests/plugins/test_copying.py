"""Models that copy words of the source, behind fairseq's commands and ``treesyntax translate``."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils
from plugins.test_plugin import train
from support.translate_helpers import (
    binarize,
    formula,
    generate,
    lines_of,
    save_model,
    translate,
)

from treesyntax.errors import OptionError

ARCH = ("--arch", "tree_sequence_tiny", "--copy-source")
NAMES = [f"n{number}" for number in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names and a formula; the target has the formula alone, so no name is in its dictionary."""
    folder, draw = tmp_path_factory.mktemp("copying"), random.Random(1)
    formulas = [formula(draw, 3) for _ in range(12)]
    rows = [f"( {draw.choice(NAMES)} {draw.choice(NAMES)} {part} )" for part in formulas]
    (folder / "all.sexpr").write_text("".join(f"{row}\n" for row in rows))
    (folder / "all.target").write_text("".join(f"{row}\n" for row in formulas))
    return folder


def symbols_of(data: Path, language: str) -> list[str]:
    return [line.split()[0] for line in lines_of(data / f"dict.{language}.txt")]


def trees_of(folder: Path, name: str, linearization: str, *flags: str) -> Path:
    return binarize(
        folder, name, "sexpr", "target", "--source-format", "sexpr", "--target-format", "sexpr",
        "--target-linearization", linearization, "--copy-words", *flags,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("linearization", "forms"),
    [("nary_dfs", ["/0"]), ("lcrs_bfs", ["/0", "/R"]), ("bracketed", [""])],
)
def test_the_target_dictionary_gets_the_words_of_the_source_as_leaves(folder, linearization, forms):
    data = trees_of(folder, f"words_{linearization}", linearization)
    symbols = symbols_of(data, "tgt")
    assert all(f"{name}{form}" in symbols for name in NAMES for form in forms)
    assert len(set(symbols)) == len(symbols)
    assert (len(symbols) + 4) % 8 == 0
    assert not any(symbol.startswith("madeupword") and "/" in symbol for symbol in symbols)


def test_a_given_dictionary_stays_as_it_is(folder, capsys):
    data = trees_of(folder, "given", "nary_dfs")
    with pytest.raises(AssertionError):
        trees_of(folder, "again", "nary_dfs", "--target-dict", str(data / "dict.tgt.txt"))
    assert "--copy-words adds to the dictionary that is counted here" in capsys.readouterr().err


@pytest.mark.parametrize("linearization", ["nary_dfs", "lcrs_dfs"])
def test_search_scoring_and_translation_agree(folder, tmp_path, linearization):
    data = trees_of(folder, f"search_{linearization}", linearization)
    model = save_model(data, tmp_path / "model.pt", *ARCH)
    state = torch.load(model, weights_only=True)
    state["model"]["decoder.copying.gate.bias"].fill_(3)  # so that it copies often
    torch.save(state, model)
    found = generate(data, model, tmp_path / "found")
    assert {word.split("/")[0] for _, text in found for word in text.split()} & {*NAMES}
    half = ("--fp16", "--beam", "1")
    assert len(generate(data, model, tmp_path / "half", *half)) == len(found)
    scored = generate(data, model, tmp_path / "scored", "--score-reference")
    assert all(score < 0 for score, _ in scored)
    source = ("--input", str(folder / "all.sexpr"), "--parsed")
    lines = translate(data, model, tmp_path / "out", *source, "--tokens", "--nbest", "1")
    for (score, text), line in zip(found, lines, strict=True):
        _, other, tokens = line.split("\t")
        assert tokens == text
        assert float(other) == pytest.approx(score, abs=1e-3)


def test_it_trains_with_smoothed_labels_and_r_drop(folder, tmp_path):
    data = trees_of(folder, "train", "lcrs_dfs")
    done = train(
        data, tmp_path, "--copy-source", "--decoder-injection", "stack_pe",
        "--criterion", "label_smoothed_cross_entropy_with_rdrop", "--label-smoothing", "0.1",
        "--rdrop-alpha", "1", arch="tree_sequence_tiny",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert state["cfg"]["model"]["copy_source"]
    assert state["model"]["decoder.copying.gate.weight"].isfinite().all()


def test_a_target_without_any_word_of_the_source_is_refused(folder, tmp_path):
    (folder / "all.other").write_text("x\n" * 12)
    data = binarize(folder, "other", "sexpr", "other", "--source-format", "sexpr")
    with pytest.raises(OptionError, match="no symbol of the source dictionary.*--copy-words"):
        save_model(data, tmp_path / "model.pt", *ARCH)
