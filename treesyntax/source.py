"""Which source files a module depends on, and digests of what they say. Nothing is imported.

The files are read with `ast`. A module depends on the modules that it imports, at any place in it but under
``if TYPE_CHECKING``; on those and the files beside it that it names in a string of its own, as for
``importlib``; and on all that these depend on. Comments and docstrings are left out of the digests.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
"""The folder with ``treesyntax`` and ``fairseq_plugins``."""
OURS = ("treesyntax", "fairseq_plugins")
NO_NUMBERS = {
    "treesyntax/__init__.py": "public names, which are found where they are defined",
    "treesyntax/errors.py": "the words of messages",
    "treesyntax/made": "what may be used again, and what is refused",
    "treesyntax/jobs": "how processes are started, watched and shown",
    "treesyntax/source.py": "what counts as code",
    "treesyntax/remarks.py": "what is told of a file; what is read of it is decided elsewhere",
    "fairseq_plugins/help.py": "the words of --help",
    "fairseq_plugins/scoring.py": "scores that fairseq-generate prints; a study scores with treesyntax score",
}
"""What is imported and changes no number, with the reason."""
SUFFIX = ".py"
SUFFIXES = (SUFFIX, *EXTENSION_SUFFIXES)
_DOTTED = re.compile(r"[a-z_]\w*(\.\w+)+")
_FILE = re.compile(r"\w[\w-]*(\.\w+)+")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Root(NamedTuple):
    """A folder from which modules are found.

    Attributes:
        folder: has the modules and packages.
        packages: the names at its top that count; none for all.
    """

    folder: Path
    packages: tuple[str, ...] = ()


class Source(NamedTuple):
    """One file.

    Attributes:
        digest: SHA-256 of its code; of a file in another language, of all of it.
        imports: what it imports: the level, 0 or the number of leading dots, and the name.
        names: its strings that may name a module or a file.
        tree: the parsed code; None for another language, or for code that cannot be parsed.
    """

    digest: str
    imports: tuple[tuple[int, str], ...] = ()
    names: tuple[str, ...] = ()
    tree: ast.Module | None = None


Stamp = tuple[int, ...]
_READ: dict[Path, tuple[Stamp, Source]] = {}
"""What was read, with the stamp of the file."""
_FOLDERS: dict[Path, Stamp] = {}
"""The folders of what was read; a file that is added or removed changes their stamps."""
_EDITED: set[Path] = set()
"""Files that were read again, as others, since anybody asked."""


def read_source(file: Path) -> Source:
    """Read a file, once for as long as it stays as it is."""
    stamp = _stamp(file)
    held = _READ.get(file)
    if held is None or held[0] != stamp:
        if held is not None:
            _EDITED.add(file)
        held = _READ[file] = stamp, _read(file)
        if file.parent not in _FOLDERS:
            _FOLDERS[file.parent] = _stamp(file.parent)
    return held[1]


def files_changed() -> bool:
    """Return whether a file that was read, or what there is beside one, has changed since this was asked last."""
    changed = bool(_EDITED)
    _EDITED.clear()
    stamps = {file: stamp for file, (stamp, _) in _READ.items()} | _FOLDERS
    for path, stamp in stamps.items():
        try:
            same = _stamp(path) == stamp
        except OSError:
            same = False
        if not same:
            _READ.pop(path, None)
            _FOLDERS.pop(path, None)
            changed = True
    return changed


def _stamp(path: Path) -> Stamp:
    state = os.stat(path)
    return state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino


def closure(
    files: Iterable[Path], roots: Sequence[Root], without: Sequence[Path] = ()
) -> set[Path]:
    """The files that some files depend on, themselves included.

    Args:
        files: where to begin.
        roots: where modules are found; others, such as those of installed packages, do not count.
        without: files and folders that are passed over, with all that only they depend on.
    """
    passed_over = tuple(str(path) for path in without)
    modules: dict[str, Path | None] = {}
    reached: set[Path] = set()
    waiting = [path for file in files if file.is_file() for path in (file, *_around(file))]
    while waiting:
        file = waiting.pop()
        text = str(file)
        if file in reached or any(
            text == path or text.startswith(f"{path}/") for path in passed_over
        ):
            continue
        reached.add(file)
        waiting += (path for path in _neighbours(file, roots, modules) if path not in reached)
    return reached


def digest_of(files: Iterable[Path]) -> str:
    """One short digest of the names and the code of some files, wherever their folder lies."""
    files = sorted(files, key=lambda file: (file.name, read_source(file).digest))
    text = "".join(f"{file.name} {read_source(file).digest}\n" for file in files)
    return sha256(text.encode()).hexdigest()[:12]


def code_of_module(name: str) -> str:
    """Return the digest of the code of a module of ours and of all that it depends on; "" for any other."""
    roots = [Root(ROOT, OURS)]
    file = module_file(name, roots)
    return (
        ""
        if file is None
        else digest_of(closure([file], roots, [ROOT / left_out for left_out in NO_NUMBERS]))
    )


def module_file(name: str, roots: Sequence[Root]) -> Path | None:
    """The file of a module: ``NAME.py``, ``__init__.py`` of a package, or a compiled one without source."""
    top, *_ = words = name.split(".")
    for root in roots:
        if root.packages and top not in root.packages:
            continue
        path = os.path.join(root.folder, *words)
        for file in (f"{path}/__init__.py", *(f"{path}{suffix}" for suffix in SUFFIXES)):
            if os.path.isfile(file):
                return Path(file)
    return None


def _neighbours(
    file: Path, roots: Sequence[Root], modules: dict[str, Path | None]
) -> Iterator[Path]:
    """The files that a file depends on at first hand, with the packages that they are in.

    Args:
        file: the file.
        roots: where modules are found.
        modules: those that were looked for before.
    """
    source = read_source(file)
    for level, name in source.imports:
        if level:
            folder = file.parents[level - 1]
            yield from _with_packages(folder.joinpath(*name.split(".")) if name else folder)
    named = [name for name in source.names if _DOTTED.fullmatch(name)]
    for name in (*(name for level, name in source.imports if not level), *named):
        if name not in modules:
            modules[name] = module_file(name, roots)
            if (module := modules[name]) is not None:
                yield module
                yield from _around(module)
        elif (module := modules[name]) is not None:
            yield module
    for name in source.names:
        if _FILE.fullmatch(name) and os.path.isfile(beside := os.path.join(file.parent, name)):
            yield Path(beside)


def _around(file: Path) -> Iterator[Path]:
    """The files of the packages that a file is in."""
    folder = file.parent
    while (package := folder / "__init__.py").is_file():
        yield package
        folder = folder.parent


def _with_packages(path: Path) -> Iterator[Path]:
    """A module that a file imports with leading dots, if there is one, and its package."""
    candidates = (
        path.parent / "__init__.py",
        path / "__init__.py",
        *(path.with_name(path.name + suffix) for suffix in SUFFIXES),
    )
    yield from filter(Path.is_file, candidates)


def _read(file: Path) -> Source:
    raw = file.read_bytes()
    if file.suffix != SUFFIX:
        return Source(sha256(raw).hexdigest())
    try:
        tree = ast.parse(raw)
    except (SyntaxError, ValueError):  # importing it says what is wrong
        return Source(sha256(raw).hexdigest())
    imports: dict[tuple[int, str], None] = {}
    attributes: dict[tuple[str, str], None] = {}
    aliases: dict[str, str] = {}
    names: dict[str, None] = {}
    left_out: set[int] = set()  # numbers of lines
    texts: set[int] = set()
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        children = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.If) and _is_for_types(node.test):
            children = list(node.orelse)
        elif isinstance(node, ast.Import):
            imports |= dict.fromkeys((0, alias.name) for alias in node.names)
            aliases |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            attributes[node.value.id, node.attr] = None
        elif isinstance(node, ast.ImportFrom):
            stem = f"{node.module}." if node.module else ""
            imports |= dict.fromkeys((node.level, f"{stem}{alias.name}") for alias in node.names)
            imports[node.level, node.module or ""] = None
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
            if "." in node.value and len(node.value) < 100 and node.value.isprintable():
                names[node.value] = None
        elif isinstance(node, ast.JoinedStr):
            texts.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, _DOCUMENTED) and (line := _docstring(node)) is not None:
            left_out.update(range(line.lineno, (line.end_lineno or line.lineno) + 1))
        waiting += children
    used = {
        (0, f"{aliases[name]}.{attribute}"): None
        for name, attribute in attributes
        if name in aliases
    }
    return Source(hash_of_code(raw, left_out, texts), (*imports, *used), tuple(names), tree)


def hash_of_code(raw: bytes, left_out: set[int], texts: set[int]) -> str:
    """SHA-256 of the lines of a file without docstrings, comments on lines of their own and empty lines.

    Args:
        raw: the file.
        left_out: numbers of the lines of docstrings.
        texts: numbers of lines inside strings, which stay as they are.
    """
    digest = sha256()
    for number, line in enumerate(raw.splitlines(), start=1):
        bare = line.strip()
        if number in left_out or (number not in texts and (not bare or bare.startswith(b"#"))):
            continue
        digest.update(line.rstrip() if number not in texts else line)
        digest.update(b"\n")
    return digest.hexdigest()


def _docstring(node: ast.AST) -> ast.Expr | None:
    first = next(iter(getattr(node, "body", [])), None)
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        return first
    return None


def _is_for_types(test: ast.expr) -> bool:
    return (test.id if isinstance(test, ast.Name) else getattr(test, "attr", "")) == "TYPE_CHECKING"
