"""Words hidden in training, so that a model learns to copy those that it does not know."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.trees.copies import NO_COPY


class HiddenWords(nn.Module):
    """Puts placeholders in the place of words that stand in the source and in the target.

    Which words is drawn anew for every sentence; all occurrences of a word go together. Placeholders
    of unknown words stay hidden, and all are numbered in the order of the source, as
    ``treesyntax binarize --copy-unknown`` numbers them.

    Args:
        copies: LongTensor [F, V_source], see :func:`treesyntax.trees.copies.copy_table`.
        form: LongTensor [V_source], which form of its word a source symbol is.
        source: LongTensor [G, N], the placeholders of the source in its G forms.
        target: LongTensor [F, N], those of the target.
    """

    copies: Tensor
    form: Tensor
    source: Tensor
    target: Tensor

    def __init__(self, copies: Tensor, form: Tensor, source: Tensor, target: Tensor) -> None:
        super().__init__()
        tables = {"copies": copies, "form": form, "source": source, "target": target}
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def forward(self, tokens: Tensor, targets: list[Tensor], rate: float) -> list[Tensor]:
        """Source tokens [B, S] and target tokens [B, T] of any number, all with hidden words.

        ``rate`` is the probability with which a word is hidden.
        """
        ids = self.copies[:, tokens]  # [F, B, S]
        word = ids.amax(0)
        same = (word.unsqueeze(2) == word.unsqueeze(1)) & (word != NO_COPY).unsqueeze(2)
        first = same.byte().argmax(2)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        stated = torch.zeros_like(tokens, dtype=torch.bool)
        for form in ids:
            stated |= (targets[0].unsqueeze(1) == form.unsqueeze(2)).any(2) & (form != NO_COPY)
        drawn = torch.rand(tokens.shape, device=tokens.device) < rate
        hidden = (drawn & stated) | torch.isin(tokens, self.source)
        leads = hidden & (first == positions) & (word != NO_COPY)
        number = leads.cumsum(1) - 1
        leads &= number < self.source.shape[1]
        chosen, number = (values.gather(1, first) for values in (leads, number))
        chosen &= word != NO_COPY
        number = number.clamp(min=0, max=self.source.shape[1] - 1)
        sequences = [torch.where(chosen, self.source[self.form[tokens], number], tokens)]
        for target in targets:
            changed = target
            for form, marks in zip(ids, self.target, strict=True):
                match = (target.unsqueeze(2) == form.unsqueeze(1)) & chosen.unsqueeze(1)
                which = number.gather(1, match.byte().argmax(2))
                changed = torch.where(match.any(2), marks[which], changed)
            sequences.append(changed)
        return sequences
