"""Constrained beam search through fairseq's own generator: nothing but whole trees."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import support.oracles as oracles
import torch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.fairseq_task import FairseqTask
from support.helpers import PROLOG
from support.random_search import (
    BEAM,
    BINARY,
    FORMS,
    NARY,
    ORDERS,
    constraints_of,
    dictionary_of,
    generator_of,
    random_model,
    sources,
)

from fairseq_plugins.generator import ConstrainedGenerator
from fairseq_plugins.target import make_constraints
from treesyntax.decoding.grammar import any_tree
from treesyntax.decoding.learned_grammar import learn_grammar, learn_sibling_grammar
from treesyntax.errors import OptionError, TreeError
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.controls import shuffled, unshuffled
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.symbols import from_nary, from_siblings, nary_tokens, sibling_tokens

DECODINGS = 10_000


def grown(symbols, order):
    """(parent symbol, branch, symbol) of every node; fails if it is no whole tree."""
    places, open_slots = oracles.grow(symbols, order)
    assert len(places) == len(symbols), "a symbol follows the end of the tree, or is no node"
    assert not open_slots, "a slot stays open"
    names = [None, *symbols]
    return {
        (names[max(above, 0)], branch, symbol)
        for (above, branch), symbol in zip(places, symbols, strict=True)
    }


def hypotheses(generated, dictionary):
    for sentence in generated:
        assert sentence, "no hypothesis"
        for hypothesis in sentence:
            *tokens, last = hypothesis["tokens"].tolist()
            assert last == dictionary.eos()
            assert math.isfinite(hypothesis["score"])
            yield [dictionary[token] for token in tokens]


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
        assert not (binary and 1 in oracles.slots_of(symbols[0])), "the root has a sibling"
        lengths.add(len(symbols))
    assert max(lengths) == limit, "the limit was never put to the test"


def test_a_penalty_of_unknown_words_holds_for_unknown_nodes():
    unknown = ["<unk>/0", "<unk>/1"]
    dictionary = dictionary_of([*NARY, *unknown])
    model = random_model(dictionary)
    model.decoder.output.bias.data[[dictionary.index(symbol) for symbol in unknown]] += 9
    counts = []
    for penalty in (0.0, 100.0):
        constraints = constraints_of(dictionary, "dfs")
        generator = generator_of(model, dictionary, constraints, 9, unk_penalty=penalty)
        torch.manual_seed(1)
        generated = generator.generate([model], sources(5, dictionary))
        best = hypotheses([sentence[:1] for sentence in generated], dictionary)
        counts.append(sum(symbol in unknown for symbols in best for symbol in symbols))
    assert counts[0] > counts[1] == 0


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
    # A conjunction of one goal, or a negation of two, is a tree but no Prolog.
    PROLOG: [r"job ( A , B ) , \+ ( p ( A ) , q ( B ) )", r"job ( A , B ) , \+ p ( A ) , q"],
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
    constraints = make_constraints(f"{linearization}_{order}", dictionary, None, notation.name)
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
            notation.parse(notation.write(tree))
    assert len(programs) > 50


@pytest.mark.parametrize("linearization", FORMS)
@pytest.mark.parametrize("notation", [LAMBDA, FOR], ids=lambda notation: notation.name)
def test_random_decodings_of_shuffled_trees_are_programs(linearization, notation):
    write = sibling_tokens if linearization == "lcrs" else nary_tokens
    read = from_siblings if linearization == "lcrs" else from_nary
    trees = [shuffled(notation.parse(line), 3) for line in PROGRAMS[notation]]
    dictionary = dictionary_of(dict.fromkeys(symbol for tree in trees for symbol in write(tree)))
    constraints = make_constraints(
        f"{linearization}_dfs", dictionary, None, notation.name, shuffle_seed=3
    )
    model = random_model(dictionary)
    generator = generator_of(model, dictionary, constraints, limit=25)
    generated = generator.generate([model], sources(200, dictionary))
    programs, moved = set(), 0
    for tokens in hypotheses(generated, dictionary):
        grown = read(tokens)
        tree = unshuffled(grown, 3)
        moved += grown.labels != tree.labels
        if not mixes_rules(tree):
            programs.add(notation.write(tree))
            notation.parse(notation.write(tree))
    assert len(programs) > 50
    assert moved > 20


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
                constraints.allowed(constraints.trees.grow(tokens), limit)[0]
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
    sample = sources(16, dictionary)
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
