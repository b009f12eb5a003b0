"""The code that can change the numbers of a step, as digests of its files and versions of packages.

The code of a step is what its entry modules import, and what that imports in turn: see
:mod:`treesyntax.source`. Methods count for the runs that name them. What cannot change a number is listed in
`NO_NUMBERS`; everything else counts, so that a new file cannot be forgotten.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import EntryPoint
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from treesyntax.jobs import imports
from treesyntax.jobs.imports import listed
from treesyntax.source import (
    NO_NUMBERS,
    OURS,
    ROOT,
    Root,
    closure,
    digest_of,
    files_changed,
    module_file,
    read_source,
)
from treesyntax.study import provenance
from treesyntax.study.provenance import (
    INSTALLED,
    MISSING,
    PACKAGES,
    folder_of,
    revision_of,
    version_of,
    version_of_module,
)
from treesyntax.study.run.process import FINETUNE
from treesyntax.study.run.steps import MODEL, OUT

ENTRIES = {
    "binarize": ("treesyntax.commands.binarize",),
    "train": ("fairseq_plugins",),
    "average": ("treesyntax.commands.average",),
    "generate": ("fairseq_plugins",),
    "hypotheses": ("treesyntax.study.run.hypotheses",),
    "score": ("treesyntax.commands.score",),
    "facts": ("treesyntax.analysis.facts",),
}
"""The modules that each kind of step runs. Reports, help and the running of studies change no number."""
FINETUNING = {
    **ENTRIES,
    "train": ("treesyntax.finetune.command", "treesyntax.finetune.training"),
    "generate": ("treesyntax.finetune.command", "treesyntax.finetune.outputs"),
    "facts": ("treesyntax.finetune.job",),
}
"""The same where a pretrained model is finetuned."""
PREPARE = "prepare"
PREPARES = {
    "binarize": "treesyntax.commands.binarize",
    "data": "treesyntax.commands.data",
    "finetune": "treesyntax.finetune.data",
    "generate": "treesyntax.commands.generate",
    "parse": "treesyntax.commands.parse",
}
"""The modules of the commands of ours that make data."""
NO_MODEL = {"facts": ("nn", "data", "model/composition.py", "model/encoder.py", "model/layers.py")}
"""By kind of step the files in ``treesyntax`` that are imported, but not used: facts are numbers in a checkpoint."""
METHODS, PRESETS = "treesyntax/methods", "treesyntax/model/presets.py"
"""They count for the runs that name them."""
WITH_METHODS = ("train", "generate")
GROUPS_OF = {
    "train": (imports.METHODS, imports.FORMATS, imports.METRICS),
    "generate": (imports.METHODS, imports.FORMATS),
    "binarize": (imports.FORMATS,),
    "hypotheses": (imports.FORMATS,),
    "score": (imports.METRICS, imports.FORMATS),
    PREPARE: (imports.DATA_SETS, imports.FORMATS),
}
"""By kind of step the entry points whose modules it may import."""
NAMING = ("--metric", "--notation", "--source-format", "--target-format", "--format")
"""The flags whose values name metrics and formats."""
BEST_BY = "metric_for_best_model="
"""Begins the setting of a finetuning that names a metric, which chooses the checkpoint."""
REGISTER = ("register", "register_metric", "register_format", "register_data_set")
"""The functions that make something of a user's own known by name."""
TRAINER = ("torch", "fairseq")
FINETUNER = ("torch", "transformers", "accelerate", "tokenizers")
"""The packages of trainings and outputs, which import more of them than our code does; the second of a pretrained model."""
PARSER = "treesyntax.parsers.{}_parser"
OF_PARSERS = {name: PARSER.format(name) for name in ("stanza", "benepar", "spacy")}
"""Packages that count where a command names them, each with the module of its parsers."""
OWN = "own/"
"""Begins the parts that are files of the user's own, and the names that they register."""
PACKAGE = f"{OWN}package "
"""Begins the parts that are packages which files of the user's own import."""
NAMELESS, NO_MODULES = f"{OWN}of no name", "none"
"""The part of all files that register nothing, or nobody knows what, and what stands there without any."""
_PACKAGES: list[object] = []
"""The folders of packages and the entry points that there were at the last look."""
BOTH = " and "
"""Between the digests, or versions, of a part that was made by several."""
RULE, FIRST_RULE, THIS_RULE = "rule", "1", "2"
"""The part that says how code was told apart: 1, of records without it, was a list of folders."""


