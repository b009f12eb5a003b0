"""A page of the documentation for each method, made from its class when the site is built.

MkDocs calls the functions named ``on_…``; the rest needs no MkDocs.
"""

from __future__ import annotations

import re
from typing import Any

from treesyntax.commands.methods import D_MODEL, HEADS, LAYERS, facts_of
from treesyntax.methods import METHODS

INDEX = "methods.md"


def method_page(name: str) -> str:
    """Formula, source, hooks, sides, cost and when a method fits, as Markdown."""
    facts, method = facts_of(name), METHODS[name]
    arguments = ", ".join(f"`{key}={value!r}`" for key, value in facts["arguments"].items())
    sides = " and ".join(facts["sides"])
    rows = {
        "source": facts["paper"],
        "sides": sides + (f" ({facts['not_on_decoder']})" if facts["not_on_decoder"] else ""),
        "of the paper": "{encoder} in the encoder, {decoder} in the decoder".format(
            **facts["architecture"]
        ),
        "arguments": arguments or "none",
        "parameters": f"{facts['parameters']:,} at width {D_MODEL}, {HEADS} heads, {LAYERS} layers",
        "cost": facts["cost"],
        "hooks": ", ".join(f"`{hook}`" for hook in facts["hooks"]) or "none",
        "file": f"`{facts['file']}`",
    }
    table = "\n".join(f"| {key} | {_cell(value)} |" for key, value in rows.items())
    return f"""# {name}

```text
{facts["equation"]}
```

| | |
|---|---|
{table}

## When it fits

{_when(facts)}

```bash
fairseq-train data-bin … --arch tree_{name}
```

What a step costs beside a plain one: [costs.md](../costs.md). All methods: [methods.md](../{INDEX}).

## In the code

::: {method.__module__}.{method.__qualname__}
    options:
      members: false
      heading_level: 3
"""


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _when(facts: dict[str, Any]) -> str:
    if not facts["needs_tree"]:
        trees = "It needs no trees, so it can be a plain baseline."
    elif facts["training_only"]:
        trees = "It needs trees in training only: new input is translated without a parser."
    else:
        trees = "It needs a tree of every sentence, of new input too."
    positions = (
        "It takes the place of absolute positions."
        if facts["replaces_positions"]
        else "Absolute positions are kept."
    )
    where = (
        "It can stand in the encoder and in a decoder that grows a tree."
        if {"encoder", "decoder"} <= set(facts["sides"]) and facts["needs_tree"]
        else f"It can stand in the {' and in the '.join(facts['sides'])}."
    )
    linearization = f"Its linearization is `{facts['linearization']}`."
    return "\n".join(f"- {line}" for line in (trees, positions, where, linearization))


def on_config(config: Any) -> Any:
    """Put the pages below the list of methods."""
    for entry in config.nav:
        if "Methods" in entry:
            entry["Methods"] += [{name: f"methods/{name}.md"} for name in sorted(METHODS)]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages."""
    from mkdocs.structure.files import File

    for name in METHODS:
        files.append(File.generated(config, f"methods/{name}.md", content=method_page(name)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """In the list of methods, let each name lead to its page; links out of docs/ become plain text."""
    name = page.file.src_uri
    if "/" in name:  # a method's page
        return markdown
    markdown = re.sub(r"(?<!!)\[([^\]]+)\]\((?:\.\./|results/)[^)]*\)", r"\1", markdown)
    return re.sub(r"^\| `(\w+)` \|", _link, markdown, flags=re.M) if name == INDEX else markdown


def _link(found: re.Match[str]) -> str:
    name = found[1]
    return f"| [`{name}`](methods/{name}.md) |" if name in METHODS else found[0]
