"""Stanza with tiny real models: what it needs and what it makes of text."""

from __future__ import annotations

import types

import pytest
from support.parser_fixtures import GOLD, parse, words_of

from treesyntax.parsers.policy import JOINED

pytestmark = pytest.mark.usefixtures("no_network")


def test_stanza_parses_what_it_has_learnt(loaded):
    lines = [" ".join(gold.words) for gold in GOLD]
    results = parse(loaded, "stanza-dep", lines, pretokenized=True)
    right = sum(
        head == wanted
        for gold, result in zip(GOLD, results, strict=True)
        for head, wanted in zip(result.tree.heads(), gold.heads, strict=True)
    )
    assert right > 0.6 * sum(len(gold.words) for gold in GOLD)


def test_stanza_gets_lemmas_without_being_asked(models, loaded):
    """The dependency parser embeds them, and parses to garbage in silence without them."""
    pipeline = loaded("stanza-dep")._pipeline
    assert {"pos", "lemma", "depparse"} <= set(pipeline.processors)
    seen = []
    processor = pipeline.processors["depparse"]
    original = processor.process
    processor.process = lambda document: (
        seen.extend(word.lemma for sentence in document.sentences for word in sentence.words)
        or original(document)
    )
    try:
        parse(loaded, "stanza-dep", ["The cat sees the Dog ."])
    finally:
        processor.process = original
    assert seen
    assert None not in seen


def test_stanza_needs_no_list_of_resources_and_writes_none(models, loaded):
    loaded("stanza-dep")
    assert not (models / "stanza" / "resources.json").exists()


def test_a_stanza_token_of_more_than_1000_characters(loaded):
    line = "The " + "x" * 1200 + " ."
    (result,) = parse(loaded, "stanza-dep", [line])
    assert result.case in ("", JOINED)
    assert [line[a:b] for a, b in result.spans] == words_of(result)
    assert max(len(word) for word in words_of(result)) > 1000


def test_stanza_multi_word_tokens_have_the_place_of_their_token():
    from stanza.utils.conll import CoNLL

    from treesyntax.parsers.stanza_parser import sentence_of

    rows = ["1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tstart_char=1|end_char=3"]
    rows += [f"{i}\t{w}\t{w}\tX\tX\t_\t0\troot\t_\t_" for i, w in enumerate(["de", "le"], start=1)]
    rows += ["3\tCHAT\tchat\tX\tX\t_\t1\tdep\t_\tstart_char=4|end_char=8"]
    document = CoNLL.conll2doc(input_str="\n".join(rows) + "\n\n")
    sentence = sentence_of(document.sentences[0], " du chat")
    assert sentence.words == ("de", "le", "chat")
    assert sentence.spans == ((1, 3), (1, 3), (4, 8))


def test_stanza_constituents_are_walked_not_printed():
    from stanza.models.constituency.parse_tree import Tree as StanzaTree

    from treesyntax.parsers.parser import ParsedSentence
    from treesyntax.parsers.stanza_parser import _constituents

    leaf = StanzaTree(None, StanzaTree("-LRB-"))
    top = StanzaTree("ROOT", StanzaTree("S", [leaf, StanzaTree("N", StanzaTree("b"))]))
    for _ in range(3000):
        top = StanzaTree("S", top)
    parsed = types.SimpleNamespace(constituency=top)
    tree = _constituents(parsed, ParsedSentence(("(", "b"), ((0, 1), (2, 3))))
    assert tree.labels[-4:] == ("XX", "(", "N", "b")
    assert len(tree) == 3000 + 6
