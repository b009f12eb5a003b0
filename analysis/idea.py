"""One sentence, its tree, and where methods put it: the picture of the README, or of another tree.

python analysis/idea.py --out docs/figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.idea import analyse

with script("idea", __doc__) as args:
    analyse(args.tree, args.out)
