"""Two sections of the report: kinds of errors, and examples."""

from __future__ import annotations

from treesyntax.errors import TreeSyntaxError
from treesyntax.metrics.kinds import KINDS, RIGHT
from treesyntax.study.report.examples.choice import choose_examples
from treesyntax.study.report.examples.kinds import Verdicts, find_verdicts
from treesyntax.study.report.pictures import Section
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.table_text import Table

TYPES_FILE = "error_types.csv"


def outputs_sections(outputs: Outputs) -> list[Section]:
    """The sections on single outputs; empty where there are no outputs to judge."""
    types, examples = Section("error-types", "Error types", ""), Section("examples", "Examples", "")
    if not outputs.scored:
        return []
    try:
        verdicts = find_verdicts(outputs)
        _fill_types(types, verdicts)
        examples.examples = choose_examples(outputs, verdicts)
    except TreeSyntaxError as error:
        examples.notes.append(f"There are no examples: {error}")
        return [examples]
    examples.text = (
        f"Lines that a row has right and its baseline wrong by {verdicts.metric}, and the other way; the clearest and "
        "shortest first. The wrong output is that of the first run that is wrong; its first difference is marked."
    )
    return [types, examples]


def _fill_types(section: Section, verdicts: Verdicts) -> None:
    counts = {row: verdicts.counts(row) for row in verdicts.letters if verdicts.notations[row]}
    shown = [letter for letter in KINDS if any(count[letter] for count in counts.values())]
    if not shown:
        return
    section.text = (
        f"What is wrong with outputs that are wrong by {verdicts.metric}, as a percentage of all outputs. Each counts "
        "once, in the first column from the left that fits."
    )
    header = ("row", "runs", "outputs", "right", *(KINDS[letter] for letter in shown))
    columns, lines = (RIGHT, *shown), []
    for row, count in counts.items():
        total = count.total()
        cells = [f"{100 * count[letter] / total:.1f} % ({count[letter]})" for letter in columns]
        lines.append([row, str(len(verdicts.letters[row])), str(total), *cells])
    section.table = Table("", header, lines)
    names = ["row", "runs", "outputs", "right", *KINDS.values()]
    numbers = [
        [
            row,
            len(verdicts.letters[row]),
            count.total(),
            *(count[letter] for letter in (RIGHT, *KINDS)),
        ]
        for row, count in counts.items()
    ]
    section.tables[TYPES_FILE] = [names, *numbers]
