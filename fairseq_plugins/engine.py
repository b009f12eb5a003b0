"""fairseq's search behind ``treesyntax translate``: models, task and generator of checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import tasks, utils
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.configs import FairseqConfig, GenerationConfig
from omegaconf import OmegaConf

from fairseq_plugins.dataset import TreePairDataset
from fairseq_plugins.settings import check_settings, check_sizes
from treesyntax.decoding.engine import EncodedSource, Hypothesis, Search
from treesyntax.errors import InputError, OptionError, TreeSyntaxError
from treesyntax.model.checkpoint import check_numbers, load_checkpoint

PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class FairseqEngine:
    """fairseq's beam search with one or several models.

    Args:
        search: what to load, and how to search.
        task: the task of the checkpoints.
        models: the models, ready for inference.
    """

    def __init__(self, search: Search, task: Any, models: list[Any]) -> None:
        self._search, self._task, self._models = search, task, models
        self._generator = task.build_generator(models, _generation(search))
        limits = utils.resolve_max_positions(
            task.max_positions(), *(model.max_positions() for model in models)
        )
        self.longest_source: int = limits[0]
        self.cut = 0
        self.needs_trees = any(model.encoder.injections.needs_tree for model in models)

    def translate(self, sentences: Sequence[EncodedSource]) -> list[list[Hypothesis]]:
        """The best hypotheses of each sentence.

        Raises:
            OptionError: if no tree is as short as the limit, or memory does not suffice.
        """
        dataset = self._dataset(sentences)
        limit = self._search.max_tokens
        batches = dataset.batch_by_size(
            dataset.ordered_indices(),
            # A longer sentence gets a batch of its own.
            max_tokens=limit and max(limit, *(len(sentence.ids) for sentence in sentences)),
            max_sentences=self._search.batch_size,
        )
        translations: list[list[Hypothesis]] = [[] for _ in sentences]
        for batch in batches:
            sample = dataset.collater([dataset[int(index)] for index in batch])
            if self._search.device != "cpu":
                sample = utils.move_to_cuda(sample, torch.device(self._search.device))
            results = self._task.inference_step(self._generator, self._models, sample)
            most = self._most_tokens(sample["net_input"]["src_tokens"].shape[1])
            for index, hypotheses in zip(sample["id"].tolist(), results, strict=True):
                translations[index] = [
                    self._hypothesis(h) for h in hypotheses[: self._search.nbest]
                ]
                self.cut += len(translations[index][0].tokens) >= most
        return translations

    def _most_tokens(self, width: int) -> int:
        """The most tokens of an output, as fairseq's generator has it for sources of that width."""
        longest = min(model.max_decoder_positions() for model in self._models)
        return min(int(self._search.max_len_a * width + self._search.max_len_b), longest - 1)

    def _dataset(self, sentences: Sequence[EncodedSource]) -> TreePairDataset:
        pairs = LanguagePairDataset(
            [torch.from_numpy(sentence.ids) for sentence in sentences],
            np.array([len(sentence.ids) for sentence in sentences]),
            self._task.source_dictionary,
            tgt_dict=self._task.target_dictionary,
            left_pad_source=self._task.cfg.left_pad_source,
            shuffle=False,
        )
        # Nothing but the tree of a sentence by its index is read of a store.
        trees: Any = [sentence.tree for sentence in sentences]
        return TreePairDataset(pairs, None if None in trees else trees)

    def _hypothesis(self, hypothesis: dict[str, Any]) -> Hypothesis:
        dictionary = self._task.target_dictionary
        marks = (dictionary.bos(), dictionary.eos())
        ids = hypothesis["tokens"].tolist()
        tokens = [dictionary[index] for index in ids if index not in marks]
        return Hypothesis(float(hypothesis["score"]) / float(np.log(2)), tokens)


def _generation(search: Search) -> GenerationConfig:
    return GenerationConfig(
        beam=search.beam,
        nbest=search.nbest,
        max_len_a=search.max_len_a,
        max_len_b=search.max_len_b,
        lenpen=search.lenpen,
    )


def load(search: Search) -> FairseqEngine:
    """Load the checkpoints, as plain data.

    Raises:
        InputError: if one cannot be read, is not plain data, or does not fit the data.
        OptionError: if options do not fit the model.
    """
    task, models = None, []
    for path in search.checkpoints:
        state = load_checkpoint(path)
        check_numbers(path, state["model"])
        check_settings(path, state)
        cfg = OmegaConf.create(state["cfg"], flags={"allow_objects": True})
        task = task or _task(path, cfg, search)
        _check_symbols(path, state["model"], task)
        check_sizes(path, state)
        models.append(_model(path, state, cfg, task, search))
    return FairseqEngine(search, task, models)


def _task(path: Path, cfg: Any, search: Search) -> Any:
    trained = tuple(cfg.task.get(f"{side}_lang") for side in ("source", "target"))
    if None not in trained and trained != search.pair:
        raise InputError(
            path,
            None,
            f"was trained to translate {'-'.join(trained)}, but {search.data} is of "
            f"{'-'.join(search.pair)}",
            "give the data folder of its training",
        )
    cfg.task.source_lang, cfg.task.target_lang = search.pair
    cfg.task.data = str(search.data)
    cfg.task.tree_constraints = search.constraints
    cfg.task.eval_bleu = False
    return tasks.setup_task(cfg.task, from_checkpoint=True)


def _check_symbols(path: Path, weights: dict[str, Any], task: Any) -> None:
    for side, dictionary in (
        ("encoder", task.source_dictionary),
        ("decoder", task.target_dictionary),
    ):
        weight = weights.get(f"{side}.embed_tokens.weight")
        if weight is not None and weight.dim() != 2:
            raise InputError(path, None, f"its {side} has no table of embeddings")
        if weight is not None and len(weight) != len(dictionary):
            role = "source" if side == "encoder" else "target"
            raise InputError(
                path,
                None,
                f"knows {len(weight)} {role} symbols, but the dictionary in {task.cfg.data} has "
                f"{len(dictionary)}",
                "give the data folder of its training",
            )


def _model(path: Path, state: dict[str, Any], cfg: Any, task: Any, search: Search) -> Any:
    try:
        task.load_state_dict(state.get("task_state", {}))
    except OptionError as error:
        raise InputError(path, None, str(error)) from None
    except (AttributeError, TypeError, ValueError, RuntimeError):
        raise InputError(path, None, "holds no record of its data", "train it again") from None
    try:
        model = task.build_model(cfg.model, from_checkpoint=True)
    except TreeSyntaxError as error:
        raise InputError(path, None, str(error)) from None
    except Exception as error:  # of torch: a dropout above 1, a size that no memory holds
        reason = " ".join(str(error).split())[:200]
        raise InputError(path, None, f"its settings make no model ({reason})") from None
    try:
        model.load_state_dict(state["model"], strict=True, model_cfg=cfg.model)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            path, None, f"does not fit its own settings ({reason})", "train it with this version"
        ) from None
    model.eval().to(search.device, PRECISIONS[search.precision])
    model.prepare_for_inference_(FairseqConfig(generation=_generation(search)))
    return model
