"""The flags of a finetuning, and what they ask for; ``treesyntax finetune`` adds recipes to it."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from treesyntax.endings import SAID
from treesyntax.errors import InputError, OptionError
from treesyntax.files import write_lines

SPLITS = ("train", "valid", "test")
OF_OUTPUTS = (
    "source", "predict", "test", "test_trees", "test_target", "tree_format", "hypotheses", "generated", "batch_size",
)  # fmt: skip
"""What --predict takes."""
WRITTEN = "jsonl"
"""The format of trees in a folder of data."""
LAUNCHED, PROCESS, PROCESSES = "LOCAL_RANK", "RANK", "WORLD_SIZE"
"""What accelerate and torchrun tell each process of several: its number on the machine, among all, and their number."""


FILES = {
    "out": ("FOLDER", "folder of the training; the same command goes on in it after a kill"),
    "predict": ("FOLDER", "train nothing: write outputs of this finished training for --test"),
    "hypotheses": ("FILE", "where the outputs go (default: hypotheses.txt in the folder)"),
    "generated": ("FILE", "write the outputs in the form of fairseq-generate instead"),
    "write-data": ("FOLDER", "train nothing: write the data as a study keeps it"),
    "facts": ("FOLDER", "only print size, losses and time of a finished training"),
}
"""Flags with a path: what stands for it in the help, and what it is for."""
TEXTS = {
    "each": (
        "COLUMN",
        "a column with a list of objects, such as aspects: each object is an example",
    ),
    "tree-format": ("NAME", "format of trees that are text, such as ptb; a wrong name lists all"),
    "injection": ("SPEC", "methods in the model, such as relation_mask+tree_distance"),
    "control": ("NAME", "random, flat or right_branching: trees without syntax in place of yours"),
}
"""Flags with a text, by default empty."""
LISTS = {
    "columns": ("KIND=NAME", "which column is what, such as text=sentence label=class. Kinds are text, words, tree, heads, "
                "relations, label, target, text_pair, words_pair, tree_pair, and start and end of words that are the "
                "second sentence. words=tree takes the words of the tree"),
    "header": ("NAME", "names of the columns, for a table without a line of names"),
}  # fmt: skip
"""Flags with several texts."""
REPEATED = {
    "set": "a setting of training, such as learning_rate=3e-5",
    "generate": "what model.generate is given, such as num_beams=4",
}
"""Flags with NAME=VALUE that may be given several times."""
COUNTS = {
    "seed": "seed of new parameters, order and dropout (default 1)",
    "max-steps": "updates after which training ends",
    "patience": "validations without a better one after which training ends",
    "accumulate": "batches in an update",
}
"""Flags with a number that have no default of their own."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the model, the data, the methods and the settings."""
    add = parser.add_argument
    add(
        "source",
        nargs="?",
        type=Path,
        help="a recipe with trainer: huggingface, or a folder that --write-data wrote",
    )
    add("--model", help="a folder, or a name in the cache of Hugging Face; nothing is downloaded")
    add("--task", help="sequence-classification, token-classification, seq2seq or causal")
    for split in SPLITS:
        files = {
            split: f"{split} data: .jsonl, .tsv, .csv or .conllu, or .gz of them",
            f"{split}-trees": f"trees of {split}, one a line, if they have a file of their own",
            f"{split}-target": f"answers of {split}, one a line, if they have a file of their own",
        }
        for name, text in files.items():
            add(f"--{name}", type=Path, metavar="FILE", help=text)
    for name, (metavar, text) in LISTS.items():
        add(f"--{name}", nargs="+", default=[], metavar=metavar, help=text)
    for name, (metavar, text) in TEXTS.items():
        add(f"--{name}", default="", metavar=metavar, help=text)
    add(
        "--hold-out",
        type=int,
        default=0,
        metavar="N",
        help="without --valid: examples of --train to validate on",
    )
    add("--control-seed", type=int, default=1, metavar="N", help="seed of random trees (default 1)")
    for name, text in REPEATED.items():
        add(
            f"--{name}",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help=f"{text}; may be repeated",
        )
    for name, text in COUNTS.items():
        add(f"--{name}", type=int, metavar="N", help=text)
    add("--bf16", action="store_true", help="compute in bfloat16")
    for name, (metavar, text) in FILES.items():
        add(f"--{name}", type=Path, metavar=metavar, help=text)
    add(
        "--batch-size",
        type=int,
        default=32,
        metavar="N",
        help="examples at a time for outputs (default 32)",
    )
    add(
        "--sources-only",
        action="store_true",
        help="with --write-data: only the texts, for a parser",
    )