class Module(NamedTuple):
    """A module of the user's own.

    Attributes:
        files: its file, and those that it depends on.
        registered: what they register.
        packages: the digest, or the version, of each package elsewhere that they import.
    """

    files: frozenset[Path]
    registered: Registered
    packages: Mapping[str, str]


class Registered(NamedTuple):
    """What the methods, metrics, formats and data sets in some files are called.

    Attributes:
        names: those that are registered.
        specs: the specifications that an architecture of a method stands for.
        readable: whether all names can be read.
    """

    names: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    readable: bool = True


def code_of(
    kind: str, command: Sequence[str] = (), user_files: Sequence[Path] = ()
) -> dict[str, str]:
    """Return digests and versions of a kind of step by ``KIND: ROOM`` and ``KIND: PACKAGE``.

    Args:
        kind: see :attr:`treesyntax.study.run.steps.Step.kind`.
        command: the words of the step; of a step of a run before them those of its training and its binarize, which
            name methods and formats.
        user_files: files of the user's own.
    """
    root = ROOT
    finetunes = tuple(command[:1]) == (FINETUNE,)
    modules, trainer = (FINETUNING, FINETUNER) if finetunes else (ENTRIES, TRAINER)
    packages = set(trainer if kind in WITH_METHODS else ())
    if kind == PREPARE:
        code = dict(_of_preparing(tuple(command), root))
        packages |= _imported_by_commands(tuple(command), root)
    else:
        entries, unused = modules.get(kind, ()), NO_MODEL.get(kind, ())
        code = dict(_of_entries(entries, root, unused))
        packages |= _imported(entries, root, unused) - OF_PARSERS.keys()
    files = tuple(dict.fromkeys((*user_files, *listed(os.environ))))
    if kind in WITH_METHODS:
        base = modules["train"]
        code |= _of_methods(_method_words(command), _named_by_flags(command), files, root, base)
        code |= _of_model(command)
    elif kind in GROUPS_OF:
        names, entries = _named_by_flags(command), ENTRIES.get(kind, (PREPARES["data"],))
        if kind == PREPARE:  # may be the text of a command for a shell
            names = frozenset(re.findall(r"\w+", " ".join(command)))
        code |= _of_user_modules(kind, names, files, _base(entries, root), root)
    for name in packages:
        code.pop(f"{PACKAGE}{name}", None)
    if code:
        code[RULE] = THIS_RULE
    code |= {name: version_of(name) for name in sorted(packages)}
    return {f"{kind}: {name}": value for name, value in code.items()}


def code_of_users(files: Iterable[Path]) -> dict[str, str]:
    """Return digests of all that users add: files, and modules of entry points, with what they import of theirs."""
    each = dict.fromkeys((*files, *listed(os.environ)))
    digests = {str(file): digest_of(closure([file], _user_roots(file))) for file in each}
    entries = {entry for group in imports.GROUPS for entry in imports.entries_of(group)}
    return digests | {entry.value: digest_of(_entry_files(entry, ROOT)) for entry in entries}


