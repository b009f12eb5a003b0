"""The criterion with label smoothing gives fairseq's numbers, and other criteria stay as they are."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.criterions.cross_entropy import CrossEntropyCriterion
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.models import FairseqDecoder, FairseqEncoder, FairseqEncoderDecoderModel
from support.elsewhere import Elsewhere
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from fairseq_plugins.training.loss import SmoothedLoss, quicker

PADDING, TASK = 1, SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: 1))


class Encoder(FairseqEncoder):
    def forward(self, src_tokens, src_lengths=None):
        return None


class Decoder(FairseqDecoder):
    """Gives logits that are its parameters."""

    def __init__(self, logits):
        super().__init__(None)
        self.logits = torch.nn.Parameter(logits)
        self.adaptive_softmax = None

    def forward(self, prev_output_tokens, encoder_out=None, src_lengths=None):
        return self.logits, None


def batch():
    target = torch.randint(2, 11, (3, 7))
    target[1, 5:] = PADDING
    inputs = {"prev_output_tokens": target, "src_tokens": target, "src_lengths": None}
    return {"target": target, "ntokens": 19, "net_input": inputs}


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("reduce", [True, False])
def test_values_gradients_and_accuracy_are_those_of_fairseq(prefix, reduce):
    torch.manual_seed(1)
    sample, logits = batch(), torch.randn(3, 7, 11) * 3
    theirs = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1, prefix, True)
    found = []
    for criterion in (theirs, quicker(theirs)):
        model = FairseqEncoderDecoderModel(Encoder(None), Decoder(logits.clone()))
        loss, size, log = criterion(model, sample, reduce)
        loss.sum().backward()
        found.append((loss.detach(), size, log, model.decoder.logits.grad))
    assert type(quicker(theirs)) is SmoothedLoss
    (wanted, size, wanted_log, gradient), (loss, our_size, log, our_gradient) = found
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(our_gradient, gradient)
    assert our_size == size
    assert log.keys() == wanted_log.keys()
    for name, value in wanted_log.items():
        torch.testing.assert_close(torch.as_tensor(log[name]), torch.as_tensor(value))


def test_the_loss_waits_for_no_gpu():
    """fairseq's selects words and reads two counts before the backward pass is begun."""
    theirs = LabelSmoothedCrossEntropyCriterion(TASK, False, 0.1, report_accuracy=True)
    sample = batch()
    with Elsewhere() as elsewhere:
        model = FairseqEncoderDecoderModel(Encoder(None), Decoder(torch.randn(3, 7, 11)))
        model = elsewhere.moved_model(model)
        sample["target"] = elsewhere.moved(sample["target"])
        loss, _, _ = quicker(theirs)(model, sample)
        loss.backward()
        with pytest.raises(DynamicOutputShapeException):
            theirs(model, sample)


def test_other_criteria_stay_fairseqs_own():
    criterion = CrossEntropyCriterion(TASK, False)
    assert quicker(criterion) is criterion
