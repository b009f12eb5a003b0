"""``treesyntax inspect`` shows what ``treesyntax binarize`` wrote."""

from __future__ import annotations

import json

import pytest
from support.binarize_helpers import binarize, write

from treesyntax.__main__ import main
from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.encode import encode_batch
from treesyntax.data.binarize.records import Records
from treesyntax.data.encoding import Encoding
from treesyntax.remarks import remarks_of
from treesyntax.trees.formats.moses import COLUMNS, TREES, check_characters, check_raw

ENCODING = Encoding("ptb", "words", "copy", "sentencepiece", units="token")


def test_inspect_draws_tokens_and_trees(files, capsys):
    dest = binarize(files, "--source-linearization", "words")
    capsys.readouterr()
    assert main(["inspect", str(dest), "--count", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["train.en-sv.en 0: 3 tokens", "the cat sleeps"]
    assert [line.split() for line in shown[2:7]] == [
        ["node", "parent", "slot"],
        ["0", "-1", "0", "·"],
        ["1", "0", "0", "·"],
        ["2", "1", "0", "·"],
        ["3", "2", "0", "0:the"],
    ]
    assert "train.en-sv.en 1: 4 tokens" in shown
    assert main(["inspect", str(dest), "--json", "--count", "2"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["tokens"], second["index"]) == (["the", "cat", "sleeps"], 1)
    assert first["parents"][:4] == [-1, 0, 1, 2]
    assert first["token_nodes"][0] == 3
    assert main(["inspect", str(dest), "--side", "target", "--index", "19", "--count", "9"]) == 0
    assert capsys.readouterr().out.splitlines() == ["train.en-sv.sv 19: 2 tokens", "hunden sover"]


def test_inspect_draws_a_long_chain(files, capsys):
    size = 10_000
    write(files["ptb"], ["(X " * size + "a" + ")" * size])
    write(files["text"], ["a"])
    dest = binarize(files)
    capsys.readouterr()
    assert main(["inspect", str(dest)]) == 0
    shown = capsys.readouterr().out
    assert f"(depth {size}) {size}:a" in shown
    assert len(shown) < 200 * size


def inspect_refused(capsys, *options: object) -> str:
    assert main(["inspect", *map(str, options)]) == 2
    return capsys.readouterr().err


def test_inspect_names_what_is_wrong(files, capsys, tmp_path):
    dest = binarize(files)
    capsys.readouterr()
    assert "has sentences 0 to 19" in inspect_refused(capsys, dest, "--index", 20)
    message = inspect_refused(capsys, dest, "--split", "tset")
    assert "no single tset split: it has none; name another split: train" in message
    assert "nowhere: is no folder of binarized data" in inspect_refused(
        capsys, tmp_path / "nowhere"
    )
    write(dest / "dict.en.txt", ["the 3"])
    told = "dict.en.txt: is not the file that binarize.json describes, its checksum differs; run"
    assert told in inspect_refused(capsys, dest)
    manifest = json.loads((dest / "binarize.json").read_text())
    del manifest["dictionaries"]  # as folders have it that were written before
    (dest / "binarize.json").write_text(json.dumps(manifest))
    assert "dict.en.txt: has 5 symbols, but train.en-sv.en.idx uses number" in inspect_refused(
        capsys, dest
    )
    for suffix in ("bin", "idx"):
        (dest / f"train.en-sv.en.{suffix}").write_bytes(
            (dest / f"train.en-sv.sv.{suffix}").read_bytes()
        )
    assert "the trees do not belong to this data" in inspect_refused(capsys, dest)
    (dest / "train.en-de.en.idx").write_bytes(b"")
    assert "it has data of several pairs (en-de, en-sv)" in inspect_refused(capsys, dest)


# --- a file -----------------------------------------------------------------------------------


def inspect(capsys, *options: object) -> list[str]:
    capsys.readouterr()
    assert main(["inspect", *map(str, options)]) == 0
    return capsys.readouterr().out.splitlines()


def test_inspect_says_what_a_reader_made_of_a_file(tmp_path, capsys):
    file = tmp_path / "t.mrg"
    file.write_text(
        "( (S (NP (DT the) (NN cat)) (VP (VBZ sits) (NP (-NONE- *)))) )\n(S (NN dogs))\n"
    )
    counts, remark, *tree = inspect(capsys, file, "--format", "mrg")
    assert counts == (
        f"{file}: 2 trees (mrg), 0 empty; 4 words; 12 nodes with 6 labels; the largest tree has "
        "9 nodes, the deepest 3 steps below the root"
    )
    assert remark.startswith(f"{file}:1: 1 of 2 trees holds traces (-NONE-); they are removed")
    assert tree == ["  S", "    NP", "      DT", "        1:the", "      NN", "        2:cat",
                    "    VP", "      VBZ", "        3:sits"]  # fmt: skip
    (line,) = inspect(capsys, file, "--format", "mrg", "--json")
    values = json.loads(line)
    assert (values["records"], values["deepest"], values["remarks"][0]["line"]) == (2, 3, 1)


def test_inspect_reads_the_forms_of_a_table_text_and_relations(tmp_path, capsys):
    table = tmp_path / "t.tsv"
    table.write_text(
        'who runs\t["answer", "a b", "c\\td"]\n'.replace("\t[", "\t[", 1).replace("\\t", "\\u00a0")
    )
    counts, remark, *tree = inspect(capsys, table, "--format", "jsonl")
    assert "1 trees (jsonl), 0 empty; no words, labels alone; 3 nodes with 3 labels" in counts
    assert f"{table}:1: 1 of 1 trees holds labels that are empty or hold white space" in remark
    assert tree[1] == "    a␣b"
    text = tmp_path / "t.en"
    text.write_text("a b a\n\nc\n")
    assert inspect(capsys, text, "--format", "text") == [
        f"{text}: 3 lines of text, 1 empty; 4 words, 3 different; the longest line has 3"
    ]
    parsed = tmp_path / "t.conllu"
    parsed.write_text("1\tgo\t_\t_\t_\t_\t0\troot\t_\t_\n2\ton\t_\t_\t_\t_\t1\tcompound\t_\t_\n")
    assert inspect(capsys, parsed, "--format", "conllu")[1:] == [
        "  1:go  root",
        "    2:on  compound",
    ]
    chain = tmp_path / "t.ptb"
    chain.write_text("(X " * 5000 + "a" + ")" * 5000 + "\n")
    shown = inspect(capsys, chain, "--format", "ptb")
    assert shown[-1] == "  … 4,961 more nodes"
    assert max(map(len, shown[1:])) < 100


def test_inspect_asks_for_the_format_of_a_file(tmp_path, capsys):
    file = tmp_path / "t.conllu"
    file.write_text("(S a)\n")
    assert "is a file: name its format with --format, one of text, conllu" in inspect_refused(
        capsys, file
    )
    assert f"{tmp_path} is a folder: --format is for a file" in inspect_refused(
        capsys, tmp_path, "--format", "ptb"
    )
    assert "t.conllu:1: is not CoNLL-U" in inspect_refused(capsys, file, "--format", "conllu")
    assert "no tree format is named 'xml'" in inspect_refused(capsys, file, "--format", "xml")
    assert "cannot be read" in inspect_refused(capsys, tmp_path / "none", "--format", "ptb")


def test_inspect_refuses_headers_and_other_numbers_of_columns_as_studies_do(tmp_path, capsys):
    table = tmp_path / "t.tsv"
    table.write_text("question\tform\nwho ran\tran(x)\n")
    assert "t.tsv:1: looks like a header (question, form)" in inspect_refused(
        capsys, table, "--format", "prolog"
    )
    table.write_text("who ran\tran(x)\twho\n")
    assert "t.tsv:1: has 3 columns" in inspect_refused(capsys, table, "--format", "prolog")


def test_inspect_tells_escapes_in_text(tmp_path, capsys):
    text = tmp_path / "t.en"
    text.write_text("it &apos;s\nfine\n")
    _, remark = inspect(capsys, text, "--format", "text")
    assert remark.startswith(f"{text}:1: 1 of 2 lines holds escapes of Moses' tokenizer")


def test_files_of_sgml_and_xml_are_told(tmp_path, capsys):
    """WMT's and IWSLT's files hold a sentence in each tag, and other lines between them."""
    text = tmp_path / "t.en"
    text.write_text('<url>x</url>\n<seg id="1">It is.</seg>\n<en> and <p>\n1 <seg\n')
    _, remark = inspect(capsys, text, "--format", "text")
    assert remark.startswith(f"{text}:1: 2 of 4 lines begin with tags of SGML or XML (<seg id=1>")
    dest = ("binarize", tmp_path / "o", "--source-lang", "en", "--target-lang", "de")
    assert main([*map(str, dest), "--train", str(text), str(text)]) == 0
    assert remark in capsys.readouterr().out


def test_columns_that_are_read_as_text_are_told(tmp_path, capsys):
    text = write(
        tmp_path / "t.conllu", ["# text = Ja", "1\tJa\t_\t_\t_\t_\t0\troot\t_\t_", "", "1\t2"]
    )
    _, remark, tabs = inspect(capsys, text, "--format", "text")
    assert remark == (
        f"{text}:2: 1 of 4 lines has ten columns, as CoNLL-U has; they are read as text: name the format conllu"
    )
    assert tabs.startswith(
        f"{text}:4: 1 of 4 lines holds tabs between words; they are read as spaces"
    )


TREE = "(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))"


def test_trees_that_are_read_as_text_are_told(tmp_path, capsys):
    lines = [
        "( see ( b ) )", TREE, f"( {TREE} )", "(a (b) (c) d)", "(3 (2 It) (4 (4 is) (2 good)))", f"{TREE} .",
        "((((  ))))", "( and ( flight $0 ) )", "(see (figure 2) below)",
    ]  # fmt: skip
    text = write(tmp_path / "t.en", lines)
    _, remark = inspect(capsys, text, "--format", "text")
    assert remark == (
        f"{text}:2: 3 of 9 lines hold trees in brackets; they are read as text: name their format, such as ptb, or "
        "take the words out of them"
    )
    assert len(inspect(capsys, write(text, lines[1:3]), "--format", "ptb")) > 1


def test_a_line_that_is_parsed_as_it_is_translated_is_looked_at_as_well(tmp_path):
    for line, remark in ((TREE, TREES), ("1\tJa" + "\t_" * 8, COLUMNS)):
        parsed = Batch(tmp_path, Records([7], ["(S (N a))"]), text=[line], spans=[[(0, len(line))]])
        found = encode_batch(ENCODING, parsed).remarks.findings
        assert found[remark].first == 7


def test_characters_that_nobody_sees_are_told(tmp_path, capsys):
    """``cat`` of files with byte order marks leaves them inside; the first word of a line is another one then."""
    text = write(
        tmp_path / "t.en", ["Plain .", "\ufeffThe co\u00adop", "a\u200b \u200fb", "\tno table "]
    )
    _, remark = inspect(capsys, text, "--format", "text")
    assert remark.startswith(
        f"{text}:2: 2 of 4 lines hold invisible characters (soft hyphens, zero-width spaces, byte order marks, marks "
        "of direction), 4 in all; words with them are other words"
    )


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("conllu", "# sent_id = 1\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n"),
        ("ptb", "(S a)"),
        ("jsonl", '["S", "a"]'),
    ],
)
def test_a_byte_order_mark_that_makes_a_record_malformed_is_named(tmp_path, capsys, name, record):
    file = write(tmp_path / "t", [record, f"\ufeff{record}"])
    line = 2 + record.count("\n")
    assert main(["inspect", str(file), "--format", name]) == 2
    assert capsys.readouterr().err == (
        f"treesyntax inspect: {file}:{line}: begins with a byte order mark, as where files were put one behind "
        "another; take it out: sed 's/^\\xEF\\xBB\\xBF//'\n"
    )


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("conllu", "1\t{}\t_\t_\t_\t_\t0\troot\t_\t_\n"),
        ("ptb", "(S {})"),
        ("sexpr_bare", "{} ( state ( all ) )"),
        ("prolog", "{}(ANS)"),
        ("jsonl", '["S", "{}"]'),
    ],
)
def test_characters_that_nobody_sees_are_told_in_trees(tmp_path, capsys, name, line):
    """A file behind another one in ``cat`` begins with a byte order mark, which is part of a label then."""
    file = write(
        tmp_path / "t", [line.format("a"), line.format("\ufeffb"), line.format("Ã©t\u00e9")]
    )
    _, *remarks = inspect(capsys, file, "--format", name)
    marks, decoded = [remark for remark in remarks if "of 3" in remark]
    assert "1 of 3 " in marks
    assert "holds invisible characters" in marks
    assert "1 of 3 " in decoded
    assert "holds characters that were decoded wrongly (Ã© for é" in decoded


