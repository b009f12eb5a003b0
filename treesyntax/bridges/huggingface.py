"""Methods in the models of Hugging Face: BERT, T5, BART, GPT-2, Llama and their like.

A bridge is a model of the class it was made of. Its stack of layers has the methods as a module,
``trees``, and its ``forward`` takes the trees of the batch, ``tree``, beside its own arguments. They
travel as arguments: from the model to the stack, and as what methods add on to each attention, which
``AttentionInterface`` makes ours. Encodings of nodes are added to the embeddings of tokens. Nothing else
of the model changes, and its own positions stay.

transformers imports torchaudio where it is installed, and the build that fairseq brings along cannot be
imported beside a torch for CPUs. So import treesyntax before a model of transformers.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import logging
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from treesyntax.bridges.bridge import (
    BIASES,
    ENCODINGS,
    FEATURES,
    PAIR_VECTORS,
    VALUE_MAPS,
    Bridge,
    beside,
    methods_for,
    needs_trees,
    read_batch,
)
from treesyntax.bridges.hf_attention import LAYER, NAME, TERMS, came_later, register
from treesyntax.errors import OptionError, need_package
from treesyntax.model.composition import Composition
from treesyntax.nn.devices import can_be_read
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import NO_NODE, TreeBatch, check_over, refuse_padding
from treesyntax.parsers.torchaudio_remedy import hide_broken_torchaudio

hide_broken_torchaudio()


class _Kind(NamedTuple):
    """Where a kind of model has its parts.

    Attributes:
        stack: the stack of layers, from the base model; "" for itself.
        attention: from the stack to the self-attention of a layer.
        causal: whether a token sees only those before it.
    """

    stack: str
    attention: str
    causal: bool = False

    def attentions(self, stack: nn.Module) -> list[nn.Module]:
        """The self-attention of each layer of a stack."""
        layers, path = self.attention.split(".{}.")
        return [layer.get_submodule(path) for layer in stack.get_submodule(layers).children()]


_BERT = _Kind("", "encoder.layer.{}.attention.self")
_T5 = _Kind("encoder", "block.{}.layer.0.SelfAttention")
_BART = _Kind("encoder", "layers.{}.self_attn")
_LLAMA = _Kind("", "layers.{}.self_attn", causal=True)
_KINDS = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "modernbert": _Kind("", "layers.{}.attn"),
    "t5": _T5,
    "mt5": _T5,
    "bart": _BART,
    "mbart": _BART,
    "gpt2": _Kind("", "h.{}.attn", causal=True),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "qwen2": _LLAMA,
    "qwen3": _LLAMA,
    "gemma": _LLAMA,
    "gemma2": _LLAMA,
    "gemma3_text": _LLAMA,
}
"""The kinds of model, as their configurations name them."""

_OWN_ATTENTION = ("deberta", "deberta-v2")
"""Kinds whose attention is not one of transformers' interface, so that nothing can be added to it."""

log = logging.getLogger(__name__)

_INITIALIZED = "_is_hf_initialized"
"""The attribute of tensors and modules whose numbers transformers leaves as they are."""
_SETTING = "treesyntax"
"""Of a configuration: the methods of a saved model."""


class _NoTrees:
    """That a model shall be without trees, said by its caller; nothing is never taken for it."""


NO_TREES = _NoTrees()


class _Call:
    """The trees of one call of a model, and whether its stack of layers got them."""

    def __init__(self, tree: object) -> None:
        self.tree, self.arrived = tree, False


