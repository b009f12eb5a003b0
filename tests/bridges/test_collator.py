"""Examples with trees become the batches of a Trainer and of a DataLoader."""

from __future__ import annotations

import logging
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import treesyntax as ts

transformers = pytest.importorskip("transformers", reason="transformers is no part of the base")
tokenizers = pytest.importorskip("tokenizers")
models, pre_tokenizers, processors, trainers = (
    getattr(tokenizers, name) for name in ("models", "pre_tokenizers", "processors", "trainers")
)

SENTENCES = ["the cat sat unhappily", "a dog barked", "dogs bark"]
BRACKETS = [
    "(S (NP (DT the) (NN cat)) (VP (VBD sat) (ADV unhappily)))",
    "(S (NP (DT a) (NN dog)) (VP barked))",
    "(S dogs bark)",
]
TREES = [ts.parse_tree(line, "ptb") for line in BRACKETS]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def word_pieces(**options: Any):
    """A tokenizer that splits most words and puts marks around them."""
    one = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    one.pre_tokenizer = pre_tokenizers.Whitespace()
    one.train_from_iterator(
        SENTENCES, trainers.WordPieceTrainer(vocab_size=40, special_tokens=MARKS)
    )
    one.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "eos_token": "[SEP]",
        "model_input_names": ["input_ids", "attention_mask", "token_type_ids"],
    }
    return transformers.PreTrainedTokenizerFast(tokenizer_object=one, **names, **options)


