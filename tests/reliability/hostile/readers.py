"""Every reader of files, with small valid files for it: what the tests of hostile input vary."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import support.fake_parser as fake_parser
import yaml
from support import write_store
from support.study_helpers import recipe_content, result

from treesyntax.__main__ import main
from treesyntax.data.dictionary import EOS, Dictionary
from treesyntax.data.manifest import check_tokens, side_of
from treesyntax.data.sets.folder import read_manifest, write_data_set
from treesyntax.data.token_files import TokenData, write_tokens
from treesyntax.data.tree_store import PREAMBLE, TreeArrays, TreeStore
from treesyntax.errors import TreeSyntaxError
from treesyntax.parsers import PARSERS
from treesyntax.parsers.record_text import read_offsets
from treesyntax.study.recipe.identity import read_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.run.failures import read_failures
from treesyntax.study.run.hypotheses import read_hypotheses
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.plan import make_plan
from treesyntax.trees.formats import FORMATS, read_trees
from treesyntax.trees.tree import Tree

PARSERS.update(fake_parser.KINDS)


@dataclass(frozen=True)
class Reader:
    """A reader of one kind of file.

    Attributes:
        file: the name of the file that is varied, inside a folder of its own.
        prepare: makes the folder with valid files.
        read: reads the folder and everything in the file.
    """

    file: str
    prepare: Callable[[Path], object]
    read: Callable[[Path], object]


TEXTS = {
    "conllu": "# text = a b\n1-2\tab\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "1\ta\t_\tX\t_\t_\t2\tdet\t_\tstart_char=0|end_char=1\n"
    "2\tb\t_\t_\t_\t_\t0\troot\t_\tstart_char=1|end_char=2\n2.1\tc\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
    "1\té\t_\t_\t_\t_\t0\troot\t_\t_\n\n",
    "ptb": "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sees) (-LRB- -LRB-))))\n\n( (X y) )\n",
    "mrg": "( (S (NP (DT the)\n   (NN cat))\n (VP (VBZ sees))) )\n\n( (X y) )\n",
    "sexpr": "( lambda $0 e ( and ( f $0 ) ( ) ( x ) ) )\nx\n\n( ( f a ) b )\n",
    "sexpr_bare": "lambda $0 e ( and ( f $0 ) ( ) )\nx\n\n",
    "prolog": "job ( ANS ) , \\+ ( a ; 'b c' ( X ) , d )\n\n( a , b ) ; c\nf ( ( a , b ) , c )\n",
    "jsonl": '["S", ["NP", "a", 1.5e3], "\\u00e9"]\n{"parents": [-1, 0], "labels": ["a", "b"], '
    '"words": [-1, 0], "branches": [0, 2], "relations": ["x", "y"]}\n\n"a"\n',
    "for": "for a1 = 0 ; a1 < 9 ; a1 + 1 do a0 = a1 - ( 2 + a3 ) endfor ; a2 = 1\n\n"
    "if a0 == 1 then a1 = 2 else ( a1 = 3 ) endif\n",
    "lambda": "let a8 = letrec a9 a1 = if a1 < 3 then unit else a9 ( a1 + 1 ) in a9 0 in unit\n\n",
    "coffeescript": "if a0 == 1 <IND> a0 = 2 <NL> b = a * ( c + 1 ) <DED> <NL> else <IND> x <DED>\n"
    "x = 1 while y if z\n\nif a then b else c\n",
    "javascript": "if ( a0 === 1 ) { a0 = 2 ; } else { while ( x ) { y = x * 3 ; } }\n\nvar a , b ;\n",
    "cogs": "* a ( x _ 4 ) ; b . c ( x _ 2 , D ) AND b . e ( x _ 2 , x _ 4 )\n\nLAMBDA a . b ( a )\n",
    "funql": "answer _a ( intersection _b c d _e all ( or _f g h ) )\n\ncount _services a b c d\n",
    "cogs_varfree": "a ( b = * c ( d . e = f ) , g = H )\n\nx\n",
}


def _tree_file(name: str, folder: Path) -> None:
    folder.joinpath("input").write_text(TEXTS[name], encoding="utf-8", newline="")


def _read_trees(name: str, folder: Path) -> None:
    for tree in read_trees(folder / "input", name):
        tree.last_descendants  # noqa: B018, what everybody derives from a tree
        FORMATS[name].write(tree) if name not in ("javascript", "coffeescript") else None


PREFIX = "train.a-b.a"


def tokens(folder: Path, prefix: str = PREFIX) -> None:
    """Token files, a dictionary and a tree store of three sentences."""
    trees = [Tree([-1, 0, 1, 0], ["a"] * 4), Tree([], []), Tree([-1, 0, 0], ["b"] * 3)]
    sizes, nodes = [4, 0, 3], [0, 1, -1, 3, 0, 2, 1]
    ids = np.array([4, 5, 6, 4, 5, 5, 4])
    fingerprint = write_tokens(folder / prefix, [(ids, np.array(sizes))], 8, EOS)
    flat = (
        np.array([v for tree in trees for v in getattr(tree, name).tolist()])
        for name in ("parents", "branches")
    )
    arrays = TreeArrays(np.array([4, 0, 3]), np.array(sizes), *flat, np.array(nodes))
    write_store(folder / f"{prefix}.tree", "words", [arrays], fingerprint)
    Dictionary([("x", 9), ("é", 3), ("z", 1), ("w", 0)]).write(folder / "dict.a.txt")


def _command(words: list[object]) -> None:
    """A command whose fault is one line on stderr; it comes out as a TreeSyntaxError again."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(word) for word in words])
    if status:
        text = err.getvalue()
        assert status == 2, status
        assert text.startswith(f"treesyntax {words[0]}: "), text
        assert text.count("\n") == 1, text
        raise TreeSyntaxError(text)


