"""Beam search with and without tree constraints: milliseconds per token, and the ratio.

A token is one row of the beam at one step. All searches run to the length limit: plain search by
fairseq's shortest length, the others because the model wants no leaves. Forms are n-ary trees, and
left-child-right-sibling ones, whose grammar looks up which child of its parent each node is.

    python benchmarks/constrained_search.py              # one CPU thread, batch 64, beam 5
    python benchmarks/constrained_search.py --limits 20 100 --order bfs --form lcrs
"""

from __future__ import annotations

import argparse
import operator
import statistics
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.sequence_generator import SequenceGenerator
from timing import synchronized_time

from fairseq_plugins.generator import ConstrainedGenerator
from fairseq_plugins.model import TreeTransformer, TreeTransformerConfig
from treesyntax.decoding.constraints import Constraints
from treesyntax.decoding.grammar import TreeGrammar, any_tree
from treesyntax.decoding.learned_grammar import learn_grammar, learn_sibling_grammar
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.symbols import SIBLING_SLOTS

SOURCE_LENGTH = 20


SUFFIXES = {"nary": ["0", "1", "2", "3"], "lcrs": list(SIBLING_SLOTS)}


def tree_dictionary(symbols: int, form: str) -> Dictionary:
    """A dictionary of symbols with no to three slots, or two."""
    dictionary = Dictionary()
    for symbol in range(symbols):
        # Four symbols of each label.
        dictionary.add_symbol(f"s{symbol // 4}/{SUFFIXES[form][symbol % 4]}")
    return dictionary


def random_grammar(dictionary: Dictionary, trees: GrowingTrees) -> TreeGrammar:
    """Learned from random trees of at most 60 tokens."""
    constraints = Constraints(trees, dictionary.eos(), any_tree(trees))
    rows = torch.full((2000, 1), dictionary.eos())
    for _ in range(60):
        legal = constraints.allowed(trees.grow(rows), 60).float()
        rows = torch.cat([rows, torch.multinomial(legal, 1)], 1)
    examples = (row[1:][row[1:] != dictionary.eos()] for row in rows)
    if trees.binary:
        return learn_sibling_grammar(examples, dictionary.symbols, trees, dictionary.eos())
    return learn_grammar(examples, trees, dictionary.eos())


def build_model(dictionary: Dictionary) -> TreeTransformer:
    """4 layers of width 256, as for semantic parsing in Shiv & Quirk 2019."""
    config = TreeTransformerConfig()
    for side in ("encoder", "decoder"):
        sizes = {"embed_dim": 256, "ffn_embed_dim": 1024, "layers": 4, "attention_heads": 8}
        for name, value in sizes.items():
            setattr(config, f"{side}_{name}", value)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    return TreeTransformer.build_model(config, task).eval()


class Unending:
    """A decoder that wants no leaf, and counts its rows.

    So every sentence goes on to the limit, where constraints force leaves. fairseq's generator
    calls ``forward`` itself, past all hooks, so this takes its place.
    """

    def __init__(self, model: TreeTransformer, leaves: torch.Tensor) -> None:
        self.rows, self.leaves = 0, leaves
        self.decode = model.decoder.forward
        model.decoder.forward = self

    def __call__(self, tokens: torch.Tensor, **rest: Any) -> Any:
        self.rows += len(tokens)
        logits, extra = self.decode(tokens, **rest)
        logits[..., self.leaves] -= 100
        return logits, extra


def generators(
    model: TreeTransformer, dictionary: Dictionary, order: str, form: str, limit: int, beam: int
) -> dict[str, SequenceGenerator]:
    """Plain, constrained, and constrained by a grammar."""
    common: dict[str, Any] = {"beam_size": beam, "max_len_b": limit}
    trees = GrowingTrees(dictionary.symbols, f"{form}_{order}")
    grammars = {"constrained": any_tree(trees), "with a grammar": random_grammar(dictionary, trees)}
    found = {"plain": SequenceGenerator([model], dictionary, min_len=limit, **common)}
    for name, grammar in grammars.items():
        constraints = Constraints(trees, dictionary.eos(), grammar)
        found[name] = ConstrainedGenerator(
            [model], dictionary, tree_constraints=constraints, **common
        )
    return found


def main() -> None:
    """Print a line for every limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--limits", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--order", choices=["dfs", "bfs"], default="dfs")
    parser.add_argument("--form", choices=SUFFIXES, default="nary")
    parser.add_argument("--symbols", type=int, default=500)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    dictionary = tree_dictionary(args.symbols, args.form)
    model = build_model(dictionary)
    leaves = GrowingTrees(dictionary.symbols, f"{args.form}_{args.order}").counts == 0
    decoder = Unending(model, leaves)
    source = torch.randint(4, len(dictionary), (args.batch, SOURCE_LENGTH))
    lengths = torch.full((args.batch,), SOURCE_LENGTH)
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
    for limit in args.limits:
        candidates = generators(model, dictionary, args.order, args.form, limit, args.beam)
        times: dict[str, list[float]] = {name: [] for name in candidates}
        for repeat in range(args.repeats + 1):
            for name, generator in candidates.items():
                decoder.rows = 0
                seconds = synchronized_time(lambda g=generator: g.generate([model], sample))
                if repeat:
                    times[name].append(1000 * seconds / decoder.rows)
        shown = []
        for name, values in times.items():
            # Ratios within a repeat: neighbours in time have the same machine.
            ratio = statistics.median(map(operator.truediv, values, times["plain"]))
            shown.append(f"{name} {statistics.median(values):.4f} ({ratio:.2f})")
        print(
            f"{args.form}, {args.order}, limit {limit:<4} ms per token: " + " | ".join(shown),
            flush=True,
        )


if __name__ == "__main__":
    main()