def byte_pieces(add_prefix_space: bool = True, **options: Any):
    """A tokenizer of bytes without marks around a text, as GPT-2's."""
    one = tokenizers.Tokenizer(models.BPE())
    one.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trainer = trainers.BpeTrainer(
        vocab_size=280,
        special_tokens=["<eos>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    one.train_from_iterator(SENTENCES, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=one, eos_token="<eos>", **options)


def examples(**more: Any) -> list[dict[str, Any]]:
    rows = zip(SENTENCES, TREES, strict=True)
    return [{"text": text, "tree": tree, **more} for text, tree in rows]


def nodes_by_hand(tokenizer, text: str, tree: ts.Tree) -> list[int]:
    encoding = tokenizer(text, return_offsets_mapping=True)
    return ts.align(tree, encoding["offset_mapping"], text)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("make", [word_pieces, byte_pieces])
def test_texts_are_padded_and_aligned_as_by_hand(make, side: str):
    tokenizer = make(padding_side=side)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    batch = ts.TreeCollator(tokenizer)(examples())
    plain = tokenizer(SENTENCES, padding=True, return_tensors="pt")
    assert {*batch} == {*plain, "tree"}
    for name, tensor in plain.items():
        assert torch.equal(batch[name], tensor)
    nodes = [nodes_by_hand(tokenizer, *pair) for pair in zip(SENTENCES, TREES, strict=True)]
    width = plain["input_ids"].shape[1]
    expected = ts.batch_trees(TREES, nodes, width, left_pad=side == "left").to_dict()
    assert batch["tree"].keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(batch["tree"][name], tensor)
        assert tensor.shape[0] == 3  # so that it can be split by rows


def test_a_multi_word_token_of_a_treebank_is_a_word_of_its_text():
    rows = ["1\tdogs", "2-3\tbark", "2\tb", "3\tark"]
    heads = ["3", "_", "3", "0"]
    pairs = zip(rows, heads, strict=True)
    text = "\n".join(row + "\t_" * 4 + f"\t{head}\tdep\t_\t_" for row, head in pairs)
    collator = ts.TreeCollator(word_pieces(), "conllu")
    contracted = text.replace("\tb\t", "\tba\t")
    batch = collator([{"text": "dogs bark", "tree": contracted}])
    assert batch["tree"]["parent"].tolist() == [[-1, 0]]
    assert len(collator([{"text": "dogs bark", "tree": text}])["tree"]["parent"][0]) == 3
    for words, nodes in ((["dogs", "bark"], 2), (["dogs", "ba", "ark"], 3)):
        batch = collator([{"words": words, "tree": contracted}])
        assert len(batch["tree"]["parent"][0]) == nodes
    spans = [(0, 4), (5, 9), (5, 9)]
    given = collator([{"text": "dogs bark", "tree": contracted, "spans": spans}])
    assert len(given["tree"]["parent"][0]) == 3


@pytest.mark.parametrize("kind", ["words", "bytes", "bytes after a space"])
def test_words_are_those_of_a_text(kind: str):
    """Tokenizers of bytes read a list of words as if no space stood between them, but for the collator."""
    tokenizer = (
        word_pieces()
        if kind == "words"
        else byte_pieces(add_prefix_space=kind != "bytes", pad_token="<eos>")
    )
    collator = ts.TreeCollator(tokenizer)
    rows = [{"words": row["text"].split(), "tree": row["tree"]} for row in examples()]
    assert_same(collator(rows), collator(examples()))
    pairs = [{**row, "words_pair": ["a", "dog"], "label": 1} for row in rows]
    texts = [{**row, "text_pair": "a dog", "label": 1} for row in examples()]
    assert_same(collator(pairs), collator(texts))


def test_trees_are_read_in_a_format():
    collator = ts.TreeCollator(word_pieces(), "ptb")
    rows = [{"text": text, "tree": line} for text, line in zip(SENTENCES, BRACKETS, strict=True)]
    assert_same(collator(rows), collator(examples()))
    document = [{"text": " ".join(SENTENCES), "tree": BRACKETS}]
    tree = collator(document)["tree"]
    assert (tree["parent"] < 0).sum() == 3


def test_labels_of_nodes_are_numbered():
    tree = ts.TreeCollator(word_pieces(), node_labels={"S": 1, "NP": 2})(examples())["tree"]
    assert tree["label"][0].tolist()[:3] == [1, 2, 0]
    assert tree["label"][2].tolist()[3:] == [-1] * (tree["label"].shape[1] - 3)


@pytest.mark.parametrize("split", [False, True])
def test_pairs_have_a_tree_each_or_one(split: bool):
    tokenizer = word_pieces()
    collator = ts.TreeCollator(tokenizer)

    def sentence(text: str) -> Any:
        return text.split() if split else text

    keys = ("words", "words_pair") if split else ("text", "text_pair")
    pair = {keys[0]: sentence(SENTENCES[1]), keys[1]: sentence(SENTENCES[2])}
    both, first, second, single = collator(
        [
            {**pair, "tree": TREES[1], "tree_pair": TREES[2]},
            {**pair, "tree": TREES[1]},
            {**pair, "tree_pair": TREES[2]},
            {keys[0]: sentence(SENTENCES[1]), "tree": TREES[1]},
        ]
    )["tree"]["token_node"].tolist()
    alone = [nodes_by_hand(tokenizer, SENTENCES[row], TREES[row]) for row in (1, 2)]
    after = [node + len(TREES[1]) if node >= 0 else -1 for node in alone[1][1:]]
    assert both == alone[0] + after
    assert first == alone[0] + [-1] * len(after)
    assert second == [-1] * len(alone[0]) + alone[1][1:]
    assert single == first
    batch = collator([{**pair, "tree": TREES[1], "tree_pair": TREES[2]}])
    assert batch["token_type_ids"].tolist() == [[0] * len(alone[0]) + [1] * len(after)]
    assert (batch["tree"]["parent"] < 0).sum() == 2


def test_a_sentence_may_have_no_tree():
    tree = ts.TreeCollator(word_pieces())([{"text": SENTENCES[0], "tree": None}])["tree"]
    assert (tree["token_node"] == -1).all()
    assert ts.TreeBatch.from_dict(tree).parent.shape == (1, 1)


def test_labels_are_classes_targets_or_names():
    collator = ts.TreeCollator(word_pieces(), label2id={"good": 1, "bad": 0})
    for label, wanted in (
        ([1, 0, True], torch.tensor([1, 0, 1])),
        (["good", "bad", "good"], torch.tensor([1, 0, 1])),
        ([0.5, 1, 2.0], torch.tensor([0.5, 1.0, 2.0])),
        ([[0.0, 1.0], [1.0, 1], [0.0, 0.0]], torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]])),
        ([torch.tensor(2), torch.tensor(0), torch.tensor(1)], torch.tensor([2, 0, 1])),
    ):
        for key in ("label", "labels"):
            rows = [{**row, key: one} for row, one in zip(examples(), label, strict=True)]
            found = collator(rows)["labels"]
            assert found.dtype == wanted.dtype
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("key", ["text", "words"])
def test_labels_of_words_stand_at_their_first_tokens(side: str, key: str):
    tokenizer = word_pieces(padding_side=side)
    names = {"DT": 4, "NN": 5, "VBD": 6, "ADV": 7, "V": 8}
    tags = [["DT", "NN", "VBD", "ADV"], ["DT", "NN", "V"], ["NN", "V"]]
    rows = [
        {key: text if key == "text" else text.split(), "tree": tree, "labels": tag}
        for text, tree, tag in zip(SENTENCES, TREES, tags, strict=True)
    ]
    batch = ts.TreeCollator(tokenizer, label2id=names)(rows)
    for row, tag in enumerate(tags):
        kept = [one for one in batch["labels"][row].tolist() if one != -100]
        assert kept == [names[one] for one in tag]
        ids = batch["input_ids"][row]
        tokens = tokenizer.convert_ids_to_tokens(ids[batch["labels"][row] != -100])
        for token, word in zip(tokens, SENTENCES[row].split(), strict=True):
            assert word.startswith(token)