def only_flags(args: argparse.Namespace, allowed: Sequence[str], remedy: str) -> None:
    """Refuse flags that would do nothing.

    Args:
        args: of :func:`add_arguments`.
        allowed: those that may be given.
        remedy: what to do instead.

    Raises:
        OptionError: naming the others that were given.
    """
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    defaults = vars(parser.parse_args([]))
    given = [
        f"--{name.replace('_', '-')}"
        for name, default in defaults.items()
        if name not in allowed and getattr(args, name) != default
    ]
    if given:
        raise OptionError(f"{', '.join(given)} would do nothing here; {remedy}")


def run(args: argparse.Namespace) -> int:
    """Do what is asked for; returns 0.

    Raises:
        OptionError: for flags that are missing or do not fit together.
        InputError: for data that cannot be read.
    """
    if args.facts is not None:
        from treesyntax.files import read_json
        from treesyntax.finetune.job import FACTS_FILE

        print(json.dumps(read_json(args.facts / FACTS_FILE)))
        return 0
    if args.predict is not None:
        only_flags(args, OF_OUTPUTS, "the finished training has its own")
    for name, least in (("batch_size", 1), ("hold_out", 0)):
        if (count := getattr(args, name)) < least:
            raise OptionError(f"--{name.replace('_', '-')} {count}: give {least} or more")
    if args.hold_out and args.valid is not None:
        raise OptionError(
            "--hold-out takes examples of --train in place of --valid; give one of them"
        )
    if args.source is not None:
        _take_folder(args)
    if args.predict is not None:
        _need(args, "test")
        _predict(args, args.predict)
        return 0
    if args.write_data is not None:
        _write_data(args)
        return 0
    _need(args, "model", "task", "train", "out", *(() if args.hold_out else ("valid",)))
    job = job_of(args)
    test = None
    if args.test is not None:  # a fault in them is not told only when all is trained
        test = (_test_examples(job, args), args.test)
    if _launch():
        return 0
    from treesyntax.finetune.training import finetune

    files = {
        name: value
        for split in ("train", "valid")
        for name in (split, f"{split}_trees", f"{split}_target")
        if (value := getattr(args, name)) is not None
    }
    facts = finetune(job, args.out, files, test)
    if not is_first():
        return 0  # the first of several processes writes and tells
    if args.test is not None:
        _predict(args, args.out)
    print(
        f"{args.out}: best at update {facts['best_update']} of {facts['updates']}, validation "
        f"{facts['best_metric']:.4g}; {SAID[facts['ended']]}"
    )
    return 0


def is_first() -> bool:
    """Return whether this process is alone, or the first of several.

    A RANK without their number is left from another program.
    """
    alone = os.environ.get(PROCESSES, "") in ("", "1")
    return alone or os.environ.get(PROCESS, "0") == "0"


def job_of(args: argparse.Namespace) -> Any:
    """The job that the flags stand for."""
    from treesyntax.finetune.job import Job, read_settings

    settings = read_settings(args.set)
    short = {
        "max_steps": args.max_steps,
        "patience": args.patience,
        "gradient_accumulation_steps": args.accumulate,
        "bf16": args.bf16 or None,
    }
    given = {name: value for name, value in short.items() if value is not None}
    if twice := sorted(given.keys() & settings.keys()):
        raise OptionError(
            f"--set {twice[0]}={settings[twice[0]]}: has a flag of its own, too; give one of them"
        )
    settings |= given
    return Job(
        model=args.model or "",
        task=args.task or "",
        columns=_columns(args.columns),
        each=args.each,
        hold_out=args.hold_out if args.valid is None else 0,
        header=tuple(args.header),
        tree_format=args.tree_format,
        injection=args.injection,
        control="" if args.control == "given" else args.control,
        control_seed=args.control_seed,
        seed=1 if args.seed is None else args.seed,
        settings=settings,
        generate=read_settings(args.generate, "--generate"),
    )


def _take_folder(args: argparse.Namespace) -> None:
    """Take the files of a folder of data that flags do not name."""
    if not args.source.is_dir():
        raise OptionError(f"{args.source} is neither a recipe nor a folder of --write-data")
    for split in SPLITS[:2] if args.predict is None else SPLITS[2:]:
        if getattr(args, split) is None:
            setattr(args, split, args.source / f"{split}.jsonl")
    args.tree_format = args.tree_format or WRITTEN


