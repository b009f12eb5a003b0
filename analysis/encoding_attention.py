"""Attention between stack encodings, moved and not: as Figs. 2-4 of Shiv & Quirk (2019).

python analysis/encoding_attention.py checkpoints/checkpoint_best.pt --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.paper.encoding_attention import analyse

with script("encoding_attention", __doc__) as args:
    analyse(
        args.checkpoint, args.side, args.p, args.moves, args.temperature, args.levels, args.data,
        args.subset, args.sentence, args.out,
    )  # fmt: skip
