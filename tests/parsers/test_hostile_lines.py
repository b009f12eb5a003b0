"""Hostile text keeps its place from the raw line to a training step, with every parser."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import pytest
import torch
from fairseq import options, utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from reliability.figures import SOAK
from sentencepiece import SentencePieceProcessor
from support import PLUGINS
from support.parser_fixtures import MODELS, hostile_lines, settings, words_of_tree

from treesyntax.__main__ import main
from treesyntax.data.tree_store import TreeStore
from treesyntax.parsers import PARSERS
from treesyntax.parsers.policy import FAILED, TOO_LONG
from treesyntax.parsers.record_text import read_offsets
from treesyntax.trees.formats import read_trees
from treesyntax.trees.tree import Tree

utils.import_user_module(options.argparse.Namespace(user_dir=str(PLUGINS)))
from fairseq_plugins.model import TreeTransformer, TreeTransformerConfig  # noqa: E402
from fairseq_plugins.task import TreeTranslationConfig, TreeTranslationTask  # noqa: E402

ONE_OF_EACH_LIBRARY = ["spacy", "stanza-con", "benepar-bert"]
"""The same two libraries also make stanza-dep and benepar-characters, which run with make soak."""
pytestmark = pytest.mark.usefixtures("no_network")


@pytest.mark.parametrize("name", MODELS if SOAK else ONE_OF_EACH_LIBRARY)
def test_hostile_lines_stay_aligned_from_text_to_data(name, models, tmp_path):
    """``HOSTILE_LINES=1000`` for a longer test."""
    lines = hostile_lines(int(os.environ.get("HOSTILE_LINES", "60")), 3)
    text, numbers = tmp_path / "in.txt", tmp_path / "numbers.txt"
    text.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    numbers.write_text("".join(f"n{i}\n" for i in range(len(lines))))
    output, data = tmp_path / "trees", tmp_path / "data"
    parser = settings(name, models)
    options = ["--parser", parser.parser, "--model", parser.model, "--workers", "1"]
    assert main(["parse", str(text), str(output), *options]) == 0
    notation = PARSERS[parser.parser].notation
    check_records(name, lines, output, notation)
    sides = ["--source-lang", "a", "--source-format", notation, "--target-lang", "b"]
    files = ["--train", str(output), str(numbers), "--workers", "1"]
    assert main(["binarize", str(data), *sides, *files]) == 0
    check_data(data, list(read_trees(output, notation)))
    pieces = [
        "--source-text",
        str(text),
        "--subword-vocab",
        "125",
        "--joined-subwords",
        "--overwrite",
    ]
    assert main(["binarize", str(data), *sides, *files, *pieces]) == 0
    check_pieces(data, lines)
    # Once with pairs: 5,000 words have 25 million.
    train_one_step(
        data, len(lines), "relation_mask" if name == "spacy" else "stack_pe(parameters=4)"
    )
    cases = json.loads((tmp_path / "trees.report.json").read_text())["cases"]
    assert cases[TOO_LONG]["count"] > 0
    assert cases[FAILED]["count"] <= len(lines) // 10


def check_records(name: str, lines: list[str], output: Path, notation: str) -> None:
    """A record for every line, and every character that is not white space has its word."""
    records = zip(lines, read_trees(output, notation), read_offsets(output, notation), strict=True)
    for line, tree, spans in records:
        assert len(tree.word_nodes()) == len(spans)
        assert bool(spans) == bool(line.split())
        kept = {i for start, end in spans for i in range(start, end)}
        dropped = {c for i, c in enumerate(line) if i not in kept and not c.isspace()}
        # Stanza takes control characters for white space.
        assert all(unicodedata.category(c) == "Cc" for c in dropped)
        assert "stanza" in name or not dropped


def check_data(data: Path, trees: list[Tree]) -> None:
    """Sentence i of the data has tree i on one side and line i on the other."""
    store = TreeStore(data / "train.a-b.a.tree")
    assert len(store) == len(trees)
    for i, tree in enumerate(trees):
        # A word with white space in it, as stanza has them, becomes several nodes.
        if not any(c.isspace() for word in words_of_tree(tree) for c in word):
            assert store[i].parents.tolist() == tree.parents.tolist()
    dictionary = Dictionary.load(str(data / "dict.b.txt"))
    numbers = MMapIndexedDataset(str(data / "train.a-b.b"))
    found = [dictionary[int(numbers[i][0])] for i in range(len(numbers))]
    assert found == [f"n{i}" for i in range(len(trees))]


def check_pieces(data: Path, lines: list[str]) -> None:
    """Every line is spelt by the pieces of its words, whatever the parser made of it."""
    model = SentencePieceProcessor(str(data / "subwords.a.model"))
    symbols = Dictionary.load(str(data / "dict.a.txt"))
    tokens = MMapIndexedDataset(str(data / "train.a-b.a"))
    preorder = (
        json.loads((data / "binarize.json").read_text())["sides"]["source"]["view"] != "words"
    )
    for number, line in enumerate(lines):
        pieces = [symbols[int(token)] for token in tokens[number][:-1]]
        if not preorder and symbols.unk_word not in pieces:
            spelt, expected = "".join(pieces), model.normalize(line)
            # An accent and its letter may be two words of a parser.
            assert _plain(spelt) == _plain(expected)


def _plain(pieces: str) -> list[str]:
    return unicodedata.normalize("NFKC", pieces.replace("▁", " ")).split()


def train_one_step(data: Path, size: int, spec: str) -> None:
    """One step over every line, the 5,000 words included, in batches of like length."""
    general = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    config = TreeTranslationConfig(
        data=str(data), source_lang="a", target_lang="b", max_source_positions=20000, **general
    )
    task = TreeTranslationTask.setup_task(config)
    task.load_dataset("train")
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("embed_dim", 16), ("ffn_embed_dim", 16), ("layers", 1), ("attention_heads", 1))
    }  # fmt: skip
    longest = {"max_source_positions": 20000, "max_target_positions": 10}
    flags = TreeTransformerConfig(encoder_injection=spec, **sizes, **longest)
    model = TreeTransformer.build_model(flags, task)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = task.get_batch_iterator(
        task.dataset("train"), max_tokens=20000, max_positions=(20000, 10), seed=1
    ).next_epoch_itr(shuffle=False)
    seen = []
    for batch in batches:
        seen += batch["id"].tolist()
        logits = model(**batch["net_input"])[0]
        loss = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch["target"], ignore_index=task.target_dictionary.pad()
        )
        loss.backward()
    assert torch.isfinite(loss)
    optimizer.step()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert sorted(seen) == list(range(size))
