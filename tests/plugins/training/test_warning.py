"""A training that saves at the warning signal and ends."""

import subprocess
import sys

from treesyntax.jobs.node import SAVED

TRAINING = """
import os, signal
from types import SimpleNamespace
from fairseq_plugins.training.warning import ending_at_the_warning, heed_warnings

class WarnedOnceMore:
    def __del__(self, kill=os.kill, process=os.getpid(), number=signal.SIGUSR2):
        kill(process, number)

late = WarnedOnceMore()  # it goes when Python has taken its handlers of signals away
heed_warnings()
epoch = SimpleNamespace(end_of_epoch=lambda: False)
settings = SimpleNamespace(optimization=SimpleNamespace(max_update=9))
trainer = SimpleNamespace(tree_warned=True, tree_epoch=epoch, cfg=settings, get_num_updates=lambda: 2)
ending_at_the_warning(lambda *_: None)(None, trainer, epoch, None)
"""


def test_a_second_warning_does_not_kill_a_training_that_has_saved():
    """Slurm sends it to each process of a job, and the job sends it on to its training."""
    job = subprocess.run([sys.executable, "-c", TRAINING], capture_output=True, text=True)
    assert job.returncode == SAVED, job.stderr[-2000:]
