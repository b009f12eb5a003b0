"""Sentences and their trees as the inputs of a Hugging Face model: tokenized, aligned and padded."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from treesyntax.bridges.movable import Movable
from treesyntax.errors import OptionError, TreeError, unknown_name
from treesyntax.nn.tree_batch import TreeBatch, batch_trees, collate
from treesyntax.trees.alignment import Trees, align_words, check_words, token_words, trees_of
from treesyntax.trees.formats import parse_tree, parse_tree_over
from treesyntax.trees.tree import Tree

IGNORED = -100
"""The label of a token that counts in no loss, as in PyTorch and transformers."""
TEXTS = (("text", "words", "tree"), ("text_pair", "words_pair", "tree_pair"))
"""Keys of the first and of the second sentence of an example."""
LABELS = ("labels", "label")
KEYS = (*TEXTS[0], *TEXTS[1], "spans", "target", *LABELS)
TREE_PARTS = ("parent", "branch", "token_node")
OF_DECODER = "labels_of_decoder"
"""Beside the trees of an encoded example, where a Trainer leaves it: its labels are those of a decoder."""
NO_LENGTH = 10**9
"""Tokenizers without a longest input say that it is longer than this."""

log = logging.getLogger(__name__)


class TreeCollator:
    """Turn a list of examples into a batch: ``collator([{"text": …, "tree": …, "label": 1}, …])``.

    Give it as ``data_collator`` to a ``Trainer`` or ``Seq2SeqTrainer`` with
    ``remove_unused_columns=False``, or as ``collate_fn`` to a ``DataLoader``. The batch has the
    tokenizer's tensors, padded on the tokenizer's side, ``labels`` where the examples have some, and
    ``tree``: the dict of a :class:`treesyntax.nn.tree_batch.TreeBatch`, the batch first in every tensor.
    So a Trainer moves it, and ``DataParallel`` splits it. A bridge takes it as ``tree=``.

    An example is a dict with these keys:

    - ``text``, a string, or ``words``, a list of them: the words of the tree, read with a space between them;
    - ``tree``: a Tree, or a string in the format ``format``; a list of trees for a text of several
      sentences; None for a text without a tree. A multi-word token of CoNLL-U (French ``du`` = de + le) is
      a word of its text, or of its words if these have it;
    - ``text_pair`` or ``words_pair``, and ``tree_pair``: the same for a second sentence. A sentence of a
      pair may have no tree;
    - ``spans``: where the words stand in ``text``, if other text is around them, such as a prompt;
    - ``labels`` or ``label``: the class of the example, a number, or a name of ``label2id``. A list has
      one for each word: the word's first token gets it, all others get -100. Floats are targets of a
      regression, a list of them one for each class;
    - ``target``: the output text, whose tokens are the labels of a decoder, padded with -100.
      ``decoder_input_ids`` are left to the model, unless ``model`` is given. With ``decoder_only``
      the input goes on with the target, and only that is labelled.

    :meth:`encode` makes the same of one example at a time, for ``dataset.map``; the collator takes its
    results as well, and with them ``remove_unused_columns`` may stay on.

    Args:
        tokenizer: a fast tokenizer of transformers.
        format: of trees that are strings, such as ``ptb``; a wrong name lists all.
        label2id: numbers of class names.
        node_labels: ids from 1 on of the labels of nodes, for methods that read them; see
            :func:`treesyntax.nn.tree_batch.batch_trees`.
        max_length: most tokens of an input, by default the tokenizer's. Longer ones are cut, as the
            tokenizer cuts, and :attr:`cut` counts them.
        max_target_length: the same of a target.
        policy: which tokens of a word stand on its node, see :func:`treesyntax.trees.alignment.align`.
        pad_to_multiple_of: widen the batch to a multiple of it.
        decoder_only: whether the model continues its input, as GPT-2 and Llama do.
        ignore: keys of examples that are not for the model.
        model: an encoder-decoder that makes its ``decoder_input_ids`` of the labels. Trainer's
            ``label_smoothing_factor`` needs them, as it hides the labels from the model.

    Attributes:
        cut: how many inputs and targets have been cut, in this process.
        untagged: how many words with a label have no token, in inputs that were not cut, in this process.
        joins_words: whether the tokenizer reads a list of words as if no space stood between them.
        is_first: whether no batch was made yet; a first one without any tree is warned of.

    Raises:
        OptionError: for a tokenizer that does not say where its tokens stand; when called, for examples
            with other keys, or without one that is needed, and for a text without any token.
        TreeError: when called, for words that are not those of the tree, with the number of the example.
    """

    def __init__(
        self,
        tokenizer: Any,
        format: str | None = None,
        *,
        label2id: Mapping[str, int] | None = None,
        node_labels: Mapping[str, int] | None = None,
        max_length: int | None = None,
        max_target_length: int | None = None,
        policy: str = "copy",
        pad_to_multiple_of: int | None = None,
        decoder_only: bool = False,
        ignore: Iterable[str] = (),
        model: Any = None,
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise OptionError(
                f"{type(tokenizer).__name__} does not say where its tokens stand in a text; "
                "load a fast tokenizer, as AutoTokenizer does"
            )
        self.tokenizer, self.format, self.policy = tokenizer, format, policy
        self.label2id, self.node_labels = label2id, node_labels
        self.max_length = max_length or _longest(tokenizer)
        self.max_target_length = max_target_length or _longest(tokenizer)
        self.pad_to_multiple_of, self.decoder_only = pad_to_multiple_of, decoder_only
        self.model = model
        self.joins_words = _joins_words(tokenizer)
        self.ignore = frozenset([ignore] if isinstance(ignore, str) else ignore)
        self.cut = self.untagged = 0
        self.is_first = True

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> Movable:
        """Return the batch of some examples; ``batch = batch.to(device)`` moves all of it."""
        rows = []
        for number, example in enumerate(examples):
            if not isinstance(example, Mapping):
                raise OptionError(
                    f"the collator takes a list of dicts, and {number} is a {type(example).__name__}"
                )
            try:
                rows.append(self._encoded(example))
            except (TreeError, OptionError) as error:
                name = str(example.get("text", example.get("words", "")))[:40]
                raise type(error)(f"example {number} of the batch ({name!r}): {error}") from None
        if not rows:
            raise OptionError("a batch needs an example or more")
        names = [name for name in rows[0] if name not in ("tree", *LABELS)]
        for number, row in enumerate(rows):
            if missing := [name for name in names if name not in row]:
                raise OptionError(
                    f"example {number} of the batch has no {missing[0]}, but example 0 has; encode all "
                    "of them with one tokenizer"
                )
        for number, row in enumerate(rows):
            if wrong := [name for name in names if not _is_of_tokens(row[name], row["input_ids"])]:
                raise OptionError(
                    f"example {number} of the batch has {wrong[0]}, which is no whole number for each token; "
                    f"leave out what is not for the model by ignore={tuple(wrong)}"
                )
        if self.is_first and not any(len(row["tree"]["parent"]) for row in rows):
            log.warning(
                "no example of the first batch has a tree, so methods do nothing with it; check the trees"
            )
        self.is_first = False
        width = _multiple(max(len(row["input_ids"]) for row in rows), self.pad_to_multiple_of)
        left = self.tokenizer.padding_side == "left"
        batch = Movable(
            (name, _padded([row[name] for row in rows], width, self._fill(name, rows), left))
            for name in names
        )
        batch["tree"] = Movable(self._trees(rows, width, left).to_dict())
        labels = [row.get("labels") for row in rows]
        if any(label is not None for label in labels):
            batch["labels"] = self._labels(labels, rows, width, left)
            if self.model is not None:
                batch["decoder_input_ids"] = decoder_inputs(self.model, batch["labels"])
        return batch

    def encode(self, example: Mapping[str, Any]) -> dict[str, Any]:
        """Return one example as plain lists: the tokenizer's, ``labels``, and a dict of lists, ``tree``."""
        self._check_keys(example)
        texts, words, trees = self._read(example)
        target = None if example.get("target") is None else self._target(example)
        most = self.max_length
        if most is not None and self.decoder_only and target is not None:
            most -= len(target)
            if most < 1:
                raise OptionError(
                    f"a target of {len(target)} tokens leaves no room in max_length={self.max_length}"
                )
        encoding = self.tokenizer(
            *(texts if words is None else map(self._apart, words)),
            is_split_into_words=words is not None,
            return_offsets_mapping=True,
            truncation=most is not None,
            max_length=most,
        )
        if most is not None and len(encoding["input_ids"]) > most:
            raise OptionError(f"{most} tokens have no room for those that the tokenizer adds")
        if not encoding["input_ids"]:
            raise OptionError(
                "the text has no token, and a model needs one; leave it out, or let the tokenizer begin texts "
                "with a special one"
            )
        is_cut = bool(encoding.encodings[0].overflowing)
        self._count_cut(is_cut, "inputs", most)
        nodes, of_tokens, count = self._aligned(encoding, texts, words, trees, example.get("spans"))
        row: dict[str, Any] = {
            name: list(encoding[name])
            for name in ("input_ids", "attention_mask", "token_type_ids")
            if name in encoding
        }
        labels = self._numbers(example)
        if isinstance(labels, list) and not any(isinstance(label, float) for label in labels):
            labels = _at_first_tokens(labels, of_tokens, count)
            self._count_untagged(0 if is_cut else count - len({*of_tokens} - {None}))
        if target is not None:
            if labels is not None:
                raise OptionError("an example has a target or labels, not both")
            labels = target
        if target is not None and self.decoder_only:
            labels, nodes = [IGNORED] * len(nodes) + target, nodes + [-1] * len(target)
            row["input_ids"] += target
            for name, fill in (("attention_mask", 1), ("token_type_ids", 0)):
                if name in row:
                    row[name] += [fill] * len(target)
        row["tree"] = self._stored(trees_of(trees), nodes)
        if target is not None and not self.decoder_only:
            row["tree"][OF_DECODER] = True
        return row if labels is None else {**row, "labels": labels}

    def _apart(self, words: list[str]) -> list[str]:
        """Words as the tokenizer reads them with a space between them, as in a text."""
        return [*words[:1], *(f" {word}" for word in words[1:])] if self.joins_words else words

    def _aligned(
        self,
        encoding: Any,
        texts: list[str],
        words: list[list[str]] | None,
        trees: list[Trees],
        spans: Any,
    ) -> tuple[list[int], list[int | None], int]:
        """The node and the word of each token, and how many words there are."""
        ids = encoding.sequence_ids(0)
        if words is None:
            offsets, pair = encoding["offset_mapping"], len(texts) > 1
            of_tokens = token_words(
                trees if pair else trees[0], offsets, texts if pair else texts[0], spans, ids
            )
            nodes = align_words(trees_of(trees), of_tokens, self.policy)
            return nodes, of_tokens, sum(len(tree.word_nodes()) for tree in trees_of(trees))
        within = encoding.word_ids(0)
        nodes = align_words(trees, within, self.policy, ids)
        of_tokens = [
            None if word is None else word + sum(map(len, words[:number]))
            for word, number in zip(within, ids, strict=True)
        ]
        return nodes, of_tokens, sum(map(len, words))

    def _encoded(self, example: Mapping[str, Any]) -> Mapping[str, Any]:
        """An example as :meth:`encode` gives it; it may be one of these."""
        if "input_ids" not in example:
            return self.encode(example)
        tree = example.get("tree")
        if not isinstance(tree, Mapping) or not {*TREE_PARTS} <= {*tree}:
            raise OptionError(
                "an example with input_ids needs the tree that TreeCollator.encode gave with them; "
                "give the text or the words in place of input_ids"
            )
        return {name: value for name, value in example.items() if name not in self.ignore}

    def _check_keys(self, example: Mapping[str, Any]) -> None:
        for name in example:
            if name not in KEYS and name not in self.ignore:
                error = unknown_name("key of an example", name, KEYS)
                raise OptionError(f"{error}; leave it out by ignore=({name!r},)")
        if not {"text", "words"} & {*example}:
            raise OptionError(
                "an example needs its text or its words; a Trainer takes them out unless it has "
                "remove_unused_columns=False"
            )
        if not {"tree", "tree_pair"} & {*example}:
            raise OptionError("an example needs a tree; give tree=None for a text without one")

    def _read(
        self, example: Mapping[str, Any]
    ) -> tuple[list[str], list[list[str]] | None, list[Trees]]:
        """The sentences of an example as texts or as lists of words, and the trees of each."""
        texts, words, trees = [], [], []
        for text, word, tree in TEXTS:
            given = [key for key in (text, word) if example.get(key) is not None]
            if len(given) > 1:
                raise OptionError(f"an example has {text} or {word}, not both")
            if not given:
                if example.get(tree) is not None:
                    raise OptionError(f"an example has {tree}, but neither {text} nor {word}")
                continue
            value, surface = example[given[0]], None
            if isinstance(value, str) and example.get("spans") is None:
                surface = value
            elif given == [word]:
                surface = " ".join(map(str, value))
            trees.append(self._parsed(example.get(tree), surface))
            if given == [text]:
                texts.append(example[text])
            else:
                if isinstance(example[word], str):
                    raise OptionError(f"{word} are a list of strings; give a text as text")
                words.append(list(example[word]))
                check_words(words[-1], trees[-1])
        if texts and words:
            raise OptionError("both sentences of a pair are texts, or both are lists of words")
        if not all(isinstance(text, str) for text in texts):
            raise OptionError("a text is a string; a list of words is given as words")
        if example.get("spans") is not None and len(texts) != 1:
            raise OptionError("spans are of one text; leave them out for words and for pairs")
        return texts, words or None, trees

    def _parsed(self, trees: Any, text: str | None) -> Trees:
        """Trees, of which some may be strings, and the text in which their words are to be found, if any."""
        if isinstance(trees, str):
            if self.format is None:
                raise OptionError(
                    "a tree is a string, but of no known format; give TreeCollator(…, format='ptb')"
                )
            if text is None:
                return parse_tree(trees, self.format)
            return parse_tree_over(text, trees, self.format)
        if trees is None or isinstance(trees, Tree):
            return trees
        if isinstance(trees, Mapping) or not isinstance(trees, Iterable):
            raise OptionError(
                f"a tree is a Tree, a string or a list of them, not {str(trees)[:40]!r}; give None for a text "
                "without one, where pandas has nan"
            )
        return trees_of([self._parsed(tree, text) for tree in trees])

    def _target(self, example: Mapping[str, Any]) -> list[int]:
        """The token ids of an output text."""
        target, most = example["target"], self.max_target_length
        if not isinstance(target, str):
            raise OptionError(f"a target is a string, not a {type(target).__name__}")
        if self.decoder_only:
            end = self.tokenizer.eos_token_id
            if end is None:
                raise OptionError(
                    "the tokenizer has no eos_token, which is to end a target; set one"
                )
            ids = [*self.tokenizer(target, add_special_tokens=False)["input_ids"], end]
            self._count_cut(most is not None and len(ids) > most, "targets", most)
            return ids[:most]
        encoding = self.tokenizer(text_target=target, truncation=most is not None, max_length=most)
        self._count_cut(bool(encoding.encodings[0].overflowing), "targets", most)
        return list(encoding["input_ids"])

    def _numbers(self, example: Mapping[str, Any]) -> Any:
        """The label of an example, or a list of them, as numbers; None without any."""
        labels = [example[name] for name in LABELS if example.get(name) is not None]
        if not labels:
            return None
        if len(labels) > 1:
            raise OptionError("an example has labels or label, not both")
        label = labels[0].tolist() if hasattr(labels[0], "tolist") else labels[0]
        if isinstance(label, list | tuple):
            return [self._number(value) for value in label]
        return self._number(label)

    def _number(self, label: Any) -> int | float:
        if isinstance(label, str):
            if self.label2id is None:
                raise OptionError(
                    f"the label {label!r} has no number; give TreeCollator(…, label2id={{…}})"
                )
            if label not in self.label2id:
                raise unknown_name("label", label, self.label2id)
            return self.label2id[label]
        if isinstance(label, Integral):
            return int(label)
        if isinstance(label, Real):
            if label != label:
                raise OptionError("a label is nan; leave such examples out")
            return float(label)
        raise OptionError(f"a label is a number or a name, not a {type(label).__name__}")

    def _stored(self, trees: list[Tree], nodes: list[int]) -> dict[str, Any]:
        """The arrays of a row's trees as lists."""
        batch = batch_trees([trees], [nodes], labels=self.node_labels)
        size = sum(map(len, trees))  # a batch without nodes has one of padding
        return {
            name: tensor[0, : size if name != "token_node" else None].tolist()
            for name, tensor in batch.to_dict().items()
        }

    def _trees(self, rows: Sequence[Mapping[str, Any]], width: int, left: bool) -> TreeBatch:
        """The trees of all rows, padded as their tokens are."""
        arrays = []
        for row in rows:
            parent, branch, token_node = (
                np.array(row["tree"][name], np.int64) for name in TREE_PARTS
            )
            if len(token_node) != len(row["input_ids"]):
                raise OptionError(
                    f"trees over {len(token_node)} tokens, but input_ids of {len(row['input_ids'])}; "
                    "encode the example again"
                )
            label = row["tree"].get("label")
            ids = None if label is None else np.array(label, np.int64)
            arrays.append((parent, branch, token_node, ids))
        return collate(arrays, width, left, specials=0)

    def _fill(self, name: str, rows: Sequence[Mapping[str, Any]]) -> int:
        """What stands in the place of padding."""
        if name != "input_ids":
            return self.tokenizer.pad_token_type_id if name == "token_type_ids" else 0
        if self.tokenizer.pad_token_id is not None:
            return int(self.tokenizer.pad_token_id)
        if len({len(row["input_ids"]) for row in rows}) > 1 or self.pad_to_multiple_of:
            raise OptionError(
                "the tokenizer has no pad_token for inputs of different lengths; set one, such as "
                "tokenizer.pad_token = tokenizer.eos_token"
            )
        return 0

    def _labels(
        self, labels: list[Any], rows: Sequence[Mapping[str, Any]], width: int, left: bool
    ) -> Tensor:
        """Classes [B], targets of regression [B] or [B, C], or labels of tokens [B, T]."""
        missing = [number for number, label in enumerate(labels) if label is None]
        if missing:
            raise OptionError(f"example {missing[0]} of the batch has no labels, but others have")
        # Data sets give tensors and arrays as well, of single numbers too.
        labels = [label.tolist() if hasattr(label, "tolist") else label for label in labels]
        lists = [isinstance(label, Sequence) for label in labels]
        if len(set(lists)) > 1:
            raise OptionError("some examples of the batch have one label, others have a list")
        if not lists[0]:
            return torch.tensor(labels)
        values = [torch.as_tensor(label) for label in labels]
        if any(value.is_floating_point() for value in values):
            if len({len(value) for value in values}) > 1:
                raise OptionError("the examples of the batch have targets for different classes")
            return torch.stack([value.float() for value in values])
        pairs = zip(values, rows, strict=True)
        of_tokens = all(len(value) == len(row["input_ids"]) for value, row in pairs)
        if not of_tokens or any(row["tree"].get(OF_DECODER) for row in rows):
            # A decoder begins on the left whatever its encoder's padding.
            width, left = max(map(len, values)), False
            width = _multiple(width, self.pad_to_multiple_of)
        return _padded(values, width, IGNORED, left)

    def _count_cut(self, is_cut: bool, name: str, most: int | None) -> None:
        if is_cut and not self.cut:
            log.warning(
                "%s are longer than %s tokens and are cut; TreeCollator.cut counts them", name, most
            )
        self.cut += is_cut

    def _count_untagged(self, count: int) -> None:
        if count and not self.untagged:
            log.warning(
                "the tokenizer leaves words out, such as invisible characters, and their labels count in no "
                "loss; TreeCollator.untagged counts them"
            )
        self.untagged += count


