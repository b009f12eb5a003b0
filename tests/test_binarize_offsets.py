"""``treesyntax binarize`` with pieces attached by character offsets, on whole corpora."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from test_binarize import read, write

from treesyntax.binarize_encode import Batch, Encoding, encode_batch, words_of_batch
from treesyntax.cli import main
from treesyntax.errors import InputError
from treesyntax.formats import conllu
from treesyntax.formats.base import Record
from treesyntax.segment import Segmenter, train_model
from treesyntax.store import TreeStore
from treesyntax.transforms.subwords import POLICIES
from treesyntax.tree import Tree

EWT = Path(__file__).parents[2] / "shared" / "data" / "treebanks" / "UD_English-EWT"
KINDS = ("unigram", "bpe")


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


def ewt() -> list[Record]:
    path = EWT / "test.conllu.gz"
    if not path.is_file():
        pytest.skip("the shared treebanks are not here")
    return list(conllu.records(path))


CORPORA = {"small": (small_corpus, 46), "ewt": (ewt, 4000)}


@pytest.fixture(scope="module", params=list(product(CORPORA, KINDS)), ids="-".join)
def corpus(request, tmp_path_factory) -> tuple[list[Record], list[str], Path]:
    """Records, their raw lines, and a subword model."""
    name, kind = request.param
    make, vocab = CORPORA[name]
    records = make()
    batch = Batch(Path("x"), records)
    lines = words_of_batch(encoding(None), batch)
    model = tmp_path_factory.mktemp("model") / "x.model"
    train_model([line for line in lines if line], vocab, kind, model, "x")
    return records, lines, model


def encoding(model: Path | None, view="words", policy="copy", units="token", style="sentencepiece"):
    return Encoding("conllu", view, policy, style, model, units=units)


def sentences_of(encoded) -> list[list[str]]:
    tokens = np.array(encoded.symbols, dtype=object)[encoded.ids].tolist()
    ends = np.cumsum(encoded.token_counts).tolist()
    return [tokens[end - size : end] for end, size in zip(ends, encoded.token_counts.tolist(), strict=True)]  # fmt: skip


def check_trees(encoded, policy: str) -> None:
    """A single root, no cycle, and every piece on a node, a node without tokens nowhere."""
    nodes = tokens = 0
    arrays = encoded.trees
    for size, count in zip(arrays.node_counts, arrays.token_counts, strict=True):
        parents = arrays.parents[nodes : nodes + size]
        token_nodes = arrays.token_nodes[tokens : tokens + count]
        branches = arrays.branches[nodes : nodes + size]
        Tree(parents, [""] * size, branches=branches)  # checks: one root, no cycle
        attached = token_nodes[token_nodes >= 0]
        assert set(attached.tolist()) == set(range(size))
        if policy in ("siblings", "chain"):
            assert len(attached) == count == size
        if policy == "copy":
            assert len(attached) == count
        nodes, tokens = nodes + size, tokens + count


def by_node(encoded) -> Iterator[tuple[dict[int, list[str]], set[int]]]:
    """The tokens on each node of each sentence, and the nodes that have children."""
    nodes = tokens = 0
    arrays = encoded.trees
    for sentence, size in zip(sentences_of(encoded), arrays.node_counts, strict=True):
        found: dict[int, list[str]] = {}
        for token, node in zip(
            sentence, arrays.token_nodes[tokens : tokens + len(sentence)].tolist(), strict=True
        ):
            found.setdefault(node, []).append(token)
        yield found, set(arrays.parents[nodes : nodes + size].tolist())
        nodes, tokens = nodes + size, tokens + len(sentence)


def pieces_elsewhere(lines: list[str], model: Path, style: str) -> list[Record]:
    """The lines as spm_encode or as subword-nmt would segment them (no piece longer than 3)."""
    if style == "sentencepiece":
        segmenter = Segmenter(model)
        cut = [" ".join(segmenter.line(line)) for line in lines]
    else:
        cut = [" ".join(map(_at_cut, line.split())) for line in lines]
    return [Record(number, line) for number, line in enumerate(cut, start=1)]


def _at_cut(word: str) -> str:
    return "@@ ".join(word[i : i + 3] for i in range(0, len(word), 3))


@pytest.mark.parametrize("units", ["token", "line", "sentencepiece", "subword-nmt"])
def test_every_piece_of_every_sentence_is_attached_and_spells_the_line(corpus, units):
    records, lines, model = corpus
    batch = Batch(Path("x"), records)
    given = units in ("sentencepiece", "subword-nmt")
    options = {"units": "token", "style": units} if given else {"units": units}
    if given:
        batch = batch._replace(pieces_path=Path("p"), pieces=pieces_elsewhere(lines, model, units))
    segmenter = Segmenter(model)
    seen = None
    for policy in ("siblings", "copy") if given else POLICIES:
        encoded = encode_batch(encoding(None if given else model, policy=policy, **options), batch)
        check_trees(encoded, policy)
        assert len(encoded.token_counts) == len(records)
        seen = seen or sentences_of(encoded)
        assert sentences_of(encoded) == seen
    if units != "subword-nmt":
        for tokens, line in zip(seen, lines, strict=True):
            text = "".join(tokens).replace("▁", " ").strip()
            assert text == segmenter.normalised(line)[0].strip()
    if units in ("line", "sentencepiece"):
        assert seen == [segmenter.line(line) for line in lines]
    if units == "subword-nmt":
        assert [" ".join(tokens) for tokens in seen] == [piece.text for piece in batch.pieces]


@pytest.mark.parametrize("units", ["token", "line"])
def test_the_baseline_and_the_tree_models_see_the_same_pieces(corpus, units):
    records, _, model = corpus
    batch = Batch(Path("x"), records)
    baseline = sentences_of(encode_batch(encoding(model, units=units), batch))
    for policy in ("copy", "siblings") if len(records) < 100 else ("copy",):
        words = encode_batch(encoding(model, "words", policy, units), batch)
        assert sentences_of(words) == baseline
        bracketed = encode_batch(encoding(model, "bracketed", policy, units), batch)
        for (nodes, interior), (shown, _) in zip(by_node(words), by_node(bracketed), strict=True):
            assert set(nodes) == set(shown)
            for node, pieces in nodes.items():
                tokens = [f"\\{p}" if p[0] in "(\\" or p == ")" else p for p in pieces]
                if node in interior:
                    tokens = [f"({pieces[0]}", *tokens[1:], ")"]
                assert shown[node] == tokens
    control = encoding(model, units=units)._replace(control="right_branching")
    assert sentences_of(encode_batch(control, batch)) == baseline


def test_constituency_trees_over_merged_words():
    records = [Record(1, "(S (NP (NP (N dog)) (POS s)) (NP (N cat)) (VP (V is) (. .)))")]
    batch = Batch(
        Path("t"), records, Path("p"), [Record(1, "▁ dog's ▁c at ▁is.")], ["dog's cat is."],
        [[(0, 3), (3, 5), (6, 9), (10, 12), (12, 13)]],
    )  # fmt: skip
    batch = batch._replace(spans=[[(0, 3), (3, 5), (6, 9), (10, 12), (12, 13)]])
    found = encode_batch(
        Encoding("ptb", "bracketed", "copy", "sentencepiece", units="token"), batch
    )
    shown = " ".join(sentences_of(found)[0])
    assert shown == "(S (NP (NP (N ▁ dog's ) ) ) (NP (N ▁c at ) ) (VP (V ▁is. ) ) )"


# --- the command ---------------------------------------------------------------------------

PTB = ["(S (NP (D the) (N cat)) (. .))", "", "(S (V barks))"]
LINES = ["the  cat.", "", " barks"]
OFFSETS = ["0:3 5:8 8:9", "", "1:6"]


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    data = tmp_path / "in"
    data.mkdir()
    write(data / "t.ptb.offsets", OFFSETS)
    conllu_file = data / "t.conllu"
    conllu_file.write_text("".join(record.text + "\n\n" for record in small_corpus()))
    texts = [text for text, _ in SENTENCES] * 4
    return {
        "ptb": write(data / "t.ptb", PTB),
        "text": write(data / "t.en", LINES),
        "target": write(data / "t.sv", ["a", "b", "c"]),
        "conllu": conllu_file,
        "conllu_text": write(data / "c.en", texts),
        "conllu_target": write(data / "c.sv", texts),
        "dest": tmp_path / "out",
    }


def call(files, *options: object, trees="ptb") -> list[str]:
    target = "target" if trees == "ptb" else "conllu_target"
    given = ["binarize", files["dest"], "--source-lang", "en", "--target-lang", "sv", "--workers"]
    given += ["1", "--train", files[trees], files[target], "--source-format", trees, "--overwrite"]
    return [str(option) for option in (*given, *options)]


def refused(files, capsys, *options: object, trees="ptb") -> str:
    assert main(call(files, *options, trees=trees)) == 2
    assert not files["dest"].exists()
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_brackets_with_their_text_and_offsets(files):
    options = ("--source-text", files["text"], "--source-view", "words")
    assert main(call(files, *options)) == 0
    assert read(files["dest"], "train", "en") == [["the", "cat", "."], [], ["barks"]]
    pieces = write(files["text"].with_name("p"), ["t@@ he ca@@ t.", "", "bar@@ ks"])
    given = ("--source-pieces", pieces, "--pieces-style", "subword-nmt")
    assert main(call(files, *options, *given, "--subword-policy", "copy")) == 0
    assert read(files["dest"], "train", "en")[0] == ["t@@", "he", "ca@@", "t."]
    store = TreeStore(files["dest"] / "train.en-sv.en.tree")
    # (S (NP (D the) (N cat.))): the full stop shares a piece with cat.
    assert store[0].parents.tolist() == [-1, 0, 1, 2, 1, 4]
    assert store[0].token_nodes.tolist() == [3, 3, 5, 5]
    manifest = json.loads((files["dest"] / "binarize.json").read_text())
    source = manifest["sides"]["source"]
    assert source["subword_units"] == "token"
    assert set(source["sha256"]) == {
        str(files["ptb"]), str(pieces), str(files["text"]), f"{files['ptb']}.offsets",
    }  # fmt: skip
    assert manifest["sides"]["target"]["subword_units"] is None


@pytest.mark.parametrize("units", ["token", "line"])
def test_comments_and_files_of_text_give_the_same_data(files, units):
    options = ("--subword-vocab", 46, "--subword-units", units, "--source-text")
    folders = []
    for text in ([], [files["conllu_text"]]):
        assert main(call(files, *options, *text, trees="conllu")) == 0
        names = sorted(path for path in files["dest"].iterdir() if path.name != "binarize.json")
        folders.append({path.name: path.read_bytes() for path in names})
    assert folders[0] == folders[1]
    # The kept model decodes what was written, as any SentencePiece does.
    import sentencepiece

    model = sentencepiece.SentencePieceProcessor(
        model_file=str(files["dest"] / "subwords.en.model")
    )
    lines = [text for text, _ in SENTENCES] * 4
    for tokens, line in zip(read(files["dest"], "train", "en"), lines, strict=True):
        if "<unk>" not in tokens:
            assert model.decode(tokens) == model.decode(model.encode(line, out_type=str))


def test_in_memory_text_and_spans_are_taken_as_given():
    batch = Batch(Path("x"), [Record(1, "(S (N a) (N b))")], text=["a-b"], spans=[[(0, 1), (1, 3)]])
    encoded = encode_batch(Encoding("ptb", "words", "copy", "sentencepiece", units="token"), batch)
    assert sentences_of(encoded) == [["a", "-b"]]
    short = batch._replace(spans=[[(0, 1)]])
    with pytest.raises(
        InputError, match="x:1: 1 words have offsets, but the tree has 2 words; the"
    ):
        encode_batch(Encoding("ptb", "words", "copy", "sentencepiece", units="token"), short)


def test_text_that_does_not_fit_is_refused_with_file_and_line(files, capsys):
    wrong = write(files["text"].with_name("wrong"), ["the cat.", "", " barks"])
    message = refused(files, capsys, "--source-text", wrong)
    assert f"{files['ptb']}:1: by its offsets word 3 stands at 8:9, which is not a place" in message
    write(files["ptb"].with_name("t.ptb.offsets"), ["0:3 5:8 8:9", "", "x"])
    message = refused(files, capsys, "--source-text", files["text"])
    assert "t.ptb.offsets:3: is not a list of START:END; parse the text again" in message
    files["ptb"].with_name("t.ptb.offsets").unlink()
    assert "t.ptb.offsets: cannot be read" in refused(files, capsys, "--source-text", files["text"])
    write(wrong, ["a"])
    message = refused(files, capsys, "--source-text", wrong, trees="conllu")
    assert f"{wrong}: has 1 sentences, but {files['conllu']} has 24" in message
    write(wrong, ["He didn't go!", *(text for text, _ in (SENTENCES * 4)[1:])])
    message = refused(files, capsys, "--source-text", wrong, trees="conllu")
    assert f'{files["conllu"]}:1: the tree is that of "He didn\'t go.", but the text is' in message
    content = files["conllu"].read_text()
    files["conllu"].write_text(content.replace("He didn't go.", "He did not go."))
    message = refused(files, capsys, "--source-text", trees="conllu")
    assert f'{files["conllu"]}:4: the word "didn\'t" is not at character 3 of the text' in message
    files["conllu"].write_text(content.replace("# text = He didn't go.", "# id = 1"))
    message = refused(files, capsys, "--source-text", trees="conllu")
    assert ":1: the sentence has no comment '# text ='; give its text with --source-text" in message
    files["conllu"].write_text("# text = a\n\n" * 24)
    message = refused(files, capsys, "--source-text", trees="conllu")
    assert ":1: the text 'a' has a tree without words; parse the text again" in message


def test_pieces_that_do_not_spell_the_text_are_refused_with_file_and_line(files, capsys):
    pieces = write(files["text"].with_name("p"), ["▁the ▁cat .", "", "▁bark"])
    message = refused(files, capsys, "--source-text", files["text"], "--source-pieces", pieces)
    assert f"{pieces}:3: the pieces end before 's' at character 5 of the text" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--target-text", "f"],
            "--target-text: the places of words in a text are kept with trees ",
        ),
        (["--source-text"], "--source-text: ptb has no comments with the text; name files"),
        (["--source-text", "f", "g"], "--source-text has 2 files for 1 splits (train); give one"),
        (
            ["--subword-units", "line"],
            "--subword-units line needs the places of words: give --sour",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(files, capsys, options, message):
    assert message in refused(files, capsys, *options)
