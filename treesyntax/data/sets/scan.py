"""SCAN: commands to actions, with the trees of the commands (Lake & Baroni 2018)."""

from __future__ import annotations

import re
from functools import partial

from treesyntax.data.sets.base import DataSet, Input, Part, Texts, brackets, hold_out
from treesyntax.data.sets.drawing import with_words, word
from treesyntax.data.sets.reading import lines_of
from treesyntax.errors import InputError
from treesyntax.trees.formats.notation import Node
from treesyntax.trees.tree import Tree

_ADDRESS = (
    "https://raw.githubusercontent.com/brendenlake/SCAN/c4b756cbc010d75c912f16c42c8f15dc6b7e6c8f/"
)
_VALID = 10
"""One example in so many of train is drawn for valid: SCAN has no validation set."""
_LINE = re.compile(r"IN: (.+) OUT: (.+)")
_VERBS = ("walk", "run", "jump", "look", "turn")
_TURNS = ("left", "right")


def parse(command: str) -> Tree:
    """The tree of a command by the grammar of Lake & Baroni 2018, figure 6; its leaves are words.

    ``and`` and ``after`` join two sentences, ``twice`` and ``thrice`` repeat one, ``opposite`` and ``around``
    are part of a phrase with a verb and a direction.

    Raises:
        ValueError: if it is no command.
    """
    words = command.split()
    joins = [index for index, word in enumerate(words) if word in ("and", "after")]
    if len(joins) > 1:
        raise ValueError("more than one and/after")
    if not joins:
        return with_words(Node("C", (_sentence(words),)))
    at = joins[0]
    children = (_sentence(words[:at]), word("CONJ", words[at]), _sentence(words[at + 1 :]))
    return with_words(Node("C", children))


def _sentence(words: list[str]) -> Node:
    if words and words[-1] in ("twice", "thrice"):
        return Node("S", (_phrase(words[:-1]), word("REP", words[-1])))
    return Node("S", (_phrase(words),))


def _phrase(words: list[str]) -> Node:
    kinds = {**dict.fromkeys(_VERBS, "VERB"), **dict.fromkeys(_TURNS, "DIR"), "opposite": "MOD",
             "around": "MOD"}  # fmt: skip
    shape = [kinds.get(text, "") for text in words]
    if shape not in (["VERB"], ["VERB", "DIR"], ["VERB", "MOD", "DIR"]):
        raise ValueError(f"{' '.join(words)!r} is no action")
    return Node("V", tuple(map(word, shape, words)))


def _examples(content: bytes, name: str) -> Part:
    examples = Part()
    for number, line in enumerate(lines_of(content, name), start=1):
        try:
            match = _LINE.fullmatch(line.strip())
            if match is None:
                raise ValueError("there is no IN: … OUT: …")
            command, actions = (" ".join(text.split()) for text in match.groups())
            length = f"{len(actions.split()) // 10 * 10}+"
            examples.add(command, actions, brackets(parse(command)), length)
        except ValueError as error:
            raise InputError(
                name, number, f"is no line of SCAN ({error})", "get the file again"
            ) from None
    return examples


def _make(names: tuple[str, str], texts: Texts, seed: int) -> dict[str, Part]:
    train, test = (_examples(texts[name], name) for name in names)
    train, valid = hold_out(train, max(1, len(train) // _VALID), seed)
    return {"train": train, "valid": valid, "test": test}


def _split(name: str, title: str, folder: str, split: str, sha256: tuple[str, str]) -> DataSet:
    names = (f"tasks_train_{split}.txt", f"tasks_test_{split}.txt")
    inputs = tuple(
        Input((file, f"{folder}/{file}"), f"{_ADDRESS}{folder}/{file}", digest)
        for file, digest in zip(names, sha256, strict=True)
    )
    return DataSet(
        f"scan_{name}", f"commands to actions: {title}", "BSD",
        "Lake & Baroni 2018, Generalization without Systematicity",
        partial(_make, names), inputs,
        "valid is a tenth of train, drawn by the seed; categories are lengths of the actions",
        home="scan",
    )  # fmt: skip


SCAN = tuple(
    _split(*row)
    for row in (
        ("simple", "a random split", "simple_split", "simple",
         ("941bb8a088c5f53ceff12fde902dc008933cf0c4203cc672c47b5f79d73262dd",
          "1fe1c8f5a19d0dc40e41bab94278f45f66f3dc415a978bd29855a23440610fc6")),
        ("length", "test needs more actions than any in training", "length_split", "length",
         ("b034212dc7cf87ce62f3a067dd6ad49c4d5cd18d51d615d13825516bcb1ebbc2",
          "0760752ed34a75116ae11dcc1ee17526b7500060da1366540730fa24894d7db3")),
        ("add_jump", "jump is alone in training", "add_prim_split", "addprim_jump",
         ("e3c78485692e028eed4205e1b8b3fd0e785ef2c12d45b5b89204dadf5b239e23",
          "8147ae2651422c701162e174d9d66158daa57858a26b30317ac61797118ac7a5")),
        ("around_right", "around and right are never together in training", "template_split",
         "template_around_right",
         ("d5d35d174d557645fc61f289424afa0d95fde21422c59a9819e2d0fcfa9d419f",
          "fc78a5d1077dc2c206d6c42ed89fb9022867618c3f331179bafd3ec1ca699474")),
    )
)  # fmt: skip
