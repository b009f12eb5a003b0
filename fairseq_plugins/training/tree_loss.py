"""What training adds to fairseq's: losses from trees, logged apart, and words that are hidden."""

# No postponed annotations here: fairseq makes flags from the types of dataclass fields.
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairseq.logging import metrics
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_plugins.target import find_hidden_words
from fairseq_plugins.training.mixed import in_mixed_precision
from treesyntax.nn.hidden_words import HiddenWords

NAME = "tree_loss"


@dataclass
class TreeTrainingConfig(TranslationConfig):
    """fairseq's options, and that of hidden words."""

    copy_dropout: float = field(
        default=0.0,
        metadata={
            "help": "in training, hide this share of the words that source and target have both, so "
            "that a model with --copy-source learns to copy words that it does not know; the data "
            "needs placeholders (binarize --copy-unknown)"
        },
    )


class TreeLossTask(TranslationTask):
    """fairseq's translation, whose training adds what :meth:`Injection.loss` gives.

    Like the loss of the translation it is a sum over tokens, which fairseq divides by the sample size:
    batches, accumulated updates and processes simply add up. ``tree_loss`` in the log is that
    quotient in base 2, in the unit of ``loss``, which does not contain it. Validation has none.
    """

    @cached_property
    def hidden_words(self) -> HiddenWords:
        """Hides words in training."""
        return find_hidden_words(self)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """fairseq's.

        Raises:
            OptionError: if words are to be hidden in data without placeholders.
        """
        if self.cfg.copy_dropout and not from_checkpoint:
            _ = self.hidden_words
        return super().build_model(cfg, from_checkpoint)

    def get_batch_iterator(self, *words: Any, **named: Any) -> Any:
        """fairseq's, whose workers end with each epoch.

        fairseq keeps them for the next epoch, yet with ``--update-epoch-batch-itr`` that one has workers of
        its own: processes with a copy of the training's memory would pile up until there is none.
        """
        batches = super().get_batch_iterator(*words, **named)
        batches.persistent_workers = False
        return batches

    def train_step(
        self,
        sample: Any,
        model: Any,
        criterion: Any,
        optimizer: Any,
        update_num: int,
        ignore_grad: bool = False,
    ) -> Any:
        """fairseq's, with the sum of both losses, hidden words (``--copy-dropout``), and ``--amp`` on a CPU."""
        rate = self.cfg.copy_dropout
        if rate and sample:
            inputs = sample["net_input"]
            tokens, previous, target = self.hidden_words.to(inputs["src_tokens"].device)(
                inputs["src_tokens"], [inputs["prev_output_tokens"], sample["target"]], rate
            )
            inputs = {**inputs, "src_tokens": tokens, "prev_output_tokens": previous}
            sample = {**sample, "net_input": inputs, "target": target}
        summed = in_mixed_precision(_with_tree_loss(criterion), optimizer)
        return super().train_step(sample, model, summed, optimizer, update_num, ignore_grad)

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