def decoder_inputs(model: Any, labels: Tensor) -> Tensor:
    """What the decoder of an encoder-decoder reads to write labels, [B, T] as they are.

    Models without a function for that, as of M2M100, NLLB and Blenderbot, shift labels to the right by themselves.
    """
    if make := getattr(model, "prepare_decoder_input_ids_from_labels", None):
        inputs: Tensor = make(labels=labels)
        return inputs
    shifted = labels.roll(1, dims=1)
    shifted[:, 0] = model.config.decoder_start_token_id
    return shifted.masked_fill(shifted == IGNORED, model.config.pad_token_id)


def _at_first_tokens(labels: list[Any], of_tokens: Sequence[int | None], count: int) -> list[Any]:
    """Labels of words at the first token of each, :data:`IGNORED` at all other tokens."""
    if len(labels) != count:
        raise OptionError(
            f"{len(labels)} labels, but {count} words; give one a word, and the output of a decoder as "
            "target"
        )
    token_labels, before = [], {None}
    for word in of_tokens:
        token_labels.append(IGNORED if word in before else labels[word])  # type: ignore[index]
        before.add(word)  # type: ignore[arg-type]
    return token_labels


def _padded(rows: Sequence[Any], width: int, fill: int, left: bool) -> Tensor:
    """LongTensor [B, width]."""
    padded = torch.full((len(rows), width), fill)
    for row, values in zip(padded, rows, strict=True):
        start = width - len(values) if left else 0
        row[start : start + len(values)] = torch.as_tensor(values)
    return padded


def _multiple(width: int, of: int | None) -> int:
    return width if not of else -(-width // of) * of


def _is_of_tokens(values: Any, tokens: Sequence[int]) -> bool:
    """Whether these are whole numbers, one for each token."""
    if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != len(tokens):
        return False
    try:
        numbers = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        return False
    return not len(values) or (numbers.dim() == 1 and not numbers.is_floating_point())


def _joins_words(tokenizer: Any) -> bool:
    """Whether a tokenizer reads the words of a list without the spaces that they have in a text.

    Those of bytes do, such as RoBERTa's, BART's, GPT-2's and Llama 3's, unless they put one before each word.
    """
    read = partial(tokenizer, add_special_tokens=False)
    text, listed, apart = (
        read("a a")["input_ids"],
        read(["a", "a"], is_split_into_words=True)["input_ids"],
        read(["a", " a"], is_split_into_words=True)["input_ids"],
    )
    return bool(listed != text == apart)


def _longest(tokenizer: Any) -> int | None:
    longest = getattr(tokenizer, "model_max_length", None)
    return longest if longest and longest < NO_LENGTH else None