def test_the_words_of_a_pair_are_labelled_one_after_another():
    pair = {"words": ["a", "dog"], "words_pair": ["dogs", "bark"], "tree_pair": TREES[2]}
    labels = ts.TreeCollator(word_pieces())([{**pair, "labels": [1, 2, 3, 4]}])["labels"]
    assert [one for one in labels[0].tolist() if one != -100] == [1, 2, 3, 4]


@pytest.mark.parametrize("side", ["right", "left"])
def test_a_target_is_the_labels_of_a_decoder(side: str):
    tokenizer = word_pieces(padding_side=side)
    rows = [
        {**row, "target": target}
        for row, target in zip(examples(), ["dog", "a dog barked", "the"], strict=True)
    ]
    batch = ts.TreeCollator(tokenizer, max_target_length=5)(rows)
    assert "decoder_input_ids" not in batch
    labels = tokenizer(text_target=[row["target"] for row in rows], truncation=True, max_length=5)
    width = max(map(len, labels["input_ids"]))
    assert width == 5
    assert batch["labels"].tolist() == [
        ids + [-100] * (width - len(ids)) for ids in labels["input_ids"]
    ]


@pytest.mark.parametrize("encoded", [False, True])
def test_a_target_as_long_as_its_input_is_still_that_of_a_decoder(encoded: bool):
    """A decoder begins on the left; labels of tokens are padded with them."""
    collator = ts.TreeCollator(word_pieces(padding_side="left"))
    rows = [{**row, "target": row["text"]} for row in examples()]
    batch = collator([collator.encode(row) for row in rows] if encoded else rows)
    lengths = batch["attention_mask"].sum(1).tolist()
    assert len(set(lengths)) > 1
    for row, ids, length in zip(batch["labels"], batch["input_ids"], lengths, strict=True):
        assert row.tolist() == [*ids[-length:].tolist(), *[-100] * (len(row) - length)]


