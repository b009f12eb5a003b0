"""What all bridges share: which methods they carry, the trees of a call, and a file for the methods.

A bridge keeps no trees. They come with a call and go with it, as arguments: so replicas, threads, copies
and layers that are computed again have the trees of their own call, and what finds none refuses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.errors import InputError, OptionError, need_package, reason_of
from treesyntax.files import output_file
from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Injection, Site, acts_through_text, hooks_of
from treesyntax.nn.tree_batch import TreeBatch

FILE = "treesyntax.safetensors"
"""The methods' own file in the folder of a model."""
BIASES = ("relation_ids", "relation_of_pair", "bias_table", "leaks_future")
"""The hooks of methods that add a number to pairs, chosen by a relation id."""
FEATURES = ("pair_features",)
"""What chooses it in place of an id."""
PAIR_VECTORS = ("vector_tables", "pair_scale", "scales_layer")
VALUE_MAPS = ("value_map",)
ENCODINGS = ("node_encoding",)


def methods_for(spec: str, site: Site, carried: Collection[str], model: str) -> Composition:
    """The methods of a spec, all of which a bridge can carry.

    Args:
        spec: see :func:`treesyntax.model.composition.parse_spec`.
        site: the sizes of the stack of layers.
        carried: the hooks that the bridge knows.
        model: what it leads to, for messages.

    Raises:
        OptionError: for methods that do not exist, are for decoders alone, or cannot be carried.
    """
    methods = Composition(spec, site)
    refuse_text_methods(methods)
    if misplaced := methods.misplaced("encoder"):
        raise OptionError(f"{misplaced}; a bridge leads into an encoder")
    refuse_unknown(methods, carried, model)
    return methods


def beside(methods: Composition, weight: Tensor) -> Composition:
    """The methods on the device of a model's weight and of its type, if that has fractions.

    Where a model has no memory yet, buffers stay as they are: no file has them, so nothing would fill them.
    """

    def move(tensor: Tensor) -> Tensor:
        stays = weight.is_meta and not isinstance(tensor, nn.Parameter)
        return tensor if stays else tensor.to(weight.device)

    return methods.to(dtype=weight.dtype if weight.is_floating_point() else None)._apply(move)


def refuse_text_methods(names: Iterable[str]) -> None:
    """Refuse methods that write the tree into the text: a pretrained model gets the text of the user.

    Raises:
        OptionError: with the method.
    """
    for name in names:
        if acts_through_text(METHODS[name]):
            raise OptionError(
                f"{name} acts through the text; write the brackets into the text, and leave {name} out"
            )


def refuse_unknown(methods: Composition, carried: Collection[str], model: str) -> None:
    """Refuse methods with a hook that a bridge does not know, also one that is newer than the bridge.

    Args:
        methods: what shall be carried.
        carried: the hooks that the bridge knows.
        model: what it leads to, for the message.

    Raises:
        OptionError: with the method and the hook.
    """
    for name, method in zip(methods, methods.methods, strict=True):
        unknown = [hook for hook in _used_hooks(method) if hook not in carried]
        if unknown:
            remedy = "treesyntax's own encoder can"
            if "loss" in unknown:
                remedy = (
                    "treesyntax finetune trains with tree_reg, treesyntax's own encoder with any"
                )
            raise OptionError(
                f"{model} cannot carry the method {name}, which uses {', '.join(unknown)}; {remedy}"
            )


def _used_hooks(method: Injection) -> list[str]:
    """The hooks by which a method as it was built adds something: its vectors may be switched off."""
    tables = [table for layer in range(method.site.layers) for table in method.vector_tables(layer)]
    has_vectors = any(table is not None for table in tables)
    return [hook for hook in hooks_of(type(method)) if hook != "vector_tables" or has_vectors]


