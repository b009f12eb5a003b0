"""treesyntax for fairseq: pass this folder as ``--user-dir``.

Everything is imported explicitly: fairseq looks into a user folder only once, and not at all if
the package was imported before.
"""

from fairseq_plugins import archs, model, scoring, task
from fairseq_plugins.checkpoints import keep_checkpoints_at_ends_of_epochs
from fairseq_plugins.dataset import double_trees_too
from fairseq_plugins.help import name_our_additions
from fairseq_plugins.literals import parse_literals_only
from fairseq_plugins.resume import resume_in_every_process, resume_on_data_that_fit
from fairseq_plugins.settings import check_before_loading
from fairseq_plugins.training.launch import check_launches
from fairseq_plugins.training.patience import keep_count
from fairseq_plugins.training.updates import quicker_updates
from fairseq_plugins.training.warning import save_at_the_warning
from treesyntax.model.checkpoint import allow_plain_classes

# fairseq loads with weights_only=True, and its own checkpoints hold an argparse.Namespace.
allow_plain_classes()
parse_literals_only()
check_before_loading()
name_our_additions()
resume_in_every_process()
resume_on_data_that_fit()
keep_count()
keep_checkpoints_at_ends_of_epochs()
check_launches()
save_at_the_warning()
double_trees_too()
quicker_updates()

__all__ = ["archs", "model", "scoring", "task"]
