"""Strengths of relation masks (McDonald & Chiang 2021) over a training, a line a mask.

python analysis/strength_trajectories.py checkpoints/checkpoint_*.pt --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.figures import write_figure
from treesyntax.analysis.strength_trajectories import draw_trajectories, read_trajectories

with script("strength_trajectories", __doc__) as args:
    moments = read_trajectories(args.checkpoints, args.side)
    write_figure(draw_trajectories(moments), args.out, "strength_trajectories")