def read_batch(tree: object) -> TreeBatch:
    """What was given as the trees of a batch, as a TreeBatch.

    Args:
        tree: a TreeBatch, or what its ``to_dict`` made.

    Raises:
        OptionError: for anything else, and while torch.jit traces, which would keep the trees of its example.
    """
    if torch.jit.is_tracing():
        raise OptionError(
            "torch.jit.trace would keep the trees of its example for all inputs; use torch.compile or "
            "torch.export, which take trees as inputs"
        )
    if isinstance(tree, TreeBatch):
        return tree
    needed = ("parent", "branch", "token_node")
    if isinstance(tree, Mapping) and all(isinstance(tree.get(key), Tensor) for key in needed):
        return TreeBatch.from_dict(dict(tree))
    raise OptionError(
        f"the trees of a batch are a TreeBatch, not a {type(tree).__name__}; make it with "
        "batch_trees(trees, token_nodes)"
    )


def needs_trees(spec: str) -> OptionError:
    """The refusal of a call without trees."""
    return OptionError(f"the method {spec} needs trees; give tree=batch_trees(…)")


class Over:
    """A model that is always called with the same trees.

    Everything else is the model's own. What it is over stands here and not in the model, so other calls
    of the model, in other threads too, do not see it.
    """

    def __init__(self, model: Any, tree: TreeBatch) -> None:
        self._model, self._tree = model, tree

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The model over these trees."""
        return self._model(*args, **{"tree": self._tree, **kwargs})

    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Its outputs over these trees, where it can generate."""
        return self._model.generate(*args, **{"tree": self._tree, **kwargs})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


class Bridge:
    """What models with methods have in common, whatever library they are of.

    Attributes:
        spec: the methods, as they were given.
        site: the sizes of the layers that they are in.
        injections: the methods; ``injections["relation_mask"]`` has their tables.
    """

    spec: str
    site: Site

    def __prepare_scriptable__(self) -> None:
        """What ``torch.jit.script`` calls first.

        Raises:
            OptionError: always; it compiles no call with trees.
        """
        raise OptionError(
            "torch.jit.script cannot compile a bridge: arguments of any kind travel to its layers; use "
            "torch.compile or torch.export"
        )

    @contextmanager
    def over(self, tree: TreeBatch | Mapping[str, Tensor] | None) -> Iterator[Any]:
        """Give the model that is called over these trees: ``with bridge.over(batch) as model:``.

        The bridge itself, and ``bridge.model``, are not over them.

        Raises:
            OptionError: if there are no trees, or this is no batch of them.
        """
        if tree is None:
            raise needs_trees(self.spec)
        yield Over(self, read_batch(tree))

    def save(self, folder: str | Path) -> None:
        """Write the methods' parameters alone, as ``treesyntax.safetensors``.

        Raises:
            OptionError: if safetensors is not installed.
        """
        need_package("safetensors", "huggingface", "saving a bridge")
        from safetensors.torch import save_file

        parameters = self.injections.state_dict()  # type: ignore[attr-defined]
        tensors = {name: parameter.contiguous() for name, parameter in parameters.items()}
        with output_file(Path(folder) / FILE) as staged:
            save_file(tensors, staged, metadata={"spec": self.spec, "site": _sizes(self.site)})

    @classmethod
    def load(cls, model: nn.Module, folder: str | Path) -> Any:
        """The bridge over a model of the same sizes, with the methods that :meth:`save` wrote.

        Raises:
            OptionError: if safetensors is not installed, or the model has other sizes.
            InputError: if there is no such file, or it is damaged.
        """
        need_package("safetensors", "huggingface", "loading a bridge")
        from safetensors import SafetensorError, safe_open

        path = Path(folder) / FILE
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            cause = f"cannot be read ({reason_of(error)})"
            raise InputError(path, None, cause, "save a bridge") from None
        if not {"spec", "site"} <= metadata.keys():
            raise InputError(path, None, "does not say of which methods it is", "save a bridge")
        bridge = cls._over_model(model, metadata["spec"])
        if _sizes(bridge.site) != metadata["site"]:
            raise OptionError(f"{path} is of a model with {metadata['site']}, not {bridge.site}")
        try:
            bridge.injections.load_state_dict(tensors)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(path, None, f"does not fit its methods ({reason})") from None
        return bridge

    @classmethod
    def _over_model(cls, model: nn.Module, spec: str) -> Any:
        """A new bridge over a model."""
        return cls(model, spec)  # type: ignore[call-arg]


def _sizes(site: Site) -> str:
    return f"d_model={site.d_model}, heads={site.heads}, layers={site.layers}"
