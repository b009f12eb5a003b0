"""Constrained beam search through fairseq's own generator: nothing but whole trees."""

from __future__ import annotations

import math
from collections import deque
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.fairseq_task import FairseqTask
from torch import nn

from fairseq_plugins.generator import ConstrainedGenerator
from fairseq_plugins.model import TreeTransformer, TreeTransformerConfig
from treesyntax.decoding.constraints import Constraints
from treesyntax.decoding.grammar import any_tree
from treesyntax.decoding.learned_grammar import learn_grammar, learn_sibling_grammar
from treesyntax.decoding.notation_grammar import notation_grammar
from treesyntax.errors import OptionError, TreeError
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.symbols import from_nary, from_siblings, nary_tokens, sibling_tokens

NARY = [*(f"a{i}/0" for i in range(3)), *(f"f{i}/1" for i in range(4)), "g/2", "h/3", "word"]
BINARY = [f"{label}/{slots}" for label in "abc" for slots in ("0", "L", "R", "LR")]
SLOTS = {"0": [0] * 0, "L": [0], "R": [1], "LR": [0, 1]}
DECODINGS, BEAM = 10_000, 3
ORDERS, FORMS = ("dfs", "bfs"), ("nary", "lcrs")


class SourceEncoder(FairseqEncoder):
    """The mean of random vectors."""

    def __init__(self, dictionary):
        super().__init__(dictionary)
        self.embed = nn.Embedding(len(dictionary), 8)

    def forward(self, src_tokens, **unused):
        return {"encoder_out": self.embed(src_tokens).mean(1)}

    def reorder_encoder_out(self, encoder_out, new_order):
        return {"encoder_out": encoder_out["encoder_out"].index_select(0, new_order)}


class RandomDecoder(FairseqIncrementalDecoder):
    """Random logits from the source, the last token and the position."""

    def __init__(self, dictionary):
        super().__init__(dictionary)
        self.embed = nn.Embedding(len(dictionary), 8)
        self.position = nn.Embedding(64, 8)
        self.output = nn.Linear(8, len(dictionary))
        nn.init.normal_(self.output.weight, std=1.5)

    def forward(self, prev_output_tokens, encoder_out, incremental_state=None):
        last = self.embed(prev_output_tokens[:, -1])
        position = self.position.weight[prev_output_tokens.shape[1] - 1]
        features = torch.sin(last + position + 3 * encoder_out["encoder_out"])
        return self.output(features).unsqueeze(1), None

    def max_positions(self):
        return 64


def dictionary_of(symbols):
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


def random_model(dictionary, seed=0):
    torch.manual_seed(seed)
    return FairseqEncoderDecoderModel(SourceEncoder(dictionary), RandomDecoder(dictionary)).eval()


def sources(count, dictionary):
    tokens = torch.randint(4, len(dictionary), (count, 6))
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.full((count,), 6)}}


def slots_of(symbol):
    suffix = symbol.rpartition("/")[2]
    return SLOTS.get(suffix) or list(range(int(suffix)))


def grown(symbols, order):
    """(parent symbol, branch, symbol) of every node; fails if it is no whole tree."""
    open_slots, triples = deque([(None, 0)]), set()
    for symbol in symbols:
        assert open_slots, "a symbol follows the end of the tree"
        assert symbol not in ("<s>", "<pad>", "<unk>", "</s>", "word")
        triples.add((*open_slots.popleft(), symbol))
        new = [(symbol, branch) for branch in slots_of(symbol)]
        open_slots = deque([*open_slots, *new] if order == "bfs" else [*new, *open_slots])
    assert not open_slots, "a slot stays open"
    return triples


def hypotheses(generated, dictionary):
    for sentence in generated:
        assert sentence, "no hypothesis"
        for hypothesis in sentence:
            *tokens, last = hypothesis["tokens"].tolist()
            assert last == dictionary.eos()
            assert math.isfinite(hypothesis["score"])
            yield [dictionary[token] for token in tokens]


def constraints_of(dictionary, order, form="nary", grammar=any_tree):
    """``grammar``: makes one from how the tokens grow trees."""
    trees = GrowingTrees(dictionary.symbols, f"{form}_{order}")
    return Constraints(trees, dictionary.eos(), grammar(trees))


def generator_of(model, dictionary, constraints, limit, beam=BEAM, **options):
    return ConstrainedGenerator(
        [model],
        dictionary,
        tree_constraints=constraints,
        max_len_b=limit,
        beam_size=beam,
        **options,
    )


