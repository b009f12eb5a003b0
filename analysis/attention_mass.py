"""Share of the attention on each of the nine relations of McDonald & Chiang (2021), against chance.

python analysis/attention_mass.py checkpoint_best.pt data-bin/en-de --limit 200 --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.attention_mass import draw_attention_mass, read_attention_mass
from treesyntax.analysis.figures import write_figure

with script("attention_mass", __doc__) as args:
    found = read_attention_mass(args.checkpoint, args.data, args.subset, args.limit)
    write_figure(draw_attention_mass(found), args.out, "attention_mass")
