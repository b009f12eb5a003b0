"""Metrics over hypotheses and references, one line of text each.

A metric is named on the command line as ``exact``, ``first_word``, ``main_verb``, ``clause_verb``,
``bleu``, ``bleu:TOKENIZER``, ``chrf``, ``chrf++``, ``ter`` or ``KIND:NOTATION``, where TOKENIZER is
one of sacreBLEU's (`text.TOKENIZERS`), NOTATION one of the tree formats and KIND one of these:

``tree``         the same tree
``program``      the same by the name it has for programs, program accuracy (Chen et al. 2018)
``unordered``    the same up to the order of conjuncts
``modulo``       the same up to that and the names of bound variables
``dong_lapata``  what the program of Dong & Lapata 2016 counts (`treesyntax.metrics.dong_lapata`)
``compiled``     the same JavaScript; only ``compiled:coffeescript`` (`treesyntax.metrics.coffeescript`)
``top1, top2``   the same tree down to depth 1 or 2: the channels of trigger-action programs, and
                 their functions
``f1``           micro-averaged F1 over nodes with their parents
``productions``  micro-averaged F1 over productions
``wellformed``   any tree at all

Lines of labels, a class or a tag for each word, have ``accuracy``, ``micro_f1``, ``macro_f1``,
``token_accuracy`` and ``span_f1`` (`treesyntax.metrics.labels`).

`register_metric` adds one of your own. With ``:unseen`` at its end a metric counts only the lines
that the training data does not have, and with ``@CATEGORY`` only those of a category.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from treesyntax import __version__
from treesyntax.agreement import verbs_of
from treesyntax.errors import OptionError
from treesyntax.jobs import imports
from treesyntax.jobs.flags import Fault
from treesyntax.jobs.imports import Registry
from treesyntax.metrics.coffeescript import NOTATION, compiled_items
from treesyntax.metrics.counted import OF as OF
from treesyntax.metrics.counted import UNSEEN as UNSEEN
from treesyntax.metrics.counted import counted_lines as counted_lines
from treesyntax.metrics.counted import plain_name as plain_name
from treesyntax.metrics.counted import unseen_lines as unseen_lines
from treesyntax.metrics.equivalence import CALCULI
from treesyntax.metrics.labels import (
    MACRO,
    class_parts,
    macro_f1,
    micro_parts,
    span_parts,
    token_parts,
)
from treesyntax.metrics.runs import checkpoint_p as checkpoint_p
from treesyntax.metrics.runs import compare_corpus_scores as compare_corpus_scores
from treesyntax.metrics.runs import compare_runs as compare_runs
from treesyntax.metrics.statistics import line_statistics
from treesyntax.metrics.text import CORPUS_METRICS as CORPUS_METRICS
from treesyntax.metrics.text import LOWER_IS_BETTER as LOWER_IS_BETTER
from treesyntax.metrics.text import TOKENIZERS
from treesyntax.metrics.text import composition_warning as composition_warning
from treesyntax.metrics.text import reference_warnings as reference_warnings
from treesyntax.metrics.text import subword_warning as subword_warning
from treesyntax.metrics.text import unspaced_warning as unspaced_warning
from treesyntax.metrics.trees import (
    Parts,
    check_aligned,
    dong_lapata_items,
    micro_f1,
    modulo_items,
    node_parts,
    production_parts,
    top_items,
    tree_items,
    unordered_items,
    wellformed_items,
)
from treesyntax.trees.formats import FORMATS

Items = Sequence[bool | None]
"""By line whether it is right; None where that is undecided, which counts as wrong."""
TREE_KINDS: dict[str, Callable[..., Items]] = {
    "tree": tree_items,
    "program": tree_items,
    "wellformed": wellformed_items,
    "top1": partial(top_items, depth=1),
    "top2": partial(top_items, depth=2),
}
# For the formats of logical forms alone.
FORM_KINDS: dict[str, Callable[..., Items]] = {
    "unordered": unordered_items,
    "modulo": modulo_items,
    "dong_lapata": dong_lapata_items,
}


class Score(NamedTuple):
    """A number with what it takes to compare it with another.

    Attributes:
        metric: the name it was asked for by.
        value: percent, or points from 0 to 100.
        signature: how it was computed.
        n: number of lines.
        lengths: of BLEU its brevity penalty and the ratio of lengths, output to reference.
        category: of the lines; "" for all.
    """

    metric: str
    value: float
    signature: str
    n: int
    lengths: str = ""
    category: str = ""


Metric = Callable[[Sequence[str], Sequence[str]], list[Score]]
ItemMetric = Callable[[Sequence[str], Sequence[str]], Items]
PartMetric = Callable[[Sequence[str], Sequence[str]], Parts]


def _alike(
    words_of: Callable[[str], list[str]], hypotheses: Sequence[str], references: Sequence[str]
) -> list[bool]:
    """Which hypotheses have the same of these words as their reference; white space does not count."""
    check_aligned(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    return [words_of(hypothesis) == words_of(reference) for hypothesis, reference in pairs]


def _first_word(line: str) -> list[str]:
    """Of a question the auxiliary that was moved (McCoy, Frank & Linzen 2020, section 3.2)."""
    return line.split()[:1]


def _main_verb(line: str) -> list[str]:
    """What McCoy, Frank & Linzen 2020 (section 3.2) count in the data set ``tense_reinflection``."""
    return verbs_of(line)[-1:]


def _clause_verb(line: str) -> list[str]:
    """The verbs before the main verb: that of the relative clause, or none."""
    return verbs_of(line)[:-1]


class Measured(NamedTuple):
    """The lines of a test set, each judged once.

    Attributes:
        metric: its name.
        lines: what each line contributes, whole numbers [lines, columns]: see :func:`score_of_lines`.
        undecided: which lines cannot be told in a bounded effort, which count as wrong.
    """

    metric: str
    lines: NDArray[np.float64]
    undecided: NDArray[np.bool_]

    def score(self, chosen: NDArray[np.bool_] | None = None) -> Score:
        """The score of all lines, or of some."""
        lines = self.lines if chosen is None else self.lines[chosen]
        undecided = int((self.undecided if chosen is None else self.undecided[chosen]).sum())
        plain, lengths = plain_name(self.metric), ""
        signature = f"{plain}|v:{__version__}"
        if plain in CORPUS_METRICS:
            metric = CORPUS_METRICS[plain](references=[[""]])
            corpus_score = metric._aggregate_and_compute([lines.sum(0).tolist()])
            value, signature = corpus_score.score, str(metric.get_signature())
            if hasattr(corpus_score, "bp"):
                lengths = f"BP {corpus_score.bp:.3f}, length ratio {corpus_score.ratio:.3f}"
        elif plain == MACRO:
            value = float(macro_f1(lines.sum(0)))
        elif lines.shape[1] == OF_PARTS:
            value = micro_f1(*lines.sum(0).tolist())
            signature = f"{plain}|avg:micro|v:{__version__}"
        else:
            value = 100 * int(lines.sum()) / len(lines)
            settings = f"{plain}|tok:space" if plain in TEXT_ITEMS else plain
            settings += f"|undecided:{undecided}" if undecided else ""
            signature = f"{settings}|v:{__version__}"
        if plain != self.metric:
            signature += f"|lines:{self.metric.removeprefix(plain)[1:]}"
        return Score(self.metric, value, signature, len(lines), lengths)


def measured(
    name: str,
    hypotheses: Sequence[str],
    references: Sequence[str],
    counted: Sequence[bool] | None = None,
) -> Measured:
    """Judge each line once, for the score and for the scores of any lines.

    Args:
        name: of a metric, with or without `UNSEEN` and `OF`.
        hypotheses: one output a line.
        references: as many.
        counted: for a name with one of them, which lines count (`counted_lines`); the others have no statistics.

    Raises:
        OptionError: as `get_metric`.
        TreeSyntaxError: if there is not one hypothesis for each reference, or a reference is malformed.
    """
    plain = plain_name(name)
    get_metric(name, counted)  # or refuse
    check_aligned(hypotheses, references)
    (
        hypotheses,
        references,
    ) = (  # of an array or a column; what a metric does to a list, `check_metric` sees
        lines if isinstance(lines, list) else list(lines) for lines in (hypotheses, references)
    )
    of_all = references
    if plain != name and counted is not None:
        if len(counted) != len(references):
            raise OptionError(
                f"{len(counted)} sources do not belong to {len(references)} references"
            )
        chosen = [number for number, counts in enumerate(counted) if counts]
        hypotheses = [hypotheses[number] for number in chosen]
        references = [references[number] for number in chosen]
    undecided = np.zeros(len(references), dtype=bool)
    if plain in CORPUS_METRICS:
        metric = CORPUS_METRICS[plain](references=[list(references)])
        lines = line_statistics(metric, hypotheses)
    elif plain == MACRO:
        lines = class_parts(hypotheses, references, of_all)
    elif plain in PART_METRICS:
        part_counts = PART_METRICS[plain](hypotheses, references)
        lines = np.array(part_counts, dtype=np.float64).reshape(len(references), OF_PARTS)
    else:
        right = ITEM_METRICS[plain](hypotheses, references)
        lines = np.array([*map(bool, right)], dtype=np.float64)[:, None]
        undecided = np.array([verdict is None for verdict in right], dtype=bool)
    return Measured(name, lines, undecided)


def score_of_lines(name: str, lines: NDArray[np.float64]) -> float:
    """The score of some lines, of which `measured` gave the statistics [lines, columns]."""
    return Measured(name, lines, np.zeros(len(lines), dtype=bool)).score().value


def columns_of(name: str) -> int | None:
    """How many numbers a metric keeps of a line; None where the references decide it."""
    plain = plain_name(name)
    if plain == MACRO:
        return None
    if plain in CORPUS_METRICS:
        return line_statistics(CORPUS_METRICS[plain](references=[["a"]]), ["a"]).shape[1]
    return OF_PARTS if plain in PART_METRICS or plain.startswith(F1) else 1


def _judge(
    hypotheses: Sequence[str],
    references: Sequence[str],
    name: str,
    counted: Sequence[bool] | None = None,
) -> list[Score]:
    return [measured(name, hypotheses, references, counted).score()]


Judge = TypeVar("Judge", bound=Callable[..., object])


class _Judges(Mapping[str, Judge]):
    """The functions of one kind of metrics by name; a format that is registered later has its own.

    Args:
        plain: those by their whole name.
        kinds: those by ``KIND:NOTATION``, each with the notations that it is for.
        counts_parts: whether they count parts.
    """

    def __init__(
        self,
        plain: Mapping[str, Judge],
        kinds: Sequence[tuple[Mapping[str, Callable[..., object]], Collection[str]]],
        counts_parts: bool,
    ) -> None:
        self.plain, self.kinds, self.counts_parts = plain, kinds, counts_parts

    def __getitem__(self, name: str) -> Judge:
        if name in self.plain:
            return self.plain[name]
        kind, _, notation = name.partition(":")
        for functions, notations in self.kinds:
            if kind in functions and notation in notations:
                return partial(functions[kind], notation=notation)  # type: ignore[return-value]
        if ":" in name or name.startswith(F1) is not self.counts_parts:
            raise KeyError(name)
        return OF_USERS[name]  # type: ignore[return-value]

    def __iter__(self) -> Iterator[str]:
        yield from self.plain
        for functions, notations in self.kinds:
            yield from (f"{kind}:{notation}" for kind in functions for notation in notations)
        yield from (name for name in OF_USERS if name.startswith(F1) is self.counts_parts)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _Metrics(Mapping[str, Metric]):
    """All metrics by name."""

    def __getitem__(self, name: str) -> Metric:
        if not any(name in kind for kind in KINDS):
            raise KeyError(name)
        return partial(_judge, name=name)

    def __iter__(self) -> Iterator[str]:
        return (name for kind in KINDS for name in kind)

    def __len__(self) -> int:
        return sum(map(len, KINDS))


OF_USERS: Registry[Callable[..., Sequence[Any]]] = Registry("metric", imports.METRICS)
"""The metrics of users by name."""
OF_PARTS = 2
"""How many numbers a metric that counts parts keeps of a line."""
F1 = "f1_"
"""The names of users' metrics that count parts begin with it, so that whoever reads their numbers knows."""
UserMetric = TypeVar("UserMetric", bound=ItemMetric | PartMetric)