def trainer_versions(code: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of the packages that trained, of the code of a training."""
    known = dict.fromkeys((*TRAINER, *FINETUNER))
    return {name: code[label] for name in known if (label := f"train: {name}") in code}


def look_again() -> None:
    """Look whether files or packages have changed: a step that starts imports the code as it is then."""
    entries = [entry for group in imports.GROUPS for entry in imports.entries_of(group)]
    packages = [imports.import_folders(), entries]
    provenance.look_at_edits()
    if not files_changed() and packages == _PACKAGES:
        return
    _PACKAGES[:] = packages
    for function in (
        _of_entries,
        _imported,
        _of_preparing,
        _of_methods,
        _base,
        _registry,
        _presets,
        _user_modules,
        _entry_files,
    ):
        function.cache_clear()
    provenance.look_at_names()


def merged(codes: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the code of several steps; where one part has several digests, all of them."""
    values = _values(codes)
    return {name: BOTH.join(sorted(digests)) for name, digests in values.items()}


def mixed_parts(codes: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the parts of code, such as ``train: nn``, that surely have different digests."""
    values = _values(codes)
    unknown = set(_unknown_kinds(values))
    return [
        label
        for label, digests in values.items()
        if len(digests) > 1 and (_kind(label) not in unknown or _is_version(label))
    ]


def unknown_parts(codes: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the kinds of steps whose code was recorded by different rules: nobody knows if it is the same."""
    return _unknown_kinds(_values(codes))


def of_first_rule(code: Mapping[str, str]) -> bool:
    """Return whether a part of the code was recorded by the rule that did not watch all of it."""
    return any(
        FIRST_RULE in digests for label, digests in _values([code]).items() if _is_rule(label)
    )


def _values(codes: Iterable[Mapping[str, str]]) -> dict[str, set[str]]:
    """All digests of each part."""
    values: dict[str, set[str]] = {}
    for code in codes:
        for kind in {_kind(label) for label in code if ": " in label and not _is_version(label)}:
            rule = f"{kind}: {RULE}"
            values.setdefault(rule, set()).update(code.get(rule, FIRST_RULE).split(BOTH))
        for label, value in code.items():
            values.setdefault(label, set()).update(value.split(BOTH))
    return values


def _unknown_kinds(values: Mapping[str, set[str]]) -> list[str]:
    return [_kind(label) for label, rules in values.items() if _is_rule(label) and len(rules) > 1]


def _kind(label: str) -> str:
    return label.partition(": ")[0]


def _is_rule(label: str) -> bool:
    return label.endswith(f": {RULE}")


def _is_version(label: str) -> bool:
    return label.partition(": ")[2] in PACKAGES


@cache
def _of_entries(
    entries: tuple[str, ...], root: Path, unused: tuple[str, ...] = ()
) -> dict[str, str]:
    """The digests of what some modules depend on, by room."""
    rooms: dict[str, list[Path]] = {}
    for file in sorted(_base(entries, root, unused)):
        words = file.relative_to(root).parts
        rooms.setdefault(words[0] if words[0] != OURS[0] else words[1], []).append(file)
    return {room: digest_of(files) for room, files in rooms.items()}


@cache
def _imported(entries: tuple[str, ...], root: Path, unused: tuple[str, ...] = ()) -> frozenset[str]:
    """The packages that numbers depend on among those that some modules, and what they depend on, import."""
    return _packages_of(_base(entries, root, unused))


def _packages_of(files: Iterable[Path]) -> frozenset[str]:
    """The same of some files alone."""
    sources = [read_source(file) for file in files]
    modules = {name for source in sources for level, name in source.imports if not level}
    modules |= {name for source in sources for name in source.names}
    return frozenset(name.partition(".")[0] for name in modules) & PACKAGES.keys()


def _imported_by_commands(words: tuple[str, ...], root: Path) -> set[str]:
    """The packages of a command of the recipe."""
    packages: set[str] = set()
    for module in _commands_of(words).values():
        packages |= _imported((module,), root)
    text = " ".join(words)
    files = [module_file(OF_PARSERS[name], _roots(root)) for name in OF_PARSERS if name in text]
    return packages - OF_PARSERS.keys() | _packages_of(filter(None, files))


def _commands_of(words: tuple[str, ...]) -> dict[str, str]:
    """Our commands that a command of the recipe is, or that its text may run, with the module of each."""
    text = " ".join(words)
    ours = words[:1] == OURS[:1]
    return {
        name: module
        for name, module in PREPARES.items()
        if (words[1:2] == (name,) if ours else OURS[0] in text)
    }


@cache
def _base(entries: tuple[str, ...], root: Path, unused: tuple[str, ...] = ()) -> frozenset[Path]:
    """The files that some modules depend on, whatever the methods."""
    roots = _roots(root)
    files = [file for entry in entries if (file := module_file(entry, roots)) is not None]
    without = [*_left_out(root), *_method_files(root), root / PRESETS]
    without += [root / OURS[0] / name for name in unused]
    return frozenset(closure(files, roots, without))


@cache
def _of_preparing(words: tuple[str, ...], root: Path) -> dict[str, str]:
    """The digests of a command of the recipe: all commands of ours that its text may run, and its scripts."""
    digests: dict[str, str] = {}
    for name, module in _commands_of(words).items():
        digests |= {
            f"{name}/{room}": digest for room, digest in _of_entries((module,), root).items()
        }
    for file, folder in () if words[:1] == OURS[:1] else _scripts(words):
        roots = [*_roots(root), *_user_roots(folder / file.name)]
        files = closure([file], roots, _left_out(root))
        digests[f"{OWN}{file.name}"] = digest_of(files)
        packages = _of_packages(files, roots, root)
        digests |= {f"{PACKAGE}{name}": value for name, value in packages.items()}
    return digests


def _scripts(words: Sequence[str]) -> Iterator[tuple[Path, Path]]:
    """The Python files that a command of the recipe runs, each with the folder where it finds other modules.

    They are named as files, or as modules after ``-m``. A word of the command may be the text of one for a shell.
    """
    before, here = "", Path()
    shell_words = [[word] if Path(word).is_file() else word.split() for word in words]
    for word in chain.from_iterable(shell_words):
        file = Path(word)
        if file.suffix == ".py" and file.is_file():
            yield file, file.parent
        elif before == "-m" and word.partition(".")[0] not in OURS:
            for name in (f"{word}.__main__", word):
                if (module := module_file(name, [Root(here)])) and module.suffix == ".py":
                    yield module, here
        before = word


def _of_model(command: Sequence[str]) -> dict[str, str]:
    """The revision of a pretrained model in the cache; one in a folder is part of the key."""
    return {
        f"model {name}": revision_of(name)
        for flag, name in pairwise(command)
        if flag == MODEL and OUT not in name and not os.path.exists(name)
    }


def _method_words(command: Sequence[str]) -> tuple[str, str]:
    """The architecture, and all specifications of methods, in the command of a training."""
    archs: list[str] = []
    specs: list[str] = []
    words = iter(command)
    for word in words:
        flag, equals, value = word.partition("=")
        name = flag.replace("_", "-")
        if name == "--arch" or (name.startswith("--") and name.endswith("-injection")):
            (archs if name == "--arch" else specs).append(value if equals else next(words, ""))
    return " ".join(archs), " ".join(specs)


def _named_by_flags(command: Sequence[str]) -> frozenset[str]:
    """The metrics and formats that the flags of a command name: of ``tree:lambda`` both words."""
    names: set[str] = set()
    words = iter(command)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in NAMING or word.startswith(BEST_BY):
            names.update(re.findall(r"\w+", value if equals else next(words, "")))
    return frozenset(names)


@cache
def _of_methods(
    words: tuple[str, str],
    others: frozenset[str],
    files: tuple[Path, ...],
    root: Path,
    modules: tuple[str, ...],
) -> dict[str, str]:
    """The digests of the methods and presets that a training names, and of the user's own modules."""
    registry, presets = _registry(root), _presets(root)
    user_methods = [module.registered for module in _user_modules("train", files, root).values()]
    arch, specs = words
    known = {*registry, *(name for registered in user_methods for name in registered.names)}
    first = set(_of_arch(arch, known))
    waiting = [*re.findall(r"\w+", specs), *first]
    digests: dict[str, str] = {}
    named: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in named:
            continue
        named.add(name)
        if name in presets:
            digests[f"preset {name}"] = sha256(presets[name].encode()).hexdigest()[:12]
            waiting += re.findall(r"\w+", presets[name])
        of_paper = [registry[name][1]] if name in registry else []
        of_paper += [registered for registered in user_methods if name in registered.names]
        if name in first:
            waiting += re.findall(
                r"\w+", " ".join(spec for registered in of_paper for spec in registered.specs)
            )
    base = _base(modules, root)
    without = [*_left_out(root), root / PRESETS]
    for name in sorted(named & registry.keys()):
        digests[f"method {name}"] = digest_of(
            closure([registry[name][0]], _roots(root), without) - base
        )
    return digests | _of_user_modules("train", frozenset(named) | others, files, base, root)


def _of_user_modules(
    kind: str, names: frozenset[str], files: tuple[Path, ...], base: frozenset[Path], root: Path
) -> dict[str, str]:
    """The digests of the user's own modules that register one of some names, by file and by name.

    One that registers nothing may still change trainings, and one of which nobody can read what it registers may
    change everything. By name they are the same part wherever a newer version lies: ``v1.py`` and ``v2.py`` are two
    files, and no digest of the one is ever compared with the other's.
    """
    modules = _user_modules(kind, files, root)
    counted = {
        label: module
        for label, module in modules.items()
        if names.intersection(module.registered.names)
        or not module.registered.readable
        or (kind in WITH_METHODS and not module.registered.names)
    }
    digests = {label: digest_of(module.files - base) for label, module in counted.items()}
    known = {name for module in modules.values() for name in module.registered.names}
    for name in sorted(names & known):
        holders = [module.files for module in modules.values() if name in module.registered.names]
        digests[f"{OWN}{name}"] = digest_of(frozenset().union(*holders) - base)
    if kind in WITH_METHODS:
        nameless = [module.files for module in counted.values() if not module.registered.names]
        digests[NAMELESS] = (
            digest_of(frozenset().union(*nameless) - base) if nameless else NO_MODULES
        )
    for module in counted.values():
        digests |= {f"{PACKAGE}{name}": value for name, value in module.packages.items()}
    return digests


@cache
def _user_modules(kind: str, files: tuple[Path, ...], root: Path) -> dict[str, Module]:
    """Each module of the user's own.

    Args:
        kind: of a step, which imports some entry points.
        files: those that the recipe or the environment names.
        root: a checkout of this repository.
    """
    modules: dict[str, set[Path]] = {}
    packages: dict[str, dict[str, str]] = {}
    for file in files:  # two may have the same name
        label, roots = f"{OWN}{file.name}", [*_roots(root), *_user_roots(file)]
        module_files = closure([file], roots, _left_out(root))
        modules.setdefault(label, set()).update(module_files)
        packages.setdefault(label, {}).update(_of_packages(module_files, roots, root))
    entries = {
        f"{OWN}{entry.value}": entry
        for group in GROUPS_OF.get(kind, ())
        for entry in imports.entries_of(group)
    }
    for label, entry in entries.items():
        modules[label] = {*_entry_files(entry, root)}
        packages[label] = _of_packages(modules[label], _entry_roots(entry, root), root)
    registered = {
        label: _registered_in(_of_the_user(module, root)) for label, module in modules.items()
    }
    for label, entry in entries.items():
        if names := registered[label].names:
            registered[label] = registered[label]._replace(names=(*names, entry.name))
    return {
        label: Module(frozenset(module), registered[label], packages[label])
        for label, module in modules.items()
    }


def _of_the_user(files: Iterable[Path], root: Path) -> Iterator[Path]:
    ours = {root / package for package in OURS}
    return (file for file in files if not ours & {*file.parents})


def _of_packages(files: set[Path], roots: Sequence[Root], root: Path) -> dict[str, str]:
    """What files of the user's own import from elsewhere, by package.

    Of an installed package the version; of one without a version, and of one that lies in a folder where it is edited,
    as ``pip install -e`` leaves it, the digest of the files of it that are imported.

    Args:
        files: those of a module, with what is found by the roots.
        roots: where the module finds others.
        root: a checkout of this repository.
    """
    values: dict[str, str] = {}
    edited: dict[str, Root] = {}
    seen = {*sys.stdlib_module_names, *OURS, "__main__"}
    reached, known = files, -1
    while known < len(edited):  # one of these may import another
        known = len(edited)
        for file in _of_the_user(reached, root):
            tops = {
                name.partition(".")[0] for level, name in read_source(file).imports if not level
            }
            for top in sorted(tops - seen):
                seen.add(top)
                if module_file(top, roots) or _is_folder_in(top, roots):
                    continue
                if (folder := folder_of(top)) is None:
                    values[top] = MISSING  # a module may do without it
                elif INSTALLED.intersection(folder.parts) and (version := version_of_module(top)):
                    values[top] = version
                else:
                    edited[top] = Root(folder, (top,))
        reached = closure(files, [*roots, *edited.values()], _left_out(root)) if edited else files
    for top, its_root in edited.items():
        inside = {its_root.folder / top, module_file(top, [its_root])}
        values[top] = digest_of(file for file in reached - files if inside & {file, *file.parents})
    return values


def _is_folder_in(top: str, roots: Sequence[Root]) -> bool:
    """Whether a name is a package without ``__init__.py`` in one of some folders."""
    return any((root.folder / top).is_dir() for root in roots if not root.packages)


def _of_arch(arch: str, methods: Iterable[str]) -> list[str]:
    """The method of ``tree_METHOD`` or ``tree_METHOD_SIZE``: the longest name that fits."""
    longest = []
    for word in arch.split():
        rest = f"{word.removeprefix('tree_')}_"
        fits = [
            name for name in methods if word.startswith("tree_") and rest.startswith(f"{name}_")
        ]
        longest += sorted(fits, key=len)[-1:]
    return longest


@cache
def _registry(root: Path) -> dict[str, tuple[Path, Registered]]:
    """The file of each of our methods, and what is in it."""
    registry: dict[str, tuple[Path, Registered]] = {}
    for file in _method_files(root):
        methods = _registered_in([file])
        registry |= dict.fromkeys(methods.names, (file, methods))
    return registry


def _method_files(root: Path) -> list[Path]:
    return sorted((root / METHODS).rglob("[!_]*.py"))


@cache
def _presets(root: Path) -> dict[str, str]:
    """The specification of each preset, read from their file."""
    file = root / PRESETS
    specs: dict[str, str] = {}
    tree = read_source(file).tree if file.is_file() else None
    for node in ast.walk(tree) if tree else ():
        if not isinstance(node, ast.Dict):
            continue
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
                texts = [
                    constant.value
                    for argument in [*value.args[:1], *(word.value for word in value.keywords)]
                    for constant in ast.walk(argument)
                    if isinstance(constant, ast.Constant)
                ]
                specs[str(key.value)] = " ".join(map(str, texts))
    return specs


def _registered_in(files: Iterable[Path]) -> Registered:
    """What some files register, as far as that can be read."""
    each = [_registered_by(file, read_source(file).digest) for file in files]
    if not all(registered.readable for registered in each):
        return Registered(readable=False)
    return Registered(
        tuple(name for registered in each for name in registered.names),
        tuple(spec for registered in each for spec in registered.specs),
    )


@cache
def _registered_by(file: Path, digest: str) -> Registered:
    """What a file with that digest registers."""
    names: dict[str, None] = {}
    specs: list[str] = []
    nodes = list(ast.walk(read_source(file).tree or ast.Module([], [])))
    assigned = {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            if any(alias.name in REGISTER and alias.asname for alias in node.names):
                return Registered(readable=False)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if called not in REGISTER:
                continue
            if (name := _name_in(node, assigned)) is None:
                return Registered(readable=False)
            names[name] = None
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(target, "id", "") == "of_the_paper" for target in targets):
                constants = ast.walk(node.value)
                specs += [str(text.value) for text in constants if isinstance(text, ast.Constant)]
    return Registered(tuple(names), tuple(specs))


def _name_in(call: ast.Call, assigned: Mapping[str, ast.expr]) -> str | None:
    """The name in ``register("NAME")``, or in ``register_format(Format("NAME", …))``; None if it cannot be read."""
    first: ast.expr | None = call.args[0] if call.args else None
    keywords = [word.value for word in call.keywords if word.arg == "name"]
    if isinstance(first, ast.Name):
        first = assigned.get(first.id)
    if isinstance(first, ast.Call):
        return _name_in(first, {})
    name = next(iter(keywords), first)
    return str(name.value) if isinstance(name, ast.Constant) else None


@cache
def _entry_files(entry: EntryPoint, root: Path) -> frozenset[Path]:
    """The module of an entry point with what it imports of its package. Nothing is executed, not even the package."""
    roots = _entry_roots(entry, root)
    file = module_file(entry.module, roots)
    return frozenset() if file is None else frozenset(closure([file], roots, _left_out(root)))


def _entry_roots(entry: EntryPoint, root: Path) -> list[Root]:
    top = entry.module.partition(".")[0]
    folder = folder_of(top)
    return _roots(root) if folder is None else [*_roots(root), Root(folder, (top,))]


def _roots(root: Path) -> list[Root]:
    return [Root(root, OURS)]


def _user_roots(file: Path) -> list[Root]:
    """Where a file of the user's own finds the user's modules: beside it, and in folders of PYTHONPATH.

    Folders of installed packages, which clusters list there too, are none: they have versions.
    """
    names = [name for name in os.environ.get("PYTHONPATH", "").split(os.pathsep) if name]
    folders = [path for path in map(Path, names) if path.is_absolute()]
    folders = [path for path in folders if not INSTALLED.intersection(path.parts)]
    return [Root(file.parent), *map(Root, folders)]


def _left_out(root: Path) -> list[Path]:
    return [root / name for name in NO_NUMBERS]
