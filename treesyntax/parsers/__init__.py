"""The parsers behind one protocol: ``PARSERS`` lists them, each is imported only when used."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax.errors import OptionError, unknown_name
from treesyntax.parsers.parser import Parser, ParserConfig
from treesyntax.parsers.torchaudio_remedy import broken_torchaudio_hidden

__all__ = ["PARSERS", "Kind", "Parser", "ParserConfig", "get_kind", "load_parser", "named_models"]


class Kind(NamedTuple):
    """A parser.

    Attributes:
        module: defines ``load(config, kind) -> Parser`` and, unless packaged, ``named_models(name, kind) -> list[Path]``.
        annotation: ``depparse`` or ``constituency``.
        packages: those that it needs and that its trees depend on.
        model: what ``--model`` may be, for the help text.
        packaged: whether a model by name is a package, which is upgraded apart from the others.
    """

    module: str
    annotation: str
    packages: tuple[str, ...]
    model: str
    packaged: bool = False

    @property
    def notation(self) -> str:
        """The format of its tree files."""
        return "conllu" if self.annotation == "depparse" else "ptb"


_STANZA = "treesyntax.parsers.stanza_parser"
PARSERS: dict[str, Kind] = {
    "stanza-dep": Kind(
        _STANZA,
        "depparse",
        ("stanza", "torch"),
        "a folder of its models (tokenize.pt, pos.pt …) or a language such as en",
    ),
    "stanza-con": Kind(_STANZA, "constituency", ("stanza", "torch"), "the same"),
    "benepar": Kind(
        "treesyntax.parsers.benepar_parser",
        "constituency",
        ("benepar", "spacy", "transformers", "torch"),
        "a folder, file or name such as benepar_en3",
    ),
    "spacy": Kind(
        "treesyntax.parsers.spacy_parser",
        "depparse",
        ("spacy",),
        "a folder or name such as en_core_web_sm",
        packaged=True,
    ),
}


def get_kind(name: str) -> Kind:
    """The parser of that name."""
    if name not in PARSERS:
        raise unknown_name("parser", name, PARSERS)
    return PARSERS[name]


def load_parser(config: ParserConfig) -> Parser:
    """Load a parser and its model.

    Raises:
        OptionError: if there is no such parser, a package is not installed, or the model is
            absent (it is downloaded only if the config says so) or cannot be loaded.
    """
    kind = get_kind(config.parser)
    try:
        parser: Parser = _called(kind, "load", config)
    except ModuleNotFoundError as error:
        package = (error.name or "a package").split(".")[0]
        raise OptionError(
            f"the parser {config.parser} needs {package}, which is not installed; "
            "run: pip install 'treesyntax[parsers]'"
        ) from None
    return parser


def named_models(kind: Kind, name: str) -> list[Path]:
    """The files and folders of a model that is given by its name, where its parser looks for them.

    Args:
        kind: the parser.
        name: of the model.

    Returns:
        None of them if it is not there, or the parser's packages are not installed.
    """
    if kind.packaged:
        spec = find_spec(name)
        return [Path(folder) for folder in (spec and spec.submodule_search_locations) or ()]
    try:
        paths: list[Path] = _called(kind, "named_models", name)
    except ModuleNotFoundError:
        return []
    return paths


def _called(kind: Kind, function: str, given: object) -> Any:
    """What a function of a parser's module returns. It may import torch, and then what torchaudio breaks."""
    broken = broken_torchaudio_hidden() if "torch" in kind.packages else nullcontext()
    with broken:
        return getattr(importlib.import_module(kind.module), function)(given, kind)
