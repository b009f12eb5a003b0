"""Targets that no output can equal: those that a model cannot spell or end, longer ones than outputs get, and what it forbids itself.

Models come with settings of generation for the task they were published for. BART forbids to repeat three tokens, as
a summary should not; a logical form does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treesyntax.bridges.collator import IGNORED, decoder_inputs
from treesyntax.errors import InputError
from treesyntax.finetune.data import Example
from treesyntax.finetune.job import CAUSAL, Job

MOST_NEW_TOKENS = 128
"""Of an output, unless ``max_new_tokens`` or ``max_target_length`` says otherwise."""
SETTINGS_FILE = "generation_config.json"
NO_REPEAT, LEAST, LEAST_NEW = "no_repeat_ngram_size", "min_length", "min_new_tokens"
START, FIRST = "decoder_start_token_id", "forced_bos_token_id"
MOST = ("max_new_tokens", "max_length")
OF_SAMPLING = ("do_sample", "temperature", "top_k", "top_p", "min_p", "typical_p")
"""Settings without effect, since outputs are not sampled."""


def settings_of_model(job: Job, model: Any) -> dict[str, Any]:
    """The settings of generation that come with a model and change outputs, but for those that a job gives itself."""
    known = model.generation_config.to_diff_dict()
    return {
        name: value
        for name, value in known.items()
        if name not in (*job.generate, *MOST, *OF_SAMPLING, "use_cache", "transformers_version")
        and not name.startswith(("_", "output_", "return_"))
        and not name.endswith("_token_id")
    }


def ends_of(tokenizer: Any, model: Any) -> list[int]:
    """The tokens with which outputs end: those of the model, and that of the tokenizer, which ends the targets."""
    ends = model.generation_config.eos_token_id
    known = ends if isinstance(ends, list) else [ends]
    return [end for end in dict.fromkeys([*known, tokenizer.eos_token_id]) if end is not None]


def start_of(tokenizer: Any, model: Any) -> int | None:
    """The token after which an encoder-decoder learns to begin a target; mBART's is the language of the tokenizer."""
    labels = tokenizer(text_target="", return_tensors="pt")["input_ids"]
    if not labels.numel():
        return None
    return int(decoder_inputs(model, labels)[0, 0])


def refuse_unwritable(
    job: Job,
    model: Any,
    ends: Sequence[int],
    examples: Sequence[Example],
    rows: Sequence[Mapping[str, Any]],
    file: Path,
) -> None:
    """Refuse targets that no output can equal by settings that nobody has given.

    Args:
        job: of a task that writes text.
        model: that writes it.
        ends: tokens with which outputs end.
        examples: of a split.
        rows: the same as a collator encodes them.
        file: of the examples.

    Raises:
        InputError: if no target has an end; for the longest one if it has more tokens than outputs get; for the
            first one that the model's settings forbid.
    """
    start = getattr(model.config, "decoder_start_token_id", None)
    sequences = [_sequence(job, row, start) for row in rows]
    if all(set(ends).isdisjoint(target) for _, target in sequences):
        cause = "has no target with a token that ends it, so outputs would not end"
        remedy = "let the tokenizer put its eos_token behind a text, and save it beside the model"
        raise InputError(file, None, cause, remedy)
    if not job.ours("max_target_length") and not any(name in job.generate for name in MOST):
        longest = max(range(len(rows)), key=lambda number: len(sequences[number][1]))
        if (
            count := len(sequences[longest][1]) - 1
        ) > MOST_NEW_TOKENS:  # its end need not be written
            cause = f"has a target of {count} tokens, but outputs end after {MOST_NEW_TOKENS}"
            remedy = (
                "say how many they get, by --generate max_new_tokens=N, or cut targets by "
                f"--set max_target_length={MOST_NEW_TOKENS}"
            )
            raise InputError(file, examples[longest].line, cause, remedy)
    settings = settings_of_model(job, model)
    first = None if FIRST in job.generate else getattr(model.generation_config, FIRST, None)
    for example, (_, target) in zip(examples, sequences, strict=True):
        if first is not None and job.task != CAUSAL and target[:1] != [first]:
            begun = target[0] if target else None
            cause = (
                f"has a target that the model cannot write: it begins with the token {begun}, but {SETTINGS_FILE} has "
                f"{FIRST}={first}"
            )
            remedy = (
                "save the tokenizer with the language of the targets (tgt_lang), or give --generate "
                f"{FIRST}={begun}"
            )
            raise InputError(file, example.line, cause, remedy)
    for example, (prompt, target) in zip(examples, sequences, strict=True):
        if name := _forbidding(settings, prompt, target):
            cause = f"has a target that the model cannot write: its {SETTINGS_FILE} has {name}={settings[name]}"
            remedy = f"give --generate {name}=0, or its value if that is meant"
            raise InputError(file, example.line, cause, remedy)


def remark_language(tokenizer: Any) -> str:
    """That targets are in the source's language, which is what mBART and NLLB take if none is saved; "" otherwise."""
    source = getattr(tokenizer, "src_lang", None)
    if source is None or getattr(tokenizer, "tgt_lang", None) not in (None, source):
        return ""
    return (
        f"the tokenizer has {source} as the language of sources and of targets; if they differ, save it beside the "
        "model with src_lang and tgt_lang"
    )


def lines_of_tokens(tokenizer: Any, rows: Any) -> list[str]:
    """Outputs as lines. A space before a full stop stays: it is a token as any other, and forms have it."""
    texts = tokenizer.batch_decode(
        rows, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return [" ".join(text.split()) for text in texts]


def remark_spelling(tokenizer: Any, examples: Sequence[Example], file: Path) -> str:
    """How many targets the tokens of a model spell otherwise, as T5 has none for braces; "" for none.

    That is no fault of translations, of which mT5 writes each wide comma as a narrow one.
    """
    rows = tokenizer([example.target for example in examples], add_special_tokens=False)
    lines = lines_of_tokens(tokenizer, rows["input_ids"])
    pairs = zip(examples, lines, strict=True)
    others = [(example.line, line) for example, line in pairs if line != example.target]
    if not others:
        return ""
    first, text = others[0]
    return (
        f"{len(others)} of {len(examples)} targets of {file} are spelt otherwise by the tokens of the model, so no output "
        f"is exactly right there; the first, on line {first}, as {text[:60]!r}"
    )


def _sequence(
    job: Job, row: Mapping[str, Any], start: int | None
) -> tuple[list[int | None], list[int]]:
    """What a model begins to write after, and what it shall write with its end."""
    target = [token for token in row["labels"] if token != IGNORED]
    return (row["input_ids"][: -len(target)] if job.task == CAUSAL else [start]), target


def _forbidding(
    settings: Mapping[str, Any], prompt: Sequence[int | None], target: Sequence[int]
) -> str:
    """The setting by which an output is never this target; "" for none."""
    size = settings.get(NO_REPEAT) or 0
    if size and _repeats([*prompt, *target], len(prompt), size):
        return NO_REPEAT
    if len(prompt) + len(target) - 1 < (settings.get(LEAST) or 0):
        return LEAST
    return LEAST_NEW if len(target) - 1 < (settings.get(LEAST_NEW) or 0) else ""


def _repeats(tokens: Sequence[int | None], begin: int, size: int) -> bool:
    """Whether so many tokens that end at or behind a place stand before, too."""
    seen = set()
    for end in range(size, len(tokens) + 1):
        group = tuple(tokens[end - size : end])
        if end > begin and group in seen:
            return True
        seen.add(group)
    return False
