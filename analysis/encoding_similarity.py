"""Cosines of stack encodings, plain and moved by U and D_i: as Figs. 2-4 of Shiv & Quirk (2019).

python analysis/encoding_similarity.py checkpoint_best.pt --p 0.3 0.9 --levels 4 --out figures
"""

from treesyntax.analysis import encoding_similarity as similarity
from treesyntax.analysis.arguments import script
from treesyntax.analysis.figures import write_figure

with script("encoding_similarity", __doc__) as args:
    method = similarity.read_method(args.checkpoint, args.side)
    nodes = similarity.choose_nodes(method, args.levels, args.data, args.subset, args.sentence)
    still = similarity.compute_similarity(method, nodes, args.p)
    moved = similarity.compute_moved(method, nodes)
    figure = similarity.draw_similarity(still, nodes.names, "node")
    write_figure(figure, args.out, "encoding_similarity")
    figure = similarity.draw_similarity(moved, nodes.names, "moved node")
    write_figure(figure, args.out, "encoding_similarity_moved")
