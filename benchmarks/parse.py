"""Speed of ``treesyntax parse`` over that of the bare parser, called in its best batched way.

  python benchmarks/parse.py [TEXT] [--stanza FOLDER] [--benepar FOLDER] [--lines 2000]

Both are measured in one process with one thread, after loading: the command's part is everything
from lines to saved shards (words, sentences, batches, checks, tree files), the bare part is one
call of the library for all lines (stanza: ``bulk_process``, benepar: sub-batches by length).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import torch

from treesyntax.files import read_lines
from treesyntax.parsers import Parser, ParserConfig, load_parser
from treesyntax.parsers.benepar_parser import BATCH_TOKENS
from treesyntax.parsers.parse_task import ParseTask
from treesyntax.parsers.shards import Parts, Shard, parse_shard

ROUNDS = 3
SHARED = Path(__file__).parents[2] / "shared"


def bare_stanza(parser: Any, lines: Sequence[str]) -> None:
    """The whole pipeline at once."""
    parser._pipeline.bulk_process(list(lines))


def bare_benepar(parser: Any, lines: Sequence[str]) -> None:
    """Words and sentences by the same rules, then one call."""
    from benepar import InputSentence

    sentences = [sentence for line in parser.split(lines) for sentence in line]
    examples = [
        InputSentence(words=list(words), space_after=s.spaces, escaped_words=list(words))
        for s in sentences
        for words in (s.words,)
    ]
    parser._model.parse(examples, return_compressed=True, subbatch_max_tokens=BATCH_TOKENS)


def seconds(function: Callable[[], object]) -> float:
    """CPU seconds of this process, which other programs on the machine do not change."""
    begun = time.process_time()
    function()
    return time.process_time() - begun


def compare(
    name: str, model: str, lines: Sequence[str], bare: Callable[[Any, Sequence[str]], None]
) -> float:
    """Print and return the ratio of speeds."""
    config = ParserConfig(name, model)
    parser: Parser = load_parser(config)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        task = ParseTask(Path(folder, "in"), Path(folder, "out"), config, 150, 2000)
        Parts(task).folder.mkdir()

        def command() -> None:
            for number, start in enumerate(range(0, len(lines), task.shard_lines)):
                chunk = lines[start : start + task.shard_lines]
                parse_shard(task, parser, Shard(number, start + 1, chunk))

        # Turn by turn, so that a machine that slows down slows both.
        pairs = [(seconds(lambda: bare(parser, lines)), seconds(command)) for _ in range(ROUNDS)]
    ratio = median(alone / whole for alone, whole in pairs)
    speeds = [len(lines) / median(times) for times in zip(*pairs, strict=True)]
    print(f"{name:12} bare {speeds[0]:7.1f}  command {speeds[1]:7.1f} lines/s  ratio {ratio:.2f}")
    return ratio


def main() -> int:
    """Measure the parsers whose models are given."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "text", type=Path, nargs="?", default=SHARED / "data" / "multi30k_en_de" / "train.en.gz"
    )
    models = SHARED / "models"
    options.add_argument("--stanza", default=models / "stanza_ewt_small", help="folder of models")
    options.add_argument("--benepar", default=models / "benepar_minilm_ptb", help="model")
    options.add_argument("--lines", type=int, default=2000)
    args = options.parse_args()
    if not args.text.exists():
        print(f"skipped: there is no text at {args.text}")
        return 0
    lines = list(islice(read_lines(args.text), args.lines))
    for name, model, bare in (
        ("stanza-dep", args.stanza, bare_stanza),
        ("benepar", args.benepar, bare_benepar),
    ):
        if Path(model).exists():
            compare(name, str(model), lines, bare)
        else:
            print(f"{name:12} skipped: no model at {model}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
