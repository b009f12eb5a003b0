"""fairseq is loaded without libraries that few of its criteria and tasks use."""

from __future__ import annotations

import builtins
import gc
import json
import subprocess
import sys
import warnings

import pytest

from treesyntax.jobs.postponed import Later, postponed

LOADED = """
import json, sys
import fairseq_plugins
print(json.dumps([name for name in ("sklearn", "pandas", "scipy.stats") if name in sys.modules]))
from fairseq.criterions.sentence_prediction import acc_and_f1, pearson_and_spearman
import numpy
right, output = numpy.array([1, 0, 1, 1]), numpy.array([1, 1, 1, 0])
print(json.dumps([acc_and_f1(output, right)["f1"], pearson_and_spearman(output, right)["pearson"]]))
"""


def test_the_plugins_load_fairseq_without_them_and_its_functions_work():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded, (f1, pearson) = map(json.loads, done.stdout.splitlines()[-2:])
    assert loaded == []
    assert f1 == pytest.approx(2 / 3)
    assert pearson == pytest.approx(-1 / 3)


def test_only_fairseq_gets_them_later():
    load = builtins.__import__
    names = {}
    with postponed():
        for importer in ("fairseq.tasks.some", "own"):
            names[importer] = {"__name__": importer}
            exec("from scipy.stats import ttest_ind\nfrom json import dumps", names[importer])
    assert builtins.__import__ is load
    assert gc.isenabled()
    ours, theirs = names["own"], names["fairseq.tasks.some"]
    assert isinstance(theirs["ttest_ind"], Later)
    assert not isinstance(ours["ttest_ind"], Later)
    assert theirs["dumps"] is ours["dumps"] is json.dumps
    samples = [1.0, 2.0, 4.0], [3.0, 5.0, 9.0]
    assert theirs["ttest_ind"](*samples) == ours["ttest_ind"](*samples)


def test_what_torch_says_of_fairseq_is_not_said_of_others():
    said = "`torch.jit.script` is deprecated. Please switch to `torch.compile` or `torch.export`."
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        with postponed():
            warnings.warn(said, FutureWarning, stacklevel=1)
            warnings.warn("another", FutureWarning, stacklevel=1)
            warnings.filterwarnings("ignore", "of torch")
        added = [chosen for chosen in warnings.filters if chosen not in before]
        warnings.warn(said, FutureWarning, stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["another", said]
    assert len(added) == 1
