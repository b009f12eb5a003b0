"""What a method makes of one tree.

python analysis/method.py relation_mask --out docs/figures/methods
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.paper.method import analyse

with script("method", __doc__) as args:
    analyse(args.method, args.tree, args.out)
