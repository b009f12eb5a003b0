"""The licence to call our baseline fairseq's Transformer: its state dicts load strictly and agree."""

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerConfig as FairseqConfig
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import nn

from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig

PADDING = 1


def build(normalize_before, learned, activation, share, layerdrop=0.0):
    cfg = FairseqConfig()
    cfg.encoder.layerdrop = cfg.decoder.layerdrop = layerdrop
    cfg.dropout = 0.0
    for side in (cfg.encoder, cfg.decoder):
        side.embed_dim, side.ffn_embed_dim, side.layers, side.attention_heads = 16, 32, 2, 4
        side.normalize_before, side.learned_pos = normalize_before, learned
    cfg.decoder.output_dim = cfg.decoder.input_dim = 16
    cfg.activation_fn, cfg.max_source_positions, cfg.max_target_positions = activation, 40, 40
    cfg.share_decoder_input_output_embed = share
    dictionary = Dictionary()
    for word in range(16):
        dictionary.add_symbol(f"w{word}")
    embeddings = [nn.Embedding(len(dictionary), 16, PADDING) for _ in range(4)]
    settings = TransformerConfig(
        d_model=16,
        d_ff=32,
        heads=4,
        layers=2,
        normalize_before=normalize_before,
        learned_positions=learned,
        activation=activation,
        max_positions=40,
        layer_dropout=layerdrop,
        dropout=0.0,
    )
    theirs = (
        TransformerEncoderBase(cfg, dictionary, embeddings[0]).eval(),
        TransformerDecoderBase(cfg, dictionary, embeddings[1]).eval(),
    )
    ours = (Encoder(settings, embeddings[2]).eval(), Decoder(settings, embeddings[3], share).eval())
    for mine, reference in zip(ours, theirs, strict=True):
        mine.load_state_dict(reference.state_dict(), strict=True)
    return ours, theirs


def batch(left_pad):
    tokens = torch.randint(4, 20, (3, 9))
    for row, length in enumerate((9, 5, 1)):
        empty = slice(0, 9 - length) if left_pad else slice(length, 9)
        tokens[row, empty] = PADDING
    return tokens


@pytest.mark.parametrize("left_pad", [False, True])
@pytest.mark.parametrize(
    ("normalize_before", "learned", "activation", "share"),
    [(False, False, "relu", False), (True, False, "gelu", True), (True, True, "relu", False)],
)
def test_encoder_and_decoder_agree_with_fairseq(
    normalize_before, learned, activation, share, left_pad
):
    torch.manual_seed(1)
    (encoder, decoder), (their_encoder, their_decoder) = build(
        normalize_before, learned, activation, share
    )
    source, target = batch(left_pad), batch(False)
    output = encoder.encode(source, None)
    theirs = their_encoder(source)
    expected = theirs["encoder_out"][0].transpose(0, 1)
    real = source.ne(PADDING)
    assert torch.allclose(output.memory[real], expected[real], atol=1e-5)

    logits = decoder.output_projection(decoder.decode(target, output))
    their_logits, _ = their_decoder(target, encoder_out=theirs)
    real = target.ne(PADDING)
    assert torch.allclose(logits[real], their_logits[real], atol=1e-5)
    assert their_logits[real].std() > 0.01, "a constant output would agree with anything"


def test_layers_are_left_out_as_in_fairseq():
    pairs = zip(*build(True, False, "relu", False, layerdrop=0.5), strict=True)
    source = batch(False)
    outputs = []
    (encoder, their_encoder), (decoder, their_decoder) = pairs
    for seed in range(8):
        found = []
        for one in (encoder.train(), their_encoder.train()):
            torch.manual_seed(seed)
            found.append(one.encode(source, None).memory if one is encoder else
                         one(source)["encoder_out"][0].transpose(0, 1))  # fmt: skip
        assert torch.allclose(*(memory[source.ne(PADDING)] for memory in found), atol=1e-5)
        outputs.append(found[0])
    assert len({round(float(output.detach()[0, 0, 0]), 4) for output in outputs}) > 2
    decoder.train()
    states = [decoder.decode(source, EncoderOutput(outputs[0], None)) for _ in range(9)]
    assert len({round(float(state.detach()[0, 0, 0]), 4) for state in states}) > 2
    assert their_decoder.layers.p == decoder.layers.layer_dropout


def test_positions_agree_with_fairseq_beyond_the_first_table():
    from fairseq.modules import SinusoidalPositionalEmbedding

    from treesyntax.model.layers import SinusoidalPositions, token_positions

    tokens = torch.full((1, 1500), 7)
    ours, theirs = SinusoidalPositions(10, PADDING), SinusoidalPositionalEmbedding(10, PADDING)
    assert torch.allclose(ours(token_positions(tokens, PADDING)), theirs(tokens), atol=1e-4)
