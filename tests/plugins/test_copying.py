"""Models that copy words of the source, behind fairseq's commands and ``treesyntax translate``."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from plugins.test_constrained_generation import PROGRAMS, hypotheses, mixes_rules
from plugins.test_plugin import train
from support.random_search import FORMS, dictionary_of, generator_of, random_model, sources
from support.translate_helpers import (
    binarize,
    formula,
    generate,
    lines_of,
    save_model,
    translate,
)

from fairseq_plugins.target import make_constraints
from treesyntax.__main__ import main
from treesyntax.errors import OptionError
from treesyntax.study.run.hypotheses import main as collect
from treesyntax.trees.copies import copied_forms, is_placeholder, placeholder, with_words
from treesyntax.trees.formats.for2lam import LAMBDA
from treesyntax.trees.linearizations import TreeText
from treesyntax.trees.symbols import from_nary, from_siblings, nary_tokens, sibling_tokens
from treesyntax.trees.tree import Tree

ARCH = ("--arch", "tree_sequence_tiny", "--copy-source")
NAMES = [f"n{number}" for number in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names and a formula; the target has the formula alone, so no name is in its dictionary."""
    folder, draw = tmp_path_factory.mktemp("copying"), random.Random(1)
    formulas = [formula(draw, 3) for _ in range(12)]
    rows = [f"( {draw.choice(NAMES)} {draw.choice(NAMES)} {part} )" for part in formulas]
    (folder / "all.sexpr").write_text("".join(f"{row}\n" for row in rows))
    (folder / "all.target").write_text("".join(f"{row}\n" for row in formulas))
    return folder


def symbols_of(data: Path, language: str) -> list[str]:
    return [line.split()[0] for line in lines_of(data / f"dict.{language}.txt")]


def trees_of(folder: Path, name: str, linearization: str, *flags: str) -> Path:
    return binarize(
        folder, name, "sexpr", "target", "--source-format", "sexpr", "--target-format", "sexpr",
        "--target-linearization", linearization, "--copy-words", *flags,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("linearization", "forms"),
    [("nary_dfs", ["/0"]), ("lcrs_bfs", ["/0", "/R"]), ("bracketed", [""])],
)
def test_the_target_dictionary_gets_the_words_of_the_source_as_leaves(folder, linearization, forms):
    data = trees_of(folder, f"words_{linearization}", linearization)
    symbols = symbols_of(data, "tgt")
    assert all(f"{name}{form}" in symbols for name in NAMES for form in forms)
    assert len(set(symbols)) == len(symbols)
    assert (len(symbols) + 4) % 8 == 0
    assert not any(symbol.startswith("madeupword") and "/" in symbol for symbol in symbols)


def test_a_given_dictionary_stays_as_it_is(folder, capsys):
    data = trees_of(folder, "given", "nary_dfs")
    with pytest.raises(AssertionError):
        trees_of(folder, "again", "nary_dfs", "--target-dict", str(data / "dict.tgt.txt"))
    assert "--copy-words adds to the dictionary that is counted here" in capsys.readouterr().err


@pytest.mark.parametrize("linearization", ["nary_dfs", "lcrs_dfs"])
def test_search_scoring_and_translation_agree(folder, tmp_path, linearization):
    data = trees_of(folder, f"search_{linearization}", linearization)
    model = save_model(data, tmp_path / "model.pt", *ARCH)
    state = torch.load(model, weights_only=True)
    state["model"]["decoder.copying.gate.bias"].fill_(3)  # so that it copies often
    torch.save(state, model)
    found = generate(data, model, tmp_path / "found")
    assert {word.split("/")[0] for _, text in found for word in text.split()} & {*NAMES}
    half = ("--fp16", "--beam", "1")
    assert len(generate(data, model, tmp_path / "half", *half)) == len(found)
    scored = generate(data, model, tmp_path / "scored", "--score-reference")
    assert all(score < 0 for score, _ in scored)
    source = ("--input", str(folder / "all.sexpr"), "--parsed")
    lines = translate(data, model, tmp_path / "out", *source, "--tokens", "--nbest", "1")
    for (score, text), line in zip(found, lines, strict=True):
        _, other, tokens = line.split("\t")
        assert tokens == text
        assert float(other) == pytest.approx(score, abs=1e-3)


