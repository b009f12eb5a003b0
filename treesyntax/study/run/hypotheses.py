"""Write the output of fairseq-generate in the order of the test set, one hypothesis a line.

Where the target is a linearization of trees (binarize --target-linearization bracketed, nary_dfs, …),
--linearization and --notation turn its tokens back into the text of the tree. Tokens that are no
tree become "(", which no format parses. With --bytes, bytes such as <0xE2>, which a subword model
with byte fallback writes and fairseq leaves, become characters.

Example: python -m treesyntax.study.run.hypotheses generate-test.txt hypotheses.txt --reference test.tgt
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from treesyntax.errors import InputError, OptionError, TreeSyntaxError
from treesyntax.files import count_lines, read_lines, write_lines
from treesyntax.trees.copies import with_words
from treesyntax.trees.formats import get_format
from treesyntax.trees.linearizations import LINEARIZATIONS, TreeText

PREFIX = "D-"
SHOWN = 5
_NUMBER = re.compile("[0-9]{1,9}")
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def read_hypotheses(path: str | Path, size: int) -> list[str]:
    """The hypotheses of a test set, best one a sentence, in the order of the test set.

    Args:
        path: ``generate-SUBSET.txt``, in which ``D-NUMBER<tab>score<tab>text`` lines come in
            the order of fairseq's batches.
        size: number of sentences in the test set.
    """
    hypotheses: dict[int, str] = {}
    for line, text in enumerate(read_lines(path), start=1):
        if not text.startswith(PREFIX):
            continue
        fields = text.removeprefix(PREFIX).split("\t", 2)
        if len(fields) != 3 or not _NUMBER.fullmatch(fields[0]):
            raise InputError(path, line, "is not D-NUMBER, score and text", "generate again")
        number = int(fields[0])
        if number in hypotheses or number >= size:
            cause = "comes twice" if number in hypotheses else f"is not in a test set of {size}"
            raise InputError(path, line, f"sentence {number} {cause}", "generate again")
        hypotheses[number] = fields[2]
    missing = [number for number in range(size) if number not in hypotheses]
    if missing:
        shown = ", ".join(map(str, missing[:SHOWN])) + (", …" if len(missing) > SHOWN else "")
        raise InputError(
            path,
            None,
            f"{len(missing)} of {size} sentences have no hypothesis (number {shown})",
            "they are too long for the model, or generation was cut off",
        )
    return [hypotheses[number] for number in range(size)]


def with_characters(line: str) -> str:
    """A line with each run of bytes such as ``<0xC3><0xA4>`` as the characters that it spells."""
    return _BYTES.sub(lambda run: _decoded(run[0]), line)


def _decoded(run: str) -> str:
    # As SentencePiece decodes; a line end must not shift the output against the references.
    raw = bytes.fromhex(run.replace("<0x", "").replace(">", ""))
    return raw.decode(errors="replace").replace("\n", " ").replace("\r", " ")


def main(argv: Sequence[str] | None = None) -> int:
    """Collect the hypotheses of one test set; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("generated", help="generate-test.txt of fairseq-generate")
    parser.add_argument("out", help="file to write")
    parser.add_argument("--reference", required=True, help="the test set, for its size")
    parser.add_argument(
        "--linearization", choices=LINEARIZATIONS, help="linearization of the tokens"
    )
    parser.add_argument("--notation", metavar="FORMAT", help="the notation to write trees in")
    parser.add_argument("--shuffle-seed", type=int, metavar="N", help="the tokens are those of shuffled control trees with this --control-seed")  # fmt: skip
    parser.add_argument("--unknown", metavar="FILE", help="words that <unk_1>, <unk_2>, … stand for, a line a sentence; binarize --copy-unknown writes it")  # fmt: skip
    parser.add_argument("--bytes", action="store_true", help="make characters of <0xE2>")
    args = parser.parse_args(argv)
    try:
        hypotheses = read_hypotheses(args.generated, count_lines(args.reference))
        if args.unknown:
            words = [line.split() for line in read_lines(args.unknown)]
            pairs = zip(hypotheses, words, strict=True)
            hypotheses = [
                " ".join(with_words(line.split(" "), line_words, args.linearization or ""))
                for line, line_words in pairs
            ]
        if args.bytes:
            hypotheses = [with_characters(line) for line in hypotheses]
        if (args.linearization is None) != (args.notation is None):
            raise OptionError("--linearization and --notation need each other")
        if args.linearization is not None:
            get_format(args.notation)  # or refuse, whatever the hypotheses are
            form = TreeText(args.linearization, args.notation, args.shuffle_seed)
            hypotheses = [form.text(line) for line in hypotheses]
        write_lines(args.out, hypotheses)
    except TreeSyntaxError as error:
        print(f"hypotheses: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
