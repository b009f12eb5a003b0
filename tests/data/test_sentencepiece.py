"""SentencePiece: training, and the pieces of words and lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from treesyntax.data.sentencepiece import PLAIN_SPACES, Segmenter, _normalizer_spec, train_model
from treesyntax.errors import InputError, OptionError

TEXT = [
    "the cat sleeps on the mat",
    "a naïve cat sat , and sat again .",
    "dogs bark at cats and cats sleep",
    "the dogs slept ; the cat barked",
] * 5


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def model(request, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "x.model"
    train_model(TEXT, 33, request.param, path, "text.en")
    return path


ODD = ["\u200b", "¨", "…", "a▁b", "▁", "你好", "<s>", "</s>", "\u00ad", "ﷺ", "x\u0301", "\x07"]
words_of_any_kind = st.one_of(
    st.sampled_from(ODD), st.text(st.sampled_from("abcdehst.,ï▁ﬁ½"), min_size=1, max_size=6)
)


@settings(deadline=None, max_examples=100)
@given(words=st.lists(words_of_any_kind, max_size=8))
def test_words_give_the_pieces_of_the_line(model, words):
    segmenter = Segmenter(model)
    by_word = segmenter.words(words)
    assert len(by_word) == len(words)
    assert [piece for word in by_word for piece in word] == segmenter.line(" ".join(words))


WHITE_SPACE = "".join(c for c in map(chr, range(0x3001)) if c.isspace())


@pytest.mark.parametrize("space", WHITE_SPACE)
def test_white_space_of_any_kind_separates_as_a_space_does(model, space):
    segmenter = Segmenter(model)
    text, plain = f"the{space}tree{space}", "the tree "
    assert segmenter.line(text) == segmenter.line(plain)
    assert segmenter.lines([text, "a"]) == segmenter.lines([plain, "a"])
    assert segmenter.segments(["the", f"{space}tree", space]) == segmenter.segments(
        ["the", " tree", " "]
    )
    assert segmenter.normalised(text) == segmenter.normalised(plain)
    assert not any(c.isspace() for piece in segmenter.line(text) for c in piece)


def test_training_is_deterministic(model, tmp_path):
    kind = "unigram" if b"unigram" in model.read_bytes() else "bpe"
    paths = [tmp_path / "a.model", tmp_path / "b.model"]
    for path in paths:
        train_model(iter(TEXT), 33, kind, path, "text.en")
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_impossible_vocabularies_are_refused_with_the_limit(tmp_path, kind):
    path = tmp_path / "x.model"
    with pytest.raises(
        InputError, match=r"text\.en: the text has too few .* of 5000; the largest possible one"
    ) as error:
        train_model(TEXT, 5000, kind, path, "text.en")
    largest = int(str(error.value).rsplit(" ", 1)[1])
    with pytest.raises(InputError, match=r"text\.en: the characters alone do not fit .* of 5; the"):
        train_model(TEXT, 5, kind, path, "text.en")
    with pytest.raises(InputError, match=r"text\.en: has no words to train a subword model on"):
        train_model([], 30, kind, path, "text.en")
    assert not list(tmp_path.iterdir())
    train_model(TEXT, largest, kind, path, "text.en")


def test_errors_of_the_lines_come_through(tmp_path):
    def broken():
        yield "a b c"
        raise InputError("trees.txt", 9, "broken")

    with pytest.raises(InputError, match=r"trees\.txt:9: broken"):
        train_model(broken(), 10, "bpe", tmp_path / "x.model", "trees.txt")
    with pytest.raises(
        OptionError, match="no subword type is named 'word'; there are unigram, bpe"
    ):
        train_model(TEXT, 10, "word", tmp_path / "x.model", "trees.txt")
    assert not list(tmp_path.iterdir())


def test_a_bad_model_is_refused(tmp_path):
    path = tmp_path / "x.model"
    with pytest.raises(InputError, match=r"x\.model: cannot be read \(No such file"):
        Segmenter(path)
    for content in (b"", b"no model"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"x\.model: is not a SentencePiece model"):
            Segmenter(path)


# --- models of other kinds -----------------------------------------------------------------

SENTENCES = [
    "the cat sat on the mat",
    "a dog barked at the old cat",
    "new york is a big city",
] * 100
KINDS = {
    "plain": {},
    "suffix": {"treat_whitespace_as_suffix": True},
    "no prefix": {"add_dummy_prefix": False},
    "crossing": {"split_by_whitespace": False},
    "symbol": {"user_defined_symbols": ["old▁cat"]},
    "all spaces": {"remove_extra_whitespaces": False},
    "characters": {"model_type": "char"},
    "whole words": {"model_type": "word"},
    "bytes": {"byte_fallback": True, "vocab_size": 310},
}


def made(folder: Path, kind: str) -> Path:
    path = folder / f"{kind.replace(' ', '_')}.model"
    settings = {"vocab_size": 60, "hard_vocab_limit": False, "minloglevel": 2, **KINDS[kind]}
    lines = iter(["the cat", "the cat sat on the mat"] * 200 if kind == "crossing" else SENTENCES)
    with path.open("wb") as stream:
        SentencePieceTrainer.train(sentence_iterator=lines, model_writer=stream, **settings)
    return path


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("crossing", "symbol")])
def test_words_of_any_kind_of_model_give_the_subwords_of_the_line(tmp_path, kind):
    segmenter = Segmenter(made(tmp_path, kind))
    for line in ("the old cat", "a", "york barked at xyz"):
        found = [subword for own in segmenter.words(line.split()) for subword in own]
        assert found == segmenter.line(line)
        assert segmenter.text(found) == line
    assert not segmenter.piece_across_words
    segmenter.check_trees("")


def test_models_that_would_segment_trees_wrongly_are_refused(tmp_path):
    crossing, suffix = (Segmenter(made(tmp_path, kind)) for kind in ("crossing", "suffix"))
    assert any("▁" in piece[1:] for piece in crossing.line("the cat"))
    for units in ("", "token"):
        with pytest.raises(
            InputError, match=r"crossing.model: has subwords across words, such as '.+▁.+', and a"
        ):
            crossing.check_trees(units)
    with pytest.raises(InputError, match=r"suffix.model: puts white space behind words"):
        suffix.check_trees("token")
    crossing.check_trees("line")
    suffix.check_trees("line")
    with pytest.raises(
        InputError, match="has subwords across words, such as 'old▁cat', and a node"
    ):
        Segmenter(made(tmp_path, "symbol")).check_trees("")
    plain = tmp_path / "no_escape.model"
    plain.write_bytes(made(tmp_path, "plain").read_bytes() + _normalizer_spec(PLAIN_SPACES))
    with pytest.raises(InputError, match=r"no_escape.model: has spaces in its subwords"):
        Segmenter(plain)
    other = tmp_path / "tokenizer.json"
    other.write_text('{"version": "1.0", "model": {"type": "BPE"}}')
    with pytest.raises(
        InputError, match=r"is not a SentencePiece model, but one of tokenizers; give"
    ):
        Segmenter(other)
