"""Whether a method in a decoder sees tokens that come later.

Training has whole targets. A method that counts the children of a node, say, or the tokens of the target, then reads
off what a search has to guess: the loss falls, the outputs are bad, and a study would find that trees harm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.errors import OptionError
from treesyntax.model.blindness import moved
from treesyntax.model.composition import Composition
from treesyntax.model.decoder import Decoder
from treesyntax.nn.attention import attend
from treesyntax.nn.tree_batch import TreeBatch

PREFIXES = (2, 4, 8, 16, 32)
"""How many tokens are looked at, by themselves and with more behind them."""


@torch.no_grad()
def refuse_foresight(decoder: Decoder, tokens: Tensor) -> None:
    """Refuse methods that compute something else for tokens when more follow: a user's, or with a user's relations.

    Args:
        decoder: whose methods are looked at.
        tokens: LongTensor [B, T], some targets as it reads them, padding on the right.

    Raises:
        OptionError: for a method that sees what comes later.
    """
    tokens = tokens[:, : PREFIXES[-1] + 1].to(decoder.embed_tokens.weight.device)
    real = tokens.ne(decoder.padding_index).cpu()
    for name, method in decoder.injections.items():
        alone = Composition("none", decoder.settings.site)
        alone[name] = moved(method)  # type: ignore[arg-type]
        whole = _computed(alone, decoder.trees_of(tokens).to("cpu"))
        for length in PREFIXES:
            prefix = _computed(alone, decoder.trees_of(tokens[:, :length]).to("cpu"))
            seen = real[:, :length]
            if not torch.allclose(
                whole[:, :length][seen], prefix[seen], rtol=1e-3, atol=1e-4, equal_nan=True
            ):
                raise OptionError(
                    f"{name} sees the future: what it computes for the first {seen.shape[1]} tokens of a target "
                    "changes when more follow, which a search cannot know; give it in the encoder alone, or mend "
                    f'it until treesyntax.testing.check_method("{name}") passes'
                )


def _computed(methods: Composition, tree: TreeBatch) -> Tensor:
    """[B, T, n]: what methods add to tokens, and attention with them in all layers, of the same states each time."""
    rows, width = tree.token_node.shape
    site, generator = methods.methods[0].site, torch.Generator().manual_seed(2)
    shape = (rows, site.heads, PREFIXES[-1] + 1, site.d_model // site.heads)
    x = torch.randn(shape, generator=generator)[:, :, :width]
    node_map, terms_of = methods.node_map(tree), methods.relate(tree)
    mapped = x if node_map is None else node_map(x)
    causal = torch.ones(width, width, dtype=torch.bool).tril()
    attended = [
        attend(mapped, mapped, x, causal, terms_of(layer), unmapped=x).transpose(1, 2).flatten(2)
        for layer in range(site.layers)
    ]
    encoding = methods.encode(tree)
    return torch.cat(attended if encoding is None else [*attended, encoding], 2)
