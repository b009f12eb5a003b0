"""Hiding words in training: consistent in source and target, and what it is for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.hidden_words import HiddenWords
from treesyntax.trees.copies import copy_forms_of, copy_table, placeholder_table

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
MARKS = [f"<unk_{number}>" for number in (1, 2, 3)]
SOURCE = [*SPECIALS, *"abcdef", *MARKS]
TARGET = [
    *SPECIALS,
    "g/L",
    "g/LR",
    *(f"{word}{form}" for word in [*"abcde", *MARKS] for form in ("/0", "/R")),
]


def hiding(source=SOURCE, target=TARGET, linearizations=("preorder", "lcrs_dfs")):
    tables = (
        placeholder_table(symbols, name)
        for symbols, name in zip((source, target), linearizations, strict=True)
    )
    form = copy_forms_of(source, linearizations[0])
    parts = (copy_table(source, target, linearizations), form, *tables)
    return HiddenWords(*map(torch.as_tensor, parts))


def ids(symbols, text):
    return torch.tensor([list(map(symbols.index, text.split()))])


def text(symbols, row):
    return " ".join(symbols[index] for index in row.tolist())


def test_all_words_of_both_sides_are_hidden_at_a_rate_of_one_in_the_order_of_the_source():
    source, target = ids(SOURCE, "f b a b c </s>"), ids(TARGET, "</s> g/LR a/R b/0 d/0 b/R")
    tokens, hidden = hiding()(source, [target], 1.0)
    assert text(SOURCE, tokens[0]) == "f <unk_1> <unk_2> <unk_1> c </s>"
    assert text(TARGET, hidden[0]) == "</s> g/LR <unk_2>/R <unk_1>/0 d/0 <unk_1>/R"


def test_unknown_words_stay_hidden_and_are_numbered_with_the_others():
    source, target = ids(SOURCE, "a <unk_1> b"), ids(TARGET, "g/L <unk_1>/R a/0")
    tokens, hidden = hiding()(source, [target], 1.0)
    assert text(SOURCE, tokens[0]) == "<unk_1> <unk_2> b"
    assert text(TARGET, hidden[0]) == "g/L <unk_2>/R <unk_1>/0"
    tokens, hidden = hiding()(source, [target], 0.0)
    assert (tokens == source).all()
    assert (hidden == target).all()


def test_there_are_no_more_hidden_words_than_placeholders():
    source, target = ids(SOURCE, "a b c d e"), ids(TARGET, "e/R d/R c/R b/R a/0")
    tokens, hidden = hiding()(source, [target], 1.0)
    assert text(SOURCE, tokens[0]) == "<unk_1> <unk_2> <unk_3> d e"
    assert text(TARGET, hidden[0]) == "e/R d/R <unk_3>/R <unk_2>/R <unk_1>/0"


@pytest.mark.parametrize("seed", range(5))
def test_some_words_are_hidden_the_same_way_everywhere(seed):
    torch.manual_seed(seed)
    rows = torch.randint(4, 10, (40, 9))
    targets = torch.randint(4, len(TARGET) - 6, (40, 8))
    tokens, hidden, again = hiding()(rows, [targets, targets], 0.5)
    assert (hidden == again).all()
    assert (tokens != rows).any()
    for row, (old, new) in enumerate(zip(rows, tokens, strict=True)):
        became = dict(zip(old.tolist(), new.tolist(), strict=True))
        assert [became[one] for one in old.tolist()] == new.tolist()
        marks = [one for one in dict.fromkeys(new.tolist()) if SOURCE[one] in MARKS]
        assert [SOURCE[one] for one in marks] == MARKS[: len(marks)]
        words = {SOURCE[one]: SOURCE[other] for one, other in became.items()}
        for before, after in zip(targets[row].tolist(), hidden[row].tolist(), strict=True):
            label, _, slots = TARGET[before].partition("/")
            wanted = label if slots in ("L", "LR") else words.get(label, label)
            assert TARGET[after] == f"{wanted}/{slots}"


def test_it_learns_to_copy_words_that_no_training_has_shown():
    """Three of 20 words in reverse order, and then three that are not in the dictionary."""
    torch.manual_seed(0)
    symbols = [*SPECIALS, *(f"w{number}" for number in range(20)), *MARKS]
    hide = hiding(symbols, symbols, ("", ""))
    settings = TransformerConfig(d_model=32, d_ff=32, heads=2, layers=1, dropout=0.0)
    embeddings = [nn.Embedding(len(symbols), 32, 1) for _ in range(2)]
    encoder = Encoder(settings, embeddings[0])
    decoder = Decoder(settings, embeddings[1], copies=hide.copies)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=0.005)

    def predicted(rows, rate):
        ends = torch.full((len(rows), 1), 2)
        target = torch.cat([rows.flip(1), ends], 1)
        shifted = torch.cat([ends, rows.flip(1)], 1)
        tokens, shifted, target = hide(torch.cat([rows, ends], 1), [shifted, target], rate)
        source = encoder.encode(tokens, None)
        return decoder.output(decoder.decode(shifted, source), source), target

    for _ in range(150):
        rows = torch.rand(32, 20).argsort(1)[:, :3] + 4
        logits, target = predicted(rows, 0.4)
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        optimizer.step()
    unknown = torch.tensor([[symbols.index(mark) for mark in MARKS]])
    logits, target = predicted(unknown, 0.0)
    assert (logits.argmax(2) == target).all()
