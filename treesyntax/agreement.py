"""The verbs of the data set ``tense_reinflection``, which its sentences are made of and its metrics look for."""

from __future__ import annotations

ALONE = (
    ("nap", "napped"),
    ("sing", "sang"),
    ("swim", "swam"),
    ("wait", "waited"),
    ("sneeze", "sneezed"),
)
"""Verbs without an object, in the present plural and in the past."""
WITH_OBJECT = (
    ("follow", "followed"),
    ("greet", "greeted"),
    ("help", "helped"),
    ("tease", "teased"),
    ("chase", "chased"),
)
"""Verbs with an object."""
FORMS = frozenset(
    form for base, past in (*ALONE, *WITH_OBJECT) for form in (base, f"{base}s", past)
)
"""All forms of all of them."""


def verbs_of(sentence: str) -> list[str]:
    """The verbs of a sentence from left to right. The main clause's is the last: its object has no clause."""
    return [word for word in sentence.split() if word in FORMS]