def _read_store(folder: Path) -> None:
    store = TreeStore(folder / "train.a-b.a.tree")
    store.check_files(TokenData(folder / "train.a-b.a"))
    for stored in store:
        assert all(array.dtype == np.int64 for array in stored if array is not None)


def _read_store_alone(folder: Path) -> None:
    """The file by itself: what it holds are trees, whatever its checksums say."""
    path = folder / "train.a-b.a.tree"
    _forge_checksums(path)
    for tree in TreeStore(path):
        numbers = np.arange(len(tree.parents))
        assert ((tree.parents >= -1) & (tree.parents < numbers)).all()
        assert ((tree.token_nodes >= -1) & (tree.token_nodes < len(numbers))).all()


def _forge_checksums(path: Path) -> None:
    """As a forger would: make the checksums fit what is there."""
    raw = bytearray(path.read_bytes())
    with contextlib.suppress(Exception):
        magic, version, length, _ = PREAMBLE.unpack_from(raw)
        header = json.loads(raw[PREAMBLE.size : PREAMBLE.size + length])
        for entry in header["arrays"].values():
            size = entry["count"] * np.dtype(entry["dtype"]).itemsize
            entry["crc32"] = zlib.crc32(raw[entry["offset"] : entry["offset"] + size])
        text = json.dumps(header).encode()
        start = PREAMBLE.pack(magic, version, len(text), zlib.crc32(text)) + text
        raw[: len(start)] = start
        path.write_bytes(raw)


def _read_tokens(folder: Path) -> None:
    data = TokenData(folder / "train.a-b.a")
    for sentence in range(len(data)):
        assert len(data[sentence]) == data.sizes[sentence]


def _results(folder: Path) -> None:
    found = [result(), result(seed=2), result(metric="bleu", value=1.5)]
    write_results(folder / "runs.jsonl", found)


def _read_results(folder: Path) -> None:
    found = read_results(folder / "runs.jsonl")
    assert len({item.key for item in found}) == len(found)
    write_results(folder / "runs.jsonl", [result(seed=9)])


