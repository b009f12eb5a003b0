"""SentencePiece (Kudo & Richardson 2018): training a subword model and segmenting with it.

In a tree every word is segmented on its own, so that no subword crosses two words. SentencePiece
never joins across white space either, so a line of text gives the same subwords as its words. (All
white space becomes a space first: the library's normalisation leaves U+0085 as it is, or more, by
model, and a subword with white space in it would be two tokens to every reader of text.) Where
words are parts of a raw line, they are cut out of it with their white space, so that the subwords
spell the line.

Models of other kinds are told by what they do: white space behind words (treat_whitespace_as_suffix), none
before the first word (add_dummy_prefix=false), subwords across words (split_by_whitespace=false), spaces as
they are (escape_whitespaces=false). What would be segmented wrongly is refused.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import sentencepiece

from treesyntax.data.encoding import LINE_UNITS, MODEL_TYPES, STANDARD, Training
from treesyntax.errors import InputError, OptionError
from treesyntax.files import atomic_file

LONGEST_LINE = 1 << 24
CACHED_WORDS = 1 << 18
SPACE = "▁"
OTHER_SPACE = re.compile(r"[^\S ]")
# Fields of NormalizerSpec in sentencepiece_model.proto, as they stand in a file.
NO_PREFIX = b"\x18\x00"  # add_dummy_prefix = false
KEEP_SPACES = b"\x20\x00"  # remove_extra_whitespaces = false
PLAIN_SPACES = b"\x28\x00"  # escape_whitespaces = false
IDENTITY = b"\x12\x00"  # precompiled_charsmap = ""
# The library's own limits are only in the text of its errors.
TOO_LARGE = re.compile(r"Vocabulary size too high .* <= (\d+)")
TOO_SMALL = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")


def train_model(
    lines: Iterable[str],
    vocab_size: int,
    model_type: str,
    path: str | Path,
    origin: str | Path,
    training: Training = STANDARD,
) -> None:
    """Train a SentencePiece model; the same lines always give the same file.

    Args:
        lines: training text, words separated by white space.
        vocab_size: number of subwords, ``<unk> <s> </s>`` included.
        model_type: ``unigram`` or ``bpe``.
        path: the model file, written whole or not at all.
        origin: file to name in errors, where the lines come from.
        training: normalization, coverage, and whether rare characters become bytes.

    Raises:
        OptionError: if there is no such model type.
        InputError: if the vocabulary is too large or too small for the text (the message has
            the limit), if there is no text, or as raised by ``lines``.
    """
    if model_type not in MODEL_TYPES:
        raise OptionError(
            f"no subword type is named {model_type!r}; there are {', '.join(MODEL_TYPES)}"
        )
    model = _trained(lines, vocab_size, model_type, origin, training)
    with atomic_file(path) as staged:
        staged.write_bytes(model)


def fitting_size(lines: Sequence[str], wanted: int, origin: str | Path) -> int:
    """Return the size of a subword vocabulary that a model of these lines can have.

    Args:
        lines: training text, or the first lines of it, which give a smaller size.
        wanted: the size if it can be had.
        origin: where the lines come from.

    Raises:
        InputError: if there is no text.
    """
    size = wanted
    for _ in range(3):
        try:
            _trained(lines, size, MODEL_TYPES[0], origin, STANDARD)
            break
        except VocabularyError as error:
            # The words of a parser are not quite those between spaces.
            size = error.limit * 9 // 10 if error.limit < size else error.limit * 11 // 10
    return size


class VocabularyError(InputError):
    """A subword vocabulary of a size that the text does not allow; ``limit`` is the nearest that it does."""

    limit = 0


def _trained(
    lines: Iterable[str], vocab_size: int, model_type: str, origin: str | Path, training: Training
) -> bytes:
    model = io.BytesIO()
    guarded = _Guarded(map(_with_spaces, lines))
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(guarded),
            model_writer=model,
            vocab_size=vocab_size,
            model_type=model_type,
            normalization_rule_name=training.normalization,
            character_coverage=training.coverage,
            byte_fallback=training.byte_fallback,
            max_sentence_length=LONGEST_LINE,
            num_threads=1,  # with more, sums of floats depend on the schedule
            minloglevel=2,
        )
    except (RuntimeError, OSError, ValueError) as error:
        guarded.reraise()
        raise _explain(str(error), vocab_size, origin) from None
    guarded.reraise()
    return model.getvalue()


def _with_spaces(text: str) -> str:
    return OTHER_SPACE.sub(" ", text)


def _all_with_spaces(texts: Sequence[str]) -> Sequence[str]:
    return list(map(_with_spaces, texts)) if OTHER_SPACE.search("".join(texts)) else texts


class _Guarded:
    """Keeps an error of the lines, which the library would swallow or rename."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = lines
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            yield from self.lines
        except Exception as error:
            self.error = error

    def reraise(self) -> None:
        if self.error is not None:
            raise self.error