def test_it_trains_with_smoothed_labels_and_r_drop(folder, tmp_path):
    data = trees_of(folder, "train", "lcrs_dfs")
    done = train(
        data, tmp_path, "--copy-source", "--decoder-injection", "stack_pe",
        "--criterion", "label_smoothed_cross_entropy_with_rdrop", "--label-smoothing", "0.1",
        "--rdrop-alpha", "1", arch="tree_sequence_tiny",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    state = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "checkpoint_last.pt"))
    assert state["cfg"]["model"]["copy_source"]
    assert state["model"]["decoder.copying.gate.weight"].isfinite().all()


def test_a_target_without_any_word_of_the_source_is_refused(folder, tmp_path):
    (folder / "all.other").write_text("x\n" * 12)
    data = binarize(folder, "other", "sexpr", "other", "--source-format", "sexpr")
    with pytest.raises(OptionError, match="no symbol of the source dictionary.*--copy-words"):
        save_model(data, tmp_path / "model.pt", *ARCH)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs of names, the target a tree of them; the test has names that the training lacks."""
    folder = tmp_path_factory.mktemp("names")
    for part, words in (("all", ["a", "b", "c", "d"]), ("new", ["a", "x", "y", "x"])):
        rows = [(words[k % 4], words[(k + 1) % 4], words[(k + 2) % 4]) for k in range(12)]
        (folder / f"{part}.src").write_text("".join(f"{p} {q} {r}\n" for p, q, r in rows))
        lines = "".join(f"( f {r} ( g {q} ) {p} )\n" for p, q, r in rows)
        (folder / f"{part}.tgt").write_text(lines)
    return folder


def with_unknown(folder: Path, name: str, linearization: str) -> Path:
    files = {"train": "all", "valid": "all", "test": "new"}
    words = [word for split, part in files.items()
             for word in (f"--{split}", f"{folder}/{part}.src", f"{folder}/{part}.tgt")]  # fmt: skip
    options = ["--source-lang", "src", "--target-lang", "tgt", "--workers", "1"]
    trees = ["--target-format", "sexpr", "--target-linearization", linearization]
    copying = ["--copy-words", "--copy-unknown", "3"]
    assert main(["binarize", str(folder / name), *words, *options, *trees, *copying]) == 0
    return folder / name


@pytest.mark.parametrize("linearization", ["nary_dfs", "lcrs_dfs"])
def test_unknown_words_are_numbered_and_come_back(names, tmp_path, capsys, linearization):
    data = with_unknown(names, linearization, linearization)
    dictionaries = [Dictionary.load(str(data / f"dict.{side}.txt")) for side in ("src", "tgt")]
    sides = [
        [
            dictionary.string(row).split()
            for row in MMapIndexedDataset(str(data / f"test.src-tgt.{side}"))
        ]
        for side, dictionary in zip(("src", "tgt"), dictionaries, strict=True)
    ]
    assert sides[0][1] == ["<unk_1>", "<unk_2>", "<unk_1>"]  # x y x
    assert sides[0][2] == ["<unk_1>", "<unk_2>", "a"]  # y x a
    unknown = lines_of(data / "test.src-tgt.src.unknown")
    assert unknown[:3] == ["x y", "x y", "y x"]
    assert set(lines_of(data / "train.src-tgt.src.unknown")) == {""}
    pairs = zip(sides[1], unknown, strict=True)
    trees = [with_words(row, words.split(), linearization) for row, words in pairs]
    written = [TreeText(linearization, "sexpr").text(" ".join(row)) for row in trees]
    assert written == lines_of(names / "new.tgt")
    # The references come back from the output of fairseq-generate, too.
    rows = [f"D-{number}\t-1\t{' '.join(row)}\n" for number, row in enumerate(sides[1])]
    (tmp_path / "generated").write_text("".join(rows))
    collected = [str(tmp_path / "generated"), str(tmp_path / "out"), "--reference"]
    how = ["--linearization", linearization, "--notation", "sexpr"]
    words = ["--unknown", str(data / "test.src-tgt.src.unknown")]
    assert collect([*collected, str(names / "new.tgt"), *how, *words]) == 0
    assert lines_of(tmp_path / "out") == lines_of(names / "new.tgt")


def test_translate_writes_the_words_and_training_hides_some(names, tmp_path):
    data = with_unknown(names, "translated", "lcrs_dfs")
    done = train(
        data, tmp_path, "--copy-source", "--copy-dropout", "0.5", arch="tree_sequence_tiny"
    )
    assert done.returncode == 0, done.stderr
    path = tmp_path / "checkpoint_last.pt"
    state = torch.load(path, weights_only=True)
    state["model"]["decoder.copying.gate.bias"].fill_(9)
    torch.save(state, tmp_path / "copies.pt")
    options = ("--input", str(names / "new.src"), "--tokens")
    lines = translate(data, tmp_path / "copies.pt", tmp_path / "out", *options)
    written = {token.partition("/")[0] for line in lines for token in line.split()}
    assert {"x", "y"} & written
    assert not any("<unk_" in token for token in written)


@pytest.mark.parametrize("form", FORMS)
def test_placeholders_stand_where_words_may_and_nowhere_else(form):
    """In place of a name or a number, and all other rules of the format hold."""
    write, read = {
        "nary": (nary_tokens, from_nary), "lcrs": (sibling_tokens, from_siblings)
    }[form]  # fmt: skip
    known = (symbol for line in PROGRAMS[LAMBDA] for symbol in write(LAMBDA.parse(line)))
    marks = [mark for k in range(3) for mark in copied_forms(placeholder(k), f"{form}_dfs")]
    dictionary = dictionary_of(dict.fromkeys([*known, *marks]))
    constraints = make_constraints(f"{form}_dfs", dictionary, None, "lambda")
    model = random_model(dictionary)
    generator = generator_of(model, dictionary, constraints, limit=25)
    stood = 0
    for tokens in hypotheses(generator.generate([model], sources(100, dictionary)), dictionary):
        tree = read(tokens, False)
        labels = [
            label if not is_placeholder(label)
            else "3" if tree.labels[above] == "<CONST>" else "a1"
            for label, above in zip(tree.labels, tree.parents.tolist(), strict=True)
        ]  # fmt: skip
        stood += labels != list(tree.labels)
        if not mixes_rules(tree):
            LAMBDA.write(Tree(tree.parents, labels))
    assert stood > 50


def test_in_a_learned_grammar_placeholders_stand_where_copied_words_do():
    dictionary = dictionary_of(["f/1", "g/1", "a/0", "b/0", "<unk_1>/0"])
    f, g, a, b, mark = range(4, 9)
    training = [[f, a], [g, b]]
    for copies, wanted in ((None, {a}), (np.array([[a, -1]]), {a, mark})):
        constraints = make_constraints("nary_dfs", dictionary, training, "javascript", copies)
        for parent, legal in ((f, wanted), (g, {b})):
            partial = constraints.trees.grow(torch.tensor([[dictionary.eos(), parent]]))
            allowed = constraints.allowed(partial, 9)[0]
            assert set(allowed.nonzero().flatten().tolist()) == legal


def test_hiding_words_needs_placeholders(folder, tmp_path):
    data = trees_of(folder, "no_marks", "nary_dfs")
    with pytest.raises(OptionError, match="--copy-dropout: .*--copy-unknown"):
        save_model(data, tmp_path / "model.pt", *ARCH, "--copy-dropout", "0.1")