def register_metric(name: str) -> Callable[[UserMetric], UserMetric]:
    """Make a function a metric of that name, in a file of your own.

    The function gets the hypotheses and the references, as many lines each, and returns one value for each line. That
    is whether the line is right, or None where that is undecided; the score is the share of right lines in percent.
    A metric whose name begins with ``f1_`` returns two whole numbers for each line: how many parts hypothesis and
    reference have in common, and how many both have together. The score is the F1 of all parts. Higher is
    better: turn an error rate around.

    Raises:
        ValueError: if there is a metric of that name, or it is no plain word.
    """

    def add(judge: UserMetric) -> UserMetric:
        if name in CORPUS_METRICS or name in TEXT_ITEMS:
            raise ValueError(f"two metrics are named {name}")
        OF_USERS.add(name, partial(_checked, name, judge), judge)
        return judge

    return add


def compares_spelling(name: str) -> bool:
    """Whether a metric compares the tokens of texts, so that another spelling of the same tree is wrong."""
    return plain_name(name) in TEXT_ITEMS


def is_readable(name: str) -> bool:
    """Whether it is known, without the file of a metric of a user's own, what the numbers of a line mean."""
    plain = plain_name(name)
    return ":" not in plain or plain in METRICS


def _checked(
    name: str,
    judge: Callable[..., Sequence[Any]],
    hypotheses: Sequence[str],
    references: Sequence[str],
) -> list[Any]:
    """What a metric of a user's own says of each line, or an error where that is no such thing."""
    check_aligned(hypotheses, references)
    values = list(judge(hypotheses, references))
    if len(values) != len(references):
        raise OptionError(
            f"the metric {name} has {len(values)} values for {len(references)} lines; one for each is needed"
        )
    for line, value in enumerate(values, start=1):
        counts = name.startswith(F1)
        if not (_are_parts(value) if counts else value is None or isinstance(value, bool)):
            wanted = (
                "two whole numbers, in common and of both together"
                if counts
                else "True, False or None"
            )
            raise OptionError(f"the metric {name} gives {value!r} for line {line}, not {wanted}")
    return values