def seen_in(tokens, order, binary):
    """What a learned grammar must have seen: triples, in siblings' forms those of the trees."""
    if not binary:
        return grown(tokens, order)
    tree = from_siblings(tokens, order == "bfs")
    return {
        (tree.labels[node], min(number, 1), tree.labels[child], number == len(children) - 1)
        for node, children in enumerate(tree.children())
        for number, child in enumerate(children)
    }


SETTINGS = [
    (order, binary, limit, learned)
    for order in ORDERS
    for binary in (False, True)
    for limit, learned in ((1, False), (2, False), (6, True), (9, False), (30, False))
]


@pytest.mark.parametrize(("order", "binary", "limit", "learned"), SETTINGS)
def test_ten_thousand_random_decodings_are_whole_trees(order, binary, limit, learned):
    """That many sentences over all settings, and several hypotheses of each."""
    dictionary = dictionary_of(BINARY if binary else NARY)
    grammar, known, form = any_tree, None, FORMS[binary]
    if learned:
        training = (
            ["a/L b/LR c/0 a/R b/R c/0", "b/L a/R c/L b/0", "c/0"]
            if binary
            else ["h/3 f0/1 a0/0 f1/1 a1/0 a2/0", "f1/1 f1/1 a0/0"]
        )
        known = set().union(*(seen_in(line.split(), "dfs", binary) for line in training))
        ids = [[dictionary.index(symbol) for symbol in line.split()] for line in training]
        # What may hang where does not depend on the order of the tokens.
        trees, eos = GrowingTrees(dictionary.symbols, f"{form}_dfs"), dictionary.eos()
        found = (
            learn_sibling_grammar(ids, dictionary.symbols, trees, eos)
            if binary
            else learn_grammar(ids, trees, eos)
        )

        def grammar(_):
            return found

    model = random_model(dictionary, seed=limit)
    constraints = constraints_of(dictionary, order, form, grammar)
    generator = generator_of(model, dictionary, constraints, limit)
    generated = generator.generate([model], sources(DECODINGS // len(SETTINGS), dictionary))
    lengths = set()
    for symbols in hypotheses(generated, dictionary):
        assert grown(symbols, order)
        assert len(symbols) <= limit
        assert known is None or seen_in(symbols, order, binary) <= known
        assert not (binary and 1 in slots_of(symbols[0])), "the root has a sibling"
        lengths.add(len(symbols))
    assert max(lengths) == limit, "the limit was never put to the test"


PROGRAMS = {
    LAMBDA: [
        "let a8 = let a1 = 3 + a2 in unit in if a1 < 2 then unit else a9 ( a1 - 1 )",
        "letrec a9 a3 = if a3 == a1 then let a1 = a3 in unit else unit in a9 a1",
        "if 1 + a2 > a3 - 2 then let a2 = 1 in unit else unit",
    ],
    FOR: [
        "for a1 = 0 ; a1 < 9 ; a1 + 1 do a0 = a1 ; a2 = 2 endfor",
        "if a1 == 2 - a0 then a3 = 1 else if 3 > a2 then a0 = a0 else a1 = 4 endif endif",
    ],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("linearization", FORMS)
@pytest.mark.parametrize("notation", PROGRAMS, ids=lambda notation: notation.name)
def test_random_decodings_are_programs(order, linearization, notation):
    """A model that knows nothing writes programs: labels, and the children that they have."""
    write = sibling_tokens if linearization == "lcrs" else nary_tokens
    dictionary = dictionary_of(
        dict.fromkeys(
            symbol for line in PROGRAMS[notation] for symbol in write(notation.parse(line))
        )
    )
    constraints = constraints_of(
        dictionary,
        order,
        linearization,
        lambda trees: notation_grammar(dictionary.symbols, trees, notation),
    )
    model = random_model(dictionary)
    generator = generator_of(model, dictionary, constraints, limit=25)
    generated = generator.generate([model], sources(200, dictionary))
    read, programs = from_siblings if linearization == "lcrs" else from_nary, set()
    for tokens in hypotheses(generated, dictionary):
        tree = read(tokens, order == "bfs")
        if mixes_rules(tree):
            with pytest.raises(TreeError):
                notation.write(tree)
        else:
            programs.add(notation.write(tree))
    assert len(programs) > 50


def mixes_rules(tree):
    """Whether a ``<LET>`` has the name of one of its rules and the value of the other."""
    expressions = {"<VAR>", "<CONST>", "<PLUS>", "<MINUS>"}
    for node, children in enumerate(tree.children()):
        if tree.labels[node] == "<LET>":
            name, value = (tree.labels[child] for child in children[:2])
            if (name == "<VAR>") != (value in expressions):
                return True
    return False


def test_without_constraints_most_outputs_are_no_trees():
    """What the test above would find if constraints did nothing."""
    dictionary = dictionary_of(NARY)
    model = random_model(dictionary)
    plain = SequenceGenerator([model], dictionary, beam_size=BEAM, max_len_b=9)
    failures = 0
    for sentence in plain.generate([model], sources(50, dictionary)):
        symbols = [dictionary[token] for token in sentence[0]["tokens"][:-1].tolist()]
        try:
            grown(symbols, "dfs")
        except AssertionError:
            failures += 1
    assert failures > 25


@pytest.mark.parametrize("order", ORDERS)
def test_a_wide_beam_finds_every_tree_with_the_models_own_scores(order):
    dictionary = dictionary_of(["a/0", "f/1", "g/2"])
    model = random_model(dictionary)
    sample = sources(3, dictionary)
    constraints = constraints_of(dictionary, order)
    generator = generator_of(model, dictionary, constraints, limit=3, beam=6)
    encoded = model.encoder(**sample["net_input"])
    for row, sentence in enumerate(generator.generate([model], sample)):
        found = {}
        for hypothesis in sentence:
            tokens = hypothesis["tokens"]
            found[" ".join(dictionary[token] for token in tokens[:-1].tolist())] = hypothesis
            prefix = torch.cat([tokens[-1:], tokens[:-1]])
            own = {"encoder_out": encoded["encoder_out"][row : row + 1]}
            expected = [
                model.decoder(prefix[None, : step + 1], own)[0][0, -1].log_softmax(-1)[token]
                for step, token in enumerate(tokens[:-1])
            ]
            expected = torch.stack([*expected, torch.tensor(0.0)])
            torch.testing.assert_close(hypothesis["positional_scores"], expected)
        assert set(found) == {"a/0", "f/1 a/0", "f/1 f/1 a/0", "g/2 a/0 a/0"}


@torch.no_grad()
def best_of_whole_search(model, source, constraints, dictionary, limit, beam, score):
    """The best tree of a beam search that goes on to the limit whatever it has found."""
    encoded, eos = model.encoder(source), dictionary.eos()
    beams, complete = [(0.0, [eos])], []
    for _ in range(limit + 1):
        found = []
        for total, prefix in beams:
            tokens = torch.tensor([prefix])
            logits, _ = model.decoder(tokens, encoded)
            lprobs = logits[0, -1].log_softmax(-1)
            lprobs[eos] = 0  # the end follows from the tree
            for token in (
                constraints.allowed(constraints.trees.place(tokens), limit)[0]
                .nonzero()
                .flatten()
                .tolist()
            ):
                found.append((total + float(lprobs[token]), [*prefix, token]))
        found.sort(key=lambda hypothesis: -hypothesis[0])
        complete += [own for own in found[:beam] if own[1][-1] == eos]
        beams = [own for own in found if own[1][-1] != eos][:beam]
    return max(complete, key=lambda own: score(own[0], len(own[1]) - 1))[1][1:]


@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize(
    ("options", "score"),
    [
        ({}, lambda total, length: total / length),
        ({"len_penalty": 0.5}, lambda total, length: total / length**0.5),
        ({"len_penalty": -0.5}, lambda total, length: total * length**0.5),
        ({"normalize_scores": False}, lambda total, length: total),
    ],
)
def test_a_sentence_ends_when_its_best_tree_cannot_be_beaten(beam, options, score):
    """fairseq alone ends as soon as `beam` trees are complete, however bad."""
    dictionary, limit = dictionary_of(NARY), 12
    model = random_model(dictionary, seed=3)
    constraints = constraints_of(dictionary, "dfs")
    sample = sources(40, dictionary)
    generator = generator_of(model, dictionary, constraints, limit, beam, **options)
    for row, generated in enumerate(generator.generate([model], sample)):
        source = sample["net_input"]["src_tokens"][row : row + 1]
        wanted = best_of_whole_search(model, source, constraints, dictionary, limit, beam, score)
        assert generated[0]["tokens"].tolist() == wanted
        scores = [float(hypothesis["score"]) for hypothesis in generated]
        assert scores == sorted(scores, reverse=True)


def build(options, model, dictionary, constraints):
    """As a task does it, through fairseq's build_generator."""
    task = SimpleNamespace(target_dictionary=dictionary)
    return FairseqTask.build_generator(
        task,
        [model],
        SimpleNamespace(**options),
        seq_gen_cls=ConstrainedGenerator,
        extra_gen_cls_kwargs={"tree_constraints": constraints},
    )


def test_fairseqs_build_generator_builds_it():
    dictionary = dictionary_of(NARY)
    model = random_model(dictionary)
    options = {"beam": 2, "max_len_a": 0.5, "max_len_b": 1}
    generator = build(options, model, dictionary, constraints_of(dictionary, "dfs"))
    found = list(hypotheses(generator.generate([model], sources(20, dictionary)), dictionary))
    assert max(map(len, found)) == 4 == generator.search.max_length


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": True}, "plain beam search, not Sampling; leave out"),
        ({"diverse_beam_groups": 2}, "not DiverseBeamSearch"),
        ({"match_source_len": True}, "not LengthConstrainedBeamSearch"),
        ({"min_len": 2}, "do not go with min_len=2, which may forbid"),
        ({"no_repeat_ngram_size": 3}, "do not go with no_repeat_ngram_size=3"),
    ],
)
def test_options_that_could_leave_nothing_legal_are_refused(options, message):
    dictionary = dictionary_of(NARY)
    with pytest.raises(OptionError, match=message):
        build(options, random_model(dictionary), dictionary, constraints_of(dictionary, "dfs"))


def test_forced_prefixes_and_hopeless_limits_are_refused():
    dictionary = dictionary_of(NARY)
    model = random_model(dictionary)
    ids = [dictionary.index(symbol) for symbol in ("g/2", "a0/0", "a1/0")]
    constraints = constraints_of(
        dictionary, "dfs", grammar=lambda trees: learn_grammar([ids], trees, dictionary.eos())
    )
    generator = generator_of(model, dictionary, constraints, limit=2)
    with pytest.raises(OptionError, match="do not go with --prefix-size"):
        generator.generate([model], sources(1, dictionary), prefix_tokens=torch.tensor([[4]]))
    with pytest.raises(OptionError, match="no tree fits into 2 tokens, the smallest has 3"):
        generator.generate([model], sources(1, dictionary))


def tree_model(dictionary, view, seed):
    """A small model of ours with methods over the grown tree."""
    config = TreeTransformerConfig()
    config.decoder_injection, config.decoder_next_slot = "stack_pe(depth=4)+relation_mask", True
    sizes = {"embed_dim": 16, "ffn_embed_dim": 16, "layers": 1, "attention_heads": 2}
    for side, name in product(("encoder", "decoder"), sizes):
        setattr(config, f"{side}_{name}", sizes[name])
    task = SimpleNamespace(
        source_dictionary=dictionary, target_dictionary=dictionary, target_linearization=view,
        cfg=SimpleNamespace(left_pad_target=False),
    )  # fmt: skip
    torch.manual_seed(seed)
    return TreeTransformer.build_model(config, task).eval()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", FORMS)
def test_an_ensemble_and_its_search_share_one_placed_prefix(order, form, monkeypatch):
    """Each step places its prefix once; the scores are those of each model on the whole tree."""
    dictionary, limit = dictionary_of(BINARY if form == "lcrs" else NARY), 8
    models = [tree_model(dictionary, f"{form}_{order}", seed) for seed in (0, 1)]
    constraints = constraints_of(dictionary, order, form)
    generator = ConstrainedGenerator(
        models, dictionary, tree_constraints=constraints, max_len_b=limit, beam_size=BEAM
    )
    placed, place = [], GrowingTrees.place

    def count(trees, tokens):
        placed.append(tokens.shape[1])
        return place(trees, tokens)

    monkeypatch.setattr(GrowingTrees, "place", count)
    sample = sources(5, dictionary)
    generated = generator.generate(models, sample)
    assert placed == list(range(1, len(placed) + 1))
    for row, sentence in enumerate(generated):
        own = {key: part[row : row + 1] for key, part in sample["net_input"].items()}
        for hypothesis in sentence:
            tokens = hypothesis["tokens"]
            prefix = torch.cat([tokens[-1:], tokens[:-1]])[None]
            probabilities = [
                model(prev_output_tokens=prefix, **own)[0][0].softmax(-1) for model in models
            ]
            expected = torch.stack(probabilities).mean(0).log()[range(len(tokens)), tokens]
            expected[-1] = 0.0
            torch.testing.assert_close(
                hypothesis["positional_scores"], expected.detach(), atol=1e-4, rtol=0
            )
