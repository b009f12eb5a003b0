"""Random CoffeeScript programs, and the data sets made of them."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import fmean

import pytest
from support import SHARED, needs_data

from treesyntax.__main__ import main
from treesyntax.data.sets.coffeescript import CoffeeScriptOptions, generate_pairs
from treesyntax.data.sets.coffeescript_programs import Vocabulary, draw_tokens
from treesyntax.data.sets.compiler import PACKAGE, compile_programs, install_compiler
from treesyntax.data.sets.split import Split
from treesyntax.errors import InputError, OptionError
from treesyntax.trees.formats.coffeescript import COFFEESCRIPT
from treesyntax.trees.formats.javascript import JAVASCRIPT
from treesyntax.trees.formats.tokens import coffeescript_source, javascript_tokens
from treesyntax.trees.tree import Tree

REFERENCE = SHARED / "data" / "cs_js_drissi"


@cache
def drawn() -> list[list[str]]:
    rng = random.Random(2018)
    return [draw_tokens(rng, 32, Vocabulary()) for _ in range(6_000)]


def shares(programs: Sequence[Sequence[str]]) -> dict[str, float]:
    kinds = (
        "number" if token.isdigit() else "name" if token.startswith("a") else token
        for program in programs
        for token in program
    )
    return {kind: number / len(programs) for kind, number in Counter(kinds).items()}


@needs_data(REFERENCE)
def test_random_programs_have_the_statistics_of_the_reference() -> None:
    with gzip.open(REFERENCE / "train.coffee.gz", "rt") as stream:
        reference = [line.split() for line in islice(stream, 20_000)]
    assert fmean(map(len, drawn())) == pytest.approx(fmean(map(len, reference)), rel=0.04)
    expected, found = shares(reference), shares(drawn())
    assert found.keys() == expected.keys()
    for kind, share in expected.items():
        assert found[kind] == pytest.approx(share, rel=0.08), kind


def declared_after(program: list[str]) -> None:
    """Fails if a line of the outermost block reads what no line before declares."""
    declared: set[str] = set()
    for statement in " ".join(program).split(" <NL> "):
        words = statement.split()
        names = {word for word in words if word.startswith("a")}
        if words[1:2] == ["="]:
            assert set(words[2:]) & names <= declared
            declared.add(words[0])
        assert names <= declared


def test_only_declared_variables_are_read() -> None:
    plain = [program for program in drawn() if not {"if", "while"} & set(program)]
    assert len(plain) > 100
    for program in plain:
        declared_after(program)


def test_new_variables_come_in_order_without_limit() -> None:
    names = {token for program in drawn() for token in program if token.startswith("a")}
    assert names == {f"a{index}" for index in range(len(names))}
    assert len(names) >= 6


@pytest.mark.parametrize(("variables", "constants"), [(2, 2), (26, 10), (1, 1)])
def test_a_vocabulary_is_kept_and_used(variables: int, constants: int) -> None:
    rng = random.Random(3)
    programs = [draw_tokens(rng, 32, Vocabulary(variables, constants)) for _ in range(500)]
    words = {token for program in programs for token in program}
    assert {word for word in words if word.isdigit()} == {str(n) for n in range(constants)}
    assert {word for word in words if word.startswith("a")} == {f"a{n}" for n in range(variables)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vocabulary(0), "variables is 0; it must be 1 or more"),
        (lambda: Vocabulary(constants=0), "constants is 0; it must be 1 or more"),
        (lambda: CoffeeScriptOptions(size=-1), "size is -1; it must be 0 or more"),
        (lambda: CoffeeScriptOptions(seed=-1), "seed is -1; it must be 0 or more"),
        (lambda: make_pairs(train=-1), "train is -1; it must be 0 or more"),
    ],
)
def test_options_out_of_range_are_refused(make, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make()
    assert str(caught.value) == message


def fake_compiler(programs: Sequence[str]) -> list[str]:
    """Like the real one it gives the same text for programs that differ in form only."""
    return ["".join(sorted(program.split())) for program in programs]


def make_pairs(train: int = 0, valid: int = 0, test: int = 0, **options: int) -> Split:
    wanted = {"train": train, "valid": valid, "test": test}
    return generate_pairs(wanted, CoffeeScriptOptions(**options), fake_compiler)


def test_no_line_of_either_side_is_there_twice() -> None:
    steps: list[int] = []
    wanted = {"train": 300, "valid": 50, "test": 40}
    split = generate_pairs(wanted, CoffeeScriptOptions(size=8), fake_compiler, steps.append)
    assert {name: len(pairs) for name, pairs in split._asdict().items()} == wanted
    assert sum(steps) == 390
    pairs = [pair for part in split for pair in part]
    assert len({source for source, _ in pairs}) == len({target for _, target in pairs}) == 390
    assert split.seen() == {"valid_in_train": 0, "test_in_train": 0, "test_sources_in_train": 0}


def test_a_seed_gives_the_same_pairs() -> None:
    assert make_pairs(50, 5, 5) == make_pairs(50, 5, 5)
    assert make_pairs(50, 5, 5) != make_pairs(50, 5, 5, seed=2)


def test_a_space_that_is_too_small_is_reported() -> None:
    with pytest.raises(OptionError) as caught:
        make_pairs(train=50, size=0)
    assert str(caught.value) == (
        "50 pairs are asked for, but only 10 distinct ones turned up; ask for fewer pairs, or "
        "raise the size"
    )


# The compiler, without one


def command(out: Path, compiler: Path, *more: object) -> int:
    options = ["--out", out, "--compiler", compiler, "--train", 40, "--test", 10, *more]
    return main(["generate", "coffeescript", *map(str, options)])


def test_a_machine_without_npm_is_told_what_to_install(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command(tmp_path / "data", tmp_path / "npm") == 2
    assert capsys.readouterr().err == (
        "treesyntax generate: npm is needed to install the compiler; install "
        "Node.js with npm (https://nodejs.org)\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_machine_without_node_is_told_what_to_install(tmp_path: Path, monkeypatch):
    package = tmp_path / "node_modules" / "coffeescript"
    package.mkdir(parents=True)
    (package / "package.json").write_text(f'{{"version": "{PACKAGE.partition("@")[2]}"}}')
    monkeypatch.setenv("PATH", str(tmp_path))
    install_compiler(tmp_path)  # it is there, so npm is not asked
    with pytest.raises(OptionError) as caught:
        compile_programs(tmp_path, ["a"])
    assert str(caught.value) == (
        "node is needed to run the compiler; install Node.js with npm (https://nodejs.org)"
    )


def fake_program(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_failing_npm_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake_program(monkeypatch, tmp_path / "bin", "npm", "echo 'npm error network down' >&2; exit 1")
    folder = tmp_path / "compiler"
    with pytest.raises(InputError) as caught:
        install_compiler(folder)
    assert str(caught.value) == (
        f"{folder}: npm could not install {PACKAGE} (npm error network down); check the network, "
        f"or run npm install --prefix {folder} {PACKAGE} where there is one"
    )


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file/npm: cannot be written"):
        install_compiler(tmp_path / "file" / "npm")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'Error: no such thing' >&2; exit 1", "the compiler does not run (Error: no such "),
        ("exit 0", "the compiler does not run (no message); delete the folder"),
    ],
)
def test_a_broken_compiler_is_reported(tmp_path: Path, monkeypatch, script: str, message: str):
    fake_program(monkeypatch, tmp_path / "bin", "node", script)
    with pytest.raises(InputError) as caught:
        compile_programs(tmp_path, ["a"])
    assert message in str(caught.value)


# The real compiler


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiler; the tests that need it are skipped where it cannot be had."""
    folder = tmp_path_factory.mktemp("compiler")
    try:
        subprocess.run(["node", "--version"], check=True, capture_output=True, timeout=10)
        subprocess.run(["npm", "ping"], check=True, capture_output=True, timeout=10)
        install_compiler(folder)
    except (OSError, subprocess.SubprocessError, OptionError, InputError) as error:
        pytest.skip(f"the CoffeeScript compiler cannot be installed here: {error}")
    return folder


