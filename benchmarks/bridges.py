"""A training step of a model with a bridge, as a ratio to the same step without.

Forward, backward and Adam of transformers' BERT, ModernBERT, T5 encoder, GPT-2 and Llama, and of nn.TransformerEncoder,
over random trees. The model without a bridge has PyTorch's fused attention, which needs no mask here. Each step with a
bridge is timed just after one without; a line has the median ratio of such pairs and, in brackets, its quartiles.

    python benchmarks/bridges.py                    # width 256, 4 layers, length 64 and 512
    python benchmarks/bridges.py --device cuda --width 768 --layers 12
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from timing import paired_ratios, print_pairs
from torch import Tensor, nn
from trees import random_trees

from treesyntax.bridges.huggingface import HuggingFaceBridge
from treesyntax.bridges.torch_encoder import TransformerEncoderBridge
from treesyntax.nn.tree_batch import TreeBatch

SPECS = ("relation_mask", "stack_pe", "tree_distance", "stack_pe+relation_mask")
VOCABULARY = 1000


def bert(args: argparse.Namespace) -> nn.Module:
    """Of transformers."""
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=VOCABULARY, hidden_size=args.width, num_attention_heads=args.heads,
        num_hidden_layers=args.layers, intermediate_size=4 * args.width, max_position_embeddings=2048,
    )  # fmt: skip
    return BertModel(config, add_pooling_layer=False)


def modernbert(args: argparse.Namespace) -> nn.Module:
    """Of transformers, with its window of 128 tokens in two layers of three."""
    from transformers import ModernBertConfig, ModernBertModel

    config = ModernBertConfig(
        vocab_size=VOCABULARY, hidden_size=args.width, num_attention_heads=args.heads,
        num_hidden_layers=args.layers, intermediate_size=4 * args.width,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2,
    )  # fmt: skip
    return ModernBertModel(config)


def t5(args: argparse.Namespace) -> nn.Module:
    """Its encoder, of transformers."""
    from transformers import T5Config, T5EncoderModel

    config = T5Config(
        vocab_size=VOCABULARY, d_model=args.width, d_kv=args.width // args.heads,
        d_ff=4 * args.width, num_layers=args.layers, num_heads=args.heads,
    )  # fmt: skip
    return T5EncoderModel(config)


def gpt2(args: argparse.Namespace) -> nn.Module:
    """Of transformers; the tree is over all of its input."""
    from transformers import GPT2Config, GPT2Model

    config = GPT2Config(
        vocab_size=VOCABULARY, n_embd=args.width, n_head=args.heads, n_layer=args.layers,
        n_positions=2048, use_cache=False, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return GPT2Model(config)


def llama(args: argparse.Namespace) -> nn.Module:
    """Of transformers, with keys and values shared by two heads; the tree is over all of its input."""
    from transformers import LlamaConfig, LlamaModel

    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=args.width, num_attention_heads=args.heads,
        num_key_value_heads=args.heads // 2, num_hidden_layers=args.layers,
        intermediate_size=4 * args.width, use_cache=False,
    )  # fmt: skip
    return LlamaModel(config)


def pytorch(args: argparse.Namespace) -> nn.Module:
    """PyTorch's own encoder."""
    layer = nn.TransformerEncoderLayer(args.width, args.heads, 4 * args.width, batch_first=True)
    return nn.TransformerEncoder(layer, args.layers, enable_nested_tensor=False)


MODELS: dict[str, tuple[Callable[[argparse.Namespace], nn.Module], Callable[..., Any]]] = {
    "bert": (bert, HuggingFaceBridge),
    "modernbert": (modernbert, HuggingFaceBridge),
    "t5": (t5, HuggingFaceBridge),
    "gpt2": (gpt2, HuggingFaceBridge),
    "llama": (llama, HuggingFaceBridge),
    "pytorch": (pytorch, TransformerEncoderBridge),
}


def step(model: nn.Module, optimizer: torch.optim.Optimizer, given: Tensor, **tree: Any) -> None:
    """One training step."""
    optimizer.zero_grad()
    output = model(given, **tree)
    states = output if isinstance(output, Tensor) else output.last_hidden_state
    states.square().mean().backward()
    optimizer.step()


def steps(name: str, length: int, args: argparse.Namespace) -> dict[str, Callable[[], None]]:
    """The step without a bridge, and with each spec."""
    torch.manual_seed(0)
    make, bridge = MODELS[name]
    plain = make(args).to(args.device).train()
    rows = max(args.tokens // length, 1)
    tree = TreeBatch(*(part.to(args.device) for part in random_trees(rows, length)))
    given = torch.randint(4, VOCABULARY, tree.token_node.shape, device=args.device)
    if name == "pytorch":
        given = torch.randn(*given.shape, args.width, device=args.device)
    found = {"plain": partial(step, plain, torch.optim.Adam(plain.parameters()), given)}
    for spec in args.specs:
        model = bridge(copy.deepcopy(plain), spec).to(args.device).train()
        optimizer = torch.optim.Adam(model.parameters())
        found[spec] = partial(step, model, optimizer, given, tree=tree)
    return found


def main() -> None:
    """Print a table for each model and length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=MODELS)
    parser.add_argument("--specs", nargs="+", default=[*SPECS])
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--tokens", type=int, default=1024, help="of a batch (default: 1024)")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    if args.device == "cpu":
        torch.set_num_threads(1)
    for name in args.models:
        for length in args.lengths:
            ratios = paired_ratios(steps(name, length, args), "plain", args.repeats)
            print_pairs(f"{name}, length {length}", ratios, "plain")


if __name__ == "__main__":
    main()
