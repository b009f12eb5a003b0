"""A treebank gives the same integers in arrays and one sentence after another."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.binarize_helpers import SHARED, check

from treesyntax.data.binarize.columns import encode_usual
from treesyntax.data.binarize.encode import Batch, Encoding
from treesyntax.data.binarize.records import Records
from treesyntax.data.sentencepiece import train_model
from treesyntax.parsers.record_text import conllu_text
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import Record
from treesyntax.trees.formats.offsets import conllu_comment, conllu_spans
from treesyntax.trees.subwords import POLICIES


@pytest.fixture(scope="module")
def ewt() -> list[Record]:
    path = SHARED / "treebanks" / "UD_English-EWT" / "test.conllu.gz"
    if not path.is_file():
        pytest.skip("the shared treebanks are not here")
    return list(conllu.records(path))


@pytest.fixture(scope="module")
def ewt_model(ewt, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ewt") / "model"
    train_model([conllu_comment(r.text) or "" for r in ewt], 4000, "unigram", path, "x")
    return path


def as_parsed(record: Record) -> Record:
    line = conllu_comment(record.text) or ""
    spans = conllu_spans(record.text, line)
    return Record(record.line, conllu_text(line, conllu.parse(record.text), spans))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_treebank_gives_the_same_integers(ewt, ewt_model, policy):
    parsed = list(map(as_parsed, ewt))
    encoding = Encoding("conllu", "words", policy, "sentencepiece", ewt_model, units="token")
    check(encoding, Batch(Path("x"), Records.of(parsed)))
    # The rest is costly: all policies together have every sentence.
    part = slice(list(POLICIES).index(policy), None, len(POLICIES))
    check(encoding, Batch(Path("x"), Records.of(ewt[part])))
    check(encoding._replace(units=""), Batch(Path("x"), Records.of(ewt[part])))
    check(encoding._replace(model=None), Batch(Path("x"), Records.of(parsed[part])))
    check(encoding._replace(linearization="bracketed"), Batch(Path("x"), Records.of(parsed[part])))


def test_nearly_all_sentences_of_a_treebank_are_usual(ewt, ewt_model):
    encoding = Encoding("conllu", "words", "copy", "sentencepiece", ewt_model, units="token")
    found = encode_usual(encoding, Batch(Path("x"), Records.of(map(as_parsed, ewt))))
    assert found is not None
    assert found[2].sum() > 0.97 * len(ewt)
