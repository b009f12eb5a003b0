"""A page of the documentation for each method, from its class, and its picture: python .ci/method_pages.py

All of a page comes from the class but the section "When to use it", which is written by hand in the page and kept.
``make figures`` writes pages and pictures; a test says when a page is not what its class says. MkDocs calls the
functions named ``on_…``.
"""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

from treesyntax.commands.methods import CATALOGUE, D_MODEL, HEADS, LAYERS, catalogue, facts_of
from treesyntax.methods import METHODS
from treesyntax.references import cited_in, link_citations

DOCS = Path(__file__).parents[1] / "docs"
TREE = "(S (NP the cat) (VP sees (NP it)))"
WHEN = "## When to use it\n"
AS_THEY_ARE = r"(^ *```.*?^ *```|`[^`\n]*`|!?\[[^\]]*\]\([^)]*\)|^#.*?$|<!--.*?-->|<[^>]+>)"
"""What of a page holds no citation to link: code, links, titles and comments."""


def place_of(name: str) -> str:
    """Where a method lies below docs/methods and docs/figures/methods, as its file does below methods."""
    inner = METHODS[name].__module__.removeprefix("treesyntax.methods.")
    return inner.replace(".", "/")


def method_page(name: str, written: str) -> str:
    """A method as Markdown.

    Args:
        name: of the method.
        written: the page as it is, whose section written by hand is kept.
    """
    facts, method = facts_of(name), METHODS[name]
    summary, text, meanings = read_docstring(method.__doc__ or "")
    up = "../" * (place_of(name).count("/") + 1)
    rows = {
        "sides": " and ".join(facts["sides"])
        + (f" ({facts['not_on_decoder']})" if facts["not_on_decoder"] else ""),
        "of the paper": "{encoder} in the encoder, {decoder} in the decoder".format(
            **facts["architecture"]
        ),
        "trees": _trees(facts),
        "positions": "takes their place" if facts["replaces_positions"] else "kept",
        "linearization": f"`{facts['linearization']}`",
        "hooks": ", ".join(f"`{hook}`" for hook in facts["hooks"]) or "none",
        "file": f"`{facts['file']}`",
    }
    bibtex = "\n\n".join(paper.bibtex for paper in cited_in(facts["paper"]))
    arguments = [
        f"| `{key}` | {_cell(f'`{value!r}`')} | {_cell(_linked(meanings.get(key, ''), name))} |"
        for key, value in facts["arguments"].items()
    ]
    return f"""# {name}

{summary}

```text
{facts["equation"]}
```

{link_citations(facts["paper"], f"{up}references.md")}.

![What {name} makes of a tree]({up}figures/methods/{place_of(name)}.svg)

(Before training; for your own tree: `treesyntax analyse method {name} --tree "(A (B c) d)" --out figures`)
{_section("How it works", _linked(text, name))}
{WHEN}
{by_hand(written)}

```bash
fairseq-train data-bin … --arch tree_{name}
```
{_section("Arguments", _table("argument", "default", "meaning", rows=arguments) if arguments else "")}
## What it costs

{_sentences(facts["cost"])}

Parameters: {facts["parameters"]:,} at width {D_MODEL}, {HEADS} heads, {LAYERS} layers.
A whole step beside a plain one: [costs.md]({up}costs.md).

## Where it stands

{_table("", "", rows=[f"| {key} | {_cell(value)} |" for key, value in rows.items()])}

## Cite

```bibtex
{bibtex}
```

All methods: [methods.md]({up}methods.md).
"""


def by_hand(written: str) -> str:
    """The section of a page that is written by hand."""
    found = re.search(rf"^{WHEN}(.*?)^```bash$", written, re.S | re.M)
    return found[1].strip() if found else "(not written yet)"


def read_docstring(text: str) -> tuple[str, str, dict[str, str]]:
    """The first line, the paragraphs after it, and what each argument means, as Markdown."""
    text = inspect.cleandoc(text)
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    prose, *parts = re.split(r"^(?:Args|Attributes):$", text, flags=re.M)
    summary, _, rest = prose.partition("\n\n")
    arguments = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", parts[0] if parts else "", re.M)
    meanings = {key: " ".join(value.split()) for key, value in arguments}
    return summary.strip(), rest.strip(), meanings


def _sentences(text: str) -> str:
    """What stands between semicolons as sentences."""
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in text.split("; "))


def _linked(text: str, name: str) -> str:
    """Names of other methods, and of their classes, as links to their pages."""
    up = "../" * place_of(name).count("/")
    names = {other: other for other in METHODS} | {
        method.__name__: other for other, method in METHODS.items()
    }

    def link(match: re.Match[str]) -> str:
        other = names.get(match[1], name)
        return match[0] if other == name else f"[`{other}`]({up}{place_of(other)}.md)"

    return re.sub(r"`(\w+)`", link, text)


def _section(title: str, text: str) -> str:
    return f"\n## {title}\n\n{text}\n" if text else ""


def _table(*head: str, rows: list[str]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows])


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _trees(facts: dict[str, Any]) -> str:
    if not facts["needs_tree"]:
        return "not needed"
    when = "in training only" if facts["training_only"] else "of every sentence, of new input too"
    return when + (", with labels (`--source-labels`)" if facts["needs_labels"] else "")


def on_config(config: Any) -> Any:
    """Put the pages below the list of methods."""
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    (methods,) = (entry["Methods"] for entry in reference if "Methods" in entry)
    methods += [{name: f"methods/{place_of(name)}.md"} for name in sorted(METHODS)]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Citations link to their papers. Links out of docs/, and into folders of results, become plain text."""
    where = page.file.src_uri
    if where == "references.md":
        return markdown
    if not where.startswith("methods/"):
        gone = r"(?<!!)\[([^\]]+)\]\((?:\.\./|results/(?!README\.md))[^)]*\)"
        markdown = re.sub(gone, r"\1", markdown)
    up = "../" * where.count("/")
    pieces = re.split(AS_THEY_ARE, markdown, flags=re.M | re.S)
    return "".join(
        piece if place % 2 else link_citations(piece, f"{up}references.md")
        for place, piece in enumerate(pieces)
    )


if __name__ == "__main__":
    from treesyntax.analysis.paper.method import analyse

    for name in METHODS:
        page = DOCS / f"methods/{place_of(name)}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        written = page.read_text("utf-8") if page.exists() else ""
        page.write_text(method_page(name, written), "utf-8")
        analyse(name, TREE, (DOCS / "figures/methods" / place_of(name)).parent)
    text = json.dumps(catalogue(), indent=1, ensure_ascii=False)
    CATALOGUE.write_text(f"{text}\n", "utf-8")