def _are_parts(value: object) -> bool:
    if not isinstance(value, tuple) or len(value) != OF_PARTS:
        return False
    return all(type(number) is int for number in value) and 0 <= 2 * value[0] <= value[1] < 2**32


TEXT_ITEMS: dict[str, ItemMetric] = {
    "exact": partial(_alike, str.split),
    "accuracy": partial(_alike, str.split),
    "first_word": partial(_alike, _first_word),
    "main_verb": partial(_alike, _main_verb),
    "clause_verb": partial(_alike, _clause_verb),
}
COMPILED = f"compiled:{NOTATION}"
ITEM_METRICS: _Judges[ItemMetric] = _Judges(
    {**TEXT_ITEMS, COMPILED: compiled_items},
    [(TREE_KINDS, FORMATS), (FORM_KINDS, CALCULI)],
    counts_parts=False,
)
"""The metrics that judge each line."""
PART_METRICS: _Judges[PartMetric] = _Judges(
    {"micro_f1": micro_parts, "token_accuracy": token_parts, "span_f1": span_parts},
    [({"f1": node_parts, "productions": production_parts}, FORMATS)],
    counts_parts=True,
)
"""The metrics that count parts in each line."""
KINDS = (CORPUS_METRICS, ITEM_METRICS, PART_METRICS, (MACRO,))
METRICS: Mapping[str, Metric] = _Metrics()


