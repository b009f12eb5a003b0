"""Question formation in which the main clause's auxiliary stands at many places of the tree.

After McCoy, Frank & Linzen 2020, as :mod:`treesyntax.data.sets.transformations`. There the auxiliary that moves has one
path from the root in all sentences, so a model that knows paths needs no rule. Here sentences begin with up to two
places (``near the wolf``), each a clause of its own above the rest, and relative clauses stand in one another::

    near the otter behind my wolf the falcon does greet the crane that doesn't nap . quest
    does near the otter behind my wolf the falcon greet the crane that doesn't nap ?

Training fits two rules: *move the auxiliary of the main clause* and *move the first auxiliary*. In
questions of training no relative clause stands before the main auxiliary, and in statements they
stand anywhere, up to two in one another. In ``gen`` all are questions with a relative clause before
the main auxiliary, in the subject or in a place, whose auxiliary is another one. Categories tell
where it stands, and ``_deep`` that three are in one another. A fifth of ``gen`` begins with three
places.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from treesyntax.agreement import ALONE, WITH_OBJECT
from treesyntax.data.sets.drawing import Example, drawn_set, word, words_of
from treesyntax.data.sets.transformations import (
    AUXILIARIES,
    DETERMINERS,
    NOUNS,
    PAPER,
    PLACES,
    TWO_RULES,
    noun_form,
)
from treesyntax.trees.formats.notation import Node

DEEPEST, DEEPEST_NEW = 2, 3
"""How many relative clauses stand in one another, in training and in gen."""
FRONT, FRONT_NEW = 2, 3
"""How many places a sentence begins with, in training and in gen."""


def _auxiliary(rng: random.Random, plural: bool) -> Node:
    return word("AUX", rng.choice(AUXILIARIES[plural]))


def _phrase(rng: random.Random, plural: bool, clauses: int) -> Node:
    """A noun phrase with so many relative clauses in one another."""
    noun = (word("DET", rng.choice(DETERMINERS)), word("N", noun_form(rng.choice(NOUNS), plural)))
    return Node("NP", (*noun, _clause(rng, plural, clauses)) if clauses else noun)


def _clause(rng: random.Random, plural: bool, clauses: int) -> Node:
    """A relative clause with an auxiliary, its gap the subject or the object; all others are inside it."""
    that, inner = word("REL", "that"), rng.random() < 0.5
    if rng.random() < 0.5:
        subject = _phrase(rng, inner, clauses - 1)
        verb = word("V", rng.choice(WITH_OBJECT)[0])
        return Node("RC", (that, subject, _auxiliary(rng, inner), verb))
    return Node("RC", (that, _auxiliary(rng, plural), _verb_phrase(rng, clauses - 1)))


def _verb_phrase(rng: random.Random, clauses: int) -> Node:
    if not clauses and rng.random() < 0.4:
        return Node("VP", (word("V", rng.choice(ALONE)[0]),))
    object_ = _phrase(rng, rng.random() < 0.5, clauses)
    return Node("VP", (word("V", rng.choice(WITH_OBJECT)[0]), object_))


def _prepositional_phrase(rng: random.Random, clauses: int) -> Node:
    """Where something happens: ``near the wolf``, and perhaps ``near the wolf behind a crane``."""
    phrase = _phrase(rng, rng.random() < 0.5, clauses)
    if not clauses and rng.random() < 0.3:
        phrase = Node("NP", (*phrase.children, _prepositional_phrase(rng, 0)))
    return Node("PP", (word("P", rng.choice(PLACES)), phrase))


def _auxiliaries(node: Node) -> Iterator[str]:
    """Those of a tree from left to right."""
    if node.label == "AUX":
        yield node.children[0].label
    for child in node.children:
        yield from _auxiliaries(child)


def _draw(rng: random.Random, new: bool) -> Example | None:
    is_question = new or rng.random() < 0.5
    fronts = FRONT_NEW if new and rng.random() < 0.2 else rng.randint(0, FRONT)
    homes = ["subject", *(f"place_{number}" for number in range(fronts))]
    home = rng.choice(homes) if new or (not is_question and rng.random() < 0.5) else ""
    depth = rng.randint(1, DEEPEST_NEW if new else DEEPEST)
    clauses = {home: depth}
    plural = rng.random() < 0.5
    front_phrases = [
        _prepositional_phrase(rng, clauses.get(f"place_{number}", 0)) for number in range(fronts)
    ]
    subject, main = _phrase(rng, plural, clauses.get("subject", 0)), _auxiliary(rng, plural)
    rest = _verb_phrase(rng, rng.randint(0, DEEPEST))
    if new:
        first = next(
            auxiliary for phrase in (*front_phrases, subject) for auxiliary in _auxiliaries(phrase)
        )
        if first == main.children[0].label:
            return None  # both rules give the same
    sentence = Node("S", (subject, main, rest))
    for front_phrase in reversed(front_phrases):
        sentence = Node("S", (front_phrase, sentence))
    tree = Node("TOP", (sentence, word(".", "."), word("ASK", "quest" if is_question else "decl")))
    words = words_of(tree)
    target = words[:-1]
    if is_question:
        before = [text for phrase in (*front_phrases, subject) for text in words_of(phrase)]
        target = [*words_of(main), *before, *words_of(rest), "?"]
    category = "quest" if is_question else "decl"
    if new:
        category = home.partition("_")[0] + ("_deep" if depth > DEEPEST else "")
    return Example(" ".join(words), " ".join(target), tree, category)


QUESTION_PATHS = drawn_set(
    "question_paths", "statements to questions: which auxiliary moves, from many places?", PAPER,
    f"{TWO_RULES}; paths vary", partial(_draw, new=False), partial(_draw, new=True),
)  # fmt: skip