def test_a_decoder_begins_with_its_labels_where_the_loss_hides_them():
    """BART takes its inputs in their place, and says nothing."""
    config = transformers.BartConfig(
        vocab_size=40, d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, pad_token_id=0,
        decoder_start_token_id=2,
    )  # fmt: skip
    model = transformers.BartForConditionalGeneration(config)
    bridge = ts.HuggingFaceBridge(model, "tree_distance").eval()
    rows = [{**row, "target": row["text"]} for row in examples()]
    tokenizer = word_pieces()
    given = ts.TreeCollator(tokenizer, model=bridge)(rows)
    plain = ts.TreeCollator(tokenizer)(rows)
    assert given.keys() - plain.keys() == {"decoder_input_ids"}
    del given["labels"]
    assert torch.equal(bridge(**given).logits, bridge(**plain).logits)


def test_the_input_of_a_decoder_goes_on_with_its_target():
    tokenizer = byte_pieces(padding_side="left")
    tokenizer.pad_token = tokenizer.eos_token
    targets = [" dog", " a dog barked", " the"]
    rows = [{**row, "target": target} for row, target in zip(examples(), targets, strict=True)]
    collator = ts.TreeCollator(tokenizer, decoder_only=True)
    batch = collator(rows)
    for row, text in enumerate(SENTENCES):
        source = tokenizer(text)["input_ids"]
        target = [*tokenizer(targets[row])["input_ids"], tokenizer.eos_token_id]
        length = len(source) + len(target)
        padding = batch["input_ids"].shape[1] - length
        assert batch["input_ids"][row, padding:].tolist() == source + target
        assert batch["attention_mask"][row].tolist() == [0] * padding + [1] * length
        assert batch["labels"][row].tolist() == [-100] * (padding + len(source)) + target
        nodes = nodes_by_hand(tokenizer, text, TREES[row])
        assert batch["tree"]["token_node"][row, padding:].tolist() == nodes + [-1] * len(target)
    prompts = collator(examples())
    assert prompts["input_ids"].shape == prompts["tree"]["token_node"].shape
    short = ts.TreeCollator(tokenizer, decoder_only=True, max_length=8)
    assert short([rows[0]])["input_ids"].shape == (1, 8)
    with pytest.raises(ts.OptionError, match="leaves no room in max_length=8"):
        short([{**rows[0], "target": " the cat sat unhappily" * 2}])


def test_a_prompt_stands_around_the_words():
    tokenizer, prompt = byte_pieces(), "Parse this : "
    spans = [
        (start + len(prompt), end + len(prompt))
        for start, end in ts.word_spans(SENTENCES[1], SENTENCES[1].split())
    ]
    text = prompt + SENTENCES[1] + " now"
    batch = ts.TreeCollator(tokenizer)([{"text": text, "tree": TREES[1], "spans": spans}])
    nodes = batch["tree"]["token_node"][0].tolist()
    tokens = tokenizer.convert_ids_to_tokens(batch["input_ids"][0])
    inside = "".join(one for one, node in zip(tokens, nodes, strict=True) if node >= 0)
    assert inside.replace("Ġ", " ").split() == SENTENCES[1].split()
    as_json = {"text": text, "tree": TREES[1], "spans": [list(span) for span in spans]}
    assert ts.TreeCollator(tokenizer)([as_json])["tree"]["token_node"][0].tolist() == nodes


def test_a_prompt_may_end_with_a_line_end():
    tokenizer, before, after = byte_pieces(), "User\n", "\nAssistant:\n"
    spans = [
        (start + len(before), end + len(before))
        for start, end in ts.word_spans(SENTENCES[0], SENTENCES[0].split())
    ]
    collator = ts.TreeCollator(tokenizer, decoder_only=True)
    text = before + SENTENCES[0] + after
    (nodes,) = collator([{"text": text, "tree": TREES[0], "spans": spans}])["tree"]["token_node"]
    encoding = tokenizer(text, return_offsets_mapping=True)
    behind = [start >= spans[-1][1] for start, _ in encoding["offset_mapping"]]
    assert sum(behind) > 2
    assert {node for node, is_behind in zip(nodes.tolist(), behind, strict=True) if is_behind} == {
        -1
    }


