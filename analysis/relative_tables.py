"""Learned vectors of relative positions (Shaw et al. 2018) and depths (Omote et al. 2019).

python analysis/relative_tables.py checkpoints/checkpoint_best.pt --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.figures import write_figure
from treesyntax.analysis.relative_tables import draw_table, read_tables

with script("relative_tables", __doc__) as args:
    for name, table in read_tables(args.checkpoint, args.side).items():
        write_figure(draw_table(table, name.replace("_", " ")), args.out, name)
