"""Parsers behind one protocol; ``PARSERS`` is the list of them, each imported only when used."""

from __future__ import annotations

import importlib
from contextlib import nullcontext
from typing import NamedTuple

from treesyntax.errors import OptionError
from treesyntax.parsers.base import Parser, ParserConfig
from treesyntax.parsers.torchaudio_remedy import broken_torchaudio_hidden

__all__ = ["PARSERS", "Kind", "Parser", "ParserConfig", "get_kind", "load_parser"]


class Kind(NamedTuple):
    """A parser.

    Attributes:
        module: where its ``load(settings, kind) -> Parser`` is.
        annotation: ``depparse`` or ``constituency``.
        packages: the packages that it needs and that its trees depend on.
        model: what ``--model`` names, for the help text.
    """

    module: str
    annotation: str
    packages: tuple[str, ...]
    model: str

    @property
    def notation(self) -> str:
        """The format of its tree files."""
        return "conllu" if self.annotation == "depparse" else "ptb"


_STANZA = "treesyntax.parsers.stanza_parser"
_FOLDER = "a folder of its models (tokenize.pt, pos.pt …), or the name of a language such as en"
PARSERS: dict[str, Kind] = {
    "stanza-dep": Kind(_STANZA, "depparse", ("stanza", "torch"), _FOLDER),
    "stanza-con": Kind(_STANZA, "constituency", ("stanza", "torch"), _FOLDER),
    "benepar": Kind(
        "treesyntax.parsers.benepar_parser",
        "constituency",
        ("benepar", "spacy", "transformers", "torch"),
        "a folder or file, or a name such as benepar_en3",
    ),
    "spacy": Kind(
        "treesyntax.parsers.spacy_parser",
        "depparse",
        ("spacy",),
        "a folder, or a name such as en_core_web_sm",
    ),
}


def get_kind(name: str) -> Kind:
    """The parser of that name.

    Raises:
        OptionError: if there is none; the message lists the names.
    """
    if name not in PARSERS:
        raise OptionError(f"no parser is named {name!r}; there are {', '.join(PARSERS)}")
    return PARSERS[name]


def load_parser(settings: ParserConfig) -> Parser:
    """Load a parser and its model.

    Raises:
        OptionError: if there is no such parser, a package is not installed, the model is not
            there (nothing is downloaded unless the settings say so) or cannot be loaded.
    """
    kind = get_kind(settings.parser)
    broken = broken_torchaudio_hidden() if "torch" in kind.packages else nullcontext()
    try:
        with broken:
            parser: Parser = importlib.import_module(kind.module).load(settings, kind)
    except ModuleNotFoundError as error:
        package = (error.name or "a package").split(".")[0]
        raise OptionError(
            f"the parser {settings.parser} needs {package}, which is not installed; "
            "run: pip install 'treesyntax[parsers]'"
        ) from None
    return parser
