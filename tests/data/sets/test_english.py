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
from treesyntax.trees.formats.cogs import COGS, without_variables
from treesyntax.trees.formats.cogs_varfree import COGS_VARFREE
from treesyntax.trees.tree import Tree

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


def pairs() -> Iterator[tuple[str, Tree]]:
    """Some sentences and their forms, those of COGS without variables."""
    for file in ("slog/train", "cogs/train", "cogs/gen"):
        with gzip.open(shared("data", f"{file}.tsv.gz"), "rt", encoding="utf-8") as stream:
            for line in list(stream)[::60]:
                sentence, form, _ = line.split("\t")
                cogs = file.startswith("cogs") and " " in sentence
                yield (
                    sentence,
                    without_variables(COGS.parse(form))
                    if cogs
                    else COGS_VARFREE.parse(sentence if file.startswith("cogs") else form),
                )
    with zipfile.ZipFile(shared("data", "slog", "generalization_sets.zip")) as archive:
        text = archive.read("generalization_sets/gen_varfreeLF.tsv", pwd=b"SLOG").decode()
    for line in text.splitlines()[::60]:
        sentence, form, _ = line.split("\t")
        yield sentence, COGS_VARFREE.parse(form)


Attachment = tuple[str, str, str]


def attached(tree: Tree) -> set[Attachment]:
    """The noun, preposition and noun of each phrase, and the noun of each relative clause."""
    children, labels = tree.children(), tree.labels

    def noun(phrase: int) -> str:
        kinds = [child for child in children[phrase] if labels[child] in ("NOUN", "NAME")]
        return labels[children[kinds[0]][0]].lower()

    found = set()
    for phrase in (node for node, label in enumerate(labels) if label == "NP"):
        for child in children[phrase]:
            if labels[child] == "PP":
                preposition, inner = children[child]
                found.add((noun(phrase), labels[children[preposition][0]], noun(inner)))
            elif labels[child] == "RC":
                found.add((noun(phrase), "", ""))
    return found


def attached_in_form(tree: Tree) -> set[Attachment]:
    children, labels = tree.children(), tree.labels

    def word(node: int) -> str:
        while children[node]:
            node = children[node][0]
        return labels[node].lower()

    return {
        (word(int(tree.parents[node])), label[5:], word(children[node][0]) if label[5:] else "")
        for node, label in enumerate(labels)
        if label.split(".")[0] == "nmod"
    }


def test_published_sentences_have_the_attachments_of_their_forms():
    some = list(pairs())
    assert len(some) > 1_500
    compared = 0
    for sentence, form in some:
        tree = parse(sentence)
        assert [tree.labels[node] for node in tree.word_nodes()] == sentence.split()
        assert attached(tree) == attached_in_form(form)
        compared += bool(attached(tree))
    assert compared > 500