def _columns(texts: Sequence[str]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for text in texts:
        name, equals, column = text.partition("=")
        if not equals or not column:
            raise OptionError(f"--columns {text}: write it as KIND=NAME, such as text=sentence")
        if name in columns:
            raise OptionError(f"--columns {text}: {name} is {columns[name]} already; keep one")
        columns[name] = column
    return columns


def _need(args: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(args, name) is None:
            raise OptionError(f"--{name} is needed, or a recipe; see treesyntax finetune --help")


def _launch() -> bool:
    """Where a machine has several GPUs, do all in one process for each; whether that was done."""
    if LAUNCHED in os.environ:
        return False
    import torch

    if torch.cuda.device_count() < 2:
        return False
    count = str(torch.cuda.device_count())
    words = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--multi_gpu",
        "--num_processes",
        count,
    ]
    done = subprocess.run([*words, "-m", "treesyntax", *sys.argv[1:]], check=False)
    if done.returncode:
        raise OptionError(f"the processes of {count} GPUs ended with status {done.returncode}")
    return True


def _test_examples(job: Any, args: argparse.Namespace) -> Any:
    """The test set, with trees if a method of the job needs them to compute outputs.

    All of it has answers, or none.
    """
    from treesyntax.finetune.data import check_answers, check_trees, read_noted
    from treesyntax.finetune.models import split_spec

    examples, remarks = read_noted(job, args.test, args.test_trees, args.test_target)
    for text in remarks:
        print(text, file=sys.stderr)
    if split_spec(job.injection)[0]:
        check_trees(examples, args.test)
    if any(example.answer is not None for example in examples):
        check_answers(examples, args.test, replace(job, labels=()))
    return examples


def _predict(args: argparse.Namespace, folder: Path) -> None:
    """Write the outputs of a finetuning for a test set."""
    import torch

    from treesyntax.finetune.data import check_answers
    from treesyntax.finetune.inputs import check_inputs
    from treesyntax.finetune.job import MODEL_FOLDER, TAGS, read_job
    from treesyntax.finetune.models import load_trained
    from treesyntax.finetune.outputs import no_tag, predict
    from treesyntax.jobs.terminal import progress_bar

    job = read_job(folder)
    examples = _test_examples(job, args)
    answered = examples[0].answer is not None
    try:
        check_answers(examples if answered else [], args.test, job)
    except InputError as error:
        print(f"treesyntax finetune: {error}; such answers count as wrong", file=sys.stderr)
    trained = load_trained(job, folder / MODEL_FOLDER)
    check_inputs(job, trained, examples, args.test)
    if torch.cuda.is_available():
        trained.model.to("cuda")
    with progress_bar() as bar:
        shown = bar.add_task("outputs", total=len(examples))
        lines = predict(
            job, trained, examples, args.batch_size, lambda done: bar.update(shown, completed=done)
        )
    lacking = sum(no_tag(job.labels) in line.split() for line in lines) if job.task == TAGS else 0
    if lacking:
        print(
            f"treesyntax finetune: {lacking} inputs have words without a token, since they were cut or their "
            "characters are invisible; tags that are lacking count as wrong",
            file=sys.stderr,
        )
    if args.generated is not None:
        texts = (f"D-{number}\t0\t{line}" for number, line in enumerate(lines))
        write_lines(args.generated, texts)
        return
    write_lines(args.hypotheses or folder / "hypotheses.txt", lines)
    (folder / "references.txt").unlink(missing_ok=True)  # those of another test set
    if answered:
        write_lines(folder / "references.txt", (example.target for example in examples))


def _write_data(args: argparse.Namespace) -> None:
    from treesyntax.finetune.data import (
        check_answers,
        held_out,
        read_noted,
        with_classes,
        write_data,
        write_texts,
    )

    _need(args, "task", "train", "test", *(() if args.hold_out else ("valid",)))
    job = known = job_of(args)
    for split in SPLITS:
        file = getattr(args, split)
        if file is None:
            continue
        examples, remarks = read_noted(
            job, file, getattr(args, f"{split}_trees"), getattr(args, f"{split}_target")
        )
        for text in remarks:
            print(text, file=sys.stderr)
        sets = {split: examples}
        if split == "train" and args.valid is None:
            sets["train"], sets["valid"] = held_out(examples, args.hold_out)
        for name, chosen in sets.items():
            if args.sources_only:
                write_texts(name, chosen, args.write_data)
                continue
            if name == "train":
                known = with_classes(job, chosen, file)
            else:  # a class of the test set alone counts as wrong
                check_answers(chosen, file, known if name == "valid" else job)
            write_data(job, name, chosen, args.write_data)
