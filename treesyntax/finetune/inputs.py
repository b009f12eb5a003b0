"""Examples as a model reads them, and those that it cannot read, or not as it reads the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treesyntax.bridges.collator import TreeCollator
from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.finetune.data import Example
from treesyntax.finetune.job import CLASSES, TAGS, WRITES, Job
from treesyntax.finetune.models import Pretrained, collator_of
from treesyntax.remarks import Remark, at_line, remark

UNTAGGED = Remark(
    "words without a token of the model, such as invisible characters",
    "their tags are not learnt and count as wrong: take such words and their tags out",
)


def encoded(
    job: Job,
    pretrained: Pretrained,
    collator: TreeCollator,
    examples: Sequence[Example],
    file: str | Path,
) -> list[dict[str, Any]]:
    """The examples as a model reads them, tokenized once.

    Raises:
        InputError: with the line of the first that the model cannot read.
    """
    key = "target" if job.task in WRITES else "labels" if job.task == TAGS else "label"
    rows: list[dict[str, Any]] = []
    words = pretrained.model.get_input_embeddings().num_embeddings
    for example in examples:
        at_line(example.line)
        before = collator.untagged
        try:
            rows.append(collator.encode({**example.inputs, key: example.answer}))
        except (TreeError, OptionError) as error:
            raise InputError(file, example.line, str(error)) from None
        if untagged := collator.untagged - before:
            remark(UNTAGGED, untagged)
        if (largest := max(rows[-1]["input_ids"], default=0)) >= words:
            token = pretrained.tokenizer.convert_ids_to_tokens(largest)
            cause = f"the model has {words} tokens, and its tokenizer has {token!r} beyond"
            raise InputError(
                file, example.line, cause, "resize the model's embeddings and save it anew"
            )
    if job.task == CLASSES and pretrained.model.config.is_encoder_decoder and rows:
        _refuse_unequal_ends(pretrained, examples, rows, file)
    return rows


def check_inputs(
    job: Job, pretrained: Pretrained, examples: Sequence[Example], file: str | Path
) -> None:
    """Refuse examples to predict that the model cannot read, before anything is computed.

    Args:
        job: what the model is trained for.
        pretrained: the model.
        examples: answers in them are not read.
        file: of the examples.

    Raises:
        InputError: with the line of the first.
    """
    unanswered = [example._replace(answer=None) for example in examples]
    encoded(job, pretrained, collator_of(job, pretrained), unanswered, file)


def _refuse_unequal_ends(
    pretrained: Pretrained,
    examples: Sequence[Example],
    rows: Sequence[Mapping[str, Any]],
    file: str | Path,
) -> None:
    """Refuse what the head of an encoder-decoder does: it looks for its text's last token of end in a whole batch."""
    model, end = pretrained.model, pretrained.model.config.eos_token_id
    token, name = pretrained.tokenizer.convert_ids_to_tokens(end), type(model).__name__
    counts = [row["input_ids"].count(end) for row in rows]
    usual = Counter(counts).most_common(1)[0][0]
    if not usual:
        cause = f"has no {token!r} in its input, whose state {name} classifies"
        remedy = "let the tokenizer put it behind a text, and save it beside the model"
        raise InputError(file, examples[counts.index(0)].line, cause, remedy)
    for example, count in zip(examples, counts, strict=True):
        if count != usual:
            cause = f"has {count} tokens {token!r} in its input, but most have {usual}, and {name} needs as many in each"
            remedy = f"take {token!r} out of the text, and give all examples a second text, or none"
            raise InputError(file, example.line, cause, remedy)
