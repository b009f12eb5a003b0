"""treesyntax's metrics as ``fairseq-generate --scoring NAME``.

``string_exact`` compares tokens; ``tree_exact``, ``tree_program``, ``tree_unordered``,
``tree_modulo``, ``tree_dong_lapata``, ``tree_top1``, ``tree_top2``, ``tree_f1``, ``tree_productions`` and
``tree_wellformed`` read each line as a tree in the format ``--scoring-format``, as the metrics of the
same names do. With ``--scoring-linearization`` a line is the tokens of that linearization. Scores of
unseen items need the sources, which fairseq does not pass to scorers: use ``treesyntax score``.
(``fairseq-score`` offers BLEU alone.)
"""

# No postponed annotations here: fairseq makes flags from the types of dataclass fields.
import re
from contextlib import suppress
from dataclasses import dataclass, field

from fairseq.dataclass import FairseqDataclass
from fairseq.scoring import BaseScorer, register_scorer

from treesyntax.errors import OptionError, TreeError
from treesyntax.metrics import Score, get_metric
from treesyntax.trees.linearizations import TreeText, from_linearization

# Unknown symbols where tokens have slots; fairseq itself makes <<unk>> of a reference's <unk>.
UNKNOWN_NODE = re.compile(r"(?<!\S)<unk>(?=/\S+(?!\S))")


@dataclass
class TreeScorerConfig(FairseqDataclass):
    """How lines become trees."""

    scoring_format: str = field(
        default="sexpr", metadata={"help": "format of the trees to score, such as sexpr, prolog"}
    )
    scoring_view: str = field(
        default="",
        metadata={
            "argparse_alias": "--scoring-linearization",
            "help": "linearization whose tokens a line is, such as nary_dfs; else as text",
        },
    )


class TreeScorer(BaseScorer):
    """Collects lines and scores them with one metric."""

    kind = ""

    def __init__(self, cfg: TreeScorerConfig) -> None:
        """Check the options before anything is generated.

        Raises:
            OptionError: if there is no such metric for the format, or no such linearization.
        """
        super().__init__(cfg)
        self.name = self.kind if self.kind == "exact" else f"{self.kind}:{cfg.scoring_format}"
        self.metric = get_metric(self.name)
        if cfg.scoring_view and self.kind != "exact":
            with suppress(TreeError):  # not every format can hold the empty tree
                from_linearization("", cfg.scoring_view, cfg.scoring_format)

    def add_string(self, ref: str, pred: str) -> None:
        """Add a reference and a hypothesis.

        Raises:
            OptionError: if the reference is not a tree of the linearization.
        """
        # An unknown node is never correct, just as an unknown word is not.
        super().add_string(self._text(UNKNOWN_NODE.sub("<<unk>>", ref), True), self._text(pred))

    def _text(self, line: str, reference: bool = False) -> str:
        if not self.cfg.scoring_view or self.kind == "exact":
            return line
        form = TreeText(self.cfg.scoring_view, self.cfg.scoring_format)
        if not reference:
            return form.text(line)
        try:
            return from_linearization(line, *form)
        except TreeError as error:
            raise OptionError(f"reference {len(self.ref) + 1}: {error}") from None

    def _scored(self) -> Score:
        (score,) = self.metric(self.pred, self.ref)
        return score

    def score(self) -> float:
        """The score in percent.

        Raises:
            OptionError: if nothing was added, or a reference is malformed.
        """
        return self._scored().value

    def result_string(self) -> str:
        """The score with its signature and the number of lines.

        Raises:
            OptionError: as `score`.
        """
        score = self._scored()
        return f"{score.metric} = {score.value:.2f} n={score.n} {score.signature}"


for _name, _kind in {
    "string_exact": "exact",
    "tree_exact": "tree",
    "tree_program": "program",
    "tree_unordered": "unordered",
    "tree_modulo": "modulo",
    "tree_dong_lapata": "dong_lapata",
    "tree_top1": "top1",
    "tree_top2": "top2",
    "tree_f1": "f1",
    "tree_productions": "productions",
    "tree_wellformed": "wellformed",
}.items():
    # fairseq wants a class of its own name for each.
    _fields = {"kind": _kind, "__module__": __name__}
    _scorer = type(f"{_name.title().replace('_', '')}Scorer", (TreeScorer,), _fields)
    register_scorer(_name, dataclass=TreeScorerConfig)(_scorer)
