"""The generated sets: what their targets are, by rules written anew, and what training leaves open."""

from __future__ import annotations

import random

import pytest

from treesyntax import agreement
from treesyntax.data.sets import (
    SETS,
    drawing,
    programs,
    string_edits,
    transformations,
)
from treesyntax.data.sets.base import Part
from treesyntax.trees.formats import get_format
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.tree import Tree

FEW = {"train": 300, "valid": 20, "test": 20, "gen": 150}
BRACKETS = {"(": "[", ")": "]"}
AUXILIARIES = {"do", "does", "don't", "doesn't"}


def made(name: str, monkeypatch: pytest.MonkeyPatch, seed: int = 1) -> dict[str, Part]:
    monkeypatch.setattr(drawing, "NUMBERS", FEW)
    return SETS[name].make({}, seed)


def lines(part: Part) -> list[tuple[list[str], list[str], Tree | None]]:
    trees = [get_format("ptb").parse(text) for text in part.trees] or [None] * len(part)
    pairs = zip(part.sources, part.targets, trees, strict=True)
    return [(source.split(), target.split(), tree) for source, target, tree in pairs]


@pytest.mark.parametrize(
    "name",
    ["question_formation", "question_paths", "tense_reinflection", "listops", "string_edits"],
)
def test_no_source_is_twice_and_a_seed_makes_the_same(name, monkeypatch):
    parts = made(name, monkeypatch)
    sources = [source for part in parts.values() for source in part.sources]
    assert len(sources) == len(set(sources)) == sum(FEW.values())
    assert parts == made(name, monkeypatch)
    assert parts["train"] != made(name, monkeypatch, seed=2)["train"]
    for part in parts.values():
        assert len(part.categories) == len(part)
        for source, _, tree in lines(part):
            if tree is not None:
                as_leaves = [BRACKETS.get(word, word) for word in source]
                assert [tree.labels[node] for node in tree.word_nodes()] == as_leaves


def moved(words: list[str], place: int) -> list[str]:
    return [words[place], *words[:place], *words[place + 1 : -2], "?"]


def test_questions_fit_two_rules_in_training_and_one_in_gen(monkeypatch):
    parts = made("question_formation", monkeypatch)
    asked = 0
    for name, part in parts.items():
        for source, target, tree in lines(part):
            assert tree is not None
            if source[-1] == "decl":
                assert target == source[:-1]
                continue
            asked += 1
            first = next(place for place, word in enumerate(source) if word in AUXILIARIES)
            sentence = tree.children()[0][0]
            main = next(node for node in tree.children()[sentence] if tree.labels[node] == "AUX")
            place = int(tree.words[tree.children()[main][0]])
            assert target == moved(source, place)
            assert (target == moved(source, first)) is (name != "gen")
    assert asked > 200


def path(tree: Tree, node: int) -> tuple[int, ...]:
    """Which child, from the root down."""
    steps = []
    while node:
        parent = int(tree.parents[node])
        steps.append(tree.children()[parent].index(node))
        node = parent
    return tuple(reversed(steps))


def deepest(tree: Tree, node: int) -> int:
    """How many relative clauses stand in one another, at and below a node."""
    below = max((deepest(tree, child) for child in tree.children()[node]), default=0)
    return below + (tree.labels[node] == "RC")


def test_the_auxiliary_of_questions_has_many_paths_and_gen_has_others_before_it(monkeypatch):
    paths: dict[str, set[tuple[int, ...]]] = {}
    for name, part in made("question_paths", monkeypatch).items():
        for (source, target, tree), category in zip(lines(part), part.categories, strict=True):
            assert tree is not None
            if source[-1] == "decl":
                assert target == source[:-1]
                continue
            sentence, places = tree.children()[0][0], []
            while tree.labels[(below := tree.children()[sentence])[0]] == "PP":
                assert [tree.labels[node] for node in below] == ["PP", "S"]
                place, sentence = below
                places.append(place)
            subject, main, _ = tree.children()[sentence]
            paths.setdefault(name, set()).add(path(tree, main))
            place = int(tree.words[tree.children()[main][0]])
            assert target == moved(source, place)
            first = next(place for place, word in enumerate(source) if word in AUXILIARIES)
            depths = {node: deepest(tree, node) for node in (subject, *places)}
            if name != "gen":
                assert first == place
                assert not any(depths.values())
                continue
            assert source[first] != source[place]
            (home,) = [node for node, depth in depths.items() if depth]
            assert category == ("subject" if home == subject else "place") + (
                "_deep" if depths[home] > 2 else ""
            )
    assert len(paths["train"]) == 3
    assert len(paths["gen"]) == 4


