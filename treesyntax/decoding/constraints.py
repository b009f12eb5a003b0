"""Constrained search: which tokens may come next, so that every output is one whole tree.

While a slot is open, exactly the symbols that may fill it are legal; once the tree is complete,
only EOS is. A symbol is legal only if all slots that would then be open
can still be filled within the length limit, so that a tree is completed at the limit, never cut.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.decoding.grammar import NO_ROW, ROOT_ROW, TreeGrammar
from treesyntax.errors import OptionError
from treesyntax.nn.growth import GrowingTrees, PartialTrees

NEVER = 1 << 30
"""Tokens that would be needed where no finite tree exists; sums of a few do not overflow."""


class Constraints(nn.Module):
    """The legal continuations of prefixes.

    Args:
        trees: how the target's tokens grow trees.
        eos: id of EOS.
        grammar: which symbols may be the root or fill a slot; see ``any_tree``.

    Attributes:
        costs: int32 [R + 1, V], the fewest tokens of a subtree with that symbol on top, for the
            symbols of a row of the grammar, or NEVER. The last row holds EOS alone, at no cost.
        needs: int32 [R + 1], the fewest tokens that fill a slot of a row.
        row_of_slot: LongTensor [V, S + 1], with the last row for slots that a symbol does not have.
        rest_needs: int32 [V, S + 1], the fewest tokens that fill the slots i, i + 1, … of a
            symbol.
        row_of_sibling: LongTensor [R + 1, C], the row of the slot of the next sibling of child
            number c, by the row of the first child, and the same for later ones in the last
            column; None where ``row_of_slot`` has it.
        has_sibling: bool [V], the symbols of which it has it.
        least: tokens of the smallest tree.
    """

    costs: Tensor
    needs: Tensor
    row_of_slot: Tensor
    rest_needs: Tensor
    row_of_sibling: Tensor | None
    has_sibling: Tensor

    def __init__(self, trees: GrowingTrees, eos: int, grammar: TreeGrammar) -> None:
        super().__init__()
        self.trees, self.eos = trees, eos
        end_row, end = len(grammar.fills), torch.arange(len(trees.counts)) == eos
        fills = torch.cat([grammar.fills, end.unsqueeze(0)])
        row_of_slot = nn.functional.pad(grammar.row_of_slot, (0, 1), value=NO_ROW)
        row_of_slot = torch.where(row_of_slot < 0, end_row, row_of_slot)
        # EOS is also the start symbol; the root fills its one slot.
        row_of_slot[eos] = end_row
        row_of_slot[eos, 0] = ROOT_ROW
        next_row = torch.full((end_row + 1,), end_row)
        if grammar.next_row is not None:
            next_row[:-1] = torch.where(grammar.next_row < 0, end_row, grammar.next_row)
        has_sibling = trees.has_sibling & (grammar.next_row is not None)
        costs, needs = _least_tokens(fills, row_of_slot, next_row, trees.counts >= 0, has_sibling)
        rest = needs[row_of_slot].flip(1).cumsum(1).flip(1).clamp(max=NEVER)
        self.least = int(needs[ROOT_ROW])
        if self.least >= NEVER:
            raise OptionError(
                "no tree can be completed with this dictionary: it has no symbol without slots, "
                "or none that its other symbols lead to; make it from whole trees"
            )
        for name, table in {
            "costs": costs.int(),
            "needs": needs.int(),
            "row_of_slot": row_of_slot,
            "rest_needs": rest.int(),
            "row_of_sibling": None if grammar.next_row is None else _row_of_sibling(next_row),
            "has_sibling": has_sibling,
        }.items():
            self.register_buffer(name, table, persistent=False)

    def check_limit(self, max_length: int) -> None:
        """Refuse a limit below the smallest tree."""
        if max_length < self.least:
            raise OptionError(
                f"no tree fits into {max_length} tokens, the smallest has {self.least}; "
                "raise the length limit"
            )

    def allowed(self, partial: PartialTrees, max_length: int) -> Tensor:
        """Which tokens may follow.

        Args:
            partial: the partial trees of N prefixes of t columns: start symbol, legal tokens.
            max_length: most tokens of a tree, start symbol and EOS not counted.

        Returns:
            Bool [N, V]; any values for a prefix that is not legal itself.
        """
        self.check_limit(max_length)
        filled, is_open = partial.filled, partial.filled < partial.counts
        symbols = partial.tokens.clone()
        symbols[:, 0] = self.eos
        parent = _next_parent(is_open, self.trees.order)
        row = self.row_of_slot[symbols.gather(1, parent), filled.gather(1, parent)]
        owed = self.rest_needs[symbols, filled]
        if self.row_of_sibling is not None:
            # The slot of the next sibling is the last one.
            sibling_row = self._sibling_rows(partial, symbols, self.row_of_sibling)
            owed = owed + self.needs[sibling_row]
            is_sibling = self.has_sibling[symbols] & (filled + 1 == partial.counts)
            row = torch.where(is_sibling, sibling_row, row).gather(1, parent)
        row = row.squeeze(1)
        # Tokens left for the subtree of the next token if all other slots get the fewest.
        owed = (owed * is_open).sum(1) - self.needs[row]
        budget = max_length - (symbols.shape[1] - 1) - owed
        return self.costs[row] <= budget.unsqueeze(1)

    def _sibling_rows(
        self, partial: PartialTrees, symbols: Tensor, row_of_sibling: Tensor
    ) -> Tensor:
        """The rows [N, t] of the slots of next siblings; the last row where there is no slot."""
        parent, number = (tensor[:, :-1] for tensor in partial.family)
        first = self.row_of_slot[symbols.gather(1, parent.clamp(min=0)), 0]
        row = row_of_sibling[first, number.clamp(max=row_of_sibling.shape[1] - 1)]
        return row.masked_fill(~self.has_sibling[symbols], len(self.needs) - 1)


def _next_parent(is_open: Tensor, order: str) -> Tensor:
    """The last or first column [N, 1] with an open slot, any where there is none."""
    if order == "bfs":
        return is_open.byte().argmax(1, keepdim=True)
    return is_open.shape[1] - 1 - is_open.flip(1).byte().argmax(1, keepdim=True)


def _row_of_sibling(next_row: Tensor) -> Tensor:
    """The rows [R, C] after each row, its next one first, until nothing changes any more."""
    rows = [next_row]
    while not torch.equal(after := next_row[rows[-1]], rows[-1]):
        rows.append(after)
    return torch.stack(rows, 1)


def _least_tokens(
    fills: Tensor, row_of_slot: Tensor, next_row: Tensor, nodes: Tensor, has_sibling: Tensor
) -> tuple[Tensor, Tensor]:
    """Fewest tokens of the symbols in each row [R, V], and of a slot of each row [R].

    By fixed point (as Knuth 1977 does for any grammar): round k knows the smallest trees among
    those of at most k levels, and no smallest tree repeats a row on a path.
    """
    alone, followed = fills & ~has_sibling, fills & has_sibling
    # Fewest tokens of a node and its descendants, next siblings not counted.
    tops, needs = torch.where(nodes, NEVER, 0), torch.full((len(fills),), NEVER)
    while True:
        least = torch.where(alone, tops, NEVER).amin(1)
        least_followed = torch.where(followed, tops, NEVER).amin(1) + needs[next_row]
        lower_needs = torch.minimum(least, least_followed)
        lower = torch.where(nodes, lower_needs[row_of_slot].sum(1) + 1, 0).clamp(max=NEVER)
        if torch.equal(lower, tops) and torch.equal(lower_needs, needs):
            costs = tops + has_sibling * needs[next_row].unsqueeze(1)
            return torch.where(fills, costs.clamp(max=NEVER), NEVER), needs
        tops, needs = lower, lower_needs
