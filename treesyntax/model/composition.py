"""Methods composed from a text such as ``stack_pe(depth=16)+relation_mask``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.presets import PRESETS
from treesyntax.nn.injection import Injection, LayerStates, Site, ValueMap
from treesyntax.nn.kernels.flex import is_long
from treesyntax.nn.node_maps import InTurn, NodeMap
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.relations import QueriedTrees
from treesyntax.nn.tree_batch import TreeBatch


def options_of(name: str) -> dict[str, Any]:
    """The arguments of a method and their defaults."""
    if name not in METHODS:
        known = ", ".join([*METHODS, *PRESETS])
        raise OptionError(
            f"unknown method {name[:60]!r}; the methods are {known} (one of your own: TREESYNTAX_IMPORT=FILE.py)"
        )
    parameters = list(inspect.signature(METHODS[name].__init__).parameters.values())[2:]
    return {parameter.name: parameter.default for parameter in parameters}


def parse_spec(spec: str) -> dict[str, dict[str, Any]]:
    """Read ``stack_pe(depth=16)+relation_mask`` as methods and their arguments.

    Args:
        spec: names of methods or presets joined by ``+``, each with keyword arguments in
            parentheses if any; ``none`` or an empty text is the plain Transformer.

    Raises:
        OptionError: for unknown methods or arguments (the valid ones are named), a method given
            twice, or a text that is not of that form.
    """
    if spec.strip() in ("", "none"):
        return {}
    try:
        tree = ast.parse(spec.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise _malformed(spec) from None
    methods: dict[str, dict[str, Any]] = {}
    named = (_read_summand(summand, spec) for summand in _summands(tree))
    for name, options in (method for entry in named for method in _expanded(*entry)):
        if name in methods:
            raise OptionError(f"the method {name} is given twice in {spec!r}; give it once")
        _check_options(name, options)
        methods[name] = options
    return methods


def _expanded(name: str, options: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """A preset as its methods, anything else as it is."""
    if name not in PRESETS:
        return [(name, options)]
    if name in METHODS:
        raise OptionError(
            f"a method and a preset are both named {name}; give the method another name"
        )
    methods = list(parse_spec(PRESETS[name].spec).items())
    if options and len(methods) > 1:
        raise OptionError(
            f"{name} is {PRESETS[name].spec}; write that out to give it other arguments"
        )
    return [(method, {**settings, **options}) for method, settings in methods]


def _malformed(spec: str) -> OptionError:
    return OptionError(
        f"cannot read the methods {spec[:200]!r}; write them like stack_pe(depth=16)+relation_mask"
    )


def _summands(tree: ast.expr) -> Iterator[ast.expr]:
    summands = []
    while isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        summands.append(tree.right)
        tree = tree.left
    return reversed([*summands, tree])


def _read_summand(summand: ast.expr, spec: str) -> tuple[str, dict[str, Any]]:
    if isinstance(summand, ast.Name):
        return summand.id, {}
    if not (isinstance(summand, ast.Call) and isinstance(summand.func, ast.Name)) or summand.args:
        raise _malformed(spec)
    options: dict[str, Any] = {}
    for keyword in summand.keywords:
        if keyword.arg is None:
            raise _malformed(spec)
        try:
            options[keyword.arg] = ast.literal_eval(keyword.value)
        except ValueError:
            raise OptionError(
                f"the value of {keyword.arg} in {spec!r} is not a number, True, False or 'text'"
            ) from None
    return summand.func.id, options


def _check_options(name: str, options: dict[str, Any]) -> None:
    known = options_of(name)
    for option, value in options.items():
        if option not in known:
            valid = ", ".join(f"{key}={default!r}" for key, default in known.items())
            raise OptionError(
                f"the method {name} has no argument {option!r}; "
                + (f"it has {valid}" if valid else "it has none")
            )
        default = known[option]
        fits = isinstance(value, float | int) if isinstance(default, float) else True
        if isinstance(default, bool | int | str) and type(value) is not type(default):
            fits = False
        if not fits:
            raise OptionError(
                f"the argument {option} of {name} is {value!r}; "
                f"it must be of the kind of its default {default!r}"
            )


class Composition(nn.ModuleDict):
    """Several methods as one module: encodings and biases are added, maps follow one another.

    The keys of its state dict begin with the methods' names, so a method's parameters load whatever
    else it is composed with.
    """

    def __init__(self, spec: str, site: Site) -> None:
        methods = parse_spec(spec)
        for name in methods:
            if hasattr(type(self), name):  # and so cannot be a module of it
                raise OptionError(f"no method can be named {name}; choose another name")
        super().__init__(
            {name: METHODS[name](site, **options) for name, options in methods.items()}
        )

    @property
    def methods(self) -> list[Injection]:
        """The methods in the order of the spec."""
        return list(self.values())  # type: ignore[arg-type]

    @property
    def needs_tree(self) -> bool:
        """Whether any method needs trees now; some need them in training alone."""
        needing = (method for method in self.methods if method.needs_tree)
        return any(method.training or not method.training_only for method in needing)

    @property
    def needs_slots(self) -> bool:
        """Whether any method needs a decoder's target with slots."""
        return any(method.needs_slots for method in self.methods)

    @property
    def has_losses(self) -> bool:
        """Whether any method adds to the loss in training."""
        return any(type(method).loss is not Injection.loss for method in self.methods)

    def losses(self, layer: int, states: LayerStates, tree: TreeBatch) -> list[Tensor]:
        """What methods add to the loss from a layer."""
        losses = (method.loss(layer, states, tree) for method in self.methods)
        return [loss for loss in losses if loss is not None]

    @property
    def replaces_positions(self) -> bool:
        """Whether any method takes the place of absolute positions."""
        return any(method.replaces_positions for method in self.methods)

    def encode(self, tree: TreeBatch) -> Tensor | None:
        """The sum of all node encodings, [B, T, d_model], or None."""
        total = None
        for method in self.methods:
            encoding = method.node_encoding(tree)
            if encoding is not None:
                total = encoding if total is None else total + encoding
        return total

    def node_map(self, tree: TreeBatch, columns: slice = slice(None)) -> NodeMap | None:
        """The maps of queries and keys, one after the other in the order of the spec, or None.

        Those by position come last, so that padding on the left does not matter.

        Args:
            columns: the tokens that are mapped, by default all.
        """
        node_maps = [method.node_map(tree) for method in self.methods]
        maps = [node_map.of(columns) for node_map in node_maps if node_map is not None]
        maps.sort(key=lambda node_map: node_map.last)
        return InTurn(maps) if len(maps) > 1 else next(iter(maps), None)

    def misplaced(self, side: str) -> str | None:
        """Why a method cannot be on a side, ``encoder`` or ``decoder``; None if all can."""
        for name, method in self.items():
            if side not in method.sides:  # type: ignore[operator]
                right = " or ".join(method.sides)  # type: ignore[arg-type]
                return f"{name} is for a {right} alone"
            if side == "decoder" and type(method).loss is not Injection.loss:  # type: ignore[attr-defined]
                return f"{name} adds to the loss of an encoder, and a decoder would leave that out"
        return None

    def leaks_future(self) -> str | None:
        """The first method that cannot be built into a decoder, with its reason, or None."""
        for name, method in self.items():
            reason = method.leaks_future()  # type: ignore[operator]
            if reason is not None:
                return f"{name} {reason}"
        return None

    def relate(
        self, tree: TreeBatch, may_compute: bool = False, rows: slice = slice(None)
    ) -> LayerTerms:
        """What the pairwise methods add to the pairs of a batch, for each layer.

        Relation ids and scales are computed here, once for all layers.

        Args:
            may_compute: whether long inputs on a GPU may take :mod:`treesyntax.nn.kernels.flex`,
                which knows neither dropout of weights nor masks but padding.
            rows: the queries, by default all tokens.
        """
        related = self._computed(tree) if may_compute and is_long(tree) else []
        if not related:
            queried = QueriedTrees.of(tree, rows)
            for method in self.methods:
                pairs = [getattr(method, hook)(queried) for hook in PAIR_HOOKS]
                of_queries = [
                    None if tensor is None else queried.query_rows(tensor) for tensor in pairs
                ]
                value_map = method.value_map(queried)
                if value_map is not None or any(tensor is not None for tensor in of_queries):
                    ids, scale, features = of_queries
                    term = PairTerm(ids, scale=scale, features=features)
                    related.append((method, term, value_map))
        return partial(_terms, related)

    def _computed(self, tree: TreeBatch) -> list[Related]:
        """The pairwise methods with functions for ids; empty if one of them needs stored ids, or adds more than biases."""
        pairwise = [method for method in self.methods if _overrides(method, PAIRWISE)]
        if any(_overrides(method, NOT_COMPUTED) for method in pairwise):
            return []
        related = [(method, PairTerm(method.relation_of_pair(tree)), None) for method in pairwise]
        return [] if any(term.ids is None for _, term, _ in related) else [*related]