GROUPED = ("<ASSIGN>", "<EQUAL>", "<PLUS>", "<TIMES>")
POSTFIX = ("<POSTFIX_IF>", "<POSTFIX_WHILE>")


def grouped(tree: Tree, node: int = 0) -> str:
    """The program with the grouping of its tree made explicit by parentheses."""
    children = tree.children()[node]
    if not children:
        return tree.labels[node]
    text = " ".join(grouped(tree, child) for child in children)
    parent = tree.parents[node]
    test = parent >= 0 and tree.labels[parent] in POSTFIX and tree.branches[node] == 2
    return f"( {text} )" if tree.labels[node] in GROUPED or test else text


def without_parentheses(program: str) -> list:
    """The tree of a JavaScript program as nested lists, parentheses dissolved."""

    def nested(node: int) -> list:
        children = tree.children()[node]
        if tree.labels[node] == "<PARENTHESIZED_EXPRESSION>":
            return nested(children[1])
        return [tree.labels[node], *map(nested, children)]

    tree = JAVASCRIPT.parse(javascript_tokens(program))
    return nested(0)


def test_trees_group_as_the_compiler_does(compiler: Path) -> None:
    programs = [" ".join(program) for program in drawn()[:200]]
    explicit = [grouped(COFFEESCRIPT.parse(program)) for program in programs]
    compiled = compile_programs(compiler, [coffeescript_source(text) for text in programs])
    grouping = compile_programs(compiler, [coffeescript_source(text) for text in explicit])
    for program, left, right in zip(programs, compiled, grouping, strict=True):
        assert without_parentheses(left) == without_parentheses(right), program


