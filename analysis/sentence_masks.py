"""Summed relation masks of one sentence: as Fig. 2 of McDonald & Chiang (2021).

python analysis/sentence_masks.py checkpoint_best.pt data-bin/en-de --sentence 7 --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.figures import write_figure
from treesyntax.analysis.sentence_masks import draw_sentence_masks, read_sentence_masks

with script("sentence_masks", __doc__) as args:
    masks = read_sentence_masks(args.checkpoint, args.data, args.subset, args.sentence)
    write_figure(draw_sentence_masks(masks), args.out, "sentence_masks")