def present(past: str, plural: bool) -> str:
    base = {past: base for base, past in (*agreement.ALONE, *agreement.WITH_OBJECT)}[past]
    return base if plural else f"{base}s"


def test_the_tense_fits_two_rules_in_training_and_one_in_gen(monkeypatch):
    verbs = {past for _, past in (*agreement.ALONE, *agreement.WITH_OBJECT)}
    singular = set(transformations.NOUNS)
    plural = {transformations.noun_form(noun, True) for noun in singular}
    for name, part in made("tense_reinflection", monkeypatch).items():
        for source, target, tree in lines(part):
            assert tree is not None
            if source[-1] == "past":
                assert target == source[:-1]
                continue
            number, linear = False, []
            for word in source[:-1]:
                number = word in plural if word in plural | singular else number
                linear.append(present(word, number) if word in verbs else word)
            subject = source[1] in plural  # the first noun
            sentence = tree.children()[0][0]
            main = tree.children()[tree.children()[sentence][1]][0]
            place = int(tree.words[tree.children()[main][0]])
            assert (linear == target) is (name != "gen")
            assert target[place] == present(source[place], subject)
            assert [*target[:place], *target[place + 1 :]] == [
                *linear[:place],
                *linear[place + 1 :],
            ]


def listed(tree: Tree, node: int = 0) -> int:
    below = [listed(tree, child) for child in tree.children()[node]]
    label = tree.labels[node]
    if not below:
        return int(label)
    low = sorted(below)[(len(below) - 1) // 2]
    return {"MAX": max(below), "MIN": min(below), "SM": sum(below) % 10, "MED": low}[label]


def test_lists_have_their_value_and_gen_is_deeper_or_wider(monkeypatch):
    for name, part in made("listops", monkeypatch).items():
        for (source, target, _), category in zip(lines(part), part.categories, strict=True):
            tree = get_format("sexpr").parse(" ".join(source))
            assert target == [str(listed(tree))]
            depth, widest = int(tree.depths.max()), int(tree.arities.max())
            assert (depth > 3 or widest > 3) is (name == "gen")
            assert category in (f"depth_{depth}", f"arguments_{widest}")


def edited(tree: Tree, node: int = 0) -> str:
    """The value of a command's tree, letters beside each other."""
    below = tree.children()[node]
    if tree.labels[node] == "L":
        return "".join(tree.labels[tree.children()[child][0]] for child in below)
    name = tree.labels[tree.children()[below[0]][0]]
    x, *rest = [edited(tree, child) for child in below[1:] if tree.labels[child] != "SEP"]
    y = rest[0] if rest else ""
    return {
        "copy": x, "reverse": "".join(reversed(x)), "shift": x[1:] + x[:1], "repeat": 2 * x,
        "swap": x[-1] + x[1:-1] + x[0] if len(x) > 1 else x, "echo": x + x[-1], "append": x + y,
        "prepend": y + x, "remove_first": y, "remove_second": x,
    }[name]  # fmt: skip


def test_strings_are_edited_and_new_pairs_are_in_gen_alone(monkeypatch):
    systematic = 0
    for name, part in made("string_edits", monkeypatch).items():
        for (source, target, tree), category in zip(lines(part), part.categories, strict=True):
            assert tree is not None
            assert "".join(target) == edited(tree)
            functions = tree.labels.count("FN")
            assert (functions > 4) is category.startswith("productivity")
            new = any(
                f"{outer} {inner}" in " ".join(source) for outer, inner in string_edits.NEW_PAIRS
            )
            assert not new or category == "systematicity"
            systematic += category == "systematicity"
            assert name == "gen" or category == f"functions_{functions}"
    assert 50 < systematic < 100


def test_a_draw_that_gives_nothing_new_ends():
    def same(_: random.Random) -> drawing.Example:
        return drawing.Example("a", "b", None, "c")

    with pytest.raises(Exception, match="only 1 of 2 different examples"):
        drawing.fill(Part(), 2, random.Random(1), same, set())


def test_new_names_stand_in_test_alone(monkeypatch):
    monkeypatch.setattr(programs, "NUMBERS", {"train": 60, "valid": 5, "test": 40})
    parts = SETS["for2lam_zero_shot"].make({}, 1)
    for name, part in parts.items():
        for source, target in zip(part.sources, part.targets, strict=True):
            new = set(programs.NEW_NAMES) & set(source.split())
            assert len(new) == (name == "test")
            assert new == set(programs.NEW_NAMES) & set(target.split())
            assert LAMBDA.write(programs.translate(FOR.parse(source))) == target
    assert {"train", "valid", "test"} == parts.keys()
