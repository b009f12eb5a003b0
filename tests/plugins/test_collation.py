"""Batches are those that fairseq makes."""

import itertools

import pytest
import torch
from fairseq.data import language_pair_dataset

from fairseq_plugins.collation import all_at_once

FAIRSEQS = language_pair_dataset.collate.__wrapped__
"""The function that the plugin has replaced."""
PAD, END = 1, 2
SETTINGS = [
    {"left_pad_source": left, "left_pad_target": left_target, "input_feeding": feeding, **widths}
    for left, left_target, feeding, widths in itertools.product(
        (True, False),
        (True, False),
        (True, False),
        (
            {},
            {"pad_to_multiple": 8},
            {"pad_to_length": {"source": 20, "target": 3}},
            {"pad_to_length": {"source": 3, "target": 21}, "pad_to_multiple": 4},
        ),
    )
]


def pairs(seed, count=40, target=True, inner_padding=False):
    """Sentences of 1 to 12 tokens, many of the same length, so that their order in the batch is tried too."""
    generator = torch.Generator().manual_seed(seed)

    def sentence():
        size = int(torch.randint(1, 13, (), generator=generator))
        tokens = torch.randint(3, 50, (size,), generator=generator)
        if inner_padding and size > 2:  # as BucketPadLengthDataset gives them
            tokens[-2:] = PAD
        return tokens

    return [
        {"id": 7 * row, "source": sentence(), "target": sentence() if target else None}
        for row in range(count)
    ]


def same(batch, wanted):
    assert [*batch] == [*wanted]
    for name, value in wanted.items():
        if isinstance(value, dict):
            same(batch[name], value)
        elif isinstance(value, torch.Tensor):
            assert batch[name].dtype == value.dtype
            assert batch[name].is_contiguous()
            assert torch.equal(batch[name], value)
        else:
            assert batch[name] == value
            assert type(batch[name]) is type(value)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_batches_are_those_of_fairseq(settings):
    def theirs(*args):
        raise AssertionError("left to fairseq")

    ours = all_at_once(theirs)
    for seed, (count, target, inner) in enumerate(
        itertools.product((1, 2, 40), (True, False), (True, False))
    ):
        samples = pairs(seed, count, target, inner)
        same(ours(samples, PAD, END, **settings), FAIRSEQS(samples, PAD, END, **settings))


@pytest.mark.parametrize(
    "change",
    [
        {"alignment": torch.tensor([[0, 0]])},
        {"constraints": torch.tensor([1, 0])},
        {"prev_output_tokens": torch.tensor([END, 5])},
        {"source": torch.tensor([5, 6, END], dtype=torch.int32)},
        {"source": torch.tensor([], dtype=torch.int64), "target": torch.tensor([5])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_no_plain_pair_goes_fairseqs_way(change):
    seen = []
    collate = all_at_once(lambda *args: seen.append(args))
    samples = [{**sample, **change} for sample in pairs(1, 3)]
    collate(samples, PAD, END, left_pad_source=False, pad_to_multiple=8)
    assert seen == [(samples, PAD, END, False, False, True, None, 8)]


def test_no_pairs_make_no_batch():
    assert all_at_once(FAIRSEQS)([], PAD, END) == {}
