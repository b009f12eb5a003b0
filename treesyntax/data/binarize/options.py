"""The options of ``treesyntax binarize``, checked before anything is read."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesyntax.data.binarize.checks import check_options
from treesyntax.data.encoding import (
    CONLLU,
    SPAN_FORMATS,
    TEXT,
    WORDS_LINEARIZATION,
    Encoding,
    Training,
)
from treesyntax.errors import OptionError, unknown_name
from treesyntax.files import check_path
from treesyntax.trees.formats.offsets import offsets_path
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.names import CONTROLS, FORMATS, GIVEN, LINEARIZATIONS, SHUFFLED

SPLITS = ("train", "valid", "test")
TREE_LINEARIZATION = "preorder"
# Their nodes are words, so their natural tokens are the sentence.
WORD_FORMATS = (TEXT, "conllu")
# fairseq takes languages from file names such as train.en-sv.en.idx.
LANGUAGE = re.compile(r"[^\s./\\-]+")


@dataclass(frozen=True)
class SideOptions:
    """One language: its files and what is done with them.

    Attributes:
        role: ``source`` or ``target``.
        language: part of the names of the files written.
        files: the input file of each split.
        subwords: text of each split segmented elsewhere, empty for none.
        text: raw text of each split, empty for none or where the trees' comments have it.
        encoding: how records become tokens; its model is None until it is trained.
        threshold: least count of a token in the dictionary.
        vocab_size: most symbols in the dictionary, 0 for all.
        dictionary: a dictionary to use instead of counting one.
        label_threshold: least count of a label in the dictionary of labels.
        label_dictionary: one to use instead of counting it.
        subword_remarks: what its subword model does to the first lines, as `Remarks.to_json` has it.
    """

    role: str
    language: str
    files: dict[str, Path]
    subwords: dict[str, Path]
    text: dict[str, Path]
    encoding: Encoding
    threshold: int
    vocab_size: int
    dictionary: Path | None
    label_threshold: int = 0
    label_dictionary: Path | None = None
    subword_remarks: tuple[dict[str, Any], ...] = ()

    @property
    def has_trees(self) -> bool:
        """Whether the input is trees, not text."""
        return self.encoding.format_name != TEXT

    @property
    def offsets(self) -> dict[str, Path]:
        """The file of offsets of each split, empty for none."""
        if not self.encoding.units or self.encoding.format_name == CONLLU:
            return {}
        return {split: offsets_path(path) for split, path in self.files.items()}

    @property
    def beside(self) -> list[dict[str, Path]]:
        """The files that are aligned with those of ``files``, by split."""
        return [self.subwords, self.text, self.offsets]

    @property
    def inputs(self) -> list[Path]:
        """All files to read but the model and the dictionary."""
        return [path for paths in (self.files, *self.beside) for path in paths.values()]

    @property
    def wants_model(self) -> bool:
        """Whether a subword model may be trained: nothing else segments its words."""
        return not self.subwords and self.encoding.model is None


@dataclass(frozen=True)
class BinarizeOptions:
    """All of one call.

    Attributes:
        subword_vocab: 0 where no subword model is to be trained.
        subword_sample: most lines that a subword model is trained on; 0 for all.
    """

    dest: Path
    source: SideOptions
    target: SideOptions
    subword_vocab: int
    subword_type: str
    subword_sample: int
    training: Training
    joined_subwords: bool
    joined_dictionary: bool
    copy_words: bool
    copy_unknown: int
    workers: int

    @property
    def sides(self) -> tuple[SideOptions, SideOptions]:
        """Source and target."""
        return self.source, self.target

    @property
    def pair(self) -> str:
        """The middle of fairseq's file names, ``en-sv``."""
        return f"{self.source.language}-{self.target.language}"


def read_options(args: argparse.Namespace) -> BinarizeOptions:
    """Check the options against each other."""
    check_path(args.dest, "DEST")
    source, target = (_side(args, index, role) for index, role in enumerate(("source", "target")))
    if source.language == target.language:
        raise OptionError(
            f"both sides are named {source.language!r}; give --target-lang another name"
        )
    options = BinarizeOptions(
        dest=Path(args.dest),
        source=source,
        target=target,
        subword_vocab=args.subword_vocab,
        subword_type=args.subword_type,
        subword_sample=args.subword_sample,
        training=Training(
            args.subword_normalization, args.subword_coverage, args.subword_byte_fallback
        ),
        joined_subwords=args.joined_subwords,
        joined_dictionary=args.joined_dictionary,
        copy_words=args.copy_words,
        copy_unknown=args.copy_unknown,
        workers=args.workers,
    )
    check_options(args, options)
    return options


