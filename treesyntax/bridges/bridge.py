"""What all bridges share: methods beside a model, the trees of a batch, and a file for both."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from torch import Tensor, nn

from treesyntax.errors import InputError, OptionError, need_package
from treesyntax.files import output_file
from treesyntax.model.composition import Composition, LayerTerms
from treesyntax.nn.injection import Injection, Site, hooks_of
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.tree_batch import TreeBatch, check_over

FILE = "treesyntax.safetensors"
"""The file of a bridge in the folder of its model."""
BIASES = ("relation_ids", "relation_of_pair", "bias_table", "leaks_future")
"""The hooks of methods that add a number to pairs, chosen by a relation id."""
FEATURES = ("pair_features",)
"""What chooses it in place of an id."""
VECTORS = ("vector_tables", "pair_scale", "scales_layer", "value_map")
ENCODINGS = ("node_encoding",)
MARK = "_treesyntax_methods"
"""The attribute of an encoder that says which methods a bridge has put into it."""


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
            raise OptionError(
                f"{model} cannot carry the method {name}, which uses {', '.join(unknown)}; "
                "treesyntax's own encoder can"
            )


def _used_hooks(method: Injection) -> list[str]:
    """The hooks by which a method as it was built adds something: its vectors may be switched off."""
    tables = [table for layer in range(method.site.layers) for table in method.vector_tables(layer)]
    used = hooks_of(type(method))
    return [
        hook for hook in used if hook != "vector_tables" or any(one is not None for one in tables)
    ]


def read_batch(tree: object) -> TreeBatch:
    """What was given as the trees of a batch, as a TreeBatch.

    Args:
        tree: a TreeBatch, or what its ``to_dict`` made.

    Raises:
        OptionError: for anything else.
    """
    if isinstance(tree, TreeBatch):
        return tree
    needed = ("parent", "branch", "token_node")
    if isinstance(tree, Mapping) and all(isinstance(tree.get(key), Tensor) for key in needed):
        return TreeBatch.from_dict(dict(tree))
    raise OptionError(
        f"the trees of a batch are a TreeBatch, not a {type(tree).__name__}; make it with "
        "batch_trees(trees, token_nodes)"
    )


class Bridge(nn.Module):
    """A model and the methods that are injected into its encoder.

    Called with ``tree=`` it is the model over these trees. The parameters of both are its own. The
    model alone, called outside of :meth:`over`, computes what the plain model did.

    Args:
        model: the model; it is changed in place.
        spec: the methods, see :func:`treesyntax.model.composition.parse_spec`.
        site: the sizes of its encoder.
        carried: the hooks that the bridge knows.

    Attributes:
        model: as given.
        injections: the methods; ``injections["relation_mask"]`` has their tables.

    Raises:
        OptionError: for methods that do not exist or cannot be carried.
    """

    def __init__(self, model: nn.Module, spec: str, site: Site, carried: Collection[str]) -> None:
        super().__init__()
        self.spec, self.site = spec, site
        injections = Composition(spec, site)
        if misplaced := injections.misplaced("encoder"):
            raise OptionError(f"{misplaced}; a bridge leads into an encoder")
        refuse_unknown(injections, carried, type(model).__name__)
        self.model, self.injections = model, injections
        self._batch: TreeBatch | None = None
        self._terms_of: LayerTerms | None = None

    def _mark(self, encoder: nn.Module) -> None:
        """Note that this bridge is in an encoder, before anything of it is changed.

        Raises:
            OptionError: if there is another: each would leave out what the other adds.
        """
        other = getattr(encoder, MARK, None)
        if other is not None:
            raise OptionError(
                f"this {type(self.model).__name__} has a bridge with {other or 'no method'} already; "
                "load the model anew and give all methods to one bridge, joined by +"
            )
        setattr(encoder, MARK, self.spec)

    def forward(
        self, *args: Any, tree: TreeBatch | Mapping[str, Tensor] | None = None, **kwargs: Any
    ) -> Any:
        """The model over trees.

        Args:
            args: those of the model.
            tree: the trees of the batch, or what their ``to_dict`` made; None if no method needs any.
            kwargs: those of the model.
        """
        if tree is None and not self.injections.needs_tree:
            tree = TreeBatch.without_trees(self._tokens(*args, **kwargs))
        with self.over(tree):
            return self.model(*args, **kwargs)

    @contextmanager
    def over(self, tree: TreeBatch | Mapping[str, Tensor] | None) -> Iterator[nn.Module]:
        """Inside, the model itself is over these trees, such as ``model.generate``.

        They may be on another device than the model, and be those of another batch for a while inside.

        Raises:
            OptionError: if there are no trees or this is no batch of them, and in the model if they
                are not over its tokens, or activations would be computed again without them.
        """
        if tree is None:
            raise OptionError(f"the method {self.spec} needs trees; give tree=batch_trees(…)")
        if self.training and _recomputes(self.model):
            raise OptionError(
                "gradient checkpointing computes layers again when their trees are gone; disable it"
            )
        before = self._batch, self._terms_of
        self._batch, self._terms_of = read_batch(tree), None
        try:
            yield self.model
        finally:
            self._batch, self._terms_of = before

    def _terms(self, layer: int) -> list[PairTerm]:
        return [] if self._terms_of is None else self._terms_of(layer)

    def _encoded(self, embedded: Tensor) -> Tensor:
        """Token embeddings [B, T, d_model] with the encodings of their nodes; a forward begins here."""
        if self._batch is None:
            return embedded
        # Also where nothing is added here: relations of one sentence would fit all by broadcasting.
        check_over(self._batch, embedded[..., 0])
        batch = self._batch.to(embedded.device)
        # In each forward, since each may be followed by gradients and an update.
        self._terms_of = self.injections.relate(batch)
        encoding = self.injections.encode(batch)
        return embedded if encoding is None else embedded + encoding.to(embedded.dtype)

    def _tokens(self, *args: Any, **kwargs: Any) -> Tensor:
        """Integers or zeros [B, T], for their shape."""
        raise NotImplementedError

    def save(self, folder: str | Path) -> None:
        """Write the methods' parameters beside the model, as ``treesyntax.safetensors``.

        Raises:
            OptionError: if safetensors is not installed.
        """
        need_package("safetensors", "huggingface", "saving a bridge")
        from safetensors.torch import save_file

        tensors = {name: one.contiguous() for name, one in self.injections.state_dict().items()}
        with output_file(Path(folder) / FILE) as staged:
            save_file(tensors, staged, metadata={"spec": self.spec, "site": _written(self.site)})

    @classmethod
    def load(cls, model: nn.Module, folder: str | Path) -> Self:
        """The bridge that :meth:`save` wrote, over a model of the same sizes.

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
            reason = str(error).splitlines()[0][:200]
            raise InputError(path, None, f"cannot be read ({reason})", "save a bridge") from None
        if not {"spec", "site"} <= metadata.keys():
            raise InputError(path, None, "does not say of which methods it is", "save a bridge")
        bridge = cls(model, metadata["spec"])  # type: ignore[call-arg]
        if _written(bridge.site) != metadata["site"]:
            raise OptionError(f"{path} is of a model with {metadata['site']}, not {bridge.site}")
        try:
            bridge.injections.load_state_dict(tensors)
        except RuntimeError as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(path, None, f"does not fit its methods ({reason})") from None
        return bridge


def _recomputes(model: nn.Module) -> bool:
    # Of the two names, new versions of transformers warn of the second.
    names = ("is_activation_checkpointing", "is_gradient_checkpointing")
    known = [name for name in names if hasattr(type(model), name)]
    return bool(known) and bool(getattr(model, known[0]))


def _written(site: Site) -> str:
    return f"d_model={site.d_model}, heads={site.heads}, layers={site.layers}"
