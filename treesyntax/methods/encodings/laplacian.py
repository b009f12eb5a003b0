"""Laplacian eigenvectors of trees."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import last_descendant, root
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.projection import Projection
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.nn.walks import degrees

SIGNS = ("flip", "fixed", "absolute")
MOST_NODES = 4096
SAME = 1e-8  # eigenvalues this near count as one
SHARE = 1e-6  # of a node in an eigenspace, below which it does not choose a vector
APART = 4.0  # between the spectra of two trees; eigenvalues of a normalised Laplacian are at most 2


@register("laplacian")
class Laplacian(Injection):
    """A projection of the node's entries in the first eigenvectors of the tree's Laplacian.

    ``x_t + W [u_1(t), …, u_k(t)] + b``, where u_1, u_2, … are the eigenvectors of
    ``L = I - D^-1/2 A D^-1/2`` by ascending eigenvalue, without that of eigenvalue 0 (Dwivedi &
    Bresson 2021). Trees of fewer than k + 1 nodes have zeros for the rest, tokens without a
    node get nothing. Each tree of a forest has its own.

    An eigenvector has no sign. An eigenvalue that comes twice, as it often does in trees (twin leaves),
    has no vectors but a space.

    Here a space is spanned in one way only. Its first vector is the
    projection of the first node (in preorder) that has a part in it. The next one is that of the first
    node with a part in what is left.

    That node's entry is positive, so signs are fixed as well. ``flip`` then multiplies each by a random
    sign in training, as the paper does. Vectors by that rule are the same however a tree is padded, but
    are no continuous function of the tree.

    Args:
        site: where the method is built in.
        vectors: number k of eigenvectors.
        signs: ``flip`` in training, ``fixed``, or ``absolute`` values.
    """

    paper = "Dwivedi & Bresson 2021"
    equation = "x_t = sqrt(d) E[w_t] + PE_t + W [u_1(t), …, u_k(t)] + b"
    cost = (
        "an eigendecomposition a tree and batch in 64 bits, O(n^3): about 0.1 s a tree of 512 nodes on "
        "one core; at most 4,096 nodes; a step of width 512 over 64 tokens took 3.0 times the plain one on a GPU, "
        "which waits for it"
    )

    def __init__(self, site: Site, vectors: int = 8, signs: str = "flip") -> None:
        """Raises OptionError for no vectors or unknown signs."""
        super().__init__(site)
        if vectors < 1:
            raise OptionError(f"laplacian: vectors must be 1 or more, not {vectors}")
        if signs not in SIGNS:
            raise OptionError(f"laplacian: unknown signs {signs!r}; they are {', '.join(SIGNS)}")
        self.vectors, self.signs = vectors, signs
        self.projection = Projection(vectors, site.d_model)
        nn.init.xavier_uniform_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def leaks_future(self) -> str:
        """Each new node changes all eigenvectors."""
        return "reads eigenvectors, which nodes that come later change"

    def node_encoding(self, tree: TreeBatch) -> Tensor:
        """[B, T, d_model]."""
        vectors = eigenvectors(tree, self.vectors)
        if self.signs == "absolute":
            vectors = vectors.abs()
        elif self.signs == "flip" and self.training:
            coin = torch.rand(len(vectors), 1, self.vectors, device=vectors.device) < 0.5
            vectors = torch.where(coin, -vectors, vectors)
        node = tree.token_node.clamp(min=0).unsqueeze(2).expand(-1, -1, self.vectors)
        at_tokens = vectors.gather(1, node).to(self.projection.weight.dtype)
        return self.projection(at_tokens) * (tree.token_node >= 0).unsqueeze(2)


@torch.no_grad()
def eigenvectors(tree: TreeBatch, count: int) -> Tensor:
    """Float64 [B, N, count]: the first eigenvectors after that of eigenvalue 0, then zeros."""
    size = tree.parent.shape[1]
    if size > MOST_NODES:
        raise OptionError(
            f"laplacian: a tree of {size} nodes; at most {MOST_NODES}, since an eigendecomposition "
            "takes the third power of that"
        )
    values, basis = torch.linalg.eigh(_laplacian(tree))
    # The eigenvalues of a tree follow those of the trees before it, so its first has its root's number.
    first, last = root(tree), last_descendant(tree)
    most = last.gather(1, first) - first
    eigenpairs: list[tuple[Tensor, Tensor]] = []
    for number in range(1, min(count, size - 1) + 1):
        value = values.gather(1, (first + number).clamp(max=size - 1))
        space = basis * ((values.unsqueeze(1) - value.unsqueeze(2)).abs() < SAME)
        # What is left of the space once the vectors before are taken out of it.
        used = [vector * ((other - value).abs() < SAME) for other, vector in eigenpairs]
        share = space.square().sum(2)
        for vector in used:
            share = share - vector.square()
        chosen = _first_in_tree(share > SHARE, first)
        row = basis.gather(1, chosen.unsqueeze(2).expand(-1, -1, size))
        projected = (space * row).sum(2)
        for vector in used:
            projected = projected - vector * vector.gather(1, chosen)
        norm = projected.gather(1, chosen).clamp(min=SHARE).sqrt()
        eigenpairs.append((value, projected / norm * (number <= most)))
    vectors = [vector for _, vector in eigenpairs]
    stacked = torch.stack(vectors, 2) if vectors else basis.new_zeros(*tree.parent.shape, 0)
    return F.pad(stacked, (0, count - stacked.shape[2]))


def _first_in_tree(chosen: Tensor, first: Tensor) -> Tensor:
    """LongTensor [B, N]: for each node the first chosen one of its tree, which has the root ``first``."""
    size = chosen.shape[1]
    nodes = torch.arange(size, device=chosen.device).expand_as(first)
    following = nodes.masked_fill(~chosen, size - 1).flip(1).cummin(1).values.flip(1)
    return following.gather(1, first)


def _laplacian(tree: TreeBatch) -> Tensor:
    """Float64 [B, N, N], :data:`APART` more on the diagonal for each tree before.

    So spectra do not mix. Nodes alone that follow each other, as padding does, count as one tree.
    """
    is_child, parent = tree.parent >= 0, tree.parent.clamp(min=0)
    scale = degrees(tree).double().sqrt().reciprocal()
    weight = scale * scale.gather(1, parent) * is_child
    down = weight.new_zeros(*parent.shape, parent.shape[1])
    down.scatter_(2, parent.unsqueeze(2), weight.unsqueeze(2))
    nodes = torch.arange(parent.shape[1], device=parent.device)
    alone = ~is_child & (last_descendant(tree) == nodes)  # its eigenvalue is 0
    begins = ~is_child
    begins[:, 1:] &= ~(alone[:, 1:] & alone[:, :-1])
    diagonal = (~alone).double() + APART * (begins.cumsum(1) - 1)
    return torch.diag_embed(diagonal) - down - down.transpose(1, 2)