def _json(name: str, content: object, folder: Path) -> None:
    (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def _parsed(folder: Path) -> None:
    folder.joinpath("in.txt").write_text("a b .\n\nc BAD d\n")
    words = ["--parser", "fake-con", "--model", "m", "--workers", "1"]
    _command(["parse", folder / "in.txt", folder / "out", *words])


def _manifest(folder: Path) -> None:
    shutil.rmtree(folder)
    with contextlib.redirect_stdout(io.StringIO()):  # its summary
        write_data_set(folder, {"seed": 1}, lambda: ({"a.src": ["x"], "a.tgt": ["y"]}, {}))


def _binarized(folder: Path) -> None:
    folder.joinpath("t.src").write_text("a b\n")
    folder.joinpath("t.tgt").write_text('["a", "b"]\n')
    _command(
        ["binarize", folder / "data", "--source-lang", "a", "--target-lang", "b", "--workers", 1,
         "--target-format", "jsonl", "--target-linearization", "nary_dfs",
         "--train", folder / "t.src", folder / "t.tgt"]
    )  # fmt: skip


def _read_record(folder: Path) -> None:
    side_of(folder / "data", "b")
    check_tokens(TokenData(folder / "data/train.a-b.b"))


def _recipe(folder: Path) -> None:
    varied = {"axes": {"train.lr": [0.1, 0.2]}, "differences": {"train.x": "y"}}
    content = {**recipe_content(), **varied}
    (folder / "recipe.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def _generated(folder: Path) -> None:
    text = "S-0\ta\nT-0\tb\nH-0\t-0.1\tx\nD-0\t-0.1\tx y\nP-0\t-1\nD-1\t-2\t\nGenerate test\n"
    (folder / "generated").write_text(text)


def _log(folder: Path) -> None:
    inner = {"epoch": 1, "update": 0.5, "loss": "5.5", "wps": "12", "num_updates": "50"}
    valid = {"epoch": 1, "valid_loss": "4.0", "valid_num_updates": "100"}
    (folder / "log").write_text(
        f"x | INFO | train_inner | {json.dumps(inner)}\nx | INFO | valid | {json.dumps(valid)}\n"
        'x | INFO | train | {"epoch": 1}\nSaved checkpoint /x.pt (epoch 1 @ 100 updates, score 4)\n'
    )


def _scores(folder: Path) -> None:
    (folder / "ref").write_text("( f a )\n( and ( f $0 ) ( g $0 ) )\n\nx\n")
    (folder / "hyp").write_text("( f a )\n( and ( g $0 ) ( f $0 ) )\n\n( x\n")


def _score(folder: Path) -> None:
    kinds = ("tree", "unordered", "modulo", "f1", "wellformed")
    metrics = ["exact", "bleu", "chrf", *(f"{kind}:sexpr" for kind in kinds)]
    options = [word for metric in metrics for word in ("--metric", metric)]
    _command(["score", "--reference", folder / "ref", "--hypothesis", folder / "hyp", *options])


def _questions(folder: Path) -> None:
    (folder / "q.tsv").write_text("".join(f"q {n}\t( f {n} )\n" for n in range(9)))


def _split(folder: Path) -> None:
    (folder / "a.src").write_text("".join(f"a {n}\n" for n in range(9)))
    (folder / "a.tgt").write_text("".join(f"b {n}\n" for n in range(9)))


def _generate(what: str, files: list[str], options: list[str], folder: Path) -> None:
    shutil.rmtree(folder / "out", ignore_errors=True)
    words = [folder / word if word[0] != "-" else word for word in files]
    _command(["generate", what, *words, "--out", folder / "out", *options])


INPUTS = {"a.txt": {"size": 1, "sha256": "0" * 64}}
IDENTITY = {"hash": "0" * 64, "version": "0.1", "inputs": INPUTS, "runs": {"a-1": "0" * 64}}
FAILURES = {"a-1/train": {"message": "exit status 1", "log": "logs/x.log"}}
QUESTIONS = ["--test", "2", "--valid", "2", "--notation", "sexpr"]

READERS: dict[str, Reader] = {
    **{
        name: Reader("input", partial(_tree_file, name), partial(_read_trees, name))
        for name in FORMATS
    },
    "tree store": Reader("train.a-b.a.tree", tokens, _read_store),
    "tree store, forged": Reader("train.a-b.a.tree", tokens, _read_store_alone),
    "token index": Reader("train.a-b.a.idx", tokens, _read_tokens),
    **{
        f"inspect, {what}": Reader(file, tokens, lambda f: _command(["inspect", f, "--count", "9"]))
        for what, file in (("index", f"{PREFIX}.idx"), ("tokens", f"{PREFIX}.bin"),
                           ("dictionary", "dict.a.txt"))
    },
    "dictionary": Reader("dict.a.txt", tokens, lambda f: Dictionary.read(f / "dict.a.txt")),
    "binarize.json": Reader("data/binarize.json", _binarized, _read_record),
    "results": Reader("runs.jsonl", _results, _read_results),
    "study.json": Reader("study.json", partial(_json, "study.json", IDENTITY), read_identity),
    "failures.json": Reader("failures.json", partial(_json, "failures.json", FAILURES), read_failures),
    "recipe": Reader("recipe.yaml", _recipe, lambda f: make_plan(read_recipe(f / "recipe.yaml"))),
    "hypotheses": Reader("generated", _generated, lambda f: read_hypotheses(f / "generated", 2)),
    "training log": Reader("log", _log, lambda f: read_log(f / "log")),
    "parse report": Reader("out.report.json", _parsed, _parsed),
    "offsets": Reader("out.offsets", _parsed, lambda f: list(read_offsets(f / "out", "ptb"))),
    "offsets in conllu": Reader("input", partial(_tree_file, "conllu"),
                                lambda f: list(read_offsets(f / "input", "conllu"))),
    "manifest.json": Reader("manifest.json", _manifest, lambda f: read_manifest(f, {"seed": 1})),
    "score": Reader("hyp", _scores, _score),
    "split": Reader(
        "a.src", _split,
        partial(_generate, "split", ["--source", "a.src", "--target", "a.tgt"], ["--test", "2"]),
    ),
    "questions": Reader(
        "q.tsv", _questions, partial(_generate, "questions", ["--data", "q.tsv"], QUESTIONS)
    ),
}  # fmt: skip