def test_tags_and_factors_in_text_are_told(tmp_path, capsys):
    lines = [
        "The/DT cat/NN ,/, sleeps/VERB ./.", "the|DT|the cat|NN|cat", "The￨C cat￨L", "and/or a|b", "C# #1", "cat/NN",
        "I_TURN_LEFT I_WALK", "lambda/3 $0/0",
    ]  # fmt: skip
    text = write(tmp_path / "t.en", lines)
    _, remark = inspect(capsys, text, "--format", "text")
    assert remark == (
        f"{text}:1: 3 of 8 lines hold tags or factors in all words (cat/NN, cat|NN, cat#cat); the words are read "
        "with them: take them off"
    )
    with remarks_of("t") as remarks:
        check_raw(lines[0])
    assert [finding.times for finding in remarks.findings.values()] == [1]


def test_capitals_before_guillemets_are_not_decoded_wrongly():
    with remarks_of("t") as remarks:
        for text in ("« IRMÃ»", "« XÃ »", "MAÇÃ\u00a0!", "SEÑOR", "ÂGE", "Ðað", "5 €", "pâté"):
            check_characters(text)
        assert not remarks.findings
        for text in ("cafÃ©", "donâ€™t", "Ð¿", "\ufffd"):
            check_characters(text)
    assert [finding.times for finding in remarks.findings.values()] == [4]


