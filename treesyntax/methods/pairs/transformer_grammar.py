"""The stack and the composition of Transformer Grammars."""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.nn.coordinates import last_descendant, root
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.kernels.lookup import as_bytes
from treesyntax.nn.pairs import RelationOf
from treesyntax.nn.relations import by_rows
from treesyntax.nn.tree_batch import TreeBatch


@register("transformer_grammar")
class TransformerGrammar(Injection):
    """A token sees what is on the stack, a closing bracket what it composes: ``softmax(QK' / sqrt(d) + log M)``.

    The tokens are those of ``bracketed_twice``, ``(S (NP the dog ) ) sleeps ) )``, read from left to
    right with a stack (Sartran et al. 2022). All heads and layers have the same mask, also in an
    encoder, where no token sees a later one. There is nothing to learn.

    The first closing bracket of a constituent composes. M is 1 for what it takes off the stack, its
    opening token and its children, and for itself. It then stands on the stack for the whole
    constituent; nothing else within is seen any more.

    All other tokens see the stack: M is 1 for open brackets, words and constituents that are complete,
    and for the token itself. The second closing bracket is never put there; it is for predicting what
    comes next with the whole stack in view.

    So a token is on the stack from its own position until that of one other token, which takes it
    off: one number a token says all. A token without a node (EOS, start symbol, subwords that
    the policies ``first`` and ``last`` leave without) stays for good, as the paper's start symbol does.

    Trees of one input have a stack each.

    Deviations: the paper has a language model, here the same mask is over a source or a target.
    Its closing tokens have their label, ``NP)``; here all are ``)``, and the label is on the opening
    token, which is composed.

    Its relative positions are differences of the depths of tokens, with Transformer-XL's formula and no
    absolute positions. ``transformer_grammar+relative_depth`` has learned vectors for these differences,
    beside absolute positions if they are not switched off.

    It leaves out the loss at the first closing bracket, where the second one is certain; here that
    token is learnt and searched like any other. Long documents, with memory over chunks, are not built.

    With ``bracketed`` the one closing bracket composes. Where nothing closes a constituent (in
    ``preorder``, say) nothing composes. It stands on its own tokens until the first token after its
    parent takes it off, which is ``constrained_mask(views='stack')`` without the future.

    In orders in which a constituent is not in one piece (breadth-first, the words of a
    dependency tree) the mask means nothing.

    Args:
        site: where the method is built in.

    Attributes:
        seen: bool [2], which relation ids are seen.
    """

    paper = "Sartran et al. 2022 (Transformer Grammars), the attention mask"
    equation = "softmax(QK'/sqrt(d) + log M), M = 1 for the stack or for what is composed, else 0"
    cost = (
        "relation ids once a batch, a table lookup a pair and layer, and two more tokens a constituent "
        "than nodes; over as many tokens a whole step of width 128 took 0.93 to 1.09 times the plain "
        "one at 64 tokens, 0.85 to 1.07 at 512; three runs on a busy machine"
    )
    linearization = "bracketed_twice"
    of_the_paper = ("none", "transformer_grammar")

    seen: Tensor

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.register_buffer("seen", torch.tensor([False, True]), persistent=False)

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """uint8 [B, T, T]: 1 where the token sees the key."""
        taken_by, composes = _stack(tree)
        at = torch.arange(taken_by.shape[1], device=taken_by.device, dtype=torch.int32)
        roots = tree.at_tokens(root(tree))

        def ids(rows: slice) -> Tensor:
            query = at[rows].unsqueeze(1)
            key_taken_by, composing = taken_by.unsqueeze(1), composes[:, rows].unsqueeze(2)
            apart = _apart(roots[:, rows].unsqueeze(2), roots.unsqueeze(1))
            return as_bytes(_sees(query, at, key_taken_by, composing) & ~apart)

        return by_rows(tree, ids)

    def relation_of_pair(self, tree: TreeBatch) -> RelationOf:
        """:meth:`relation_ids` pair by pair, from three coordinates a token."""
        (taken_by, composes), roots = _stack(tree), tree.at_tokens(root(tree))

        def relation(b: Tensor, i: Tensor, j: Tensor) -> Tensor:
            apart = _apart(roots[b, i], roots[b, j])
            return (_sees(i, j, taken_by[b, j], composes[b, i]) & ~apart).int()

        return relation

    def bias_table(self, layer: int) -> Tensor:
        """[H, 2], the same for all layers and heads."""
        # Finite, since infinities of several tables may meet; far below what a logit can be.
        table = torch.zeros(self.site.heads, 2, device=self.seen.device)
        return table.masked_fill(~self.seen, torch.finfo(table.dtype).min)


def _sees(query: Tensor, key: Tensor, taken_by: Tensor, composes: Tensor) -> Tensor:
    """Bool, of the shape to which all broadcast.

    Args:
        query: position of the query.
        key: position of the key.
        taken_by: position of the token that takes the key off the stack.
        composes: whether the query composes.
    """
    # Who composes sees what it takes itself, all others what is taken later.
    on_stack = (key < query) & (taken_by >= query) & ((taken_by == query) == composes)
    return on_stack | (key == query)


def _apart(query: Tensor, key: Tensor) -> Tensor:
    """Whether two tokens stand in different trees, by their roots, -1 without a node."""
    return (query != key) & (query >= 0) & (key >= 0)


def _stack(tree: TreeBatch) -> tuple[Tensor, Tensor]:
    """Which token takes each one off the stack, int32 [B, T], T for none, and whether it composes, bool [B, T]."""
    node, width = tree.token_node, tree.token_node.shape[1]
    at = torch.arange(width, device=node.device).expand_as(node)
    first = _first_token(tree, at)
    # Of the nodes of a tree from n on, the first token of all; later trees start above the width.
    shift, last = root(tree) * (width + 1), last_descendant(tree)
    beyond = (tree.parent.shape[1] + 1) * (width + 1)
    padded = torch.nn.functional.pad(first + shift, (0, 1), value=beyond)
    later = padded.flip(1).cummin(1).values.flip(1)
    after = (later[:, 1:] - shift).clamp(max=width)
    begun, inside = tree.at_tokens(first, width), tree.at_tokens(after, width)
    closing = (inside > begun) & (at > inside)
    closed = _first_token(tree, at.masked_fill(~closing, width))
    # A constituent that no token closes ends at the first token after it.
    ends = torch.where(closed < width, closed, after.gather(1, last))
    parents_end = ends.gather(1, tree.parent.clamp(min=0)).masked_fill(tree.parent < 0, width)
    closed_at, above = tree.at_tokens(closed, width), tree.at_tokens(parents_end, width)
    taken_by = torch.where(at < closed_at, torch.minimum(closed_at, above), above)
    # Second closing brackets are never put there.
    taken_by = torch.where(at > closed_at, at, taken_by)
    return taken_by.int(), (at == closed_at) & closing


def _first_token(tree: TreeBatch, position: Tensor) -> Tensor:
    """LongTensor [B, N]: the least of the positions [B, T] of each node's tokens, T without any."""
    node, width = tree.token_node, tree.token_node.shape[1]
    none = torch.full_like(tree.parent, width)
    return none.scatter_reduce(
        1, node.clamp(min=0), position.masked_fill(node < 0, width), "amin", include_self=True
    )
