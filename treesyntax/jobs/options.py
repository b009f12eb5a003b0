"""``--cluster`` and ``--cluster-set``."""

from __future__ import annotations

import argparse
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.jobs.cluster import KINDS

TIMES = ("timeout_min", "slurm_timeout_min", "slurm_time")
SHELL_LINES = ("slurm_setup", "slurm_teardown")
SRUN_WORDS = "slurm_srun_args"
"""submitit takes a list there, and of a text each letter: ``--mem=0`` became ``srun - - m e m = 0``."""
SINGLE = ("nodes", "tasks_per_node", "slurm_nodes", "slurm_tasks_per_node", "slurm_ntasks_per_node")


def add_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare ``--cluster`` and ``--cluster-set``.

    Args:
        parser: of the command.
        what: what is submitted, for the help.
    """
    parser.add_argument(
        "--cluster",
        choices=KINDS,
        help=f"submit {what} as jobs, by submitit; local tries it on this machine",
    )
    parser.add_argument(
        "--cluster-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of submitit, such as timeout_min=600 (which slurm needs), "
        "slurm_partition=gpu, gpus_per_node=1; may be repeated",
    )


def read_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of ``--cluster-set``, such as ``timeout_min=60``, by name; values are YAML."""
    from treesyntax.yaml_text import MisreadError, NotYamlError, parse_value

    if args.cluster_set and not args.cluster:
        raise OptionError("--cluster-set needs --cluster")
    parameters = {}
    for setting in args.cluster_set:
        name, equals, text = setting.partition("=")
        try:
            parameters[name] = parse_value(text) if equals else None
        except MisreadError as error:
            hint = "; a time is in minutes, such as timeout_min=90" if name in TIMES else ""
            raise OptionError(f"--cluster-set {setting}: {error}{hint}") from None
        except NotYamlError:
            equals = ""
        if not name or not equals:
            raise OptionError(f"--cluster-set {setting}: write it as name=value")
        if isinstance(value := parameters[name], str) and name in SHELL_LINES:
            parameters[name] = [value]
        elif isinstance(value, str) and name == SRUN_WORDS:
            parameters[name] = value.split()
        # submitit would start a shell: its job looks gone, and outlives being cancelled.
        if name == "local_setup":
            raise OptionError(
                f"--cluster-set {setting}: jobs on this machine have the variables of this shell; set them before"
            )
        if name in SINGLE and parameters[name] != 1:
            raise OptionError(
                f"--cluster-set {setting}: a job is one process on one node, which uses all its "
                "GPUs; for several nodes start fairseq-train yourself, see docs/cluster.md"
            )
    if args.cluster == "slurm" and not any(parameters.get(name) for name in TIMES):
        raise OptionError(
            "--cluster slurm: say how many minutes a job may take, such as "
            "--cluster-set timeout_min=600"
        )
    return parameters
