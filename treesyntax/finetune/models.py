"""A pretrained model with its tokenizer, the methods in it, and what of it stays as it was."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from treesyntax.bridges.bridge import refuse_text_methods
from treesyntax.bridges.collator import TreeCollator
from treesyntax.bridges.huggingface import HuggingFaceBridge
from treesyntax.errors import OptionError, need_package
from treesyntax.finetune.job import CAUSAL, CLASSES, SEQ2SEQ, TAGS, Job
from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition, parse_spec
from treesyntax.nn.injection import LayerStates, Site, hooks_of
from treesyntax.nn.tree_batch import TreeBatch

CLASS_OF_TASK = {
    CLASSES: "AutoModelForSequenceClassification",
    TAGS: "AutoModelForTokenClassification",
    SEQ2SEQ: "AutoModelForSeq2SeqLM",
    CAUSAL: "AutoModelForCausalLM",
}
LOSS = "loss"
"""The hook of methods that need no tree once a model is trained."""


class Pretrained(NamedTuple):
    """A model as it is trained.

    Attributes:
        model: a bridge, or a model without trees where no method needs any.
        tokenizer: of the model.
        losses: methods that add to the loss in training; None without any.
        reads_trees: whether each call of the model needs trees.
    """

    model: Any
    tokenizer: Any
    losses: Losses | None
    reads_trees: bool


class Losses(nn.Module):
    """Losses from trees over the states of a model of transformers.

    Args:
        spec: methods with no other hook.
        site: the sizes of the model's layers.

    Raises:
        OptionError: for methods about attention, which the attention with trees does not keep, and for those with
            parameters: only the model's are trained.
    """

    def __init__(self, spec: str, site: Site) -> None:
        super().__init__()
        self.methods = Composition(spec, site)
        for name, method in self.methods.items():
            if any(parameter.requires_grad for parameter in method.parameters()):
                raise OptionError(
                    f"the loss of {name} has parameters, which finetune would leave as they start; train it with "
                    "fairseq, or compute it of the states alone"
                )
        self.site = site

    def forward(self, states: tuple[Tensor, ...], tree: TreeBatch) -> Tensor:
        """The loss of a batch, a mean over its examples.

        Args:
            states: [B, T, d_model] before the first layer and after each.
            tree: over the tokens of the batch.
        """
        self.to(states[0].device)  # a Trainer moves the model alone
        total = states[0].new_zeros(())
        for layer in range(self.site.layers):
            known = LayerStates(states[layer], _no_attention, states[layer + 1])
            for method in self.methods.methods:
                loss = method.loss(layer, known, tree)
                total = total if loss is None else total + loss
        return total / len(states[0])


def _no_attention(heads: int) -> Tensor:
    raise OptionError(
        "this loss is about attention, which models of transformers do not keep; take tree_reg, or train "
        "with fairseq"
    )


def load_tokenizer(name: str) -> Any:
    """The tokenizer of a model, with a token to pad with.

    Raises:
        OptionError: if it has none, or one that does not say where its tokens are, which trees need.
    """
    from transformers import AutoTokenizer

    tokenizer = _from_disk(AutoTokenizer, name)
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        raise OptionError(
            f"{name} has no tokenizer, or one without words; save one beside the model"
        )
    if not tokenizer.is_fast:
        raise OptionError(
            f"{name} has a {type(tokenizer).__name__}, which does not say where its tokens stand in a text; choose a "
            "model with a fast tokenizer (tokenizer.json)"
        )
    if tokenizer.pad_token is None and tokenizer.eos_token is not None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(job: Job) -> Pretrained:
    """Load a pretrained model and put the methods of a job into it. New parameters follow torch's seed.

    The task's own parameters come first, so that all methods begin with the same ones.

    Raises:
        OptionError: if the model is neither a folder nor in the cache, or methods do not fit it.
    """
    need_package("transformers", "huggingface", "finetuning")
    import transformers

    transformers.utils.logging.set_verbosity_error()  # new heads are expected
    transformers.utils.logging.disable_progress_bar()
    tokenizer = check_model(job)
    options: dict[str, Any] = {"dtype": torch.float32}
    if job.labels:
        numbers = {label: number for number, label in enumerate(job.labels)}
        options |= {"label2id": numbers, "id2label": {n: label for label, n in numbers.items()}}
        options |= {"num_labels": len(numbers), "problem_type": "single_label_classification"}
    model, report = _from_disk(
        getattr(transformers, CLASS_OF_TASK[job.task]),
        job.model,
        ignore_mismatched_sizes=True,  # the head of another task is replaced
        output_loading_info=True,
        return_dict=True,
        adapter_kwargs={"local_files_only": True},  # which are else looked up on the network
        **options,
    )
    new = {*report["missing_keys"], *(name for name, *_ in report["mismatched_keys"])}
    in_base = f"{model.base_model_prefix}."
    if lost := sorted(name for name in new if name.startswith(in_base) and ".pooler." not in name):
        raise OptionError(
            f"{job.model} has no numbers of {len(lost)} parameters of a {type(model).__name__}, such as "
            f"{lost[0]}; they would be random"
        )
    # The head of a decoder reads the last token that is no padding, by the number in its configuration.
    if model.config.pad_token_id is None or (job.task == CLASSES and _decodes_alone(model.config)):
        model.config.pad_token_id = tokenizer.pad_token_id
    freeze(model, job.ours("freeze"))
    in_model, in_loss = split_spec(job.injection)
    losses = None
    if in_loss:
        sizes = model.config
        site = Site(sizes.hidden_size, sizes.num_attention_heads, sizes.num_hidden_layers)
        losses = Losses(in_loss, site)
    bridge = HuggingFaceBridge(model, in_model) if in_model else model
    return Pretrained(bridge, tokenizer, losses, bool(in_model))


def longest_input(model: Any) -> int | None:
    """The tokens for which a model has positions; None if any number will do."""
    most: int | None = getattr(model.config, "max_position_embeddings", None)
    embeddings = getattr(model.base_model, "embeddings", None)
    if most is None or not hasattr(embeddings, "create_position_ids_from_input_ids"):
        return most
    return most - 1 - int(embeddings.padding_idx)  # type: ignore[union-attr]  # RoBERTa counts from there


def check_model(job: Job) -> Any:
    """Make sure that a model is there and fits its task, without loading its numbers; return its tokenizer.

    Raises:
        OptionError: if it does not, or has no tokenizer.
    """
    from transformers import AutoConfig

    config = _from_disk(AutoConfig, job.model)
    if job.task == CAUSAL:
        _refuse_encoder(config, job.model)
    if job.task == SEQ2SEQ and not config.is_encoder_decoder:
        raise OptionError(
            f"{job.model} ({config.model_type}) has no decoder beside an encoder; the task seq2seq needs both, as in T5 or BART"
        )
    return load_tokenizer(job.model)


def _decodes_alone(config: Any) -> bool:
    """Whether a model is a decoder without an encoder, such as GPT-2 and Llama."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return (
        config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not config.is_encoder_decoder
    )