def test_texts_and_words_may_be_spelled_as_in_a_treebank():
    """The labels say which token is on which word: here the text has escapes, its tree has not."""
    tree, text = r"(S (X -LRB-) (X the) (X cat\/dog) (X -RRB-))", r"-LRB- the cat\/dog -RRB-"
    collator = ts.TreeCollator(byte_pieces(), "ptb")
    for given in ({"text": text}, {"words": text.split()}):
        batch = collator([{**given, "tree": tree}])
        assert {*batch["tree"]["token_node"][0].tolist()} - {-1} == {2, 4, 6, 8}
    with pytest.raises(ts.TreeError, match=r"word 1 is '-RRB-', but '\(' in the tree"):
        collator([{"words": ["-RRB-", *text.split()[1:]], "tree": tree}])


@pytest.mark.parametrize("empty", [None, "", []])
def test_a_first_batch_without_any_tree_is_warned_of(empty: Any, caplog: pytest.LogCaptureFixture):
    """Methods do nothing with it, and its numbers look sound: those of the model without trees."""
    bare = [{"text": "the cat sat", "tree": empty}] * 2
    treed = {"text": "the cat sat", "tree": "(S (NP the cat) sat)"}
    for batches, times in (([bare, bare], 1), ([[*bare, treed], bare], 0)):
        caplog.clear()
        collator = ts.TreeCollator(word_pieces(), "ptb")
        with caplog.at_level(logging.WARNING):
            for batch in batches:
                collator(batch)
        said = [record.message for record in caplog.records]
        assert [message[:42] for message in said] == [
            "no example of the first batch has a tree, "
        ] * times


def test_what_is_cut_is_counted(caplog: pytest.LogCaptureFixture):
    collator = ts.TreeCollator(word_pieces(model_max_length=6))
    with caplog.at_level(logging.WARNING):
        batch = collator(examples())
        collator(examples())
        ts.TreeCollator(word_pieces(), max_target_length=3)(examples(target="a dog and a cat"))
    assert batch["input_ids"].shape == batch["tree"]["token_node"].shape == (3, 6)
    assert collator.cut == 2 * sum(
        len(word_pieces()(text)["input_ids"]) > 6 for text in SENTENCES
    ) > 0  # fmt: skip
    assert [record.message for record in caplog.records] == [
        "inputs are longer than 6 tokens and are cut; TreeCollator.cut counts them",
        "targets are longer than 3 tokens and are cut; TreeCollator.cut counts them",
    ]
    only_marks = ts.TreeCollator(word_pieces(), max_length=2)(examples())
    assert (only_marks["tree"]["token_node"] == -1).all()


def test_words_that_a_tokenizer_leaves_out_are_counted_with_their_labels(
    caplog: pytest.LogCaptureFixture,
):
    tokenizer = word_pieces()
    tokenizer.backend_tokenizer.normalizer = tokenizers.normalizers.BertNormalizer()
    collator = ts.TreeCollator(tokenizer)
    example = {"words": ["the", "\u200b", "cat"], "tree": None, "labels": [1, 2, 3]}
    with caplog.at_level(logging.WARNING):
        rows = [collator.encode(example) for _ in range(2)]
        ts.TreeCollator(tokenizer, max_length=3).encode(example)
    assert [label for label in rows[0]["labels"] if label >= 0] == [1, 3]
    assert collator.untagged == 2
    said = [
        record.message for record in caplog.records if "TreeCollator.untagged" in record.message
    ]
    assert len(said) == 1


def test_a_text_without_a_token_is_refused():
    empty = {"text": "", "tree": None}
    with pytest.raises(
        ts.OptionError, match=r"example 1 of the batch \(''\): the text has no token"
    ):
        ts.TreeCollator(byte_pieces())([{"text": "a dog", "tree": None}, empty])
    assert ts.TreeCollator(word_pieces())([empty])["input_ids"].tolist() == [[2, 3]]


