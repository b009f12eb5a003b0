"""Settings of jobs on the command line."""

from __future__ import annotations

import argparse
import re

import pytest

from treesyntax.errors import OptionError
from treesyntax.jobs.options import read_parameters


def parameters(*settings: str) -> dict:
    return read_parameters(argparse.Namespace(cluster="slurm", cluster_set=list(settings)))


def test_values_are_yaml():
    settings = ("timeout_min=90", "slurm_gres=gpu:1", "slurm_account='0123'", "slurm_comment=null")
    assert parameters(*settings) == {
        "timeout_min": 90,
        "slurm_gres": "gpu:1",
        "slurm_account": "0123",
        "slurm_comment": None,
    }


def test_a_text_is_a_list_where_submitit_takes_one():
    settings = ("slurm_setup=module load cuda", "slurm_srun_args=--mem=0 --cpu-bind=none")
    several = "slurm_teardown=[export A=1, export B=2]"
    assert parameters("timeout_min=90", *settings, several) == {
        "timeout_min": 90,
        "slurm_setup": ["module load cuda"],
        "slurm_srun_args": ["--mem=0", "--cpu-bind=none"],
        "slurm_teardown": ["export A=1", "export B=2"],
    }


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "slurm_time=1:30:00",
            "YAML reads 1:30:00 as 5400; write that number, or quotes around a text; "
            "a time is in minutes, such as timeout_min=90",
        ),
        ("slurm_account=0123", "YAML reads 0123 as 83; "),
        ("slurm_account=", "there is no value; for none write null"),
        ("local_setup=[export A=1]", "jobs on this machine have the variables of this shell"),
        ("slurm_partition", "write it as name=value"),
        ("slurm_partition=[", "write it as name=value"),
    ],
)
def test_what_slurm_would_get_as_something_else_is_refused(setting: str, message: str):
    """A job of an hour and a half asked for 5,400 minutes, and went to the account 83."""
    with pytest.raises(OptionError, match=re.escape(f"--cluster-set {setting}: {message}")):
        parameters("timeout_min=90", setting)
