"""Vectors by the depth of a token in the decoder's stack."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import depth, in_one_tree
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.relations import by_rows, path_lengths
from treesyntax.nn.tree_batch import TreeBatch

TAPES = ("depth", "reductions", "bracket_reductions")


@register("pushdown")
class Pushdown(Injection):
    """A learned vector on each key by what the stack of the query's step says of its token.

    ``q_i'(k_j + d[s_ij]) / sqrt(d)`` (Murty, Sharma, Andreas & Manning 2023, "Pushdown Layers"):
    a tape has a number for each token of the prefix, and changes as the tree grows. With
    ``tape='depth'``, which is ours, all tokens of a complete constituent share one number, so that
    attention can skip them.

    The authors' published program has another quantity on its tape, which
    is ``tape='reductions'``. Neither says what the other does.

    ``depth``: the stack of step i is what is open of the partial tree, from the root to the parent of
    the slot to be filled next.

    ``s_ij`` is the depth of node j while it is open. Once a subtree is
    complete, all of its nodes have the depth of its root. When the tree is complete, all have 0.

    Breadth-first there is no stack: s_ij is the depth at which the path to j leaves that to the slot to
    be filled next, which depth-first is the same.

    ``reductions``: s_ij is the number of complete constituents around token j after step i. It starts at
    0, rises as constituents are completed, and differs inside one. In ``(((a b) c) d)`` after c is taken
    in, a and b have 2, c has 1 and d will have 0.

    The constituent of an inner node's own token does not count for it, only those around that node.
    ``bracket_reductions`` is the same for outputs in which a bracket closes a constituent
    (``bracketed_twice``, by the first one).

    Deviations: the paper's trees are binary constituency parses that the model predicts beside the
    words, by shift and reduce. Ours are n-ary and grow from the root by their tokens alone.

    The paper adds d to the states before the projection of keys. Here a vector for each head is added
    after it, which can express the same logits. It has no tokens without a node; ours (start
    symbol, padding) get no vector.

    Args:
        site: where the method is built in.
        clip: largest number with a vector of its own.
        per_head: False is one table for all heads of a layer.
        tape: ``depth``, ``reductions`` or ``bracket_reductions``, as above.

    Attributes:
        key_table: [layers, heads, clip + 1, d], without heads if they share it.
    """

    paper = "Murty et al. 2023, on trees that grow from the root"
    equation = "softmax(q_i'(k_j + d[s_ij]) / sqrt(d)), s_ij what the stack of step i says of j"
    cost = (
        "relation ids once a batch, a gather by relation id a pair and layer; "
        "a whole step of width 128 took 1.01 times the plain one at 64 tokens, 1.30 at 512"
        " (the price of these gathers)"
    )
    sides = ("decoder",)
    needs_slots = True  # the stack of a step ends where the next node will hang
    of_the_paper = ("none", "pushdown")

    def __init__(
        self, site: Site, clip: int = 16, per_head: bool = True, tape: str = "depth"
    ) -> None:
        """Raises OptionError for a clip out of range or an unknown tape."""
        super().__init__(site)
        if tape not in TAPES:
            raise OptionError(f"pushdown: unknown tape {tape!r}; it is one of {', '.join(TAPES)}")
        self.tape, self.needs_slots = tape, tape != "bracket_reductions"
        if not 1 <= clip <= 253:
            raise OptionError(f"pushdown: clip must be 1 to 253, not {clip}")
        self.clip, self.no_vector = clip, clip + 1
        heads = (site.heads,) if per_head else ()
        self.key_table = nn.Parameter(
            torch.empty(site.layers, *heads, clip + 1, site.d_model // site.heads)
        )
        nn.init.xavier_uniform_(self.key_table.view(-1, self.key_table.shape[-1]))

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """Integers [B, T, T] of one byte: s_ij, clipped, or the id without a vector."""
        depths, top = depth(tree), self._innermost_open(tree)
        top_depths = depths.gather(1, top.clamp(min=0))
        key_depths = tree.at_tokens(depths, 0).unsqueeze(1)

        def ids(rows: slice) -> Tensor:
            lengths = path_lengths(tree, rows, top)
            common = (top_depths[:, rows].unsqueeze(2) + key_depths - lengths) // 2
            complete = (top < 0)[:, rows].unsqueeze(2)
            if self.tape == "depth":
                row_ids = (common + (key_depths > common).long()).masked_fill(complete, 0)
            else:
                around = (key_depths - common - 1).clamp(min=0)
                row_ids = torch.where(complete, key_depths, around)
            row_ids = row_ids.clamp(max=self.clip)
            return row_ids.masked_fill(~in_one_tree(tree, rows), self.no_vector).to(torch.uint8)

        return by_rows(tree, ids)

    def _innermost_open(self, tree: TreeBatch) -> Tensor:
        """LongTensor [B, T]: the innermost node that is open after each token, -1 if none is.

        Of brackets it is the parent of the token's node: that node is complete after a word or its
        closing bracket, and after an opening one there is nothing inside that could be asked for.
        """
        if self.tape == "bracket_reductions":
            return tree.at_tokens(tree.parent)
        return _parents_of_next_slots(tree)

    def vector_tables(self, layer: int) -> tuple[Tensor, None]:
        """[H, clip + 2, d] for the keys, with a row of zeros at the end."""
        return F.pad(self.key_table[layer], (0, 0, 0, 1)), None


def _parents_of_next_slots(tree: TreeBatch) -> Tensor:
    """LongTensor [B, T]: the parent of the node that fills the slot after each token, -1 if none is open.

    That node is the one of the next token. After the last token it is the first that no token has:
    :attr:`treesyntax.nn.growth.PartialTrees.tree` holds it too.
    """
    size, width = tree.parent.shape[1], tree.token_node.shape[1]
    unused = tree.parent.new_ones(len(tree.parent), size + 1)
    unused = unused.scatter(1, tree.token_node.masked_fill(tree.token_node < 0, size), 0)
    unused[:, size] = 1
    following = F.pad(tree.token_node[:, 1:], (0, 1), value=-1)[:, :width]
    following = torch.where(following < 0, unused.argmax(1, keepdim=True), following)
    return F.pad(tree.parent, (0, 1), value=-1).gather(1, following)