def test_a_batch_is_widened_to_a_multiple():
    batch = ts.TreeCollator(word_pieces(), pad_to_multiple_of=8)(examples(target="a dog"))
    widths = {one.shape[1] % 8 for one in (batch["input_ids"], batch["labels"])}
    assert widths == {0}
    assert batch["tree"]["token_node"].shape == batch["input_ids"].shape


def test_encoded_examples_give_the_same_batch():
    collator = ts.TreeCollator(word_pieces(), node_labels={"S": 1})
    for more in ({"label": 1}, {"target": "a dog"}, {}):
        rows = examples(**more)
        encoded = [collator.encode(row) for row in rows]
        assert_same(collator(encoded), collator(rows))


@pytest.mark.parametrize("make", [torch.tensor, np.array], ids=["torch", "numpy"])
@pytest.mark.parametrize(
    "more", [{"label": 1}, {"label": 0.5}, {"target": "a dog"}, {"words": 1}, {}]
)
def test_encoded_examples_may_be_tensors_and_arrays(make: Any, more: dict[str, Any]):
    """As data sets with_format("torch") or "numpy" give them, single numbers too."""
    collator = ts.TreeCollator(word_pieces())
    rows = examples(**more) if "words" not in more else examples()
    if "words" in more:
        rows = [{**row, "labels": [1] * len(row["tree"].word_nodes())} for row in rows]
    encoded = [collator.encode(row) for row in rows]
    given = [
        {name: make(value) if name != "tree" else value for name, value in row.items()}
        for row in encoded
    ]
    assert_same(collator(given), collator(rows))


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert list(one) == list(other)
    for name, value in one.items():
        parts = value.items() if isinstance(value, dict) else [(name, value)]
        for key, tensor in parts:
            wanted = other[name][key] if isinstance(value, dict) else other[name]
            assert tensor.dtype == wanted.dtype
            assert torch.equal(tensor, wanted)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_takes_it(workers: int):
    collator = ts.TreeCollator(word_pieces())
    loader = DataLoader(examples(label=1), batch_size=2, collate_fn=collator, num_workers=workers)
    batches = list(loader)
    assert [len(batch["labels"]) for batch in batches] == [2, 1]
    assert_same(batches[0], pickle.loads(pickle.dumps(collator))(examples(label=1)[:2]))


