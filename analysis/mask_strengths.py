"""Learned strengths of relation masks, a panel a layer: as Fig. 3 of McDonald & Chiang (2021).

python analysis/mask_strengths.py checkpoints/checkpoint_best.pt --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.figures import write_figure
from treesyntax.analysis.mask_strengths import draw_strengths, read_strengths

with script("mask_strengths", __doc__) as args:
    strengths = read_strengths(args.checkpoint, args.side)
    write_figure(draw_strengths(strengths), args.out, "mask_strengths")