def test_text_that_is_segmented_or_escaped_is_told_before_it_is_parsed_or_segmented_again(
    tmp_path, capsys
):
    """A model of subwords over subwords of another tool learns their marks, and nothing fails."""
    text = write(
        tmp_path / "t.en",
        ["un@@ happy @@", "▁a b ##a b￭ ￭a", "-LRB- x -RRB-", "mail a@@b a##b ## #b"] * 8,
    )
    _, subwords, escapes = inspect(capsys, text, "--format", "text")
    assert subwords.startswith(
        f"{text}:1: 16 of 32 lines hold subwords of another tool (@@, ▁, ## or ￭), 40 in"
    )
    assert escapes.startswith(f"{text}:3: 8 of 32 lines hold escapes of the Penn Treebank (-LRB-)")
    trees = write(tmp_path / "t.ptb", ["(NP (JJ un@@) (JJ happy))"] * 32)
    words = ["binarize", tmp_path / "o", "--train", trees, text, "--source-format", "ptb"]
    words += ["--source-lang", "en", "--target-lang", "de", "--overwrite", "--workers", 1]
    for more, told in (([], 0), (["--subword-vocab", 26, "--joined-subwords"], 2)):
        assert main([*map(str, (*words, *more))]) == 0
        assert capsys.readouterr().out.count("subwords of another tool") == told


def test_words_of_json_lines_that_have_no_order_are_told_with_their_line(tmp_path, capsys):
    file = write(
        tmp_path / "t.jsonl",
        ['["a"]', '{"parents": [-1, 0], "labels": ["a", "b"], "words": [-1, 5]}'],
    )
    assert "t.jsonl:2: the surface indices of the words are not 0, 1, 2, …" in inspect_refused(
        capsys, file, "--format", "jsonl"
    )
