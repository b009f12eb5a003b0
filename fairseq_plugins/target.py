"""What the target's data says: its linearization, which outputs are legal, what can be copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fairseq import utils
from fairseq.data import data_utils
from numpy.typing import NDArray
from torch import Tensor, as_tensor

from treesyntax.data.manifest import side_of
from treesyntax.decoding.constraints import Constraints
from treesyntax.decoding.grammar import TreeGrammar, any_tree
from treesyntax.decoding.learned_grammar import learn_grammar, learn_sibling_grammar
from treesyntax.decoding.notation_grammar import notation_grammar
from treesyntax.errors import OptionError
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.hidden_words import HiddenWords
from treesyntax.trees.copies import copy_forms_of, copy_table, placeholder_table
from treesyntax.trees.formats import FORMATS

FROM_DATA = "auto"


def find_target_linearization(folders: Sequence[str], language: str, given: str) -> str:
    """The linearization of a language's tokens, as ``treesyntax binarize`` wrote it down.

    Args:
        folders: the data folders, at least one.
        language: of the target.
        given: a linearization, or ``auto`` to take the data's.

    Returns:
        A linearization, or an empty text where neither data nor user says.

    Raises:
        OptionError: if folders, or data and user, do not agree.
        InputError: for a damaged record.
    """
    linearizations = {
        folder: str(side_of(Path(folder), language).get("view", "")) for folder in folders
    }
    linearization = linearizations[folders[0]]
    for folder, other in linearizations.items():
        if other != linearization:
            raise OptionError(
                f"the target of {folder} is in the linearization {other or 'unknown'}, that of "
                f"{folders[0]} in {linearization or 'unknown'}; binarize them alike"
            )
    if given == FROM_DATA:
        return linearization
    if linearization and linearization != given:
        raise OptionError(
            f"--target-linearization {given}, but {folders[0]} was binarized with {linearization}; "
            "leave out the flag"
        )
    return given


def is_learned(notation: str) -> bool:
    """Whether search learns the grammar of a format from training trees, unless it is told otherwise."""
    return notation in FORMATS and FORMATS[notation].learned


class TrainingTargets(NamedTuple):
    """The training targets of binarized data.

    Attributes:
        data: the folders, as fairseq takes them.
        name: of the files without suffixes.
    """

    data: str
    name: str

    def _files(self) -> list[Path]:
        return [Path(folder) / self.name for folder in utils.split_paths(self.data)]

    def exist(self) -> bool:
        """Whether all folders have them."""
        return all(Path(f"{file}.idx").exists() for file in self._files())

    def read(self, dictionary: Any, implementation: str | None) -> Iterator[Tensor]:
        """The token ids of each.

        Raises:
            OptionError: if a folder does not have them.
        """
        for file in self._files():
            if not Path(f"{file}.idx").exists():
                raise OptionError(
                    f"--tree-constraints grammar learns from {file}, which is not there; give the "
                    "folder with the training data"
                )
            sentences = data_utils.load_indexed_dataset(str(file), dictionary, implementation)
            yield from (sentences[index] for index in range(len(sentences)))


def make_constraints(
    linearization: str,
    dictionary: Any,
    training: Iterable[Sequence[int] | Tensor] | None,
    notation: str = "",
    copies: NDArray[Any] | None = None,
    shuffle_seed: int | None = None,
) -> Constraints:
    """The legal outputs of constrained search.

    Args:
        linearization: one of :data:`GROWING_LINEARIZATIONS`.
        dictionary: of the target.
        training: token ids of the training targets, from which a grammar is learned; None allows
            every tree that the notation can hold.
        notation: the format of the target, where it is known.
        copies: the target ids of words that can be copied [F, V_source], -1 for none. In a learned
            grammar placeholders may also stand where such a word may: training hides words.
        shuffle_seed: where the target has ``shuffled`` control trees, their seed.

    Raises:
        OptionError: if the dictionary makes no tree.
        TreeError: if a training target is no tree.
    """
    symbols, eos = dictionary.symbols, dictionary.eos()
    trees = GrowingTrees(symbols, linearization)
    if training is None:
        known = FORMATS.get(notation)
        grammar = (
            notation_grammar(symbols, trees, known, shuffle_seed) if known else any_tree(trees)
        )
    elif trees.binary:
        grammar = learn_sibling_grammar(training, symbols, trees, eos)
    else:
        grammar = learn_grammar(training, trees, eos)
    if training is not None and copies is not None:
        _let_placeholders(grammar, placeholder_table(symbols, linearization), copies)
    return Constraints(trees, eos, grammar)


def _let_placeholders(grammar: TreeGrammar, marks: NDArray[Any], copies: NDArray[Any]) -> None:
    """Let placeholders [F, N] stand where a word that can be copied may, in place."""
    for placeholders, words in zip(marks, copies, strict=True):
        grammar.fills[:, placeholders] |= grammar.fills[:, words[words >= 0]].any(1, keepdim=True)


def copies_of(task: Any) -> NDArray[Any]:
    """The target ids of source tokens [F, V], -1 where there is none."""
    source, target = task.source_dictionary.symbols, task.target_dictionary.symbols
    return copy_table(source, target, _linearizations(task))


def find_copies(task: Any) -> Tensor:
    """The target ids of source tokens [F, V], for a decoder that copies them.

    Raises:
        OptionError: if the target has no word of the source.
    """
    table = copies_of(task)
    if (table < 0).all():
        raise OptionError(
            "--copy-source: no symbol of the source dictionary is a word of the target; binarize "
            "with --copy-words"
        )
    return as_tensor(table)


def find_hidden_words(task: Any) -> HiddenWords:
    """What hides words in training.

    Raises:
        OptionError: if the data has no placeholders.
    """
    sides = (task.source_dictionary.symbols, task.target_dictionary.symbols)
    linearizations = _linearizations(task)
    source, target = (
        as_tensor(placeholder_table(symbols, linearization))
        for symbols, linearization in zip(sides, linearizations, strict=True)
    )
    if not source.numel() or not target.numel():
        raise OptionError(
            "--copy-dropout: the dictionaries have no placeholders; binarize with --copy-unknown"
        )
    form = as_tensor(copy_forms_of(sides[0], linearizations[0]))
    return HiddenWords(find_copies(task), form, source, target)


def _linearizations(task: Any) -> tuple[str, str]:
    source = getattr(task, "records", {}).get("source", {}).get("view", "")
    return source, getattr(task, "target_linearization", "")