class _Stack:
    """A stack of layers that takes trees, before its own class."""

    _names: tuple[str, ...]
    _kind: _Kind
    spec: str
    site: Site
    trees: Composition

    def forward(self, *args: Any, tree: object = None, **kwargs: Any) -> Any:
        kwargs = {**dict(zip(self._names, args, strict=False)), **kwargs}
        if isinstance(tree, _Call):
            tree.arrived, tree = True, tree.tree
        if self.config._attn_implementation != NAME:  # type: ignore[attr-defined]
            raise OptionError(
                f"this {type(self).__name__} has methods of treesyntax, but its attention was set to "
                f"{self.config._attn_implementation}; set_attn_implementation({NAME!r}) "  # type: ignore[attr-defined]
                "gives it back"
            )
        if tree is NO_TREES:
            kwargs[TERMS] = None
        else:
            kwargs = self._with_trees(tree, kwargs)
        return super().forward(**kwargs)  # type: ignore[misc]

    def _with_trees(self, tree: object, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the stack with what the methods add."""
        config: Any = self.config  # type: ignore[attr-defined]
        given = kwargs.get("output_attentions")
        if config.output_attentions if given is None else given:
            raise OptionError(
                "a model with a bridge gives no attention weights: its attention does not keep them; "
                "leave output_attentions out, or load the model anew without a bridge"
            )
        ids, embeds = kwargs.get("input_ids"), kwargs.get("inputs_embeds")
        if (ids is None) == (embeds is None):
            return kwargs  # the model says better what is wrong
        tokens: Any = ids if embeds is None else embeds[..., 0]
        past = self._seen(kwargs.get("past_key_values"))
        if tokens.dim() != 2:
            raise OptionError(
                f"trees go with tokens of two dimensions, rows and columns, not with {[*tokens.shape]}; "
                "flatten the choices of an example into rows"
            )
        rows, count = tokens.shape
        if tree is None:
            if self.trees.needs_tree:
                raise needs_trees("+".join(self.trees))
            batch = TreeBatch.without_trees(tokens.new_zeros(rows, past + count, dtype=torch.long))
        else:
            batch = read_batch(tree)
            _check_columns(batch, tokens, past)
            mask = kwargs.get("attention_mask")
            if isinstance(mask, Tensor) and can_be_read(mask):
                refuse_padding(batch, mask != 0)
            batch = batch.to(tokens.device)
        _check_device(self.trees, tokens.device)
        _refuse_several_adapters(self.trees)
        self._check_layers()
        kwargs[TERMS] = self.trees.relate(batch, rows=slice(past, past + count))
        encoding = self.trees.encode(batch)
        if encoding is not None:
            if embeds is None:
                embeds = self.get_input_embeddings()(ids)  # type: ignore[attr-defined]
                self._keep_positions(ids, kwargs)
            kwargs["inputs_embeds"] = embeds + encoding[:, past:].to(embeds.dtype)
            kwargs["input_ids"] = None
        return kwargs

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As of its own class; what was not loaded of methods begins as it was built.

        A class that makes a bridge is built without memory by ``from_pretrained``. Later it gets memory with
        whatever stands there, also where buffers were that no file has.
        """
        path = next((name for name, other in self.trees.named_modules() if other is module), None)
        if path is None:
            return super()._init_weights(module)  # type: ignore[misc]
        with torch.device("cpu"):
            built = Composition(self.spec, self.site).get_submodule(path)
        tensors = [built.named_parameters(recurse=False), built.named_buffers(recurse=False)]
        for name, value in itertools.chain(*tensors):
            tensor = getattr(module, name)
            if not getattr(tensor, _INITIALIZED, False):
                tensor.copy_(value)

    def _check_layers(self) -> None:
        """Refuse an attention without the number of a layer, or with that of another one, of which it is a copy."""
        numbers = set()
        for attention in () if torch.compiler.is_compiling() else self._kind.attentions(self):  # type: ignore[arg-type]
            number = getattr(attention, LAYER, None)
            if number is None or number in numbers:
                raise came_later(attention)
            numbers.add(number)

    def _seen(self, cache: Any) -> int:
        """The tokens in a cache, before those of now."""
        if cache is None or not self._kind.causal:
            return 0
        if getattr(cache, "is_compileable", False):
            raise OptionError(
                "trees go with a cache that grows (DynamicCache, the default), not with a static one"
            )
        return int(cache.get_seq_length())

    def _keep_positions(self, ids: Any, kwargs: dict[str, Any]) -> None:
        """RoBERTa counts positions from tokens, padding apart; without tokens it counts columns."""
        embeddings = getattr(self, "embeddings", None)
        count = getattr(embeddings, "create_position_ids_from_input_ids", None)
        if count is not None and kwargs.get("position_ids") is None:
            kwargs["position_ids"] = count(ids, embeddings.padding_idx)  # type: ignore[union-attr]


def _check_columns(batch: TreeBatch, tokens: Tensor, past: int) -> None:
    """Refuse trees over other tokens than those of now and of the cache."""
    rows, count = tokens.shape
    if rows and len(batch.token_node) != rows and len(batch.token_node) % rows == 0:
        width = batch.token_node.shape[1]
        raise OptionError(
            f"the trees are over tokens {[*batch.token_node.shape]}, but the tokens are {[rows, count]}; "
            "give batch_trees a tree for each row"
            + ("; nn.DataParallel parts tree=batch.to_dict()" if width == past + count else "")
        )
    check_over(batch, tokens.new_empty(rows, past + count) if past else tokens)


def _check_device(methods: Composition, device: torch.device) -> None:
    """Refuse methods that are elsewhere than the tokens: accelerate moves what its hooks see alone."""
    for parameter in () if torch.compiler.is_compiling() else methods.parameters():
        if parameter.device != device:
            raise OptionError(
                f"the methods are on {parameter.device}, but the tokens on {device}; keep the model on "
                "one device, without accelerate's offloading"
            )


def _refuse_several_adapters(methods: Composition) -> None:
    """Refuse what PEFT's ``adapter_names`` leaves: rows of several adapters, of which methods know the active one."""
    for method in () if torch.compiler.is_compiling() else methods.children():
        for hook in method._forward_pre_hooks.values():
            if "adapter_names" in getattr(hook, "keywords", {}):
                raise OptionError(
                    "methods have the parameters of one adapter for all rows, so adapter_names cannot be "
                    "mixed; call set_adapter, and the model once for the rows of each adapter"
                )


class _Model:
    """A whole model that takes trees, before its own class and, where it is its own stack, before that."""

    _names: tuple[str, ...]
    _without: object
    """What is meant where no trees are given."""
    _warned = False

    def __call__(self, *args: Any, tree: object = None, **kwargs: Any) -> Any:
        """Decide what no trees mean before a forward that was compiled or wrapped: bridge and model share it."""
        return super().__call__(*args, tree=self._trees_of_call(tree, args, kwargs), **kwargs)  # type: ignore[misc]

    def forward(self, *args: Any, tree: object = None, **kwargs: Any) -> Any:
        kwargs = {**dict(zip(self._names, args, strict=False)), **kwargs}
        if not torch.compiler.is_compiling():
            self._warn_if_frozen()
        call = _Call(self._trees_of_call(tree, (), kwargs))
        output = super().forward(**kwargs, tree=call)  # type: ignore[misc]
        if not call.arrived and kwargs.get("encoder_outputs") is None:
            raise OptionError(
                f"{type(self).__name__} does not hand its trees on to its layers; use another head"
            )
        return output

    def _warn_if_frozen(self) -> None:
        """Warn once that all but the methods trains, which is how LoRA leaves a model."""
        if self._warned or not (self.training and torch.is_grad_enabled()):  # type: ignore[attr-defined]
            return
        learned = [parameter.requires_grad for parameter in self.injections.parameters()]
        if learned and not any(learned) and any(p.requires_grad for p in self.parameters()):  # type: ignore[attr-defined]
            self._warned = True
            log.warning(
                "the parameters of %s are frozen, so these methods stay as they began; with PEFT give "
                "modules_to_save=[*bridge.injections]",
                self.spec,  # type: ignore[attr-defined]
            )

    def _trees_of_call(
        self, tree: object, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> object:
        """The trees of a call with these arguments, as this model means them.

        Raises:
            OptionError: for none where some are needed; what the encoder made over trees needs no more.
        """
        if tree is None:
            tree = self._without
        given = {**dict(zip(self._names, args, strict=False)), **kwargs}
        if tree is None and given.get("encoder_outputs") is None and self.injections.needs_tree:
            raise needs_trees(self.spec)  # type: ignore[attr-defined]
        return tree

    @property
    def injections(self) -> Composition:
        """The methods."""
        return self.get_submodule(self._stack_path).trees  # type: ignore[attr-defined]

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As of any module; also what a bridge of treesyntax 0.1 gave, which stood around its model."""
        if any(name.startswith("injections.") for name in state_dict):
            stack = f"{self._stack_path}." if self._stack_path else ""  # type: ignore[attr-defined]
            prefixes = {"injections.": f"{stack}trees.", "model.": ""}
            state_dict = {
                prefixes[name[: name.index(".") + 1]] + name[name.index(".") + 1 :]: value
                for name, value in state_dict.items()
            }
        return super().load_state_dict(state_dict, *args, **kwargs)  # type: ignore[misc]

    def save_pretrained(self, *args: Any, **kwargs: Any) -> Any:
        """As of the model's own class; the configuration in the folder says which methods it has."""
        config: Any = self.config  # type: ignore[attr-defined]
        setattr(config, _SETTING, {"methods": self.spec})  # type: ignore[attr-defined]
        try:
            return super().save_pretrained(*args, **kwargs)  # type: ignore[misc]
        finally:
            delattr(config, _SETTING)

    def _set_gradient_checkpointing(self, enable: bool = True, *args: Any, **kwargs: Any) -> Any:
        if enable:
            _refuse_reentrant(kwargs.get("gradient_checkpointing_func", args[0] if args else None))
        return super()._set_gradient_checkpointing(enable, *args, **kwargs)  # type: ignore[misc]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, type(self)._made_of, self.__dict__  # type: ignore[attr-defined]


def _refuse_reentrant(function: Any) -> None:
    """Refuse the function with which layers are computed again, if it does so within a graph of its own."""
    if getattr(function, "keywords", {}).get("use_reentrant"):
        raise OptionError(
            "with trees, gradient checkpointing needs use_reentrant=False, which is the default: the "
            "other kind loses gradients of what methods computed before the layers"
        )


class _Generates:
    """What generation needs to know of trees, before all else of a model that can generate."""

    def generate(self, *args: Any, tree: object = None, **kwargs: Any) -> Any:
        tree = self._trees_of_call(tree, (), kwargs)  # type: ignore[attr-defined]
        assistant = kwargs.get("assistant_model")
        if assistant is not None and not isinstance(assistant, _Model):
            raise OptionError(
                "an assistant model gets the trees too; give it as a bridge, HuggingFaceBridge(model, '') "
                "without methods, or take prompt_lookup_num_tokens"
            )
        if tree is not None and tree is not NO_TREES:
            tree = read_batch(tree)
            self._check_prompt(tree, args, kwargs)
        config = kwargs.get("generation_config") or self.generation_config  # type: ignore[attr-defined]
        scale = kwargs.get("guidance_scale", getattr(config, "guidance_scale", None))
        if tree is not NO_TREES and scale not in (None, 1):
            raise OptionError(
                "guidance_scale calls the model without the prompt, so without its trees; leave it out"
            )
        return super().generate(*args, tree=tree, **kwargs)  # type: ignore[misc]

    def init_continuous_batching(self, *args: Any, **kwargs: Any) -> Any:
        """What ``generate_batch`` calls first.

        Raises:
            OptionError: always; it gets prompts alone.
        """
        raise OptionError(
            "generate_batch hands no trees on, and its cache has no attention with trees; call generate over "
            "a batch of prompts and their trees"
        )

    def prepare_inputs_for_generation(self, input_ids: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = super().prepare_inputs_for_generation(input_ids, *args, **kwargs)  # type: ignore[misc]
        tree = inputs.get("tree")
        if isinstance(tree, TreeBatch) and not self.config.is_encoder_decoder:  # type: ignore[attr-defined]
            ids, embeds = inputs.get("input_ids"), inputs.get("inputs_embeds")
            tokens, cache = ids if embeds is None else embeds, inputs.get("past_key_values")
            seen = 0 if cache is None else cache.get_seq_length()
            inputs["tree"] = _lengthened(tree, int(seen) + tokens.shape[1])
        return inputs

    def _expand_inputs_for_generation(self, *args: Any, **kwargs: Any) -> Any:
        ids, others = super()._expand_inputs_for_generation(*args, **kwargs)  # type: ignore[misc]
        tree, count = others.get("tree"), kwargs.get("expand_size", 1)
        if isinstance(tree, TreeBatch) and count > 1:
            tensors = tree.to_dict().items()
            others["tree"] = TreeBatch.from_dict(
                {name: tensor.repeat_interleave(count, 0) for name, tensor in tensors}
            )
        return ids, others

    def _check_prompt(
        self, tree: TreeBatch, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Refuse trees over other tokens than the prompt's, or over its padding.

        Those of an earlier turn, whose tokens are in the cache, are over fewer.
        """
        ids: Any = args[0] if args else kwargs.get("inputs", kwargs.get("input_ids"))
        embeds, cache = kwargs.get("inputs_embeds"), kwargs.get("past_key_values")
        if ids is None and embeds is None:
            return
        if not self.config.is_encoder_decoder and (cache is None or not cache.get_seq_length()):  # type: ignore[attr-defined]
            _check_columns(tree, ids if embeds is None else embeds[..., 0], 0)
        mask = kwargs.get("attention_mask")
        if mask is None and embeds is None:
            config = kwargs.get("generation_config") or self.generation_config  # type: ignore[attr-defined]
            pad, end = (
                kwargs.get(name, getattr(config, name, None))
                for name in ("pad_token_id", "eos_token_id")
            )
            # As transformers does; where the pad ends a text too, it may be a token.
            if pad is not None and pad not in (end if isinstance(end, list) else [end]):
                mask = ids != pad
        if isinstance(mask, Tensor):
            refuse_padding(tree, mask != 0)


def _lengthened(tree: TreeBatch, width: int) -> TreeBatch:
    """The same trees over more tokens, of which the new ones have no node."""
    missing = width - tree.token_node.shape[1]
    if missing <= 0:
        return tree
    nodes = nn.functional.pad(tree.token_node, (0, missing), value=NO_NODE)
    return TreeBatch.from_dict({**tree.to_dict(), "token_node": nodes})


class HuggingFaceBridge(_Model, Bridge):
    """A model of transformers with trees in its encoder, or over the prefix of a decoder.

    ``bridge = HuggingFaceBridge(model, "relation_mask")`` is a model of the class of ``model`` and shares
    everything with it. ``bridge(**inputs, tree=batch)`` is its output over trees; without ``tree`` it
    refuses. ``model(**inputs)`` goes on without trees.

    Of an encoder-decoder the encoder gets the trees. In a decoder-only model they are over a prefix that
    is known, such as a prompt; tokens that are generated have no node. A model whose heads are not
    ``d_model / heads`` wide gets biases and encodings alone.

    ``model`` is any model over a BERT, RoBERTa, XLM-RoBERTa, ModernBERT, T5, mT5, BART, mBART, GPT-2, Llama,
    Mistral, Qwen 2 and 3, Gemma 1 to 3, with or without a head. ``spec`` names the methods, such as
    ``stack_pe+relation_mask``.

    Raises:
        OptionError: for another model, one that has a bridge, and for methods that it cannot carry; when
            called, for attention weights (``output_attentions``), which are not kept.
    """

    _without = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A bridge of a model and a spec; of a class that was made for one, an empty model."""
        if cls is HuggingFaceBridge:
            return _bridge(*args, **kwargs)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do: :meth:`__new__` has made the bridge of its model."""

    @classmethod
    def from_pretrained(
        cls, folder: Any, *args: Any, model_class: type | None = None, **kwargs: Any
    ) -> Any:
        """The bridge that ``save_pretrained`` or a Trainer wrote.

        Args:
            folder: as of transformers.
            args: as of transformers.
            model_class: of transformers, such as ``BertForTokenClassification``; by default that of the
                model that was saved.
            kwargs: as of transformers.

        Raises:
            OptionError: for a model that was saved without methods, and for what is no class of a model.
        """
        need_package("transformers", "huggingface", "this bridge")
        transformers = importlib.import_module("transformers")
        if (
            Path(folder, "adapter_config.json").is_file()
            and not Path(folder, "config.json").is_file()
        ):
            raise OptionError(
                f"{folder} has an adapter alone; load it into a bridge like that in which it was "
                "trained: PeftModel.from_pretrained(bridge, folder)"
            )
        if model_class is None and cls is not HuggingFaceBridge:
            model_class = _own_class(cls)
        hub = ("revision", "subfolder", "cache_dir", "token", "local_files_only", "force_download")
        options = {name: kwargs[name] for name in hub if name in kwargs}
        # That of the folder alone names the methods, also where the caller has another configuration.
        config = transformers.AutoConfig.from_pretrained(folder, **options)
        spec = (getattr(config, _SETTING, None) or {}).get("methods")
        if spec is None:
            raise OptionError(
                f"{folder} has no methods: it is no saved bridge; load it with its own class, then "
                "HuggingFaceBridge(model, spec)"
            )
        if model_class is None:
            model_class = getattr(transformers, (config.architectures or ["none"])[0], None)
        if model_class is None:
            raise OptionError(
                f"{folder} does not say which class of transformers it is; give model_class="
            )
        base = transformers.PreTrainedModel
        if not (isinstance(model_class, type) and issubclass(model_class, base)):
            raise OptionError(
                f"model_class is a class of one kind of model, such as BertForTokenClassification, not "
                f"{getattr(model_class, '__name__', model_class)}"
            )
        return _loaded(model_class, spec, folder, args, kwargs)

    @classmethod
    def _over_model(cls, model: nn.Module, spec: str) -> Any:
        return _bridge(model, spec, loading=True)


class _Plain(_Model):
    """The model that a bridge was made of: without trees, unless they are given."""

    _without = NO_TREES


def _bridge(model: Any, spec: str, loading: bool = False) -> Any:
    """A bridge beside a model, which goes on without trees; they share all they have.

    Args:
        model: it is changed in place.
        spec: the methods.
        loading: whether parameters that were saved come afterwards.
    """
    need_package("transformers", "huggingface", "this bridge")
    own_class: Any = type(model)
    kind, stack = _stack_of(model, own_class.__name__)
    saved = getattr(model.config, _SETTING, None)
    if saved and not loading:
        raise OptionError(
            f"this {own_class.__name__} was saved with {saved['methods']}, whose parameters were not "
            "loaded; HuggingFaceBridge.from_pretrained loads both"
        )
    if saved:
        delattr(model.config, _SETTING)  # other models may have this configuration; save tells it
    if "forward" in vars(model) or "forward" in vars(stack):
        raise OptionError(
            f"the forward of this {own_class.__name__} was replaced, as accelerate does over several "
            "devices; make the bridge first, or load the model onto one device"
        )
    for module in model.modules():
        _refuse_reentrant(getattr(module, "_gradient_checkpointing_func", None))
    config = stack.config
    site, methods = _methods_for(config, spec, kind, own_class.__name__)
    weight = stack.get_input_embeddings().weight
    stack.trees = beside(methods, weight)
    if not weight.is_meta:
        for module in methods.modules():
            setattr(module, _INITIALIZED, True)
    register()
    for module in (model, stack):  # the stack of some models has a configuration of its own
        module.set_attn_implementation(NAME)
    for number, attention in enumerate(kind.attentions(stack)[: site.layers]):
        setattr(attention, LAYER, number)
    stack._kind = kind
    model._stack_path = next(name for name, module in model.named_modules() if module is stack)
    for module in (model, stack):
        module.spec, module.site = spec, site
    ending: tuple[type, ...] = (_Stack,) if stack is model else ()
    if stack is not model:
        stack_class: Any = type(stack)
        stack.__class__ = _class_of((_StackAlone,), stack_class)
    generates = own_class.can_generate()
    beginning: tuple[type, ...] = (_Generates,) if generates else ()
    named = "model" not in model._modules
    model.__class__ = _class_of((*beginning, _Plain, *ending), own_class)
    bridge_class = _class_of((*beginning, HuggingFaceBridge, *ending), own_class, named)
    bridge = bridge_class.__new__(bridge_class)
    bridge.__dict__ = model.__dict__
    return bridge


class _StackAlone(_Stack):
    """A stack of layers within a model."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuilt, type(self)._made_of, self.__dict__  # type: ignore[attr-defined]


def _stack_of(model: Any, name: str) -> tuple[_Kind, Any]:
    """The kind of a model, and its stack of layers.

    Raises:
        OptionError: if there is no bridge into it.
    """
    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", name)
    if kind in _OWN_ATTENTION:
        raise OptionError(
            f"there is no bridge into {kind}: its attention is its own, and not of transformers' "
            "AttentionInterface"
        )
    if kind not in _KINDS or config is None:
        raise OptionError(
            f"there is no bridge into {kind}; there are bridges into {', '.join(_KINDS)}"
        )
    if not isinstance(model, importlib.import_module("transformers").PreTrainedModel):
        raise OptionError(
            f"a {name} is no model of transformers; make the bridge of the model itself, and put adapters "
            "or other wrappers around the bridge"
        )
    if getattr(model, "_hf_peft_config_loaded", False):
        raise OptionError(
            f"this {name} has adapters already, and would save them without methods; make the bridge "
            "first, then add_adapter or load_adapter, with modules_to_save=[*bridge.injections]"
        )
    known_kind = _KINDS[kind]
    decodes = getattr(config, "is_decoder", False) and not config.is_encoder_decoder
    base = model.base_model
    try:
        stack = base.get_submodule(known_kind.stack)
    except AttributeError:
        stack = None
    if stack is None or (decodes and not known_kind.causal):
        raise OptionError(f"{name} is a decoder; trees go into encoders")
    if isinstance(stack, _Stack):
        raise OptionError(
            f"this {name} has a bridge with {'+'.join(stack.trees) or 'no method'} already; load the "
            "model anew and give all methods to one bridge, joined by +"
        )
    if getattr(config, "attn_logit_softcapping", None) is not None:
        raise OptionError(
            f"this {kind} caps its logits (attn_logit_softcapping), and no fast attention with a cap takes "
            "biases; set it to None if you train the model anew"
        )
    if inspect.signature(type(model).forward).parameters.keys().isdisjoint({"kwargs"}):
        raise OptionError(f"{name} takes no further arguments, so no trees reach its layers")
    return known_kind, stack


def _methods_for(config: Any, spec: str, kind: _Kind, name: str) -> tuple[Site, Composition]:
    site = Site(config.hidden_size, config.num_attention_heads, config.num_hidden_layers)
    # In some models a head is wider than its share of the states.
    width = getattr(config, "d_kv", None) or getattr(config, "head_dim", None)
    regular = width is None or width * site.heads == site.d_model
    carried = (*ENCODINGS, *BIASES, *FEATURES)
    if regular:
        # A node's value of its descendants would show a token those that follow it.
        carried = (*carried, *PAIR_VECTORS, *(() if kind.causal else VALUE_MAPS))
    # Also where transformers builds models without memory.
    with torch.device("cpu"):
        return site, methods_for(spec, site, carried, name)


def _loaded(own_class: Any, spec: str, folder: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A bridge over a model of a class of transformers, both from a folder."""

    def build(self: Any, config: Any, *more: Any, **options: Any) -> None:
        own_class.__init__(self, config, *more, **options)
        kind, stack = _stack_of(self, own_class.__name__)
        _, stack.trees = _methods_for(stack.config, spec, kind, own_class.__name__)

    names = {"__init__": build, "__module__": own_class.__module__}
    wants_info = kwargs.pop("output_loading_info", False)
    model, loading_info = type(own_class.__name__, (own_class,), names).from_pretrained(  # type: ignore[attr-defined]
        folder, *args, output_loading_info=True, **kwargs
    )
    model.__class__ = own_class
    _, stack = _stack_of(model, own_class.__name__)
    parameters = stack.trees.state_dict()
    missing = [name for name in loading_info["missing_keys"] if ".trees." in f".{name}"]
    if missing:
        raise OptionError(f"{folder} lacks parameters of its methods: {', '.join(missing)[:200]}")
    del stack.trees
    bridge = _bridge(model, spec, loading=True)
    bridge.injections.load_state_dict(parameters)
    bridge.eval()
    return (bridge, loading_info) if wants_info else bridge


@cache
def _class_of(mixins: tuple[type, ...], own_class: Any, named: bool = False) -> Any:
    """A class of transformers that takes trees. It has the name of its own class, which is saved.

    Args:
        mixins: what comes before it.
        own_class: of transformers.
        named: whether ``model`` is the model without trees; others have a part of that name.
    """
    signature = inspect.signature(own_class.forward)
    first = mixins[1] if mixins[0] is _Generates else mixins[0]

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return first.forward(self, *args, **kwargs)  # type: ignore[attr-defined]

    def prepare(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _Generates.prepare_inputs_for_generation(self, *args, **kwargs)

    parameters = [*signature.parameters.values()]
    index = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    parameters.insert(
        index, inspect.Parameter("tree", inspect.Parameter.KEYWORD_ONLY, default=None)
    )
    forward.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    forward.__doc__ = own_class.forward.__doc__
    names: dict[str, Any] = {
        "forward": forward,
        "_names": tuple(signature.parameters)[1:],
        "_made_of": (mixins, own_class, named),
        "__module__": own_class.__module__,
        "__qualname__": own_class.__qualname__,
        "__doc__": own_class.__doc__,
    }
    if mixins[0] is _Generates:  # transformers reads there what a model can start from
        prepare.__signature__ = inspect.signature(own_class.prepare_inputs_for_generation)  # type: ignore[attr-defined]
        names["prepare_inputs_for_generation"] = prepare
    if named:
        names["model"] = property(_without_trees)
    return type(own_class.__name__, (*mixins, own_class), names)


def _without_trees(bridge: Any) -> Any:
    """The model that a bridge was made of."""
    mixins = [_Plain if mixin is HuggingFaceBridge else mixin for mixin in _mixins_of(type(bridge))]
    plain_class = _class_of(tuple(mixins), _own_class(type(bridge)))
    plain = plain_class.__new__(plain_class)
    plain.__dict__ = bridge.__dict__
    return plain


def _mixins_of(made: Any) -> tuple[type, ...]:
    mixins: tuple[type, ...] = made._made_of[0]
    return mixins


def _own_class(made: Any) -> Any:
    """The class of transformers that one of ours was made of."""
    return made._made_of[1]


def _rebuilt(mixins: tuple[type, ...], own_class: type, named: bool) -> Any:
    """An empty model for pickle and copy to fill."""
    register()
    made = _class_of(mixins, own_class, named)
    return made.__new__(made)