def _explain(message: str, vocab_size: int, origin: str | Path) -> InputError:
    for pattern, cause, which in (
        (TOO_LARGE, "the text has too few different subwords for", "largest"),
        (TOO_SMALL, "the characters alone do not fit into", "smallest"),
    ):
        if limit := pattern.search(message):
            cause = f"{cause} a subword vocabulary of {vocab_size}"
            remedy = f"the {which} possible one is --subword-vocab {limit[1]}"
            error = VocabularyError(origin, None, cause, remedy)
            error.limit = int(limit[1])
            return error
    if "!sentences_.empty()" in message:
        return InputError(origin, None, "has no words to train a subword model on")
    return InputError(origin, None, f"no subword model could be trained ({message.strip()})")


class Segmenter:
    """A trained model.

    Attributes:
        path: its file.
        begins_with_space: whether ``▁`` stands before the first word of a line.
        ends_with_space: whether ``▁`` stands behind words, not before them.

    Raises:
        InputError: if the model cannot be read, or its subwords hold spaces.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            model = Path(path).read_bytes()
        except OSError as error:
            raise InputError(
                path, None, f"cannot be read ({error.strerror})", "check the name and permissions"
            ) from None
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(model)
        except RuntimeError:
            other = model[:1] == b"{" and b'"model"' in model
            cause = "is not a SentencePiece model" + ", but one of tokenizers" * other
            raise InputError(path, None, cause, "give a .model file") from None
        self.path, self._model = Path(path), model
        normal = self._processor.normalize("a a")
        if " " in normal:
            cause = "has spaces in its subwords (escape_whitespaces=false), where tokens have none"
            raise InputError(path, None, cause, "train it with escape_whitespaces=true")
        self.begins_with_space = normal.startswith(SPACE)
        self.ends_with_space = normal.endswith(SPACE)
        self._subwords_of_word = lru_cache(CACHED_WORDS)(self.line)
        self._subwords_of_part = lru_cache(CACHED_WORDS)(self._segment)

    def line(self, text: str) -> list[str]:
        """The subwords of a line of text."""
        return self._processor.encode(_with_spaces(text), out_type=str)

    def lines(self, texts: list[str]) -> list[list[str]]:
        """The subwords of each line of text."""
        return self._processor.encode(_all_with_spaces(texts), out_type=str, num_threads=1)

    def words(self, words: Sequence[str]) -> list[list[str]]:
        """The subwords of each word; a word that is only ignorable characters has none."""
        if self.begins_with_space or self.ends_with_space:
            return [self._subwords_of_word(word) for word in words]
        return self.segments([f" {word}" if index else word for index, word in enumerate(words)])

    def text(self, subwords: Sequence[str]) -> str:
        """The text that subwords spell."""
        # The library leaves the ▁ of unknown subwords; a lone one at the end would leave a space.
        return str(self._processor.decode(list(subwords))).replace(SPACE, " ").strip()

    @cached_property
    def piece_across_words(self) -> str:
        """The first subword that has parts of two words, empty if none has."""
        pieces = map(self._processor.id_to_piece, range(self._processor.get_piece_size()))
        return next((piece for piece in pieces if SPACE in piece.strip(SPACE)), "")

    @cached_property
    def suffixes_unseen(self) -> bool:
        """Whether white space stands behind words, but not behind the last of a line.

        So it is with treat_whitespace_as_suffix and add_dummy_prefix=false: a word alone has no white space.
        """
        pieces = map(self._processor.id_to_piece, range(self._processor.get_piece_size()))
        return not self.ends_with_space and any(
            piece.endswith(SPACE) and piece.strip(SPACE) for piece in pieces
        )

    def check_trees(self, units: str) -> None:
        """Refuse a model that cannot segment the words of trees as it segments text.

        Args:
            units: what is segmented, see `treesyntax.data.encoding.Encoding`.

        Raises:
            InputError: for such a model.
        """
        if units == LINE_UNITS:
            return
        if piece := self.piece_across_words:
            raise InputError(
                self.path, None, f"has subwords across words, such as {piece[:40]!r}, and a node of a tree is "
                "a word",
                "segment the raw text, with --source-text --subword-units line, or train it with "
                "split_by_whitespace=true and without such symbols",
            )  # fmt: skip
        if self.suffixes_unseen:
            raise InputError(
                self.path, None, "puts white space behind all words but the last (treat_whitespace_as_suffix, "
                "add_dummy_prefix=false), so a word alone is segmented otherwise",
                "segment the whole line, with --source-text --subword-units line, or train it with a "
                "dummy prefix",
            )  # fmt: skip
        if self.ends_with_space and units:
            raise InputError(
                self.path, None, "puts white space behind words (treat_whitespace_as_suffix), but words are "
                "cut out of a line with the white space before them",
                "segment the whole line, with --subword-units line, or train it without",
            )  # fmt: skip

    def segments(self, stretches: Sequence[str]) -> list[list[str]]:
        """The subwords of each stretch of a line that was cut; none crosses a cut.

        All subwords together decode to the line as the model normalises it: a stretch begins with
        ``▁`` where white space stands before it, and, as SentencePiece has it, at the start.
        """
        subwords = []
        space = self.begins_with_space
        if stretches and not space:
            stretches = [stretches[0].lstrip(), *stretches[1:]]
        for stretch in _all_with_spaces(stretches):
            spaced = " " + stretch if space and stretch[:1] != " " else stretch
            stretch_subwords, space = self._subwords_of_part(spaced)
            subwords.append(stretch_subwords)
        return subwords

    def _segment(self, text: str) -> tuple[list[str], bool]:
        """The subwords of a part, and whether white space is due before the next one."""
        normal = self._halves.normalizer.normalize(text)
        words = normal.split(" ")
        core = " ".join([word for word in words if word])
        if not core:
            return [], len(words) > 1
        core = " " + core if not words[0] else core
        return self._halves.encoder.encode(core, out_type=str), not words[-1]

    def normalised(self, text: str) -> tuple[str, list[int]]:
        """The line as the model spells it, and the place of each of its characters in ``text``.

        White space is one space; the last of the places is the end of the text.
        """
        return _spaced(self._processor.normalize(_with_spaces(text), with_offsets=True))

    @cached_property
    def _halves(self) -> _Halves:
        return _Halves(self._model)


class _Halves:
    """The two halves of a model: its normalisation, which leaves white space, and the rest.

    Apart, since a part of a line must neither lose white space before it nor get any, and since
    what is removed and what becomes white space is only known after normalisation.
    """

    def __init__(self, model: bytes) -> None:
        self.normalizer, self.encoder = (
            sentencepiece.SentencePieceProcessor(model_proto=model + _normalizer_spec(fields))
            for fields in (
                NO_PREFIX + KEEP_SPACES + PLAIN_SPACES,
                NO_PREFIX + KEEP_SPACES + IDENTITY,
            )
        )


def _normalizer_spec(fields: bytes) -> bytes:
    """Protocol buffers merge a message that comes twice, and the last of its fields counts."""
    return bytes((3 << 3 | 2, len(fields))) + fields


def standard_normalised(text: str) -> tuple[str, list[int]]:
    """As `Segmenter.normalised`, for a model with SentencePiece's own default, ``nmt_nfkc``."""
    return _spaced(_standard_normalizer().normalize(text, with_offsets=True))


@lru_cache
def _standard_normalizer() -> sentencepiece.SentencePieceNormalizer:
    return sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")


def _spaced(normal: tuple[str, list[int]]) -> tuple[str, list[int]]:
    return normal[0].replace(SPACE, " "), normal[1]
