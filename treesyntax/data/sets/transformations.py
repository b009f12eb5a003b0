"""Question formation and tense reinflection: is the rule that a model learns one over trees?

After McCoy, Frank & Linzen 2020, with words and a grammar of our own. Training fits two rules, one over the
tree and one over the order of words; the test set ``gen`` tells them apart:

- questions: *move the auxiliary of the main clause* or *the first auxiliary*. In training no subject of a
  question has a relative clause, so both are the same; in ``gen`` all have one, with another auxiliary.
- tense: *a verb agrees with its subject* or *with the last noun before it*. In training both have the same
  number wherever the present is asked for; in ``gen`` they differ at the main verb.

The last word of the source says what is asked for: ``decl`` and ``past`` for the sentence as it is.
"""

from __future__ import annotations

import random
from functools import partial

from treesyntax.agreement import ALONE, WITH_OBJECT
from treesyntax.data.sets.drawing import Example, drawn_set, word, words_of
from treesyntax.trees.formats.notation import Node

NOUNS = ("otter", "falcon", "badger", "lizard", "pony", "goose", "camel", "beaver", "wolf", "crane")
_PLURALS = {"pony": "ponies", "goose": "geese", "wolf": "wolves"}
DETERMINERS = ("the", "my", "your", "some", "her")
PLACES = ("near", "behind", "above", "around")
AUXILIARIES = {False: ("does", "doesn't"), True: ("do", "don't")}


def noun_form(noun: str, plural: bool) -> str:
    """A noun in the singular or the plural."""
    return _PLURALS.get(noun, noun + "s") if plural else noun


def _phrase(rng: random.Random, plural: bool) -> tuple[Node, ...]:
    return (word("DET", rng.choice(DETERMINERS)), word("N", noun_form(rng.choice(NOUNS), plural)))


def _plural(rng: random.Random) -> bool:
    return rng.random() < 0.5


def _auxiliary(rng: random.Random, plural: bool) -> Node:
    return word("AUX", rng.choice(AUXILIARIES[plural]))


def _clause(rng: random.Random, plural: bool) -> Node:
    """A relative clause with an auxiliary, its gap the subject or the object."""
    if rng.random() < 0.5:
        inner = _plural(rng)
        subject = Node("NP", _phrase(rng, inner))
        verb = word("V", rng.choice(WITH_OBJECT)[0])
        return Node("RC", (word("REL", "that"), subject, _auxiliary(rng, inner), verb))
    return Node("RC", (word("REL", "that"), _auxiliary(rng, plural), _verb_phrase(rng, False)))


def _verb_phrase(rng: random.Random, modified: bool) -> Node:
    if rng.random() < 0.4:
        return Node("VP", (word("V", rng.choice(ALONE)[0]),))
    plural = _plural(rng)
    clause = (_clause(rng, plural),) if modified else ()
    return Node(
        "VP", (word("V", rng.choice(WITH_OBJECT)[0]), Node("NP", (*_phrase(rng, plural), *clause)))
    )


def _question(rng: random.Random, new: bool) -> Example | None:
    is_question = new or rng.random() < 0.5
    on_subject = new or (not is_question and rng.random() < 0.5)
    on_object = rng.random() < 0.5
    plural = _plural(rng)
    clause = (_clause(rng, plural),) if on_subject else ()
    subject, main = Node("NP", (*_phrase(rng, plural), *clause)), _auxiliary(rng, plural)
    rest = _verb_phrase(rng, on_object)
    inside = next(
        (
            words_of(child)[0]
            for child in (clause[0].children if clause else ())
            if child.label == "AUX"
        ),
        "",
    )
    if new and inside == main.children[0].label:
        return None  # both rules give the same
    tree = Node(
        "TOP",
        (
            Node("S", (subject, main, rest)),
            word(".", "."),
            word("ASK", "quest" if is_question else "decl"),
        ),
    )
    words = words_of(tree)
    target = words[:-1]
    if is_question:
        target = [*words_of(main), *words_of(subject), *words_of(rest), "?"]
    gap = "subject" if clause and len(clause[0].children) == 3 else "object"
    category = f"{gap}_clause" if new else ("quest" if is_question else "decl")
    return Example(" ".join(words), " ".join(target), tree, category)


def _verb(rng: random.Random, verbs: tuple[tuple[str, str], ...], plural: bool) -> tuple[str, str]:
    """A verb in the past, and in the present."""
    base, past = rng.choice(verbs)
    return past, base if plural else base + "s"


def _tense(rng: random.Random, new: bool) -> Example | None:
    in_present = new or rng.random() < 0.5
    plural, other = _plural(rng), _plural(rng)
    noun, kind = _phrase(rng, plural), rng.choice(("plain", "place", "clause"))
    present: dict[int, str] = {}
    last = plural  # the number of the last noun before the main verb
    if kind == "place":
        noun = (*noun, Node("PP", (word("P", rng.choice(PLACES)), Node("NP", _phrase(rng, other)))))
        last = other
    elif kind == "clause" and rng.random() < 0.5:
        past, now = _verb(rng, WITH_OBJECT, plural)
        inner = Node("VP", (word("V", past), Node("NP", _phrase(rng, other))))
        present[len(words_of(Node("NP", noun))) + 1] = now
        noun, last = (*noun, Node("RC", (word("REL", "that"), inner))), other
    elif kind == "clause":
        past, now = _verb(rng, WITH_OBJECT, other)
        inner = Node("NP", _phrase(rng, other))
        present[len(words_of(Node("NP", noun))) + 3] = now
        noun, last = (*noun, Node("RC", (word("REL", "that"), inner, word("V", past)))), other
    agrees = last == plural
    if agrees if new else in_present and not agrees:
        return None
    subject = Node("NP", noun)
    alone = rng.random() < 0.5
    past, now = _verb(rng, ALONE if alone else WITH_OBJECT, plural)
    present[len(words_of(subject))] = now
    objects = () if alone else (Node("NP", _phrase(rng, _plural(rng))),)
    sentence = Node("S", (subject, Node("VP", (word("V", past), *objects))))
    tree = Node("TOP", (sentence, word(".", "."), word("ASK", "present" if in_present else "past")))
    words = words_of(tree)
    target = [
        present.get(index, text) if in_present else text for index, text in enumerate(words[:-1])
    ]
    return Example(
        " ".join(words),
        " ".join(target),
        tree,
        kind if new else ("present" if in_present else "past"),
    )


PAPER = "after McCoy, Frank & Linzen 2020, Does Syntax Need to Grow on Trees?"
TWO_RULES = "train fits a rule over trees and one over word order; gen tells them apart"
QUESTIONS = drawn_set(
    "question_formation", "statements to questions: which auxiliary moves?", PAPER, TWO_RULES,
    partial(_question, new=False), partial(_question, new=True),
)  # fmt: skip
TENSE = drawn_set(
    "tense_reinflection", "past to present: what does the verb agree with?", PAPER, TWO_RULES,
    partial(_tense, new=False), partial(_tense, new=True),
)  # fmt: skip
