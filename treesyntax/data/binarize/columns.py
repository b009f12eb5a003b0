"""All usual sentences of a batch at once, in arrays; `binarize_sentence` does all others.

A sentence is usual if its record can be read in columns, its words stand in its text from left to
right and every word has pieces. Both ways give the very same integers.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from treesyntax.data.binarize import constituents as binarize_constituents
from treesyntax.data.binarize import dependencies as binarize_dependencies
from treesyntax.data.binarize.batch import CONLLU, Batch, EncodedBatch, Encoding, segmenter_of
from treesyntax.data.binarize.columnar_views import SHOWN, encoded
from treesyntax.data.binarize.forest import Bools, Ints
from treesyntax.data.binarize.lexicon import Lexicon
from treesyntax.data.binarize.raw_text import TOKEN_UNITS
from treesyntax.data.sentencepiece import Segmenter
from treesyntax.trees.controls import GIVEN
from treesyntax.trees.subwords import POLICIES

FEWEST = 16
"""Records from which on arrays are faster."""
READERS = {CONLLU: binarize_dependencies.grown, "ptb": binarize_constituents.grown}


def encode_usual(encoding: Encoding, batch: Batch) -> tuple[EncodedBatch, Ints, Bools] | None:
    """The sentences that can be read in columns.

    Returns:
        the sentences, the number of each in the batch, and which of them were usual to the end;
        None where nothing can be read so.
    """
    segmenter = segmenter_of(encoding)
    if not _can(encoding, batch, segmenter):
        return None
    lexicon = _lexicon(encoding.model, bool(encoding.units))
    if lexicon.is_full:
        lexicon.forget()
    grown, numbers, kept = READERS[encoding.format_name](encoding, batch, lexicon)
    return encoded(encoding.linearization, grown, lexicon), numbers, kept


def _can(encoding: Encoding, batch: Batch, segmenter: Segmenter | None) -> bool:
    return (
        len(batch.records.texts) >= FEWEST
        and encoding.format_name in READERS
        and encoding.linearization in SHOWN
        and encoding.policy in POLICIES
        and encoding.control == GIVEN
        and batch.pieces is None
        and (not encoding.units or _can_be_cut(encoding, batch))
        and (segmenter is None or segmenter.begins_with_space)
    )


def _can_be_cut(encoding: Encoding, batch: Batch) -> bool:
    beside = batch.text is not None and batch.offsets is not None
    return (
        encoding.units == TOKEN_UNITS
        and batch.spans is None
        and (encoding.format_name == CONLLU or beside)
    )


@lru_cache(maxsize=4)
def _lexicon(model: Path | None, placed: bool) -> Lexicon:
    return Lexicon(segmenter_of(Encoding("", "", "", "", model)), placed)
