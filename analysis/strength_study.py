"""Range of mask strengths beside the gain of the masks: as Fig. 4 of McDonald & Chiang (2021).

python analysis/strength_study.py runs/en-vi runs/en-de --metric bleu --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.figures import write_figure
from treesyntax.analysis.strength_study import draw_rows, read_rows

with script("strength_study", __doc__) as args:
    rows = [row for study in args.studies for row in read_rows(study, args.baseline, args.metric)]
    write_figure(draw_rows(rows, args.metric), args.out, "strength_study")
