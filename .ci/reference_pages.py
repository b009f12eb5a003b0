"""Pages of the documentation that list: keys of recipes, commands with their options, and words, from the code.

``make figures`` writes them (``python .ci/reference_pages.py``), and a test says when a page is not what the code says.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from treesyntax.__main__ import COMMANDS, make_parser
from treesyntax.commands.methods import CATALOGUE
from treesyntax.references import link_citations, references
from treesyntax.study.recipe.keys import (
    KEYS,
    METHOD_KEYS,
    PRETRAINED_DATA_KEYS,
    PRETRAINED_ROW_KEYS,
    SEARCH_KEYS,
    Key,
)
from treesyntax.study.words import WORDS

DOCS = Path(__file__).parents[1] / "docs"
CORES = re.compile(r"\(all cores: \d+\)")
LOUDNESS = ("--quiet", "--verbose")
OLD_NAMES = ("generate",)
"""Commands that are listed below their new names."""

RECIPES = """# Recipe keys

Every key of a recipe, with its type, default, an example, and what a study does anew after you change it. Nothing else is
trained again. With a pretrained model rows and `data` have [keys of their own](#with-trainer-huggingface). [How to run a study](studies.md).

In the examples `sequence` is the row without trees. Tests read every example; `make figures` writes this page from `treesyntax/study/recipe/keys.py`.

## A recipe

{keys}

A key with `+` at its end adds to the list of the recipe below: `score+: [bleu]`. A value `null` takes an entry away.
`--set KEY=VALUE` does the same on the command line, with dots between keys: `--set train.lr=0.001`.

## A row, below `methods.NAME`

{rows}

## `search`

{search}

How it works: [find settings by search](search.md).

## With `trainer: huggingface`

A row, below `methods.NAME`, has no `arch`; `{{}}` is a plain row:

{pretrained_rows}

Below `data`:

{pretrained_data}

`train` takes the [settings of training](pretrained.md#settings-of-training), `generate` those of transformers. `average`, `skip`
and `binarize` are refused.
"""
TOP = """# Commands

Every command with its options; `treesyntax COMMAND --help` prints the same. All take `-q` (results and failures alone) and `-v`
(every step, and where an error comes from). `make figures` writes this page from the code.

"""


GLOSSARY = """# Glossary

The words in tables, reports and messages. Every report has this list at its end. `make figures` writes this page from
`treesyntax/study/words.py`.

| word | meaning |
|---|---|
{words}

How a difference is tested: [the test](statistics-test.md).
"""


REFERENCES = """# References

Every paper that these pages or the code cite by name and year. `make figures` writes this page from
`treesyntax/references.bib`, where their BibTeX is.

The BibTeX of a method stands on [its page](methods.md). The first command prints it, the second writes `references.bib` with
all that a study uses. [How to cite the project](citing.md).

<!-- run by tests/docs/test_references.py, with a study of its own -->

```bash
treesyntax methods relation_mask stack_pe --bibtex
treesyntax report runs/NAME --for-paper paper
```

## Papers of the methods

| method | cite |
|---|---|
{methods}

## All papers

| cited as | paper |
|---|---|
{papers}
"""


def references_page() -> str:
    """Return the page of all papers."""
    known = json.loads(CATALOGUE.read_text("utf-8"))["methods"]
    methods = [
        f"| [`{facts['name']}`]({method_page(facts['file'])}) | {link_citations(facts['paper'], '')} |"
        for facts in known
    ]
    papers = [
        f'| <a id="{key}"></a>{paper.citations[0]} | {paper.markdown} |'
        for key, paper in references().items()
    ]
    return REFERENCES.format(methods="\n".join(methods), papers="\n".join(papers))


def method_page(file: str) -> str:
    """Return the page of a method, below docs, from the file of its class."""
    return file.removeprefix("treesyntax/").replace(".py", ".md")


def glossary_page() -> str:
    """Return the page of the words in tables and reports."""
    rows = [
        f'| <a id="{anchor}"></a>{word.text} | {word.meaning}{f" ([more]({word.page}))" if word.page else ""} |'
        for anchor, word in WORDS.items()
    ]
    return GLOSSARY.format(words="\n".join(rows))


def recipe_page() -> str:
    """Return the page of the keys of a recipe."""
    tables = {
        "keys": KEYS,
        "rows": METHOD_KEYS,
        "search": SEARCH_KEYS,
        "pretrained_rows": PRETRAINED_ROW_KEYS,
        "pretrained_data": PRETRAINED_DATA_KEYS,
    }
    return RECIPES.format(**{name: _keys(keys) for name, keys in tables.items()})


def command_page() -> str:
    """Return the page of all commands."""
    parser = make_parser(COMMANDS)
    (commands,) = _subparsers(parser)
    parts = []
    for name, command in COMMANDS.items():
        parts += _command(name, commands.choices[name], command.summary, 2)
    return TOP + "\n\n".join(parts) + "\n"


def _keys(keys: Mapping[str, Key]) -> str:
    rows = [
        f"| `{name}` | {key.meaning} | {key.type} | {key.default} | `{_cell(key.example)}` | {key.changes} |"
        for name, key in keys.items()
    ]
    head = "| key | what it says | type | default | example | a change does anew |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def _command(name: str, parser: argparse.ArgumentParser, summary: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {name}"
    paragraphs = list(_paragraphs(parser.description or ""))
    yield from paragraphs or [f"{summary[0].upper()}{summary[1:]}."]
    actions = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction)
        and not {*LOUDNESS} & {*action.option_strings}
    ]
    if actions:
        rows = [f"| {_flags(action)} | {_meaning(action, parser)} |" for action in actions]
        yield "\n".join(["| option | what it does |", "|---|---|", *rows])
    for inner in _subparsers(parser) if name not in OLD_NAMES else ():
        helps = {choice.dest: choice.help or "" for choice in inner._choices_actions}
        for word, below in inner.choices.items():
            yield from _command(f"{name} {word}", below, helps.get(word) or word, level + 1)


def _subparsers(parser: argparse.ArgumentParser) -> list[argparse._SubParsersAction]:
    return [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a description as Markdown; those that are set in are code."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        begin = next((n for n, line in enumerate(lines) if line.startswith("  ")), len(lines))
        if begin:
            yield "\n".join(line.strip() for line in lines[:begin])
        if lines[begin:]:
            yield "\n".join(["```text", *(line[2:] for line in lines[begin:]), "```"])


def _flags(action: argparse.Action) -> str:
    formatter = argparse.HelpFormatter("")
    names = action.option_strings
    metavar = action.metavar or (
        f"{{{','.join(map(str, action.choices))}}}" if action.choices else ""
    )
    value = ""
    if names and action.nargs != 0:
        value = formatter._format_args(action, str(metavar or action.dest.upper()))
    elif not names:
        value = formatter._format_args(action, str(metavar or action.dest))
    shown = [" ".join(filter(None, (name, value))) for name in names] or [value]
    return ", ".join(f"`{_cell(one)}`" for one in shown)


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = argparse.HelpFormatter(parser.prog)._expand_help(action) if action.help else ""
    return _cell(CORES.sub("(all cores)", " ".join(text.split())))


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


PAGES = {
    "recipe-keys.md": recipe_page,
    "commands.md": command_page,
    "glossary.md": glossary_page,
    "references.md": references_page,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), "utf-8")
