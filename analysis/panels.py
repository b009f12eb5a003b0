"""Heat maps of several runs on one colour scale, with a choice of rows, seeds, layers and heads.

python analysis/panels.py runs/en-sv --rows masks --layers 1 2 --format pdf --out figures
"""

from treesyntax.analysis.arguments import script
from treesyntax.analysis.paper.panels import analyse

with script("panels", __doc__) as args:
    analyse(
        args.paths, args.kind, args.side, args.rows, args.seeds, args.layers, args.heads,
        args.limit, args.out,
    )  # fmt: skip
