"""Turn aligned text and tree files into fairseq data, with the trees beside the tokens.

Writes to DEST what fairseq-preprocess writes (dict.LANG.txt, SPLIT.SRC-TGT.LANG.bin and .idx),
SPLIT.SRC-TGT.LANG.tree for every side that has trees, the subword models used as
subwords.LANG.model, and binarize.json with all options and counts. DEST appears whole or not at
all. A side of format "text" has one sentence a line, its tokens separated by white space.

The linearization decides what the model reads: "words" the sentence, "preorder" the labels of all
nodes from the root down, "breadth_first" level by level, "bracketed" in preorder with closing brackets; for
targets that a decoder grows as trees, "nary_dfs", "nary_bfs", "lcrs_dfs" and "lcrs_bfs". Subwords
come from a given SentencePiece model, from one trained here (--subword-vocab), or from text
segmented elsewhere (--source-pieces). To tell whether syntax helps or any tree does, compare with
control trees (--source-control).

With --source-text pieces are attached to words by the places of words in the raw text, in
characters: start_char and end_char in MISC or, without them, FORM after FORM in CoNLL-U, and the
file NAME.offsets beside brackets, all as treesyntax parse writes them. Every parser token is
segmented with the white space before it, so that the pieces spell the line whatever the tree, and
no piece crosses a token. The words of a multi-word token (French du = de + le) become one. Where
the line is segmented as a whole (--subword-units line), or was elsewhere (--source-pieces), tokens
that share a piece become one, tokens without a piece are removed. Without --source-text every
word is segmented by its form.

Example, gold dependency trees on the source side, 4,000 subwords on each side:

  treesyntax binarize data-bin/en-sv --source-lang en --target-lang sv \\
      --train train.conllu train.sv --valid valid.conllu valid.sv --test test.conllu test.sv \\
      --source-format conllu --subword-vocab 4000
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from treesyntax.data.binarize.encode import TEXT, encode_batch
from treesyntax.data.binarize.models import prepare_models
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions, make_plan
from treesyntax.data.binarize.raw_text import SUBWORD_UNITS
from treesyntax.data.binarize.read import BatchMap, batches, changed, survey, worker_pool
from treesyntax.data.binarize.spelling import PIECES_STYLES
from treesyntax.data.binarize.summary import summarise, write_manifest
from treesyntax.data.binarize.write import Counts, Spool, Symbols, write_side
from treesyntax.data.dictionary import Dictionary, one_unknown, unknown_symbol
from treesyntax.data.sentencepiece import MODEL_TYPES
from treesyntax.errors import OptionError
from treesyntax.files import atomic_folder
from treesyntax.trees.controls import CONTROLS, GIVEN
from treesyntax.trees.formats import FORMATS
from treesyntax.trees.linearizations import LINEARIZATIONS, get_linearization
from treesyntax.trees.subwords import POLICIES

Written = dict[tuple[str, str], Counts]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("dest", metavar="DEST", help="folder to write")
    for split in ("train", "valid", "test"):
        add(
            f"--{split}", nargs=2, metavar=("SOURCE", "TARGET"), required=split == "train",
            help="the two aligned files (.gz is unpacked)",
        )  # fmt: skip
    for role in ("source", "target"):
        _add_side_arguments(parser, role)
    add(
        "--pieces-style", choices=PIECES_STYLES, default=PIECES_STYLES[0],
        help="how given pieces mark words: ▁ begins one, or @@ continues it (%(default)s)",
    )  # fmt: skip
    add(
        "--subword-vocab", type=int, default=0, metavar="N",
        help="train a SentencePiece model of N pieces on the training split of each side",
    )  # fmt: skip
    add(
        "--subword-type", choices=MODEL_TYPES, default=MODEL_TYPES[0],
        help="kind of model to train (%(default)s)",
    )  # fmt: skip
    add(
        "--subword-units", choices=SUBWORD_UNITS, default=SUBWORD_UNITS[0],
        help="with the raw text of trees, segment every parser token on its own, or the line as a "
        "whole, which merges tokens that share a piece (%(default)s)",
    )  # fmt: skip
    add("--joined-subwords", action="store_true", help="train one model for both sides")
    add(
        "--subword-policy", choices=tuple(POLICIES), default="siblings",
        help="pieces become nodes, as siblings or below each other (chain), or all of them, the "
        "first or the last stand on the word's node (%(default)s)",
    )  # fmt: skip
    add(
        "--control-seed", type=int, default=0, metavar="N",
        help="seed of random control trees, which depend on it and the words only (%(default)s)",
    )  # fmt: skip
    add("--joined-dictionary", action="store_true", help="one dictionary for both sides")
    add(
        "--workers", type=int, default=_cores(), metavar="N",
        help="processes; the output does not depend on it (all cores: %(default)s)",
    )  # fmt: skip
    add("--overwrite", action="store_true", help="replace a DEST written by this command before")


def _cores() -> int:
    # Jobs on a cluster may have fewer than the machine; not every system can tell.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _add_side_arguments(parser: argparse.ArgumentParser, role: str) -> None:
    group = parser.add_argument_group(f"{role} side")

    def add(*names: str, **kwargs: object) -> None:
        group.add_argument(*(f"--{role}-{name}" for name in names), **kwargs)  # type: ignore[arg-type]

    add("lang", required=True, metavar="LANG", help="name in the names of the files, such as en")
    add(
        "format", default=TEXT, metavar="FORMAT",
        help=f"notation of the files: {', '.join((TEXT, *FORMATS))} (%(default)s)",
    )  # fmt: skip
    add(
        "linearization", "view", metavar="NAME",
        help=f"what the model reads of a tree: {', '.join(LINEARIZATIONS)} (default: words for text "
        "and conllu, else preorder)",
    )  # fmt: skip
    add(
        "control", default=GIVEN, metavar="NAME",
        help="put a tree without syntax over the same words in place of that of the file: "
        f"{', '.join(CONTROLS)} (%(default)s, the tree of the file)",
    )  # fmt: skip
    add(
        "text", nargs="*", metavar="FILE",
        help="raw text that the trees of train, valid, test were made of: pieces are attached to "
        "words by their places in it (see above); no FILE: the comments '# text =' of CoNLL-U",
    )  # fmt: skip
    add("pieces", nargs="+", metavar="FILE", help="segmented text of train, valid, test")
    add("subword-model", metavar="FILE", help="SentencePiece model to segment the words with")
    add("threshold", type=int, default=0, metavar="N", help="drop tokens that are rarer")
    add("vocab-size", type=int, default=0, metavar="N", help="keep the N most frequent symbols")
    add("dict", metavar="FILE", help="dictionary to use instead of counting one")


def run(args: argparse.Namespace) -> int:
    """Run ``treesyntax binarize``.

    Raises:
        OptionError: if options do not fit together.
        InputError: with file and line, for a fault of the input; nothing is left behind.
    """
    begin = time.perf_counter()
    plan = make_plan(args)
    sentences = survey(plan)
    with atomic_folder(plan.dest) as folder:
        with worker_pool(plan.workers) as batch_map:
            plan = prepare_models(plan, batch_map, folder)
            with _progress(2 * sum(sentences.values())) as advance:
                spools, symbols = _encode(plan, sentences, batch_map, folder, advance)
        dictionaries = _make_dictionaries(plan, symbols, folder)
        written: Written = {}
        for (role, split), spool in spools.items():
            side = plan.source if role == "source" else plan.target
            written[split, side.language] = write_side(
                plan, side, split, spool, symbols[role], dictionaries[role], folder
            )
        sizes = {side.language: len(dictionaries[side.role]) for side in plan.sides}
        write_manifest(folder, args, plan, written, sizes)
    print(summarise(plan, written, sizes, time.perf_counter() - begin))
    return 0


def _encode(
    plan: BinarizeOptions,
    sentences: dict[str, int],
    batch_map: BatchMap,
    folder: Path,
    advance: Callable[[int], None],
) -> tuple[dict[tuple[str, str], Spool], dict[str, Symbols]]:
    shared = Symbols()
    symbols = {side.role: shared if plan.joined_dictionary else Symbols() for side in plan.sides}
    spools = {}
    for split in plan.source.files:
        for side in plan.sides:
            spool = spools[side.role, split] = Spool(folder)
            missing = sentences[split]
            for batch in batch_map(encode_batch, side.encoding, batches(side, split)):
                spool.append(symbols[side.role].add(batch, counted=split == "train"), batch)
                advance(len(batch.token_counts))
                missing -= len(batch.token_counts)
            if missing:
                raise changed(side.files[split])
    return spools, symbols


def _make_dictionaries(
    plan: BinarizeOptions, symbols: dict[str, Symbols], folder: Path
) -> dict[str, Dictionary]:
    annotated = {get_linearization(side.encoding.linearization).slots for side in plan.sides}
    if plan.joined_dictionary and len(annotated) > 1:
        raise OptionError(
            "--joined-dictionary: only one side has tokens that say their slots; give both sides "
            "such a linearization (as nary_dfs) or each its own dictionary"
        )

    def make(side: SideOptions) -> Dictionary:
        unknown_of = (
            unknown_symbol if get_linearization(side.encoding.linearization).slots else one_unknown
        )
        given = side.dictionary
        if plan.joined_dictionary:
            given = plan.source.dictionary or plan.target.dictionary
        if given:
            return Dictionary.read(given, unknown_of)
        counts = symbols[side.role].trained_counts()
        return Dictionary.build(counts, side.threshold, side.vocab_size, unknown_of)

    dictionaries = {side.role: make(side) for side in plan.sides}
    for side in plan.sides:
        dictionaries[side.role].write(folder / f"dict.{side.language}.txt")
    return dictionaries


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda count: None
        return
    # Without a thread of its own, as worker processes may be forked while it is shown.
    with Progress(console=console, auto_refresh=False) as progress:
        task = progress.add_task("sentences", total=total)
        yield lambda count: progress.update(task, advance=count, refresh=True)