def _side(args: argparse.Namespace, index: int, role: str) -> SideOptions:
    def option(name: str) -> object:
        return getattr(args, f"{role}_{name}")

    language, format_name = str(option("lang")), str(option("format"))
    if not LANGUAGE.fullmatch(language):
        raise OptionError(
            f"--{role}-lang {language!r}: a name without white space, dots, slashes and hyphens "
            "is needed, fairseq takes it from file names"
        )
    if format_name not in (TEXT, *FORMATS):
        raise unknown_name("format", format_name, (TEXT, *FORMATS), f"--{role}-format:")
    labels, label_dict = getattr(args, f"{role}_labels", False), None
    if labels and format_name == TEXT:
        raise _needs_trees(role, "labels")
    if labels:
        label_dict = option("label_dict")
        if args.source_label_threshold < 0:
            raise OptionError("--source-label-threshold must not be negative")
    splits = [split for split in SPLITS if getattr(args, split)]
    files = {split: Path(getattr(args, split)[index]) for split in splits}
    model, dictionary = option("subword_model"), option("dict")
    for name in ("threshold", "vocab_size"):
        if getattr(args, f"{role}_{name}") < 0:
            raise OptionError(f"--{role}-{name.replace('_', '-')} must not be negative")
    return SideOptions(
        role=role,
        language=language,
        files=files,
        subwords=_subwords(args, role, splits),
        text=_text(args, role, splits),
        encoding=Encoding(
            format_name=format_name,
            linearization=_linearization(role, format_name, getattr(args, f"{role}_view")),
            policy=args.subword_policy,
            subwords_style=args.pieces_style,
            model=Path(str(model)) if model else None,
            control=_control(args, role, str(option("control"))),
            control_seed=args.control_seed,
            units="" if option("text") is None else args.subword_units,
            labels=labels,
        ),
        threshold=getattr(args, f"{role}_threshold"),
        vocab_size=getattr(args, f"{role}_vocab_size"),
        dictionary=Path(str(dictionary)) if dictionary else None,
        label_threshold=getattr(args, f"{role}_label_threshold", 0),
        label_dictionary=Path(str(label_dict)) if label_dict else None,
    )


def _linearization(role: str, format_name: str, linearization: str | None) -> str:
    usual = WORDS_LINEARIZATION if format_name in WORD_FORMATS else TREE_LINEARIZATION
    name = usual if linearization is None else linearization
    if name not in LINEARIZATIONS:
        raise unknown_name("linearization", name, LINEARIZATIONS, f"--{role}-linearization:")
    if format_name == TEXT and name != WORDS_LINEARIZATION:
        raise _needs_trees(role, f"linearization {name}")
    if (
        role == "target"
        and format_name not in WORD_FORMATS
        and get_linearization(name).tree is None
    ):
        said = "" if linearization else " (where none is named)"
        raise OptionError(
            f"--target-linearization {name}{said} loses the tree: no {format_name} can be made of outputs "
            f"again; take --target-format {TEXT} for the tokens as the file has them, or "
            "--target-linearization nary_dfs for trees"
        )
    return name


def _control(args: argparse.Namespace, role: str, control: str) -> str:
    names = (*CONTROLS, SHUFFLED)
    if control not in names:
        raise unknown_name("control tree", control, names, f"--{role}-control:")
    format_name = str(getattr(args, f"{role}_format"))
    if format_name == TEXT and control != GIVEN:
        raise _needs_trees(role, f"control {control}")
    if role == "source" and control == SHUFFLED:
        raise OptionError(
            f"--source-control {SHUFFLED} is for targets, whose text it keeps; for sources choose "
            f"{', '.join(CONTROLS)}"
        )
    view = _linearization(role, format_name, getattr(args, f"{role}_view"))
    if role == "target" and control != GIVEN and get_linearization(view).tree is not None:
        if control != SHUFFLED:
            raise OptionError(
                f"--target-control {control} makes trees that do not print the target's text; for "
                f"targets in the linearization {view} choose {SHUFFLED}"
            )
    elif control == SHUFFLED:
        raise OptionError(
            f"--target-control {SHUFFLED} is for targets whose tokens determine the tree, and those "
            f"of the linearization {view} do not; choose another --target-linearization, such as "
            "nary_dfs"
        )
    return control


def _needs_trees(role: str, option: str) -> OptionError:
    return OptionError(
        f"--{role}-{option} needs trees, but --{role}-format is text; name the format of the "
        "tree files"
    )


def _subwords(args: argparse.Namespace, role: str, splits: list[str]) -> dict[str, Path]:
    paths = getattr(args, f"{role}_pieces") or []
    if not paths:
        return {}
    if getattr(args, f"{role}_format") == TEXT:
        raise OptionError(
            f"--{role}-subwords belong to trees, but --{role}-format is text; give the segmented "
            "text as the text itself"
        )
    if getattr(args, f"{role}_subword_model"):
        raise OptionError(f"--{role}-subwords and --{role}-subword-model exclude each other")
    return _of_splits(f"--{role}-subwords", paths, splits)


def _text(args: argparse.Namespace, role: str, splits: list[str]) -> dict[str, Path]:
    paths, format_name = getattr(args, f"{role}_text"), getattr(args, f"{role}_format")
    if paths is None:
        return {}
    if format_name not in SPAN_FORMATS:
        raise OptionError(
            f"--{role}-text: the character spans of words are kept with trees of the formats "
            f"{', '.join(SPAN_FORMATS)}, but --{role}-format is {format_name}"
        )
    if not paths and format_name != CONLLU:
        raise OptionError(f"--{role}-text: {format_name} has no comments with the text; name files")
    return _of_splits(f"--{role}-text", paths, splits) if paths else {}


def _of_splits(name: str, paths: list[str], splits: list[str]) -> dict[str, Path]:
    if len(paths) != len(splits):
        raise OptionError(
            f"{name} has {len(paths)} files for {len(splits)} splits "
            f"({', '.join(splits)}); give one each"
        )
    return dict(zip(splits, map(Path, paths), strict=True))