class Recording(torch.nn.Module):
    """A model that keeps what it was called with."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.seen = torch.nn.Linear(1, 2), []

    def forward(self, input_ids, attention_mask, token_type_ids, tree, labels):
        self.seen.append(tree)
        logits = self.linear(input_ids.float().mean(1, keepdim=True))
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


@pytest.mark.parametrize("encoded", [False, True])
def test_a_trainer_trains_and_evaluates_with_it(tmp_path, encoded: bool):
    pytest.importorskip("accelerate", reason="a Trainer needs accelerate")
    torch.manual_seed(0)  # large weights round the loss to 0
    collator, model = ts.TreeCollator(word_pieces()), Recording()
    rows = examples(label=1) * 2
    rows = [collator.encode(row) for row in rows] if encoded else rows
    arguments = transformers.TrainingArguments(
        tmp_path,
        max_steps=3,
        per_device_train_batch_size=4,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=encoded,
    )
    trainer = transformers.Trainer(
        model, arguments, train_dataset=rows, eval_dataset=rows, data_collator=collator
    )
    trainer.train()
    assert trainer.evaluate()["eval_loss"] > 0
    assert len(model.seen) == 4
    for tree in model.seen:
        batch = ts.TreeBatch.from_dict(tree)
        assert (batch.token_node >= 0).any(1).all()


def test_a_trainer_that_takes_the_texts_out_is_told_of(tmp_path):
    pytest.importorskip("accelerate", reason="a Trainer needs accelerate")
    arguments = transformers.TrainingArguments(tmp_path, max_steps=1, report_to=[], use_cpu=True)
    trainer = transformers.Trainer(
        Recording(),
        arguments,
        train_dataset=examples(label=1),
        data_collator=ts.TreeCollator(word_pieces()),
    )
    with pytest.raises(ts.OptionError, match="unless it has remove_unused_columns=False"):
        trainer.train()


def test_loops_of_ones_own_move_a_batch_as_that_of_transformers():
    batch = ts.TreeCollator(word_pieces())(examples())
    by_name = {name: value.to("meta") for name, value in batch.items()}
    whole = batch.to("meta", non_blocking=True)
    for tensors in (by_name, whole, pickle.loads(pickle.dumps(whole))):
        assert list(tensors) == list(batch)
        leaves = [*tensors["tree"].values(), tensors["input_ids"], tensors["attention_mask"]]
        assert {tensor.device.type for tensor in leaves} == {"meta"}
    assert batch["tree"]["parent"].is_cpu


def test_accelerate_moves_and_cuts_the_trees():
    operations = pytest.importorskip("accelerate.utils.operations")
    batch = ts.TreeCollator(word_pieces())(examples(label=1))
    moved = operations.send_to_device(batch, torch.device("meta"))
    assert {part.device.type for part in moved["tree"].values()} == {"meta"}
    part = operations.slice_tensors(batch, slice(1, 3))
    expected = ts.TreeBatch.from_dict(batch["tree"]).token_node[1:3]
    assert torch.equal(ts.TreeBatch.from_dict(part["tree"]).token_node, expected)


TEXT, TREE = SENTENCES[0], TREES[0]


@pytest.mark.parametrize(
    ("example", "fault"),
    [
        ({"text": TEXT}, r"^example 0 of the batch \('the cat sat unhappily'\): an example needs a tree"),
        ({"tree": TREE}, "needs its text or its words; a Trainer takes them out unless"),
        ({"text": TEXT, "words": TEXT.split(), "tree": TREE}, "has text or words, not both"),
        ({"text": TEXT, "tree": TREE, "lable": 1}, r"named 'lable'; did you mean 'label'\?"),
        ({"text": TEXT, "tree": TREE, "idx": 1}, r"leave it out by ignore=\('idx',\)"),
        ({"text": TEXT, "tree": BRACKETS[0]}, "of no known format; give TreeCollator"),
        ({"text": TEXT, "tree": float("nan")}, "not 'nan'; give None for a text without one"),
        ({"text": TEXT, "tree": {"label": "S"}}, "a tree is a Tree, a string or a list of them, not"),
        ({"text": TEXT, "tree": TREES[1]}, r"word 1 \('a'\) is not at character 0 of the text"),
        ({"words": TEXT.split(), "tree": TREES[1]}, "4 words, but the tree has 3; give the words"),
        ({"words": ["a", "cat", "sat", "unhappily"], "tree": TREE}, "word 1 is 'a', but 'the' in"),
        ({"words": TEXT.split(), "tree": None, "text_pair": "a"}, "texts, or both are lists of w"),
        ({"words": TEXT, "tree": None}, "words are a list of strings; give a text as text"),
        ({"text": TEXT.split(), "tree": None}, "a text is a string; a list of words is given as"),
        ({"text": TEXT, "tree": TREE, "tree_pair": TREE}, "tree_pair, but neither text_pair nor"),
        ({"text": TEXT, "tree": TREE, "label": "good"}, "'good' has no number; give TreeCollator"),
        ({"text": TEXT, "tree": TREE, "label": object()}, "a number or a name, not a object"),
        ({"text": TEXT, "tree": TREE, "label": float("nan")}, "a label is nan; leave such exam"),
        ({"text": f"{TEXT} . More", "tree": TREE}, "goes on after the last word of the tree, with '. M"),
        ({"text": TEXT, "tree": TREE, "labels": [1, 2]}, "2 labels, but 4 words; give one a word"),
        ({"text": TEXT, "tree": TREE, "labels": 1, "label": 1}, "labels or label, not both"),
        ({"text": TEXT, "tree": TREE, "labels": 1, "target": "a"}, "target or labels, not both"),
        ({"text": TEXT, "tree": TREE, "target": ["a"]}, "a target is a string, not a list"),
        ({"input_ids": [1, 2], "tree": TREE}, "needs the tree that TreeCollator.encode gave"),
        (
            {"input_ids": [1, 2], "tree": {"parent": [-1], "branch": [0], "token_node": [0]}},
            "trees over 1 tokens, but input_ids of 2; encode the example again",
        ),
    ],
)  # fmt: skip
def test_faulty_examples_are_named(example: dict[str, Any], fault: str):
    with pytest.raises((ts.OptionError, ts.TreeError), match=fault) as error:
        ts.TreeCollator(word_pieces())([example])
    assert "\n" not in str(error.value)


def test_batches_that_do_not_fit_are_refused():
    collator = ts.TreeCollator(word_pieces(), label2id={"good": 1})
    rows = examples()
    with pytest.raises(ts.OptionError, match="example 1 of the batch has no labels, but others"):
        collator([{**rows[0], "label": 1}, rows[1]])
    with pytest.raises(ts.OptionError, match="some examples .* one label, others have a list"):
        collator([{**rows[0], "label": 1}, {**rows[1], "labels": [1, 2, 3]}])
    with pytest.raises(ts.OptionError, match="targets for different classes"):
        collator([{**rows[0], "label": [1.0]}, {**rows[1], "labels": [1.0, 2.0]}])
    with pytest.raises(ts.OptionError, match="no label is named 'god'; did you mean 'good'"):
        collator([{**rows[0], "label": "god"}])
    encoded = [collator.encode(row) for row in rows]
    del encoded[1]["token_type_ids"]
    with pytest.raises(ts.OptionError, match="example 1 of the batch has no token_type_ids, but"):
        collator(encoded)
    encoded = [collator.encode(row) for row in rows]
    for more in ({"text": TEXT, "idx": 3}, {"idx": [1], "weights": [0.5] * 6}):
        others = re.escape(f"ignore={(*more,)}")
        with pytest.raises(
            ts.OptionError, match=f"0 of the batch has {next(iter(more))}, which .* {others}"
        ):
            collator([{**row, **more} for row in encoded])
        kept = ts.TreeCollator(word_pieces(), ignore=more)([{**row, **more} for row in encoded])
        assert_same(kept, collator(encoded))
    with pytest.raises(ts.OptionError, match="a batch needs an example"):
        collator([])
    for wrong in (rows[0], [SENTENCES[0]], [None]):
        with pytest.raises(ts.OptionError, match="takes a list of dicts, and 0 is a"):
            collator(wrong)
    with pytest.raises(ts.OptionError, match="1 tokens have no room for those that the tokenizer"):
        ts.TreeCollator(word_pieces(), max_length=1)(rows)
    with pytest.raises(ts.OptionError, match="no pad_token for inputs of different lengths; set"):
        ts.TreeCollator(byte_pieces())(rows)
    assert ts.TreeCollator(byte_pieces())(rows[:1])["input_ids"].shape[0] == 1
    assert "labels" not in ts.TreeCollator(word_pieces(), ignore="idx")([{**rows[0], "idx": 3}])


def test_a_slow_tokenizer_is_refused():
    with pytest.raises(ts.OptionError, match="object does not say where its tokens stand"):
        ts.TreeCollator(object())


def test_it_is_there_without_transformers():
    code = "import sys, treesyntax as ts; ts.TreeCollator; print('transformers' in sys.modules)"
    shown = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert shown.split() == ["False"]
