"""The options of ``treesyntax binarize``: declared, read and checked against each other before anything else is read.

``--help`` needs no numpy, which the formats of trees load.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from treesyntax.data.encoding import (
    CONLLU,
    LINE_UNITS,
    MANIFEST,
    MODEL_TYPES,
    NORMALIZATIONS,
    SPAN_FORMATS,
    STANDARD,
    SUBWORD_UNITS,
    SUBWORDS_STYLES,
    TEXT,
    WORD_FORMATS,
    WORDS_LINEARIZATION,
    Encoding,
    Training,
    usual_linearization,
)
from treesyntax.errors import InputError, OptionError, unknown_name
from treesyntax.files import check_path
from treesyntax.jobs import cores
from treesyntax.jobs.completion import suggest
from treesyntax.jobs.flags import Fault, fault_of, find_fault
from treesyntax.made.reuse import is_taken
from treesyntax.trees.names import CONTROLS, FORMATS, GIVEN, LINEARIZATIONS, POLICIES, SHUFFLED

SPLITS = ("train", "valid", "test")
FILE = "FILE"
"""What stands for the value of an option that names a file, see `file_flags`."""
# fairseq takes languages from file names such as train.en-sv.en.idx.
LANGUAGE = re.compile(r"[^\s./\\-]+")
DRAWN = ("random", SHUFFLED)
"""The control trees that depend on a seed."""
SAMPLE = 500_000
"""Lines that a subword model is trained on."""
WRITTEN = re.compile(
    rf"{re.escape(MANIFEST)}|(dict|labels)\..+\.txt|subwords\..+\.model"
    r"|(train|valid|test)[0-9]*\..+\.(bin|idx|tree|unknown)"
)
"""The files of binarized data by name."""


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
        "text", nargs="*", metavar=FILE,
        help="raw text that the trees of train, valid, test were made of: subwords are attached to "
        "words by character spans in it (see above). Without FILE it is the comments '# text =' of CoNLL-U",
    )  # fmt: skip
    add(
        "subwords", "pieces", dest=f"{role}_pieces", nargs="+", metavar=FILE,
        help="segmented text of train, valid, test",
    )  # fmt: skip
    add("subword-model", metavar=FILE, help="SentencePiece model to segment the words with")
    add("threshold", type=int, default=0, metavar="N", help="drop tokens that are rarer")
    add("vocab-size", type=int, default=0, metavar="N", help="keep the N most frequent symbols")
    add("dict", metavar=FILE, help="dictionary to use instead of counting one")
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
    add("label-dict", metavar=FILE, help="labels.LANG.txt to use instead of counting one")


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
        from treesyntax.trees.formats.offsets import offsets_path

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
    _check_options(args, options)
    return options


def idle_options(args: argparse.Namespace, options: BinarizeOptions) -> list[str]:
    """What options without an effect lack, a sentence each.

    They are not refused: a recipe gives them to all of its rows, and to some they mean nothing.
    """
    drawn = any(side.encoding.control in DRAWN for side in options.sides)
    segmented = any(side.subwords for side in options.sides)
    cut = any(
        side.has_trees and (side.subwords or side.encoding.model or options.subword_vocab)
        for side in options.sides
    )
    lacking = {
        "control-seed": (not drawn, f"trees that are {' or '.join(DRAWN)} (--source-control)"),
        "subword-policy": (not cut, "a side with trees and subwords"),
        "subwords-style": (not segmented, "subwords made elsewhere (--source-subwords)"),
        "source-label-threshold": (not args.source_labels, "--source-labels"),
        "source-label-dict": (not args.source_labels, "--source-labels"),
    }
    actions = {name: action for action in _parser()._actions for name in action.option_strings}
    idle = []
    for name, (is_idle, lacks) in lacking.items():
        action = actions[f"--{name}"]
        value = getattr(args, action.dest)
        if is_idle and value != action.default:
            idle.append(f"--{name} {value} does nothing without {lacks}")
    return idle


def option_fault(words: Sequence[str]) -> Fault | None:
    """The first fault of a command line of ``treesyntax binarize``, which is not run."""
    parser = _parser()
    args, fault = find_fault(parser, lambda: parser.parse_known_args(words), "treesyntax binarize")
    if args is None:
        return fault
    try:
        read_options(args)
    except OptionError as error:
        return fault_of(str(error))
    return None


@cache
def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser


def file_flags() -> set[str]:
    """The options of a side whose values are files, without dashes before."""
    files = (action for action in _parser()._actions if action.metavar == FILE)
    return {name.removeprefix("--") for action in files for name in action.option_strings}


def _side(args: argparse.Namespace, index: int, role: str) -> SideOptions:
    def option(name: str) -> object:
        return getattr(args, f"{role}_{name}")

    from treesyntax.trees import formats

    language, format_name = str(option("lang")), str(option("format"))
    if not LANGUAGE.fullmatch(language):
        raise OptionError(
            f"--{role}-lang {language!r}: a name without white space, dots, slashes and hyphens "
            "is needed, fairseq takes it from file names"
        )
    if format_name != TEXT and format_name not in formats.FORMATS:
        names = (TEXT, *formats.FORMATS)
        raise unknown_name("format", format_name, names, f"--{role}-format:")
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
    name = usual_linearization(format_name) if linearization is None else linearization
    if name not in LINEARIZATIONS:
        raise unknown_name("linearization", name, LINEARIZATIONS, f"--{role}-linearization:")
    if format_name == TEXT and name != WORDS_LINEARIZATION:
        raise _needs_trees(role, f"linearization {name}")
    is_sentence = format_name in WORD_FORMATS and name == WORDS_LINEARIZATION
    if role == "target" and not is_sentence and not _determines_text(format_name, name):
        said = "" if linearization else " (where none is named)"
        remedy = (
            f"--target-format {TEXT} with files of text, or --target-linearization {WORDS_LINEARIZATION}"
            if format_name in WORD_FORMATS
            else f"--target-format {TEXT} for the tokens as the file has them, or "
            "--target-linearization nary_dfs for trees"
        )
        raise OptionError(
            f"--target-linearization {name}{said} loses the tree: no {format_name} can be made of outputs "
            f"again; take {remedy}"
        )
    return name


def _determines_text(format_name: str, linearization: str) -> bool:
    from treesyntax.trees.linearizations import determines_text

    return determines_text(format_name, linearization)


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
    if role == "target" and control != GIVEN and _determines_text(format_name, view):
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


def _check_options(args: argparse.Namespace, options: BinarizeOptions) -> None:
    """Refuse what cannot be done.

    Args:
        args: as the user gave them.
        options: as read from these, each on its own.
    """
    _check_subwords(options)
    if args.subword_units == LINE_UNITS and not any(side.encoding.units for side in options.sides):
        raise OptionError(
            f"--subword-units {LINE_UNITS} needs raw text: give --source-text or --target-text"
        )
    for side in ("source", "target"):
        counted = getattr(args, f"{side}_threshold") or getattr(args, f"{side}_vocab_size")
        if getattr(args, f"{side}_dict") and counted:
            raise OptionError(
                f"--{side}-dict gives the dictionary as it is; leave out --{side}-threshold and "
                f"--{side}-vocab-size, which are for one that is counted here"
            )
    if options.joined_dictionary:
        _check_joined_dictionary(args)
    if options.copy_unknown < 0 or (
        options.copy_unknown and (args.source_dict or args.target_dict)
    ):
        raise OptionError(
            "--copy-unknown is a number of placeholders, 0 or more, for dictionaries that are counted "
            "here; given ones have those that they have"
        )
    if options.copy_words and (args.target_dict or (args.source_dict and args.joined_dictionary)):
        raise OptionError(
            "--copy-words adds to the dictionary that is counted here, and a given one stays as it "
            "is; leave it out"
        )
    if options.workers < 1:
        raise OptionError(f"--workers {options.workers}: at least 1 is needed")
    _check_destination(options, args.overwrite)


def _check_subwords(options: BinarizeOptions) -> None:
    _check_subwords_of_trees(options)
    free = [side for side in options.sides if side.wants_model]
    if options.subword_vocab < 0:
        raise OptionError("--subword-vocab must be a positive number of subwords")
    if options.subword_sample < 0:
        raise OptionError("--subword-sample must be a number of lines, or 0 for all")
    if not 0.98 <= options.training.coverage <= 1:
        raise OptionError("--subword-coverage must be from 0.98 to 1")
    how = (options.training, options.subword_type, options.subword_sample)
    if not options.subword_vocab and how != (STANDARD, MODEL_TYPES[0], SAMPLE):
        raise OptionError(
            "--subword-type, --subword-sample, --subword-normalization, --subword-coverage and "
            "--subword-byte-fallback are about a model that is trained here: give --subword-vocab"
        )
    if options.subword_vocab and not free:
        raise OptionError("--subword-vocab: both sides already have subwords or a subword model")
    if options.joined_subwords and not options.subword_vocab:
        raise OptionError("--joined-subwords trains one model for both sides: give --subword-vocab")
    if options.joined_subwords and len(free) < 2:
        raise OptionError("--joined-subwords: one side already has subwords or a subword model")


def _check_subwords_of_trees(options: BinarizeOptions) -> None:
    """Refuse to cut the words of trees that are the output: subwords that are nodes stay apart there."""
    from treesyntax.trees.linearizations import LEAVES_ARE_WORDS

    target = options.target
    if target.encoding.format_name not in LEAVES_ARE_WORDS:
        return
    if target.subwords:
        flag = "--target-subwords"
    elif target.encoding.model:
        flag = "--target-subword-model"
    elif options.subword_vocab:
        flag = "--subword-vocab"
    else:
        return
    raise OptionError(
        f"{flag} cuts the words of the target's {target.encoding.format_name} trees, and outputs keep the "
        "subwords apart; leave it out (--source-subword-model is for the source alone), or take "
        f"--target-format {TEXT}"
    )


def _check_joined_dictionary(args: argparse.Namespace) -> None:
    if args.source_dict and args.target_dict:
        raise OptionError("--joined-dictionary takes --source-dict or --target-dict, not both")
    for name in ("threshold", "vocab_size"):
        if getattr(args, f"source_{name}") != getattr(args, f"target_{name}"):
            option = name.replace("_", "-")
            raise OptionError(
                f"--joined-dictionary needs the same --source-{option} and --target-{option}"
            )


def _check_destination(options: BinarizeOptions, overwrite: bool) -> None:
    dest = options.dest
    if not is_taken(dest):
        return
    if not overwrite:
        raise InputError(
            dest, None, "already exists and is not empty", "name another folder or add --overwrite"
        )
    if not (dest / MANIFEST).is_file():
        raise InputError(
            dest,
            None,
            f"has no {MANIFEST}, so --overwrite could destroy other files",
            "name another folder or empty it yourself",
        )
    for path in (*options.source.inputs, *options.target.inputs):
        if path.resolve().is_relative_to(dest.resolve()):
            raise InputError(
                path, None, "lies in the folder to be overwritten", "move it elsewhere first"
            )
    for path in sorted(dest.iterdir()):
        if path.is_dir() or not WRITTEN.fullmatch(path.name):
            raise InputError(
                path, None, "was not written by binarize, and --overwrite would delete it",
                "move it elsewhere, or name another folder",
            )  # fmt: skip
