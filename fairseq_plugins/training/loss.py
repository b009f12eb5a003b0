"""fairseq's criterion with label smoothing, computed on a CPU by a kernel of ours."""

from __future__ import annotations

from typing import Any

from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from torch import Tensor

from fairseq_plugins.model import TreeTransformer
from treesyntax.nn.kernels.smoothed_loss import projected_loss, smoothed_loss


class SmoothedLoss(LabelSmoothedCrossEntropyCriterion):
    """The same numbers up to rounding, without log-probabilities of all words in memory."""

    def forward(
        self, model: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss, what the gradient is divided by, and what is logged."""
        if not reduce:
            return super().forward(model, sample, reduce)
        target = sample["target"][:, self.ignore_prefix_size :]
        if _projects(model):
            features = model(**sample["net_input"], features_only=True)[0]
            loss, likelihood, hits = projected_loss(
                features[:, self.ignore_prefix_size :].flatten(0, 1),
                model.decoder.output_projection.weight,
                target.flatten(),
                self.eps,
                self.padding_idx,
            )
            total = target.ne(self.padding_idx).sum()
        else:
            output = model(**sample["net_input"])
            loss, likelihood = self.compute_loss(model, output, sample)
            if self.report_accuracy:
                hits, total = self.compute_accuracy(model, output, sample)
        size = len(target) if self.sentence_avg else sample["ntokens"]
        log = {
            "loss": loss.data,
            "nll_loss": likelihood.data,
            "ntokens": sample["ntokens"],
            "nsentences": len(target),
            "sample_size": size,
        }
        if (
            self.report_accuracy
        ):  # as tensors: fairseq's own criterion waits for the GPU before it goes back
            log |= {"n_correct": hits, "total": total}
        return loss, size, log

    def compute_loss(
        self, model: Any, net_output: Any, sample: Any, reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """The sums of the smoothed loss and of the negative log-likelihood."""
        logits = net_output[0]
        if not reduce or logits.device.type != "cpu":
            return super().compute_loss(model, net_output, sample, reduce)
        target = model.get_targets(sample, net_output)[:, self.ignore_prefix_size :]
        logits = logits[:, self.ignore_prefix_size :].float().flatten(0, 1)
        return smoothed_loss(logits, target.flatten(), self.eps, self.padding_idx)

    def compute_accuracy(self, model: Any, net_output: Any, sample: Any) -> tuple[Tensor, Tensor]:
        """How many of the words that count have the largest logit where it belongs, and how many count."""
        best = net_output[0][:, self.ignore_prefix_size :].argmax(2)
        target = model.get_targets(sample, net_output)[:, self.ignore_prefix_size :]
        counts = target.ne(self.padding_idx)
        return (best.eq(target) & counts).sum(), counts.sum()


def _projects(model: Any) -> bool:
    """Whether logits on a CPU are the product of features and embeddings, and no more.

    Not of a model in one of several processes, which watches its outputs to know which gradients will come.
    """
    if not isinstance(model, TreeTransformer) or model.decoder.copying is not None:
        return False
    return bool(model.decoder.output_projection.weight.device.type == "cpu")


def quicker(criterion: Any) -> Any:
    """fairseq's criterion with label smoothing as ours; any other as it is."""
    if type(criterion) is not LabelSmoothedCrossEntropyCriterion:
        return criterion
    return SmoothedLoss(
        criterion.task,
        criterion.sentence_avg,
        criterion.eps,
        criterion.ignore_prefix_size,
        criterion.report_accuracy,
    )
