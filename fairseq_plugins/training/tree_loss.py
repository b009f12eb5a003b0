"""Losses from trees in fairseq's training: added to any criterion, logged as a number of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fairseq.logging import metrics
from fairseq.tasks.translation import TranslationTask

NAME = "tree_loss"


class TreeLossTask(TranslationTask):
    """fairseq's translation, whose training adds what :meth:`Injection.loss` gives.

    Like the loss of the translation it is a sum over tokens, which fairseq divides by the sample size:
    batches, accumulated updates and processes simply add up. ``tree_loss`` in the log is that
    quotient in base 2, in the unit of ``loss``, which does not contain it. Validation has none.
    """

    def train_step(self, sample: Any, model: Any, criterion: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, with the sum of both losses."""
        return super().train_step(sample, model, _with_tree_loss(criterion), *args, **kwargs)

    def reduce_metrics(self, logging_outputs: list[dict[str, Any]], criterion: Any) -> None:
        """fairseq's, and the loss from trees."""
        super().reduce_metrics(logging_outputs, criterion)
        if any(NAME in log for log in logging_outputs):
            total, size = (
                sum(log.get(key, 0) for log in logging_outputs) for key in (NAME, "sample_size")
            )
            metrics.log_scalar(NAME, total / size / math.log(2), size, round=3)


def _with_tree_loss(criterion: Any) -> Callable[[Any, Any], tuple[Any, Any, dict[str, Any]]]:
    def summed(model: Any, sample: Any) -> tuple[Any, Any, dict[str, Any]]:
        loss, size, log = criterion(model, sample)
        if not model.encoder.injections.has_losses:
            return loss, size, log
        tree_loss, model.encoder.tree_loss = model.encoder.tree_loss, None
        if tree_loss is None:  # its layer was left out (LayerDrop)
            return loss, size, {**log, NAME: loss.new_zeros(())}
        return loss + tree_loss, size, {**log, NAME: tree_loss.detach()}

    return summed