def _refuse_encoder(config: Any, name: str) -> None:
    """Refuse to let an encoder write: it would see the answer while it is trained."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    decodes = config.is_encoder_decoder or getattr(config, "is_decoder", False)
    if config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not decodes:
        raise OptionError(
            f"{name} is an encoder ({config.model_type}), whose tokens see those that follow; the task "
            "causal needs a decoder, such as GPT-2 or Llama"
        )


def load_trained(job: Job, folder: Path) -> Pretrained:
    """Load what a finetuning saved."""
    in_model, _ = split_spec(job.injection)
    tokenizer = load_tokenizer(str(folder))
    if in_model:
        return Pretrained(HuggingFaceBridge.from_pretrained(str(folder)), tokenizer, None, True)
    import transformers

    model = _from_disk(getattr(transformers, CLASS_OF_TASK[job.task]), str(folder))
    return Pretrained(model, tokenizer, None, False)


def split_spec(spec: str) -> tuple[str, str]:
    """The methods of a specification that are in a model, and those that are a loss in training alone.

    Raises:
        OptionError: for methods that do not exist, or act through the text.
    """
    texts: tuple[list[str], list[str]] = ([], [])
    methods = parse_spec(spec)
    refuse_text_methods(methods)
    for name, options in methods.items():
        if not METHODS[name].needs_tree and not hooks_of(METHODS[name]):
            continue  # the plain model
        arguments = ", ".join(f"{key}={value!r}" for key, value in options.items())
        is_loss = {*hooks_of(METHODS[name])} - {"leaks_future"} == {LOSS}
        texts[is_loss].append(f"{name}({arguments})" if arguments else name)
    return "+".join(texts[0]), "+".join(texts[1])


def collator_of(job: Job, pretrained: Pretrained) -> TreeCollator:
    """The collator of a job's examples."""
    numbers = {label: number for number, label in enumerate(job.labels)}
    collator = TreeCollator(
        pretrained.tokenizer,
        "jsonl",
        label2id=numbers or None,
        node_labels={name: number for number, name in enumerate(job.node_labels, 1)} or None,
        max_length=job.ours("max_length") or None,
        max_target_length=job.ours("max_target_length") or None,
        decoder_only=job.task == CAUSAL,
        model=pretrained.model if job.task == SEQ2SEQ else None,
    )
    collator.is_first = False  # all examples are looked at, and plain rows need no tree
    if most := longest_input(pretrained.model):
        collator.max_length = min(collator.max_length or most, most)
        collator.max_target_length = min(collator.max_target_length or most, most)
    return collator


def freeze(model: Any, layers: int) -> None:
    """Keep the embeddings and the first layers of a model as they are.

    Raises:
        OptionError: if it has fewer layers.
    """
    if not layers:
        return
    stacks = [
        module
        for module in model.base_model.modules()
        if isinstance(module, nn.ModuleList) and len(module) == model.config.num_hidden_layers
    ]
    if not stacks or layers > len(stacks[0]):
        count = len(stacks[0]) if stacks else 0
        raise OptionError(f"train.freeze is {layers}, but the model has {count} layers")
    frozen = [*model.get_input_embeddings().parameters()]
    embeddings = getattr(model.base_model, "embeddings", None)
    frozen += [] if embeddings is None else [*embeddings.parameters()]
    for layer in stacks[0][:layers]:
        frozen += [*layer.parameters()]
    for parameter in frozen:
        parameter.requires_grad_(False)


def _from_disk(loader: Any, name: str, **options: Any) -> Any:
    """Load from a folder or from the cache; nothing is downloaded."""
    from safetensors import SafetensorError

    if Path(name).is_dir() and not (Path(name) / "config.json").is_file():
        raise OptionError(f"{name} holds no model of transformers (config.json is missing)")
    try:
        return loader.from_pretrained(name, local_files_only=True, **options)
    except OSError as error:
        if Path(name).is_dir():
            reason = " ".join(str(error).split())[:200]
            raise OptionError(f"{name} cannot be loaded ({reason})") from None
        is_name = re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", name)
        remedy = f"download it first, with hf download {name}" if is_name else "check the path"
        raise OptionError(
            f"{name} is no folder, and no model of that name is in the cache of Hugging Face; {remedy}"
        ) from None
    except (ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:200]
        raise OptionError(f"{name} cannot be loaded as a model for this task ({reason})") from None
