"""The names that options take: known without numpy, so that ``--help`` is quick.

`tests/trees/test_names.py` compares them with the tables of what they name.
"""

TEXT = "text"
"""In place of a format: no trees."""
GIVEN = "given"
CONTROLS = (GIVEN, "random", "right_branching", "flat")
SHUFFLED = "shuffled"
"""The control of targets, whose text it keeps."""
FORMATS = (
    "conllu", "ptb", "mrg", "sexpr", "sexpr_bare", "prolog", "jsonl", "for", "lambda",
    "coffeescript", "javascript", "cogs", "cogs_varfree", "funql",
)  # fmt: skip
LINEARIZATIONS = (
    "words", "preorder", "breadth_first", "bracketed", "bracketed_twice", "nary_dfs", "nary_bfs",
    "lcrs_dfs", "lcrs_bfs",
)  # fmt: skip
POLICIES = ("siblings", "chain", "copy", "first", "last")
