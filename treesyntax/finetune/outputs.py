"""What a model says of examples, as lines that ``treesyntax score`` reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from treesyntax.bridges.collator import IGNORED
from treesyntax.errors import OptionError
from treesyntax.finetune.data import Example
from treesyntax.finetune.job import CAUSAL, CLASSES, TAGS, WRITES, Job
from treesyntax.finetune.limits import (
    MOST_NEW_TOKENS,
    START,
    ends_of,
    lines_of_tokens,
    start_of,
)
from treesyntax.finetune.models import Pretrained, collator_of, longest_input

NO_TAG = "_"
"""See `no_tag`."""


def predict(
    job: Job,
    trained: Pretrained,
    examples: Sequence[Example],
    batch_size: int,
    tell: Callable[[int], object] = lambda count: None,
) -> list[str]:
    """Return one line an example: its class, the tags of its words, or the text that the model writes.

    Args:
        job: what the model was trained for.
        trained: the model.
        examples: answers in them are not read.
        batch_size: examples in one call.
        tell: called after each batch with the number of examples that are done.
    """
    model = trained.model
    before = model.training
    model.eval()
    lines: list[str] = []
    try:
        with torch.no_grad():
            for batch, chosen in _batches(job, trained, examples, batch_size):
                lines += _lines(job, trained, batch, chosen)
                tell(len(lines))
    finally:
        model.train(before)
    return lines


def _batches(
    job: Job, trained: Pretrained, examples: Sequence[Example], batch_size: int
) -> Iterator[tuple[dict[str, Any], Sequence[Example]]]:
    tokenizer, side = trained.tokenizer, trained.tokenizer.padding_side
    collator = collator_of(job, trained)
    if job.task == CAUSAL and collator.max_length:
        collator.max_length -= 1  # room for an answer
    device = next(trained.model.parameters()).device
    for start in range(0, len(examples), batch_size):
        chosen = examples[start : start + batch_size]
        inputs = [dict(example.inputs) for example in chosen]
        if job.task == TAGS:  # so that labels say which token is the first of which word
            inputs = [{**given, "labels": [*range(len(given["words"]))]} for given in inputs]
        tokenizer.padding_side = "left" if job.task == CAUSAL else side
        try:
            batch = _moved(collator(inputs), device)
        finally:
            tokenizer.padding_side = side
        if not trained.reads_trees:
            del batch["tree"]
        yield batch, chosen


def _lines(
    job: Job, trained: Pretrained, batch: dict[str, Any], chosen: Sequence[Example]
) -> list[str]:
    if job.task in WRITES:
        prompt = batch["input_ids"].shape[1] if job.task == CAUSAL else 0
        options = {"do_sample": False, **job.generate}
        if "max_length" not in options:
            most = longest_input(trained.model)
            wanted = options.get("max_new_tokens", job.ours("max_target_length") or MOST_NEW_TOKENS)
            options["max_new_tokens"] = min(wanted, most - (prompt or 1)) if most else wanted
        if prompt:
            options.setdefault("pad_token_id", trained.tokenizer.pad_token_id)
        elif (start := start_of(trained.tokenizer, trained.model)) is not None:
            options.setdefault(START, start)
        if ends := ends_of(trained.tokenizer, trained.model):
            options.setdefault("eos_token_id", ends)
        ids = trained.model.generate(**batch, **options)
        if len(ids) != len(chosen):
            raise OptionError(f"--generate: gives {len(ids)} outputs for {len(chosen)} inputs")
        return lines_of_tokens(trained.tokenizer, ids[:, prompt:])
    of_words = batch.pop("labels", None)
    best = trained.model(**batch).logits.argmax(-1).cpu().numpy()
    if job.task == CLASSES:
        return [job.labels[number] for number in best]
    return [
        " ".join(tags_of(row, words, job.labels, len(example.inputs["words"])))
        for row, words, example in zip(best, of_words.cpu().numpy(), chosen, strict=True)
    ]


def no_tag(labels: Sequence[str]) -> str:
    """The tag of a word that was cut from an input that is too long: no class, so that it counts as wrong."""
    tag = NO_TAG
    while tag in labels:
        tag += NO_TAG
    return tag


def tags_of(
    numbers: NDArray[np.int64], words: NDArray[np.int64], labels: Sequence[str], count: int
) -> list[str]:
    """The tag of each of some words.

    Args:
        numbers: of the class of each token [T].
        words: of each token the word that it is the first of, else `IGNORED` [T].
        labels: of the classes.
        count: how many words there are; those that were cut get `no_tag`.
    """
    tags = [no_tag(labels)] * count
    for number, word in zip(numbers.tolist(), words.tolist(), strict=True):
        if word != IGNORED:
            tags[word] = labels[number]
    return tags


def lines_of_logits(job: Job, logits: Any, answers: Any) -> tuple[list[str], list[str]]:
    """Outputs and references of a validation set, from what a Trainer gathered.

    Args:
        job: of classes or tags.
        logits: [examples, classes], or [examples, T, classes].
        answers: [examples], or [examples, T] with `IGNORED` where no answer is.
    """
    best = np.asarray(logits[0] if isinstance(logits, tuple) else logits).argmax(-1)
    if job.task == CLASSES:
        return [[job.labels[n] for n in numbers] for numbers in (best.tolist(), answers.tolist())]  # type: ignore[return-value]
    pairs: tuple[list[str], list[str]] = ([], [])
    for row, wanted in zip(best, answers, strict=True):
        counts = wanted != IGNORED
        for lines, numbers in zip(pairs, (row[counts], wanted[counts]), strict=True):
            lines.append(" ".join(job.labels[number] for number in numbers.tolist()))
    return pairs


def _moved(batch: dict[str, Any], device: torch.device) -> dict[str, Any]:
    return {
        name: _moved(value, device) if isinstance(value, dict) else value.to(device)
        for name, value in batch.items()
    }