@needs_data(REFERENCE)
def test_reference_programs_compile_to_the_reference(compiler: Path) -> None:
    with gzip.open(REFERENCE / "valid.raw.jsonl.gz", "rt") as stream:
        pairs = [json.loads(line) for line in islice(stream, 400)]
    compiled = compile_programs(compiler, [pair["coffee"] for pair in pairs])
    with gzip.open(REFERENCE / "valid.coffee.gz", "rt") as stream:
        again = [coffeescript_source(line) for line in islice(stream, 400)]
    assert compile_programs(compiler, again) == compiled
    for pair, text in zip(pairs, compiled, strict=True):
        assert javascript_tokens(text) == javascript_tokens(pair["js"]), pair["coffee"]


def test_what_is_not_coffeescript_is_reported(compiler: Path) -> None:
    with pytest.raises(OptionError, match=r"^not CoffeeScript \(.*unexpected.*\): 'a = = 1'$"):
        compile_programs(compiler, ["a = 1", "a = = 1"])


def test_the_command_writes_aligned_files(tmp_path: Path, compiler: Path, capsys):
    options = ("--size", 10, "--variables", 2, "--constants", 2, "--small-train", 7)
    assert command(tmp_path / "data", compiler, *options) == 0
    assert "test_sources_in_train: 0\n" in capsys.readouterr().out
    files = [path for path in (tmp_path / "data").iterdir() if path.suffix != ".json"]
    lines = {path.name: path.read_text().splitlines() for path in files}
    assert {name: len(text) for name, text in lines.items()} == {
        "train.coffee": 40, "train.js": 40, "test.coffee": 10, "test.js": 10,
        "train.7.coffee": 7, "train.7.js": 7,
    }  # fmt: skip
    compiled = compile_programs(compiler, list(map(coffeescript_source, lines["train.coffee"])))
    assert list(map(javascript_tokens, compiled)) == lines["train.js"]
    for name, text in lines.items():
        notation = COFFEESCRIPT if name.endswith("coffee") else JAVASCRIPT
        assert [notation.write(notation.parse(line)) for line in text] == text
    assert command(tmp_path / "data", compiler, *options) == 0
    assert capsys.readouterr().out.endswith("up to date\n")
