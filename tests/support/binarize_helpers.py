"""What the tests of ``treesyntax binarize`` share: files, calls, and small corpora."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset

from treesyntax.__main__ import main
from treesyntax.data.encoding import Encoding
from treesyntax.data.tree_store import TreeStore
from treesyntax.trees.formats.base import Record

SHARED = Path(__file__).parents[3] / "shared" / "data"

TREES = [
    "(S (NP (D the) (N cat)) (VP (V sleeps)))",
    "(S (NP (N dogs)) (VP (V bark) (PP (P at) (NP (N cats)))))",
    "",
    "(X -LRB-)",
    "(S (NP (D the) (N dog)) (VP (V sleeps)))",
]
WORDS_OF_TREES = ["the cat sleeps", "dogs bark at cats", "", "(", "the dog sleeps"]
TEXT = ["katten sover", "hundar skäller på katter", "katten", "(", "hunden sover"]

CONLLU = """\
1\tBig\t_\t_\t_\t_\t2\tamod\t_\t_
2\tdogs\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tbark\t_\t_\t_\t_\t0\troot\t_\t_

1\t10 000\t_\t_\t_\t_\t2\tnummod\t_\t_
2\tcats\t_\t_\t_\t_\t0\troot\t_\t_

"""

FORMS = ["the", "cat", "sleeps", "unbelievably", ".", ",", "(", "½-ton", "ﬁve", "naïve", "猫は",
         "\u200b", "x\u00a0y", "10 000", "▁", "a▁", "🙂", "e\u0301", "start_char=1", "#", "1"]  # fmt: skip
SPACES = [" ", " ", " ", "", "  ", "\u00a0", " \u200b "]
CONTEXTS = {
    method: multiprocessing.get_context(method) for method in ("fork", "forkserver", "spawn")
}


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def make_files(folder: Path) -> dict[str, Path]:
    """Small files to call the command with."""
    data = folder / "in"
    data.mkdir()
    return {
        "ptb": write(data / "train.ptb", TREES * 4),
        "text": write(data / "train.sv", TEXT * 4),
        "words": write(data / "train.en", WORDS_OF_TREES * 4),
        "valid_ptb": write(data / "valid.ptb", [TREES[1], "(S (N unicorns) (V dance))"]),
        "valid_text": write(data / "valid.sv", ["hundar", "dansar"]),
        "bad": data / "bad",
        "dest": folder / "out" / "data-bin",
    }


def command(files: dict[str, Path], *options: object, trees: bool = True) -> list[str]:
    """The arguments of a call; later options override earlier ones."""
    given = ["binarize", files["dest"], "--source-lang", "en", "--target-lang", "sv"]
    given += ["--train", files["ptb" if trees else "words"], files["text"], "--workers", "1"]
    given += ["--source-format", "ptb"] if trees else []
    return [str(item) for item in (*given, *options)]


def binarize(files: dict[str, Path], *options: object, trees: bool = True) -> Path:
    assert main(command(files, *options, trees=trees)) == 0
    return files["dest"]


def refused(files, capsys, *options: object, trees: bool = True) -> str:
    """The one line on stderr of a call that must fail and leave nothing behind."""
    before = {path: path.stat().st_mtime_ns for path in files["dest"].parent.parent.rglob("*")}
    assert main(command(files, *options, trees=trees)) == 2
    after = {path: path.stat().st_mtime_ns for path in files["dest"].parent.parent.rglob("*")}
    before.setdefault(files["dest"].parent, 0)
    after.setdefault(files["dest"].parent, 0)
    assert set(after) == set(before)
    message = capsys.readouterr().err
    assert message.startswith("treesyntax binarize: ")
    assert message.count("\n") == 1
    return message


def read(dest: Path, split: str, language: str, pair: str = "en-sv") -> list[list[str]]:
    """The tokens of a split as fairseq reads them, ends of sentences checked and removed."""
    dictionary = Dictionary.load(str(dest / f"dict.{language}.txt"))
    data = MMapIndexedDataset(str(dest / f"{split}.{pair}.{language}"))
    sentences = [data[i].tolist() for i in range(len(data))]
    assert all(ids[-1] == dictionary.eos() for ids in sentences)
    return [[dictionary[token] for token in ids[:-1]] for ids in sentences]


def sizes_of(prefix: Path) -> np.ndarray:
    # fairseq unmaps the file, and with it its sizes, as soon as the data set is collected.
    data = MMapIndexedDataset(str(prefix))
    return data.sizes.copy()


def check_store(dest: Path, name: str, expected: list[tuple]) -> None:
    """Trees and token nodes are as expected, and the store belongs to fairseq's data."""
    store = TreeStore(dest / f"{name}.tree")
    store.check_tokens(sizes_of(dest / name))
    assert len(store) == len(expected)
    for i, (tree, nodes) in enumerate(expected):
        assert store[i].parents.tolist() == tree.parents.tolist()
        assert store[i].branches.tolist() == tree.branches.tolist()
        assert store[i].token_nodes.tolist() == nodes


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def row(number: object, form: str, head: object = "_", misc: str = "_") -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t{misc}"


SENTENCES = [
    ("He didn't go.", [row(1, "He", 4), row("2-3", "didn't"), row(2, "did", 4), row(3, "n't", 4),
                       row(4, "go", 0), row(5, ".", 4)]),
    ("(ﬁve ½-ton  trucks™)", [row(1, "(", 5), row(2, "ﬁve", 5), row(3, "½", 4), row(4, "-ton", 5),
                              row(5, "trucks", 0), row(6, "™", 5), row(7, ")", 5)]),
    ("", []),
    ("ＡＢ1e\u0301t 10 000", [row(1, "ＡＢ", 3), row(2, "1", 3), row(3, "e\u0301t", 0), row(4, "10 000", 3)]),
    ("you\u200bse 你好 dogs", [row(1, "you", 2), row(2, "\u200bse", 0), row(3, "你", 2), row(4, "好", 3),
                             row(5, "dogs", 2)]),
    ("the the the dogs' cats' cats sleep.", [row(1, "the", 2), row(2, "the", 3), row(3, "the", 4),
                                      row(4, "dogs", 6), row(5, "'", 4), row(6, "cats", 0),
                                      row(7, "'", 6), row(8, "cats", 6), row(9, "sleep", 8),
                                      row(10, ".", 6)]),
]  # fmt: skip


def small_corpus() -> list[Record]:
    records, line = [], 1
    for text, rows in SENTENCES * 4:
        record = "\n".join([f"# text = {text}".rstrip(), *rows])
        records.append(Record(line, record))
        line += record.count("\n") + 2
    return records


def sentences_of(encoded) -> list[list[str]]:
    tokens = np.array(encoded.symbols, dtype=object)[encoded.ids].tolist()
    ends = np.cumsum(encoded.token_counts).tolist()
    return [tokens[end - size : end] for end, size in zip(ends, encoded.token_counts.tolist(), strict=True)]  # fmt: skip


def conllu_encoding(
    model: Path | None, linearization="words", policy="copy", units="token", style="sentencepiece"
):
    return Encoding("conllu", linearization, policy, style, model, units=units)
