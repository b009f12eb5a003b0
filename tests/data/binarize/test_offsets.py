"""Subwords attached by character offsets, on whole corpora."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from support.binarize_helpers import SHARED, conllu_encoding, sentences_of, small_corpus

from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.encode import encode_batch, words_of_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.encoding import Encoding
from treesyntax.data.sentencepiece import Segmenter, train_model
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import Record
from treesyntax.trees.subwords import POLICIES
from treesyntax.trees.tree import Tree

EWT = SHARED / "treebanks" / "UD_English-EWT"
KINDS = ("unigram", "bpe")
SHARING = ("chain", "first", "last")


def ewt() -> list[Record]:
    path = EWT / "test.conllu.gz"
    if not path.is_file():
        pytest.skip("the shared treebanks are not here")
    return list(conllu.records(path))[::3]


CORPORA = {"small": (small_corpus, 46), "ewt": (ewt, 2000)}


@pytest.fixture(scope="module", params=list(product(CORPORA, KINDS)), ids="-".join)
def corpus(request, tmp_path_factory) -> tuple[list[Record], list[str], Path]:
    """Records, their raw lines, and a subword model."""
    name, kind = request.param
    make, vocab = CORPORA[name]
    records = make()
    batch = Batch(Path("x"), Records.of(records))
    lines = words_of_batch(conllu_encoding(None), batch)
    model = tmp_path_factory.mktemp("model") / "x.model"
    train_model([line for line in lines if line], vocab, kind, model, "x")
    return records, lines, model


def check_trees(encoded, policy: str) -> None:
    """A single root, no cycle, and every piece on a node, a node without tokens nowhere."""
    nodes = tokens = 0
    arrays = encoded.trees
    for size, count in zip(arrays.node_counts, arrays.token_counts, strict=True):
        parents = arrays.parents[nodes : nodes + size]
        token_nodes = arrays.token_nodes[tokens : tokens + count]
        branches = arrays.branches[nodes : nodes + size]
        Tree(parents, [""] * size, branches=branches)  # checks: one root, no cycle
        attached = token_nodes[token_nodes >= 0]
        assert set(attached.tolist()) == set(range(size))
        if policy in ("siblings", "chain"):
            assert len(attached) == count == size
        if policy == "copy":
            assert len(attached) == count
        nodes, tokens = nodes + size, tokens + count


def by_node(encoded) -> Iterator[tuple[dict[int, list[str]], set[int]]]:
    """The tokens on each node of each sentence, and the nodes that have children."""
    nodes = tokens = 0
    arrays = encoded.trees
    for sentence, size in zip(sentences_of(encoded), arrays.node_counts, strict=True):
        found: dict[int, list[str]] = {}
        for token, node in zip(
            sentence, arrays.token_nodes[tokens : tokens + len(sentence)].tolist(), strict=True
        ):
            found.setdefault(node, []).append(token)
        yield found, set(arrays.parents[nodes : nodes + size].tolist())
        nodes, tokens = nodes + size, tokens + len(sentence)


def segmented_elsewhere(lines: list[str], model: Path, style: str) -> Records:
    """The lines as spm_encode or as subword-nmt would segment them (no piece longer than 3)."""
    if style == "sentencepiece":
        segmenter = Segmenter(model)
        cut = [" ".join(segmenter.line(line)) for line in lines]
    else:
        cut = [" ".join(map(_at_cut, line.split())) for line in lines]
    return Records(list(range(1, len(cut) + 1)), cut)


def _at_cut(word: str) -> str:
    return "@@ ".join(word[i : i + 3] for i in range(0, len(word), 3))


@pytest.mark.parametrize("units", ["token", "line", "sentencepiece", "subword-nmt"])
def test_every_piece_of_every_sentence_is_attached_and_spells_the_line(corpus, units):
    records, lines, model = corpus
    batch = Batch(Path("x"), Records.of(records))
    given = units in ("sentencepiece", "subword-nmt")
    options = {"units": "token", "style": units} if given else {"units": units}
    if given:
        batch = batch._replace(
            subwords_path=Path("p"), subwords=segmented_elsewhere(lines, model, units)
        )
    segmenter = Segmenter(model)
    seen = None
    for policy in ("siblings", "copy") if given else POLICIES:
        own = slice(None)
        if units == "line" and policy in SHARING:  # costly: together they have every sentence
            own = slice(SHARING.index(policy), None, len(SHARING))
        encoded = encode_batch(
            conllu_encoding(None if given else model, policy=policy, **options),
            batch._replace(records=Records.of(records[own])),
        )
        check_trees(encoded, policy)
        found = sentences_of(encoded)
        seen = seen or found
        assert len(seen) == len(records)
        assert found == seen[own]
    if units != "subword-nmt":
        for tokens, line in zip(seen, lines, strict=True):
            text = "".join(tokens).replace("▁", " ").strip()
            assert text == segmenter.normalised(line)[0].strip()
    if units in ("line", "sentencepiece"):
        assert seen == [segmenter.line(line) for line in lines]
    if units == "subword-nmt":
        assert [" ".join(tokens) for tokens in seen] == batch.subwords.texts


@pytest.mark.parametrize("units", ["token", "line"])
def test_the_baseline_and_the_tree_models_see_the_same_pieces(corpus, units):
    records, _, model = corpus
    batch = Batch(Path("x"), Records.of(records))
    plain = encode_batch(conllu_encoding(model, units=units), batch)
    baseline = sentences_of(plain)
    for policy in ("copy", "siblings") if len(records) < 100 else ("copy",):
        words = plain
        if policy != "copy":
            words = encode_batch(conllu_encoding(model, "words", policy, units), batch)
        assert sentences_of(words) == baseline
        bracketed = encode_batch(conllu_encoding(model, "bracketed", policy, units), batch)
        for (nodes, interior), (shown, _) in zip(by_node(words), by_node(bracketed), strict=True):
            assert set(nodes) == set(shown)
            for node, pieces in nodes.items():
                tokens = [f"\\{p}" if p[0] in "(\\" or p == ")" else p for p in pieces]
                if node in interior:
                    tokens = [f"({pieces[0]}", *tokens[1:], ")"]
                assert shown[node] == tokens
    control = conllu_encoding(model, units=units)._replace(control="right_branching")
    assert sentences_of(encode_batch(control, batch)) == baseline


def test_constituency_trees_over_merged_words():
    records = [Record(1, "(S (NP (NP (N dog)) (POS s)) (NP (N cat)) (VP (V is) (. .)))")]
    batch = Batch(
        Path("t"), Records.of(records), Path("p"), Records([1], ["▁ dog's ▁c at ▁is."]), ["dog's cat is."],
        [[(0, 3), (3, 5), (6, 9), (10, 12), (12, 13)]],
    )  # fmt: skip
    batch = batch._replace(spans=[[(0, 3), (3, 5), (6, 9), (10, 12), (12, 13)]])
    found = encode_batch(
        Encoding("ptb", "bracketed", "copy", "sentencepiece", units="token"), batch
    )
    shown = " ".join(sentences_of(found)[0])
    assert shown == "(S (NP (NP (N ▁ dog's ) ) ) (NP (N ▁c at ) ) (VP (V ▁is. ) ) )"
