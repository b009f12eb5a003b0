"""The grammar of the English of COGS and SLOG."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Iterator

import pytest
from support import shared

from treesyntax.data.sets.base import brackets
from treesyntax.data.sets.english import parse
from treesyntax.errors import TreeError

CASES = {
    "Otto": "(TOP (NP (NAME Otto)))",
    "hum": "(TOP (X (VERB hum)))",
    "a lamp on the cup": "(TOP (NP (DET a) (NOUN lamp) (PP (PREP on) (NP (DET the) (NOUN cup)))))",
    "The otter hummed .": "(TOP (S (NP (DET The) (NOUN otter)) (VP (VERB hummed))) (. .))",
    "Otto said that Ada tried to see a cup .":
        "(TOP (S (NP (NAME Otto)) (VP (VERB said) (CP (THAT that) (S (NP (NAME Ada)) (VP (VERB tried) "
        "(INF (TO to) (VERB see) (NP (DET a) (NOUN cup)))))))) (. .))",
    "A cup was given to Otto by Ada .":
        "(TOP (S (NP (DET A) (NOUN cup)) (VP (WAS was) (VERB given) (PP (TO to) (NP (NAME Otto))) "
        "(PP (BY by) (NP (NAME Ada))))) (. .))",
    # The verb above needs an object, so the one in the relative clause leaves it.
    "Ada gave a bird that hummed a cup .":
        "(TOP (S (NP (NAME Ada)) (VP (VERB gave) (NP (DET a) (NOUN bird) (RC (THAT that) (VP (VERB hummed) "
        "(NP (DET a) (NOUN cup))))))) (. .))",
    "What did Ada give Otto ?":
        "(TOP (SQ (WH What) (DID did) (NP (NAME Ada)) (VP (VERB give) (NP (NAME Otto)))) (. ?))",
    "Otto saw the cup that the bird that Ada knew liked .":
        "(TOP (S (NP (NAME Otto)) (VP (VERB saw) (NP (DET the) (NOUN cup) (RC (THAT that) (NP (DET the) "
        "(NOUN bird) (RC (THAT that) (NP (NAME Ada)) (VP (VERB knew)))) (VP (VERB liked)))))) (. .))",
}  # fmt: skip


@pytest.mark.parametrize("sentence", CASES)
def test_trees(sentence):
    assert brackets(parse(sentence)) == CASES[sentence]


@pytest.mark.parametrize("sentence", ["", ".", "the", "Otto was was .", "Otto in .", "( Otto )"])
def test_other_english_is_refused(sentence):
    with pytest.raises(TreeError, match="is no sentence of the English of COGS and SLOG"):
        parse(sentence)


def sentences() -> Iterator[str]:
    for file in ("slog/train", "cogs/train", "cogs/gen"):
        with gzip.open(shared("data", f"{file}.tsv.gz"), "rt", encoding="utf-8") as stream:
            yield from (line.split("\t")[0] for line in stream)
    with zipfile.ZipFile(shared("data", "slog", "generalization_sets.zip")) as archive:
        text = archive.read("generalization_sets/gen_varfreeLF.tsv", pwd=b"SLOG").decode()
    yield from (line.split("\t")[0] for line in text.splitlines())


def test_published_sentences_have_trees():
    some = list(sentences())[::60]
    assert len(some) > 1_500
    for sentence in some:
        tree = parse(sentence)
        assert [tree.labels[node] for node in tree.word_nodes()] == sentence.split()
