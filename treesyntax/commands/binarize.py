"""Turn aligned text and tree files into fairseq data, with the trees beside the tokens.

Writes to DEST what fairseq-preprocess writes (dict.LANG.txt, SPLIT.SRC-TGT.LANG.bin and .idx),
SPLIT.SRC-TGT.LANG.tree for every side that has trees, the subword models used as
subwords.LANG.model, and binarize.json with all options and counts. DEST appears whole or not at
all. A side of format "text" has one sentence a line, its tokens separated by white space.

The linearization decides what the model reads:

  words             the sentence
  preorder          the labels of all nodes from the root down
  breadth_first     the same, level by level
  bracketed         in preorder, with closing brackets
  bracketed_twice   with each closing bracket twice, for transformer_grammar
  nary_dfs, nary_bfs, lcrs_dfs, lcrs_bfs   targets that a decoder grows as trees

Subwords come from a given SentencePiece model, from one trained here (--subword-vocab), or from text
segmented elsewhere (--source-subwords). To see whether syntax helps or any tree does, compare with
control trees (--source-control).

With --source-text subwords are attached to words by character spans in the raw text. Spans are those
that treesyntax parse writes: start_char and end_char in MISC, or the file NAME.offsets beside
brackets. Without them CoNLL-U is read FORM after FORM, and without --source-text every word is
segmented by its form.

Every parser token is segmented with the white space before it. So the subwords spell the line whatever
the tree, and no subword crosses a token. The words of a multi-word token (French du = de + le) become
one.

Where the line is segmented as a whole (--subword-units line), or was elsewhere, tokens that share
a subword become one, and tokens without a subword are removed.

Example, gold dependency trees on the source side, 4,000 subwords on each side:

  treesyntax binarize data-bin/en-sv --source-lang en --target-lang sv \\
      --train train.conllu train.sv --valid valid.conllu valid.sv --test test.conllu test.sv \\
      --source-format conllu --subword-vocab 4000
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from treesyntax.data.binarize.options import add_arguments as add_arguments
from treesyntax.data.binarize.options import idle_options, read_options
from treesyntax.files import atomic_folder
from treesyntax.jobs.terminal import console_of, loudness


def run(args: argparse.Namespace) -> int:
    """Run ``treesyntax binarize``.

    Raises:
        OptionError: if options do not fit together.
        InputError: with file and line, for a fault of the input; nothing is left behind.
    """
    # --help needs none of these, which take a second to load.
    from treesyntax.data.binarize.models import prepare_models
    from treesyntax.data.binarize.read import survey, worker_pool
    from treesyntax.data.binarize.summary import summarise, write_manifest
    from treesyntax.data.binarize.write import encode_sides, write_sides

    begin = time.perf_counter()
    options = read_options(args)
    for sentence in idle_options(args, options):
        print(sentence, file=sys.stderr)
    sentences = survey(options)
    with atomic_folder(options.dest, new=not args.overwrite) as folder:
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
    from rich.progress import Progress

    console = console_of(stderr=True)
    if not console.is_terminal or loudness().quiet:
        yield lambda count: None
        return
    # Without a thread of its own, as worker processes may be forked while it is shown.
    with Progress(console=console, auto_refresh=False) as progress:
        task = progress.add_task("sentences", total=total)
        yield lambda count: progress.update(task, advance=count, refresh=True)
