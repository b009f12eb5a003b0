"""treesyntax for fairseq: pass this folder as ``--user-dir``.

Everything is imported explicitly: fairseq looks into a user folder only once, and not at all if
the package was imported before.
"""

from treesyntax.jobs.postponed import postponed

with postponed():
    import fairseq  # noqa: F401

from fairseq_plugins import archs, model, scoring, task
from fairseq_plugins.literals import parse_literals_only
from fairseq_plugins.replaced import replace
from fairseq_plugins.training.launch import show_one_line
from treesyntax.model.checkpoint import allow_plain_classes

# fairseq loads with weights_only=True, and its own checkpoints hold an argparse.Namespace.
allow_plain_classes()
parse_literals_only()
replace()
show_one_line()

__all__ = ["archs", "model", "scoring", "task"]
