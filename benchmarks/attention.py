"""One attention layer, forward and backward, as a ratio to PyTorch's fused kernel without a bias.

Beside each method stands its paper's formula written out literally: nine dense masks for relation
masks, a vector for every pair [n, n, d] for relative positions and depths.

All trees are random ones. Their tokens are the nodes in preorder, but for transformer_grammar: there they
are the first n of bracketed_twice. pushdown, which is for decoders, is timed under a causal mask, on a line of
its own with the plain kernel under the same mask.

Left out is what adds nothing in attention: encodings are added to the embeddings once a batch (depth_sibling,
laplacian, random_walk, stack_pe), losses read weights that are computed for them alone (distance_head, parent_head,
tree_reg), and linearized and sequence have other inputs or none. train_step.py times them all.

    python benchmarks/attention.py                 # one CPU thread, n = 64 ... 2048
    python benchmarks/attention.py --lengths 64 2048 --literal 512
    python benchmarks/attention.py --device cuda --dtype bfloat16 --tokens 16384 \\
        --lengths 1024 4096 16384 --literal 0
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
import torch.nn.functional as F
from timing import medians, peak_memory, print_memory, print_ratios
from torch import Tensor
from trees import random_trees

from treesyntax.model.composition import PAIR_HOOKS, Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site, hooks_of
from treesyntax.nn.kernels.flex import is_long
from treesyntax.nn.node_maps import Blocks, NodeMap
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.trees.linearizations import bracketed_twice_nodes
from treesyntax.trees.tree import Tree

HEADS, WIDTH = 8, 64
SITE = Site(HEADS * WIDTH, HEADS, 1)
MOST_STORED = 4096  # longest inputs for which a tensor of n x n is made
SPECS = {
    "masks": "relation_mask",
    "depth": "relative_depth",
    "depth+position": "relative_depth+relative_position(clip=2)",
    "path lengths": "tree_distance",
    "up and down": "up_down(clip=4)",
    "parent-scaled": "parent_scaled",
    "rotary": "rotary",
    "tree rotary": "tree_rotary",
    "tree rotation": "tree_rotation",
    "labels": "labelled_relation",
    "chosen relations": "constrained_mask",
    "grammar": "transformer_grammar",
    "walks": "random_walk_pairs",
    "accumulation": "hierarchical_accumulation",
    "pushdown": "pushdown",
}
PLAIN, CAUSAL = "plain", "causal plain"
OF_DECODERS = [name for name, spec in SPECS.items() if Composition(spec, SITE).misplaced("encoder")]


def literal_masks(q: Tensor, k: Tensor, v: Tensor, masks: Tensor, strengths: Tensor) -> Tensor:
    """McDonald & Chiang 2021, with nine float masks [B, 9, n, n]."""
    summed = torch.einsum("bmij,hm->bhij", masks, strengths)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=-summed.exp())


def literal_vectors(q: Tensor, k: Tensor, v: Tensor, tables: list[tuple]) -> Tensor:
    """Shaw et al. 2018, Eqs. 3-4, with a vector for every pair, [B, n, n, d]."""
    on_keys = sum(keys[codes] for codes, keys, _ in tables)
    on_values = sum(values[codes] for codes, _, values in tables)
    logits = q @ k.transpose(2, 3) + torch.einsum("bhid,bijd->bhij", q, on_keys)
    weights = torch.softmax(logits / WIDTH**0.5, -1)
    return weights @ v + torch.einsum("bhij,bijd->bhid", weights, on_values)


def inputs(batch: int, length: int) -> tuple[TreeBatch, TreeBatch]:
    """Random trees under their nodes in preorder, and under as many tokens of ``bracketed_twice``."""
    tree = TreeBatch(*random_trees(batch, length))
    rows = [
        bracketed_twice_nodes(Tree(parents, [""] * length))[:length]
        for parents in tree.parent.tolist()
    ]
    return tree, TreeBatch(tree.parent, tree.branch, torch.tensor(rows), tree.label)


def _to(tree: TreeBatch, device: str) -> TreeBatch:
    return TreeBatch.from_dict({key: part.to(device) for key, part in tree.to_dict().items()})


def stores_pairs(composition: Composition, tree: TreeBatch) -> bool:
    """Whether anything of n x n is made."""
    pairwise = [
        method
        for method in composition.methods
        if {*PAIR_HOOKS, "value_map"} & {*hooks_of(type(method))}
    ]
    return any(not is_long(tree) or one.relation_of_pair(tree) is None for one in pairwise)


def candidates(
    batch: int, length: int, literal: bool, device: str, dtype: torch.dtype, methods: list[str]
) -> dict[str, Callable[[], object]]:
    """What is timed at one length; relation ids and maps of nodes are made beforehand, as one set
    serves all layers."""
    torch.manual_seed(0)
    tree, bracketed = (_to(one, device) for one in inputs(batch, length))
    shape = (batch, HEADS, length, WIDTH)
    grad = torch.randn(shape, device=device, dtype=dtype)
    q, k, v = (torch.randn_like(grad, requires_grad=True) for _ in range(3))

    def step(forward: Callable[[], Tensor]) -> Callable[[], object]:
        return lambda: forward().backward(grad)

    actions = {PLAIN: step(lambda: F.scaled_dot_product_attention(q, k, v))}
    causal = None
    if {*methods} & {*OF_DECODERS} and length <= MOST_STORED:
        causal = torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()
        actions[CAUSAL] = step(lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=causal))
    for name in methods:
        composition = Composition(SPECS[name], SITE).to(device)
        read = bracketed if name == "grammar" else tree
        if length > MOST_STORED and stores_pairs(composition, read):
            continue
        terms_of, node_map = composition.relate(read, may_compute=True), composition.node_map(read)
        if isinstance(node_map, Blocks):  # the gradient of a layer ends at what all layers share
            node_map = Blocks(node_map.matrices.detach().requires_grad_())

        def ours(
            terms_of: Callable[[int], list[PairTerm]] = terms_of,
            node_map: NodeMap | None = node_map,
            mask: Tensor | None = causal if name in OF_DECODERS else None,
        ) -> Tensor:
            mapped = (q, k) if node_map is None else (node_map(q), node_map(k))
            return attend(*mapped, v, mask, terms_of(0))

        actions[name] = step(ours)
        if not literal or name not in ("masks", "depth", "depth+position"):
            continue
        if name == "masks":
            masks = F.one_hot(terms_of(0)[0].ids.long(), 10)[..., :9].permute(0, 3, 1, 2).float()
            strengths = torch.zeros(HEADS, 9, device=device, requires_grad=True)
            actions[f"{name} (literal)"] = step(
                lambda m=masks, s=strengths: literal_masks(q, k, v, m, s)
            )
        else:
            tables = [
                (term.ids.long().expand(batch, -1, -1), term.keys, term.values)
                for term in terms_of(0)
            ]
            leaves = [(c, *(t.detach().requires_grad_() for t in ts)) for c, *ts in tables]
            actions[f"{name} (literal)"] = step(lambda ts=leaves: literal_vectors(q, k, v, ts))
    return actions


def main() -> None:
    """Print a line of ratios for every length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256, 512, 1024, 2048])
    parser.add_argument("--tokens", type=int, default=1024, help="tokens in a batch")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--literal", type=int, default=256, help="longest literal formula")
    parser.add_argument("--methods", nargs="+", choices=SPECS, default=list(SPECS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", help="of queries, keys and values")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.set_flush_denormal(True)  # as in train_step.py

    def at(length: int) -> dict[str, Callable[[], object]]:
        batch, literal = max(args.tokens // length, 1), length <= args.literal
        dtype = getattr(torch, args.dtype)
        return candidates(batch, length, literal, args.device, dtype, args.methods)

    # Memory first, while the process has no freed memory that calls could take.
    for length in args.lengths:
        peaks = {name: peak_memory(action) for name, action in at(length).items()}
        print_memory(f"n = {length}", peaks)
    for length in args.lengths:
        seconds = medians(at(length), args.repeats)
        causal = {name: seconds.pop(name) for name in (CAUSAL, *OF_DECODERS) if name in seconds}
        print_ratios(f"n = {length}", seconds, PLAIN)
        if causal:
            print_ratios("", causal, CAUSAL)


if __name__ == "__main__":
    main()
