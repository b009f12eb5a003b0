"""Turn aligned text and tree files into fairseq data, with the trees beside the tokens.

Writes to DEST what fairseq-preprocess writes (dict.LANG.txt, SPLIT.SRC-TGT.LANG.bin and .idx),
SPLIT.SRC-TGT.LANG.tree for every side that has trees, the subword models used as
subwords.LANG.model, and binarize.json with all options and counts. DEST appears whole or not at
all. A side of format "text" has one sentence a line, its tokens separated by white space.

The linearization decides what the model reads: "words" the sentence, "preorder" the labels of all
nodes from the root down, "breadth_first" level by level, "bracketed" in preorder with closing
brackets, "bracketed_twice" with each of these twice, for transformer_grammar; for targets that a decoder grows as trees, "nary_dfs", "nary_bfs", "lcrs_dfs" and
"lcrs_bfs". Subwords come from a given SentencePiece model, from one trained here (--subword-vocab),
or from text segmented elsewhere (--source-subwords). To see whether syntax helps or any tree does,
compare with control trees (--source-control).

With --source-text subwords are attached to words by character spans in the raw text: start_char
and end_char in MISC or, without them, FORM after FORM in CoNLL-U, and the file NAME.offsets beside
brackets, all as treesyntax parse writes them. Every parser token is segmented with the white space
before it, so that the subwords spell the line whatever the tree, and no subword crosses a token.
The words of a multi-word token (French du = de + le) become one. Where the line is segmented as a
whole (--subword-units line), or was elsewhere (--source-subwords), tokens that share a subword
become one, tokens without a subword are removed. Without --source-text every word is segmented by
its form.

Example, gold dependency trees on the source side, 4,000 subwords on each side:

  treesyntax binarize data-bin/en-sv --source-lang en --target-lang sv \\
      --train train.conllu train.sv --valid valid.conllu valid.sv --test test.conllu test.sv \\
      --source-format conllu --subword-vocab 4000
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treesyntax.data.encoding import (
    MODEL_TYPES,
    NORMALIZATIONS,
    STANDARD,
    SUBWORD_UNITS,
    SUBWORDS_STYLES,
    TEXT,
)
from treesyntax.files import atomic_folder
from treesyntax.jobs import cores
from treesyntax.jobs.completion import suggest
from treesyntax.jobs.terminal import loudness
from treesyntax.trees.names import CONTROLS, FORMATS, GIVEN, LINEARIZATIONS, POLICIES, SHUFFLED

SAMPLE = 500_000


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
        "--subwords-style", "--pieces-style", dest="pieces_style", choices=SUBWORDS_STYLES,
        default=SUBWORDS_STYLES[0],
        help="how given subwords mark words: ▁ begins one, or @@ continues it (%(default)s)",
    )  # fmt: skip
    add(
        "--subword-vocab", type=int, default=0, metavar="N",
        help="train a SentencePiece model of N subwords on the training split of each side",
    )  # fmt: skip
    add(
        "--subword-type", choices=MODEL_TYPES, default=MODEL_TYPES[0],
        help="kind of model to train (%(default)s)",
    )  # fmt: skip
    add(
        "--subword-sample", type=int, default=SAMPLE, metavar="N",
        help="train each model on N lines of the training split drawn at random; 0: on all "
        f"({SAMPLE:,}: about 1 GiB of memory)",
    )  # fmt: skip
    add(
        "--subword-normalization", choices=NORMALIZATIONS, default=NORMALIZATIONS[0],
        help="how a model trained here spells text; what this changes (½ to 1⁄2) can never be "
        "output. identity changes nothing but white space (%(default)s)",
    )  # fmt: skip
    add(
        "--subword-coverage", type=float, default=STANDARD.coverage, metavar="P",
        help="share of the characters in the text that a model trained here knows; the rarest are "
        "left out; 1 for scripts of few characters (%(default)s)",
    )  # fmt: skip
    add(
        "--subword-byte-fallback", action="store_true",
        help="spell characters that a model trained here does not know as bytes, so that nothing is "
        "unknown; takes 256 of the subwords",
    )  # fmt: skip
    add(
        "--subword-units", choices=SUBWORD_UNITS, default=SUBWORD_UNITS[0],
        help="with the raw text of trees, segment every parser token on its own, or the line as a "
        "whole, which merges tokens that share a subword (%(default)s)",
    )  # fmt: skip
    add("--joined-subwords", action="store_true", help="train one model for both sides")
    add(
        "--subword-policy", choices=POLICIES, default="siblings",
        help="make every subword a node, as siblings or below each other (chain), or put all of "
        "them (copy), the first or the last on the word's node (%(default)s)",
    )  # fmt: skip
    add(
        "--control-seed", type=int, default=0, metavar="N",
        help="seed of random control trees, which depend on it and the words only (%(default)s)",
    )  # fmt: skip
    add("--joined-dictionary", action="store_true", help="one dictionary for both sides")
    add(
        "--copy-words", action="store_true",
        help="the target's dictionary also gets the words of the source's, as leaves where its tokens "
        "have slots: a model with --copy-source can then output words that no training target has",
    )  # fmt: skip
    add(
        "--copy-unknown", type=int, default=0, metavar="N",
        help="number the first N different unknown words of each source, <unk_1>, <unk_2>, …, so that "
        "a model with --copy-source can output them; train it with --copy-dropout (%(default)s)",
    )  # fmt: skip
    add(
        "--workers", type=int, default=cores(), metavar="N",
        help="processes; the output does not depend on it (all cores: %(default)s)",
    )  # fmt: skip
    add("--overwrite", action="store_true", help="replace a DEST written by this command before")


def _add_side_arguments(parser: argparse.ArgumentParser, role: str) -> None:
    group = parser.add_argument_group(f"{role} side")

    def add(*names: str, **kwargs: object) -> argparse.Action:
        return group.add_argument(*(f"--{role}-{name}" for name in names), **kwargs)  # type: ignore[arg-type]

    add("lang", required=True, metavar="LANG", help="name in the names of the files, such as en")
    notation = add(
        "format", default=TEXT, metavar="FORMAT",
        help=f"notation of the files: {', '.join((TEXT, *FORMATS))} (%(default)s)",
    )  # fmt: skip
    suggest(notation, lambda: (TEXT, *FORMATS))
    linearization = add(
        "linearization", "view", dest=f"{role}_view", metavar="NAME",
        help=f"what the model reads of a tree: {', '.join(LINEARIZATIONS)} (default: words for text "
        "and conllu, else preorder)",
    )  # fmt: skip
    suggest(linearization, lambda: LINEARIZATIONS)
    names = CONTROLS if role == "source" else (*CONTROLS, SHUFFLED)
    add(
        "control", default=GIVEN, metavar="NAME",
        help="put a tree without syntax in place of that of the file: "
        f"{', '.join(names)} (%(default)s, the tree of the file)",
    )  # fmt: skip
    add(
        "text", nargs="*", metavar="FILE",
        help="raw text that the trees of train, valid, test were made of: subwords are attached to "
        "words by character spans in it (see above); no FILE: the comments '# text =' of CoNLL-U",
    )  # fmt: skip
    add(
        "subwords", "pieces", dest=f"{role}_pieces", nargs="+", metavar="FILE",
        help="segmented text of train, valid, test",
    )  # fmt: skip
    add("subword-model", metavar="FILE", help="SentencePiece model to segment the words with")
    add("threshold", type=int, default=0, metavar="N", help="drop tokens that are rarer")
    add("vocab-size", type=int, default=0, metavar="N", help="keep the N most frequent symbols")
    add("dict", metavar="FILE", help="dictionary to use instead of counting one")
    if role == "target":
        return
    add(
        "labels", action="store_true",
        help="keep the labels of nodes (relations of dependency trees, else categories and symbols) "
        "for methods that read them, and write labels.LANG.txt",
    )  # fmt: skip
    add(
        "label-threshold", type=int, default=2, metavar="N",
        help="labels that are rarer in the training data are unknown (%(default)s)",
    )  # fmt: skip
    add("label-dict", metavar="FILE", help="labels.LANG.txt to use instead of counting one")


def run(args: argparse.Namespace) -> int:
    """Run ``treesyntax binarize``.

    Raises:
        OptionError: if options do not fit together.
        InputError: with file and line, for a fault of the input; nothing is left behind.
    """
    # --help needs none of these, which take a second to load.
    from treesyntax.data.binarize.models import prepare_models
    from treesyntax.data.binarize.options import read_options
    from treesyntax.data.binarize.read import survey, worker_pool
    from treesyntax.data.binarize.summary import summarise, write_manifest
    from treesyntax.data.binarize.write import encode_sides, write_sides

    begin = time.perf_counter()
    options = read_options(args)
    sentences = survey(options)
    with atomic_folder(options.dest) as folder:
        with worker_pool(options.workers) as batch_map:
            options = prepare_models(options, sentences["train"], batch_map, folder, print)
            with _progress(2 * sum(sentences.values())) as advance:
                spools, symbols = encode_sides(options, sentences, batch_map, folder, advance)
        written, sizes = write_sides(options, spools, symbols, folder)
        write_manifest(folder, args, options, written, sizes)
    print(summarise(options, written, sizes, time.perf_counter() - begin))
    return 0


@contextmanager
def _progress(total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal or loudness().quiet:
        yield lambda count: None
        return
    # Without a thread of its own, as worker processes may be forked while it is shown.
    with Progress(console=console, auto_refresh=False) as progress:
        task = progress.add_task("sentences", total=total)
        yield lambda count: progress.update(task, advance=count, refresh=True)
