"""What every method promises, as functions: for the tests of a method of your own.

``check_method("mine")`` checks all of :data:`PROMISES` on a small encoder, and on a decoder if the
method does not see the future. It needs no pytest: a broken promise is an AssertionError. What a method
computes needs a test of its own, against its formula.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.model.bracket_growth import GROWING, growing_trees
from treesyntax.model.composition import Composition, parse_spec
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GROWING_LINEARIZATIONS
from treesyntax.nn.injection import METHODS, Injection, LayerStates, Site
from treesyntax.nn.relations import QueriedTrees
from treesyntax.nn.tree_batch import TreeBatch, batch_trees
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

PADDING, EOS, VOCABULARY = 1, 2, 20
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
SITE = Site(d_model=16, heads=4, layers=2)
TREES = (
    Tree([-1, 0, 1, 1, 0, 4, 4, 4], list("abcdefgh")),
    Tree([-1, 0, 0], list("abc")),
    Tree([-1], ["a"]),
    Tree([-1, 0, 1, 2, 3], list("abcde")),
)
OTHER = Tree([-1, 0, 1, 2, 3, 4, 5, 6], list("badcfehg"))
"""Another tree, of other labels, over as many tokens as the first of `TREES`."""
LARGE = 300
"""Nodes of trees that are deeper, and wider, than the tables of any method."""
DEEP = Tree([*range(-1, LARGE - 1)], ["a", "b", "c"] * (LARGE // 3))
WIDE = Tree([-1] + [0] * (LARGE - 1), ["a", "b", "c"] * (LARGE // 3))


def check_method(spec: str) -> None:
    """Check that a method, or a composition, keeps all that methods promise.

    Args:
        spec: such as ``mine`` or ``mine(clip=4)+relation_mask``.

    Raises:
        AssertionError: for the first broken promise, by its name.
        OptionError: if there is no such method.
    """
    for promise in promises_of(spec):
        try:
            promise(spec)
        except Exception as error:
            fault = f"broken promise, {promise.__name__.replace('_', ' ')}: {error}"
            raise AssertionError(f"{spec}: {fault}") from error


def make_encoder(spec: str, **options: Any) -> Encoder:
    """A small untrained encoder whose methods are away from their start values."""
    torch.manual_seed(0)
    sizes = {**vars(SITE), "d_ff": 32, **options}
    settings = TransformerConfig(**sizes, injection=spec)
    encoder = Encoder(settings, nn.Embedding(VOCABULARY, SITE.d_model, PADDING)).eval()
    _move_tables(encoder)
    return encoder


def make_sentences(trees: Sequence[Tree], left_pad: bool = False) -> tuple[Tensor, TreeBatch]:
    """Tokens (each sentence with an end mark) and trees, padded to one batch."""
    generator = torch.Generator().manual_seed(3)
    width = max(map(len, trees)) + 1
    tokens = torch.full((len(trees), width), PADDING)
    for row, tree in enumerate(trees):
        start = width - len(tree) - 1 if left_pad else 0
        ids = torch.randint(4, VOCABULARY, (len(tree) + 1,), generator=generator)
        tokens[row, start : start + len(ids)] = ids
    nodes = [[*range(len(tree)), -1] for tree in trees]
    return tokens, batch_trees(trees, nodes, width, left_pad, {"a": 1, "b": 2, "d": 3})


def outputs_of(encoder: Encoder, trees: Sequence[Tree]) -> list[Tensor]:
    """What an encoder makes of the tokens of each sentence, padding left out."""
    tokens, batch = make_sentences(trees)
    memory = encoder(tokens, batch).memory
    return [memory[row][tokens[row] != PADDING] for row in range(len(trees))]


def a_batch_of_one_equals_the_mixed_batch(spec: str) -> None:
    """Padded on the right or on the left, in evaluation and in training; the loss as well."""
    for encoder in _comparable_encoders(spec):
        _expect_the_same_alone(encoder, TREES)


def deep_and_wide_trees_are_read(spec: str) -> None:
    """Trees of 300 levels, and of 299 children, as any other: alone and in a batch."""
    _expect_the_same_alone(make_encoder(spec), (TREES[0], DEEP, WIDE))


def the_trees_stay_as_they_are(spec: str) -> None:
    """A method that changes its trees in place changes them for the methods beside it."""
    for training in (False, True):
        tokens, batch = make_sentences(TREES)
        before = {name: tensor.clone() for name, tensor in batch.to_dict().items()}
        make_encoder(spec).train(training)(tokens, batch)
        for name, tensor in batch.to_dict().items():
            _expect(
                torch.equal(tensor, before[name]), f"the {name} of the trees is changed in place"
            )


def it_is_ready_for_a_gpu(spec: str) -> None:
    """A training step of an encoder and of a decoder runs on the ``meta`` device.

    Its tensors have shapes and no numbers. So nothing in the step can read a number back, for which
    a GPU would be waited for, and no tensor may be made on another device.
    """
    methods = Composition(spec, SITE)
    if not methods.misplaced("encoder"):
        encoder = make_encoder(spec, dropout=0.1, attention_dropout=0.1).train().to("meta")
        tokens, batch = make_sentences(TREES)
        trees = {name: tensor.to("meta") for name, tensor in batch.to_dict().items()}
        output = encoder(tokens.to("meta"), TreeBatch(**trees, check=False))
        loss = output.memory.sum()
        (loss if output.loss is None else loss + output.loss).backward()
    for _, decoder, tokens in _decoders(spec, TREES, dropout=0.1, attention_dropout=0.1):
        memory = torch.zeros(len(tokens), 5, SITE.d_model, device="meta")
        real = torch.ones(len(tokens), 5, dtype=torch.bool, device="meta")
        moved = decoder.train().to("meta")
        moved(tokens.to("meta"), EncoderOutput(memory, real)).sum().backward()


def a_tree_is_the_same_beside_another(spec: str) -> None:
    """What a method adds within each tree of a forest is what it adds where the tree is alone.

    The loss of a forest is the sum of the losses of its trees.
    """
    methods = Composition(spec, SITE).eval()
    _move_tables(methods, "")
    trees, labels = [*TREES, OTHER], {"a": 1, "b": 2, "d": 3}
    placed = torch.tensor(
        [has_node for tree in trees for has_node in ([0] * (len(tree) % 2) + [1] * len(tree))]
    )
    nodes = (placed.cumsum(0) - 1).masked_fill(placed == 0, -1)
    for method in methods.methods:
        forest = batch_trees([trees], [nodes.tolist()], labels=labels)
        losses, first = [], 0
        for tree in trees:
            of_tree = (nodes >= first) & (nodes < first + len(tree))
            token_nodes = (nodes - first).masked_fill(~of_tree, -1).tolist()
            alone = batch_trees([tree], [token_nodes], labels=labels)
            pairs = zip(
                _within(method, forest, of_tree), _within(method, alone, of_tree), strict=True
            )
            for (hook, beside), (_, single) in pairs:
                _expect_close(beside, single, 1e-5, f"{hook} differs beside another tree")
            losses.append(_losses(method, alone))
            first += len(tree)
        _expect_close(
            _losses(method, forest),
            torch.stack(losses).sum(0),
            1e-3,
            "the loss is no sum over trees",
        )


def the_tree_matters(spec: str) -> None:
    """The same tokens under another tree give another output, unless no method needs a tree: then the same.

    Where they need it in training alone it is the loss that differs, and the output is the same.
    """
    needing = [METHODS[name] for name in parse_spec(spec) if METHODS[name].needs_tree]
    trained = bool(needing) and all(method.training_only for method in needing)
    encoder = make_encoder(spec, dropout=0.0)
    differs = _differs_by_tree(encoder, "memory")
    if trained or not needing:
        said = "training_only" if trained else "needs_tree = False"
        _expect(not differs, f"another tree gives another output, but it says {said}")
        differs = not trained or _differs_by_tree(encoder.train(), "loss")
    _expect(differs, "another tree gives the same output")


def without_trees_it_is_refused(spec: str) -> None:
    """In training, with a clear message, unless no method needs a tree."""
    needed = any(METHODS[name].needs_tree for name in parse_spec(spec))
    try:
        make_encoder(spec).train()(make_sentences(TREES)[0], None)
    except OptionError:
        _expect(needed, "it does not need trees, but is refused without")
    else:
        _expect(not needed, "it is not refused without trees")


def some_rows_are_computed_alone(spec: str) -> None:
    """What is added to pairs is the same for some queries alone, as step-by-step decoding asks."""
    methods = Composition(spec, SITE).eval()
    _, batch = make_sentences(TREES)
    for rows in (slice(-1, None), slice(2, 5), slice(0, 0), slice(None)):
        queried = QueriedTrees.of(batch, rows)
        for method in methods.methods:
            for hook in (method.relation_ids, method.pair_scale):
                every, some = hook(batch), hook(queried)
                _expect((every is None) == (some is None), "some rows are None, all are not")
                if every is not None and some is not None:
                    same = torch.equal(queried.query_rows(some), every[:, rows])
                    _expect(same, f"{hook.__name__} of some rows differs from those of all")


def the_gradient_reaches_every_parameter(spec: str) -> None:
    """A parameter without gradient is never learnt, and stops distributed training."""
    for model, run in _models(spec):
        output = run(model.train())
        weights = torch.randn(output.memory.shape, generator=_generator())
        total = (output.memory * weights).sum()
        (total if output.loss is None else total + output.loss).backward()
        _expect_gradients(model)


def saved_equals_loaded(spec: str) -> None:
    """A state dict holds all that a method has learnt, and what it keeps of training besides."""
    for model, run in _models(spec):
        run(model.train())
        stream = io.BytesIO()
        torch.save(model.state_dict(), stream)
        stream.seek(0)
        embedding = nn.Embedding(len(model.embed_tokens.weight), SITE.d_model, PADDING)
        more = {"trees": model.trees} if isinstance(model, Decoder) else {}
        fresh = type(model)(model.settings, embedding, **more)
        fresh.load_state_dict(torch.load(stream, weights_only=True), strict=True)
        same = torch.equal(run(fresh.eval()).memory, run(model.eval()).memory)
        _expect(same, "the loaded one gives another output")


def half_precision_agrees_to_tolerance(spec: str) -> None:
    """In bfloat16 and float16; and double precision stays double."""
    for model, run in _models(spec):
        exact = run(model).memory
        for dtype in (torch.bfloat16, torch.float16, torch.float64):
            inexact = run(copy.deepcopy(model).to(dtype)).memory
            _expect(inexact.dtype == dtype, f"in {dtype} it gives {inexact.dtype}")
            tolerance = 1e-4 if dtype == torch.float64 else 0.15
            _expect_close(exact, inexact.to(exact.dtype), tolerance, f"it differs in {dtype}")


def labels_are_read_where_that_is_said(spec: str) -> None:
    """Most data has no labels: without them a method that does not say ``needs_labels`` computes the same."""
    if any(METHODS[name].needs_labels for name in parse_spec(spec)):
        return
    for encoder in _comparable_encoders(spec):
        tokens, batch = make_sentences(TREES)
        bare = TreeBatch(batch.parent, batch.branch, batch.token_node)
        with_labels, without = (encoder(tokens, trees) for trees in (batch, bare))
        same = torch.equal(with_labels.memory, without.memory)
        if with_labels.loss is not None:
            same = same and torch.equal(with_labels.loss, without.loss)
        _expect(same, "it reads labels, but does not say needs_labels = True")


def an_empty_sentence_is_finite(spec: str) -> None:
    """Its end mark alone, with an empty tree; and no sentences or tokens at all, gradients too."""
    encoder = make_encoder(spec)
    alone = encoder(torch.tensor([[EOS]]), batch_trees([Tree([], [])], [[-1]], labels={})).memory
    _expect(alone.isfinite().all(), "the output is not finite")
    for rows, width in ((0, 5), (2, 0), (0, 0)):
        batch = batch_trees([Tree([], [])] * rows, None, width, labels={})
        (memory := encoder(torch.full((rows, width), 4), batch).memory).sum().backward()
        _expect(memory.shape == (rows, width, SITE.d_model), f"{rows} x {width} tokens fail")


def recomputed_activations_give_the_same_gradients(spec: str) -> None:
    """Of all parameters, also with what the method draws at random."""
    gradients = []
    for recompute in (False, True):
        encoder = make_encoder(spec, recompute=recompute).train()
        torch.manual_seed(5)
        encoder(*make_sentences(TREES)).memory.square().sum().backward()
        gradients.append(
            [parameter.grad for parameter in encoder.parameters() if parameter.grad is not None]
        )
    _expect(all(map(torch.equal, *gradients)), "the gradients differ")


def padding_gets_no_weight(spec: str) -> None:
    """Also where parameters of 20 push every real key to the edge of half precision."""
    for encoder in _comparable_encoders(spec):
        for parameter in encoder.injections.parameters():
            nn.init.constant_(parameter, 20.0)
        together, alone = (outputs_of(encoder.half(), trees) for trees in (TREES, TREES[:1]))
        _expect_close(together[0], alone[0], 2e-2, "padding changes the output")


def a_target_is_the_same_alone(spec: str) -> None:
    """What a decoder computes for a target does not depend on others, such as those of a beam."""
    for growth, decoder, tokens in _decoders(spec, TREES):
        source = _source(len(tokens))
        with torch.no_grad():
            together = decoder.decode(tokens, source)
            for row, target in enumerate(tokens):
                size = int((target != PADDING).sum())
                beside = EncoderOutput(source.memory[row : row + 1], None)
                alone = decoder.decode(target[None, :size], beside)[0]
                fault = f"target {row + 1} differs in a batch, in {growth}"
                _expect_close(together[row, :size], alone, 1e-5, fault)


def a_decoder_sees_no_future(spec: str) -> None:
    """Step by step a decoder computes what it does at once, if the method may be built into one.

    What it computes for a prefix stays when more follows: in evaluation, in training, in deep and in
    wide trees.
    """
    for growth, decoder, tokens in _decoders(spec, TREES):
        source = _source(len(tokens))
        with torch.no_grad():
            full, cache = decoder.decode(tokens, source), KVCache()
            for step in range(1, tokens.shape[1] + 1):
                last = decoder.decode(tokens[:, :step], source, cache)[:, 0]
                _expect_close(last, full[:, step - 1], 1e-5, f"step {step} differs in {growth}")
        lengths = range(1, tokens.shape[1])
        _expect_prefixes_to_stay(decoder, tokens, lengths, f"in {growth}, ")
        if not _draws_at_random(partial(decoder.train().decode, tokens, source)):
            _expect_prefixes_to_stay(decoder, tokens, lengths, "in training, ")
    for _, decoder, tokens in _decoders(spec, (DEEP, WIDE)):
        _expect_prefixes_to_stay(decoder, tokens, (1, LARGE // 2, LARGE - 1), "in a large tree, ")


def make_decoder(spec: str, linearization: str, symbols: Sequence[str], **options: Any) -> Decoder:
    """A small untrained decoder whose methods are away from their start values."""
    torch.manual_seed(0)
    sizes = {**vars(SITE), "d_ff": 32, "dropout": 0.0, **options}
    settings = TransformerConfig(**sizes, injection=spec)
    embedding = nn.Embedding(len(symbols), SITE.d_model, PADDING)
    decoder = Decoder(settings, embedding, trees=growing_trees(symbols, linearization))
    _move_tables(decoder)
    return decoder.eval()


def it_describes_itself(spec: str) -> None:
    """Paper, equation, cost and a docstring, for ``treesyntax methods``; a default for each argument."""
    for name in parse_spec(spec):
        method = METHODS[name]
        for fact in ("paper", "equation", "cost", "linearization", "__doc__"):
            _expect(getattr(method, fact), f"{name} has no {fact}")
        get_linearization(method.linearization)
        METHODS[name](SITE)


Promise = Callable[[str], None]
PROMISES: tuple[Promise, ...] = (
    it_describes_itself,
    without_trees_it_is_refused,
    a_batch_of_one_equals_the_mixed_batch,
    deep_and_wide_trees_are_read,
    the_trees_stay_as_they_are,
    a_tree_is_the_same_beside_another,
    the_tree_matters,
    some_rows_are_computed_alone,
    the_gradient_reaches_every_parameter,
    saved_equals_loaded,
    half_precision_agrees_to_tolerance,
    labels_are_read_where_that_is_said,
    an_empty_sentence_is_finite,
    recomputed_activations_give_the_same_gradients,
    padding_gets_no_weight,
    a_target_is_the_same_alone,
    a_decoder_sees_no_future,
    it_is_ready_for_a_gpu,
)
"""All that every method promises, each a function of a spec."""


def promises_of(spec: str) -> tuple[Promise, ...]:
    """Those of a spec: what is not for an encoder has no promise there."""
    anywhere = (
        it_describes_itself,
        some_rows_are_computed_alone,
        the_gradient_reaches_every_parameter,
        saved_equals_loaded,
        half_precision_agrees_to_tolerance,
        a_target_is_the_same_alone,
        a_decoder_sees_no_future,
        it_is_ready_for_a_gpu,
    )
    return anywhere if Composition(spec, SITE).misplaced("encoder") else PROMISES


def _differs_by_tree(encoder: Encoder, what: str) -> bool:
    outputs = [encoder(*make_sentences([tree])) for tree in (TREES[0], OTHER)]
    first, second = (getattr(output, what) for output in outputs)
    return bool((first - second).abs().max() > 1e-3)


def _models(spec: str) -> Iterator[tuple[Any, Callable[[Any], EncoderOutput]]]:
    """A model with the methods and what it computes, padding zero: an encoder, or decoders if they are for these alone."""
    if not Composition(spec, SITE).misplaced("encoder"):
        yield make_encoder(spec), _encoded
    else:
        for _, decoder, tokens in _decoders(spec, TREES):
            yield decoder, partial(_decoded, tokens=tokens)


def _encoded(encoder: Encoder) -> EncoderOutput:
    tokens, batch = make_sentences(TREES)
    output = encoder(tokens, batch)
    output.memory = output.memory * (tokens != PADDING).unsqueeze(2)
    return output


def _decoded(decoder: Decoder, tokens: Tensor) -> EncoderOutput:
    memory = _source(len(tokens)).memory.to(decoder.embed_tokens.weight.dtype)
    logits = decoder(tokens, EncoderOutput(memory, None))
    return EncoderOutput(logits * (tokens != PADDING).unsqueeze(2), None)


def _comparable_encoders(spec: str) -> Iterator[Encoder]:
    """One in evaluation, and one in training where the method draws nothing at random."""
    yield make_encoder(spec)
    encoder = make_encoder(spec, dropout=0.0, attention_dropout=0.0).train()
    if not _draws_at_random(lambda: encoder(*make_sentences(TREES)).memory):
        yield encoder


def _draws_at_random(output: Callable[[], Tensor]) -> bool:
    """Whether two calls give different outputs."""
    with torch.no_grad():
        torch.manual_seed(1)
        first = output()
        torch.manual_seed(2)
        return not torch.equal(first, output())


def _expect_the_same_alone(encoder: Encoder, trees: Sequence[Tree]) -> None:
    """Each sentence has the same output, and all together the same loss, in one batch and alone."""
    mode = "in training" if encoder.training else "in evaluation"
    tokens, _ = make_sentences(trees)
    for left_pad in (False, True):
        shifted, batch = make_sentences(trees, left_pad)
        together, losses = encoder(shifted, batch), []
        for row, tree in enumerate(trees):
            alone = encoder(tokens[row : row + 1, : len(tree) + 1], make_sentences([tree])[1])
            states = together.memory[row][shifted[row] != PADDING]
            fault = f"sentence {row + 1} differs in a batch, {mode}"
            _expect(alone.memory.isfinite().all(), f"sentence {row + 1} is not finite, {mode}")
            _expect_close(states, alone.memory[0], 1e-5, fault)
            losses.append(alone.loss)
        if together.loss is not None:
            total = torch.stack([loss for loss in losses if loss is not None]).sum()
            tolerance = 1e-4 * max(1.0, abs(total.item()))
            fault = "the loss of a batch is not the sum of its sentences' losses, but differs"
            _expect_close(together.loss, total, tolerance, fault)


def _decoders(
    spec: str, trees: Sequence[Tree], **options: Any
) -> Iterator[tuple[str, Decoder, Tensor]]:
    """Each way to grow trees, a decoder for it and its input; none if the method is for encoders alone."""
    methods = Composition(spec, SITE)
    if methods.misplaced("decoder") or methods.leaks_future() is not None:
        return
    for linearization in GROWING_LINEARIZATIONS if methods.needs_slots else GROWING:
        lines = [get_linearization(linearization).tokens(tree) for tree in trees]
        symbols = [*SPECIALS, *sorted({symbol for line in lines for symbol in line})]
        ids = [torch.tensor([EOS, *map(symbols.index, line)]) for line in lines]
        tokens = nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=PADDING)
        yield linearization, make_decoder(spec, linearization, symbols, **options), tokens


def _source(rows: int) -> EncoderOutput:
    return EncoderOutput(torch.randn(rows, 5, SITE.d_model, generator=_generator()), None)


def _expect_prefixes_to_stay(
    decoder: Decoder, tokens: Tensor, lengths: Iterable[int], where: str
) -> None:
    source = _source(len(tokens))
    with torch.no_grad():
        full = decoder.decode(tokens, source)
        _expect(full.isfinite().all(), f"{where}the output is not finite")
        for length in lengths:
            prefix = decoder.decode(tokens[:, :length], source)
            fault = f"{where}the first {length} steps differ when more follow"
            _expect_close(prefix, full[:, :length], 1e-5, fault)


def _move_tables(model: nn.Module, prefix: str = "injections") -> None:
    """Away from the start values, at which a method may still be the identity."""
    for name, parameter in model.named_parameters():
        if name.startswith(prefix):
            nn.init.normal_(parameter, std=0.3)


def _within(method: Injection, tree: TreeBatch, mask: Tensor) -> list[tuple[str, Tensor]]:
    """What the hooks of a method add to some tokens and their pairs, in double precision."""
    width = len(mask)
    x = torch.randn(1, SITE.heads, width, SITE.d_model // SITE.heads, generator=_generator())
    node_map, value_map = method.node_map(tree), method.value_map(tree)
    rows = {
        "node_encoding": method.node_encoding(tree),
        "node_map": None if node_map is None else node_map(x).transpose(1, 2),
        "value_map": None if value_map is None else value_map(0, x).transpose(1, 2),
    }
    pairs = {
        "relation_ids": method.relation_ids(tree),
        "pair_scale": method.pair_scale(tree),
        "pair_features": method.pair_features(tree),
    }
    additions = [(hook, values[:, mask]) for hook, values in rows.items() if values is not None]
    additions += [
        (hook, ids[..., mask, :][..., mask]) for hook, ids in pairs.items() if ids is not None
    ]
    return [(hook, values.double()) for hook, values in additions]


def _losses(method: Injection, tree: TreeBatch) -> Tensor:
    """[layers]: what a method adds to the loss in each layer, for states of its own."""
    width = tree.token_node.shape[1]
    weights = torch.randn(1, SITE.heads, width, width, generator=_generator()).log_softmax(3)
    states = torch.randn(1, width, SITE.d_model, generator=_generator())
    layer_states = LayerStates(states, lambda heads: weights[:, :heads], states)
    losses = [method.loss(layer, layer_states, tree) for layer in range(SITE.layers)]
    return torch.stack([states.new_zeros(()) if loss is None else loss.detach() for loss in losses])


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def _expect(holds: Any, fault: str) -> None:
    if not bool(holds):
        raise AssertionError(fault)


def _expect_close(first: Tensor, second: Tensor, tolerance: float, fault: str) -> None:
    largest = (first - second).abs().max().item() if first.numel() else 0.0
    _expect(largest <= tolerance, f"{fault} by {largest:.2g}")


def _expect_gradients(model: nn.Module) -> None:
    learned = ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)
    for name, parameter in learned:
        _expect(parameter.grad is not None, f"{name} gets no gradient")
        if "k_proj.bias" not in name:  # adding a constant to all keys changes no softmax
            _expect(parameter.grad.abs().sum() > 0, f"the gradient of {name} is 0")  # type: ignore[union-attr]