def check_heads(d_model: int, heads: int) -> None:
    """Raise OptionError unless heads divide a width."""
    if d_model < 1 or heads < 1 or d_model % heads:
        raise OptionError(f"{heads} heads do not divide a width of {d_model}")


def compose(spec: str, d_model: int, heads: int, layers: int) -> Composition:
    """Build methods as one module for a stack of layers.

    Args:
        spec: such as ``stack_pe(depth=16)+relation_mask``, see :func:`parse_spec`.
        d_model: width of the model.
        heads: attention heads of each layer, which divide the width.
        layers: number of layers, 1 or more.

    Raises:
        OptionError: as :func:`parse_spec`, and for arguments that cannot be built.
    """
    check_heads(d_model, heads)
    if layers < 1:
        raise OptionError(f"methods need 1 layer or more, not {layers}")
    return Composition(spec, Site(d_model, heads, layers))


LayerTerms = Callable[[int], list[PairTerm]]
"""What is added to the pairs of a layer, by the index of the layer."""

Related = tuple[Injection, PairTerm, ValueMap | None]
"""A method, and what it adds but for its tables, which differ from layer to layer."""

PAIR_HOOKS = ("relation_ids", "pair_scale", "pair_features")
PAIRWISE = (*PAIR_HOOKS, "value_map")
NOT_COMPUTED = ("pair_scale", "pair_features", "value_map", "vector_tables")
"""What the kernel for functions of a pair leaves out."""


def _overrides(method: Injection, hooks: Sequence[str]) -> bool:
    return any(getattr(type(method), hook) is not getattr(Injection, hook) for hook in hooks)


def _terms(related: list[Related], layer: int) -> list[PairTerm]:
    terms = []
    for method, term, value_map in related:
        tables = (method.bias_table(layer), *method.vector_tables(layer))
        scale = term.scale if method.scales_layer(layer) else None
        mapped = None if value_map is None else partial(value_map, layer)
        if any(addend is not None for addend in (scale, mapped, *tables)):
            terms.append(PairTerm(term.ids, *tables, scale, term.features, mapped))
            _check_range(type(method).__name__, terms[-1])
    return terms


def _check_range(name: str, term: PairTerm) -> None:
    """Refuse ids of a byte for larger tables: those above 255 would have begun at 0 again."""
    if term.stored_ids is not None and term.stored_ids.dtype == torch.uint8 and term.size > 256:
        raise OptionError(
            f"{name} has tables of {term.size} rows, and relation ids of 8 bits, which end at 255; make the ids "
            "with .to(torch.int16)"
        )
