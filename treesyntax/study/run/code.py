"""The code that can change the numbers of a step, as digests of its files and versions of packages."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from treesyntax.jobs.imports import digests
from treesyntax.study.provenance import versions

PACKAGE = Path(__file__).parents[2]
TREES = "trees/**/*.py"
MODEL = (TREES, "data/*.py", "nn/*.py", "model/*.py", "../fairseq_plugins/*.py")
FILES: dict[str, tuple[str, ...]] = {
    "prepare": (TREES, "parsers/*.py", "data/generate/*.*"),
    "binarize": (TREES, "data/*.py", "data/binarize/*.py"),
    "train": MODEL,
    "average": ("commands/average.py",),
    "generate": (*MODEL, "decoding/*.py"),
    "hypotheses": (TREES, "study/run/hypotheses.py"),
    "score": (TREES, "metrics/*.py", "commands/score.py"),
    "facts": ("analysis/facts.py",),
}
"""By kind of step the files of its code. Reports, help and the running of studies change no number."""
PACKAGES = {
    "train": ("torch", "fairseq"),
    "generate": ("torch", "fairseq"),
    "score": ("sacrebleu",),
}
BOTH = " and "
"""Between the digests, or versions, of a part that was made by several."""
_PRESET = re.compile(r'"(\w+)": Preset\(\s*"([^"]+)"')


def code_of(kind: str, methods: str, own: Sequence[Path] = ()) -> dict[str, str]:
    """Digests and versions of a kind of step by ``KIND: FILES`` and ``KIND: PACKAGE``.

    Args:
        kind: see :attr:`treesyntax.study.run.steps.Step.kind`.
        methods: the training command of the run. Of the methods only those count that it names, so
            that a new method leaves the runs of others as they are.
        own: files with methods of the user's own.
    """
    patterns = [*FILES.get(kind, ())]
    if MODEL[-1] in patterns:
        patterns += _named_methods(methods)
    parts = {pattern: _digest(pattern) for pattern in patterns}
    if MODEL[-1] in patterns:
        parts |= digests(methods, own)
    parts |= {name: versions()[name] for name in PACKAGES.get(kind, ())}
    return {f"{kind}: {name}": value for name, value in parts.items()}


def look_again() -> None:
    """Read the files anew: a step that starts imports the code as it is then."""
    _digest.cache_clear()
    _named_methods.cache_clear()


@cache
def _digest(pattern: str) -> str:
    digest = hashlib.sha256()
    for file in sorted(PACKAGE.glob(pattern)):
        if file.suffix in (".py", ".js"):
            digest.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()[:12]


@cache
def _named_methods(command: str) -> list[str]:
    presets = _PRESET.findall((PACKAGE / "model/composition.py").read_text("utf-8"))
    named = " ".join([command, *(spec for name, spec in presets if name in command)])
    files = sorted((PACKAGE / "methods").rglob("*.py"))
    wanted = [file for file in files if file.stem in named or file.stem == "__init__"]
    return [file.relative_to(PACKAGE).as_posix() for file in wanted]


def merged(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The code of several steps; where one part has several digests, all of them."""
    found: dict[str, set[str]] = {}
    for part in parts:
        for name, value in part.items():
            found.setdefault(name, set()).update(value.split(BOTH))
    return {name: BOTH.join(sorted(values)) for name, values in found.items()}


def mixed_parts(codes: Iterable[Mapping[str, str]]) -> list[str]:
    """The parts of code, such as ``train: nn/*.py``, that have different digests."""
    found: dict[str, set[str]] = {}
    for code in codes:
        for part, digest in code.items():
            found.setdefault(part, set()).update(digest.split(BOTH))
    return [part for part, digests in found.items() if len(digests) > 1]