def get_metric(name: str, counted: Sequence[bool] | None = None) -> Metric:
    """Return the metric of that name.

    Args:
        name: as in `METRICS`, with or without `UNSEEN` and `OF`.
        counted: for a name with one of them, which lines count (`counted_lines`).

    Raises:
        OptionError: if there is none, and the message lists the names; if its tokenizer is not
            installed; if it is not known which lines count, or none does.
    """
    plain = plain_name(name)
    if plain not in METRICS:
        raise OptionError(f"no metric is named {name!r}; {_names()}")
    if plain.startswith("bleu:"):
        CORPUS_METRICS[plain]()  # before anything is scored
    if plain == name:
        return METRICS[name]
    unseen = UNSEEN in name
    if counted is None:
        needed = "training data, to know what is in it" if unseen else "category of each line"
        raise OptionError(f"{name} needs the {needed}")
    if not any(counted):
        why = "every line is in the training data" if unseen else "no line is of that category"
        raise OptionError(f"{name}: {why}, so none is left to score")
    return partial(_judge, name=name, counted=counted)


def metric_fault(names: Sequence[str]) -> Fault | None:
    """The first of some names that is no metric, or cannot be computed here."""
    for name in names:
        try:
            get_metric(name, [True])
        except OptionError as error:
            return Fault("", str(error))
    return None


def score(metric: str, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Score outputs against references, line by line or as a whole.

    Args:
        metric: its name, such as ``bleu``, ``exact`` or ``f1:sexpr``.
        hypotheses: one output a line.
        references: as many.

    Raises:
        OptionError: if there is no such metric, or it needs the training data.
        TreeSyntaxError: if there is not one hypothesis for each reference, or a reference is malformed.
    """
    return get_metric(metric)(hypotheses, references)[0]


def _names() -> str:
    plain = ", ".join(name for name in METRICS if ":" not in name)
    of_any = [name.removesuffix(":jsonl") for name in METRICS if name.endswith(":jsonl")]
    of_forms = [f"{kind}:{name}" for kind in FORM_KINDS for name in CALCULI]
    return (
        f"there are {plain}, bleu:TOKENIZER with TOKENIZER one of {', '.join(TOKENIZERS)}, "
        f"{', '.join(f'{kind}:NOTATION' for kind in of_any)} with NOTATION one "
        f"of {', '.join(FORMATS)}, {', '.join(of_forms)}, {COMPILED}; each may end in {UNSEEN}, and in {OF}CATEGORY"
    )
