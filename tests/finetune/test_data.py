"""Data files of all kinds become the same examples; what is wrong in one is told with its line."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

from treesyntax.errors import InputError, OptionError
from treesyntax.finetune.data import (
    check_answers,
    classes_of,
    held_out,
    read_examples,
    read_noted,
    write_data,
    write_texts,
)
from treesyntax.finetune.job import (
    Job,
    read_job,
    read_settings,
    write_job,
)
from treesyntax.study.run.huggingface import setting_words
from treesyntax.trees.controls import control_tree
from treesyntax.trees.formats import parse_tree
from treesyntax.trees.tree import Tree

BRACKETS = "(S (NP (DT the) (NN cat)) (VP sat))"
TREE = parse_tree(BRACKETS, "ptb")


def job(task: str = "sequence-classification", **fields: Any) -> Job:
    return Job("model", task, **{"tree_format": "ptb", **fields})


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_bytes(gzip.compress(text.encode())) if name.endswith(".gz") else file.write_text(
        text
    )
    return file


@pytest.mark.parametrize(
    ("name", "text", "fields"),
    [
        ("a.jsonl", json.dumps({"text": "the cat sat", "tree": BRACKETS, "label": 1}), {}),
        ("a.jsonl.gz", json.dumps({"s": "the cat sat", "t": BRACKETS, "c": "1"}), {"columns": {"text": "s", "tree": "t", "label": "c"}}),
        ("a.tsv", f"label\ttext\ttree\n1\tthe cat sat\t{BRACKETS}", {}),
        ("a.tsv.gz", f"1\tthe cat sat\t{BRACKETS}", {"header": ("label", "text", "tree")}),
        ("a.TSV", f'label\ttext\tother\ttree\n1\tthe cat sat\t"a\n""b"""\t{BRACKETS}', {}),
        ("a.csv", f'\ufefflabel,text,other,tree\r\n1,"the cat sat","a\r\n,""b""",{BRACKETS}', {}),
        ("a.CSV.gz", f'" 1 ","the cat sat","{BRACKETS}"', {"header": ("label", "text", "tree")}),
    ],
)  # fmt: skip
def test_files_of_all_kinds_are_the_same_example(tmp_path: Path, name: str, text: str, fields):
    (example,) = read_examples(job(**fields), write(tmp_path, name, f"{text}\n"))
    assert example.inputs == {"text": "the cat sat", "tree": TREE}
    assert (example.answer, example.source, example.target) == ("1", "the cat sat", "1")


def test_what_looks_odd_in_trees_is_counted_with_its_first_line(tmp_path: Path):
    """Here and in files of their own; what readers of binarize say, too."""
    odd = "(S (NP *T*-1) (VP sat))"
    lines = [
        {"text": "the cat sat", "tree": BRACKETS, "label": 1},
        {"text": "*T*-1 sat", "tree": odd, "label": 2},
    ]
    file = write(tmp_path, "a.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    examples, remarks = read_noted(job(), file)
    assert len(examples) == 2
    assert len(remarks) == 1
    assert remarks[0].startswith(f"{file}:2: 1 of 2 examples")
    trees = write(tmp_path, "a.ptb", f"{odd}\n{BRACKETS}\n")
    texts = write(tmp_path, "b.jsonl", '{"text": "*T*-1 sat"}\n{"text": "the cat sat"}\n')
    assert read_noted(job(), texts, trees)[1][0].startswith(f"{trees}:1: 1 of 2 trees")
    assert not read_noted(job(), write(tmp_path, "c.jsonl", json.dumps(lines[0])))[1]


def test_what_looks_odd_in_texts_is_counted_with_its_first_line(tmp_path: Path):
    """A pretrained model reads the brackets of a treebank, escapes and subwords of other tools as words it never saw."""
    lines: list[dict[str, Any]] = [
        {"text": "plain ##2", "label": 1},
        {"words": ["-LRB-", "it", "-rrb-"], "label": 2},
        {"text": "it &apos;s", "text_pair": "un@@ happy", "label": 1},
        {"text": "cafÃ©\u200b", "label": 1},
    ]
    file = write(tmp_path, "a.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    _, remarks = read_noted(job(), file)
    assert [" ".join(text.partition(";")[0].split()[:9]) for text in remarks] == [
        f"{file}:1: 2 of 4 examples hold subwords of another",
        f"{file}:2: 1 of 4 examples holds escapes of the",
        f"{file}:3: 1 of 4 examples holds escapes of Moses'",
        f"{file}:4: 1 of 4 examples holds invisible characters (soft",
        f"{file}:4: 1 of 4 examples holds characters that were",
    ]
    (text,) = read_noted(job(), write(tmp_path, "a.tab", "text\tlabel\nplain one\n"))[1]
    assert text.startswith(f"{tmp_path / 'a.tab'}:1: 1 of 2 examples holds tabs between words")


def test_what_looks_odd_is_told_of_the_file_that_has_it(tmp_path: Path):
    texts = write(tmp_path, "a.jsonl", '{"text": "the cat"}\n{"text": "it &apos;s"}\n')
    trees = write(tmp_path, "a.ptb", "(S (-NONE- *) (X the) (X cat))\n(S (X it) (X &apos;s))\n")
    traces, of_trees, of_texts = read_noted(job(), texts, trees)[1]
    assert traces.startswith(f"{trees}:1: 1 of 2 trees holds traces")
    assert of_trees.startswith(f"{trees}:2: 1 of 2 trees holds escapes of Moses'")
    assert of_texts.startswith(f"{texts}:2: 1 of 2 examples holds escapes of Moses'")


def test_sentences_of_a_treebank_are_told_with_their_lines(tmp_path: Path):
    word = "{}\t{}\t_\tX\t_\t_\t{}\tdep\t_\t_\n"
    sentences = [word.format(1, form, 0) for form in ("a", "&apos;s", "b", "-LRB-", "&apos;")]
    file = write(tmp_path, "a.conllu", "\n".join(sentences))
    escapes, brackets = read_noted(job("token-classification"), file)[1]
    assert escapes.startswith(f"{file}:3: 2 of 5 examples hold escapes of Moses'")
    assert brackets.startswith(f"{file}:7: 1 of 5 examples holds escapes of the Penn Treebank")
    bad = write(
        tmp_path, "b.conllu", f"{sentences[0]}\n# x\n{sentences[0]}{word.format(2, 'b', 9)}"
    )
    with pytest.raises(InputError, match=r"b\.conllu:5: the head 9 of word 2 is out of range"):
        read_noted(job("token-classification"), bad)


def test_what_pandas_writes_for_missing_values_is_counted(tmp_path: Path):
    file = write(tmp_path, "a.csv", "label,text\n1.0,a\nnan,b\n2.0,\n")
    examples, remarks = read_noted(job(), file)
    assert [example.answer for example in examples] == ["1.0", "nan", "2.0"]
    assert [text.partition(";")[0] for text in remarks] == [
        f"{file}:2: 2 of 3 examples hold classes such as 1.0, as pandas writes whole numbers beside missing ones",
        f"{file}:3: 1 of 3 examples holds the class nan, as pandas prints a missing value",
        f"{file}:4: 1 of 3 examples holds an empty text",
    ]
    (text,) = read_noted(job("seq2seq"), write(tmp_path, "b.csv", "text,target\na,\n"))[1]
    assert "1 of 1 examples holds an empty target" in text
    file = write(tmp_path, "c.csv", "text,target\na nan,b\nnan,nan\n")
    (text,) = read_noted(job("seq2seq"), file)[1]
    assert text.startswith(f"{file}:3: 1 of 2 examples holds the text nan, as pandas prints")


@pytest.mark.parametrize(
    ("labels", "count"),
    [
        ((0, 1, 2, -1, -1), 2),
        (("neutral", "-", "contradiction"), 1),
        ((-1, 0, 1), 0),
        ((-2, -1, 0, 1, 2), 0),
        (("+", "-", "0"), 0),
    ],
)
def test_examples_of_no_class_are_counted(tmp_path: Path, labels: tuple[Any, ...], count: int):
    """Copies of SNLI keep the pairs on which annotators did not agree; sentiment has a class -1."""
    rows = [json.dumps({"text": "a", "label": label}) for label in labels]
    remarks = read_noted(job(), write(tmp_path, "a.jsonl", "\n".join(rows)))[1]
    assert [f"{count} of {len(labels)} " in text for text in remarks] == [True] * bool(count)
    assert all("the class - or -1" in text for text in remarks)


def test_two_spellings_of_a_class_are_counted(tmp_path: Path):
    file = write(tmp_path, "a.csv", "text,label\na,yes\nb,Yes\nc,yes\nd,no\ne,YES\n")
    (text,) = read_noted(job(), file)[1]
    assert text.startswith(f"{file}:3: 2 of 5 examples hold a class that other examples spell with")
    assert not read_noted(job(), write(tmp_path, "b.csv", "text\na\nb\n"))[1]


def test_quotes_behind_a_space_are_counted(tmp_path: Path):
    text = 'text,label\na, "x"\n"b, c", y\n"d "" e", z\n f "g" , "h" \n'
    examples, remarks = read_noted(job(), write(tmp_path, "a.csv", text))
    assert [example.answer for example in examples] == ['"x"', "y", "z", '"h"']
    (remark,) = remarks
    assert remark.startswith(
        f"{tmp_path / 'a.csv'}:2: 2 of 4 examples hold spaces before double quotes;"
    )


def test_the_dependency_line_of_the_page_needs_no_format(tmp_path: Path):
    page = (ROOT / "docs/pretrained.md").read_text("utf-8")
    line = next(one for one in re.findall(r"```json\n(.*)\n```", page) if "heads" in one)
    (example,) = read_examples(job(tree_format=""), write(tmp_path, "a.jsonl", f"{line}\n"))
    tree = Tree.from_heads([2, 3, 0], ["the", "cat", "sat"], ["det", "nsubj", "root"])
    assert (example.inputs["words"], example.inputs["tree"]) == (["the", "cat", "sat"], tree)


def test_trees_and_answers_may_stand_in_files_of_their_own(tmp_path: Path):
    source = write(tmp_path, "a.src", "the cat sat\n")
    trees, targets = write(tmp_path, "a.ptb", f"{BRACKETS}\n"), write(tmp_path, "a.tgt", "x  y\n")
    (example,) = read_examples(job("seq2seq"), source, trees, targets)
    assert (example.inputs["tree"], example.target) == (TREE, "x y")
    short = write(tmp_path, "b.tgt", "x\ny\n")
    with pytest.raises(InputError, match=r"b.tgt: has 2 lines, but .*a.src has 1 examples"):
        read_examples(job("seq2seq"), source, trees, short)


FRENCH = "Va  du coin"
CONTRACTED = "1|Va|0 2-3|du|_ 2|de|4 3|le|4 4|coin|1"


def conllu_of(words: str) -> str:
    """The record of ``ID|FORM|HEAD`` with spaces between."""
    rows = [word.split("|") for word in words.split()]
    return "".join(f"{i}\t{form}" + "\t_" * 4 + f"\t{head}\tdep\t_\t_\n" for i, form, head in rows)


@pytest.mark.parametrize("place", ["column", "file", "brackets"])
def test_a_multi_word_token_is_a_word_of_its_text(tmp_path: Path, place: str):
    """Stanza parses French ``du`` as de + le, whose text is neither."""
    row = {"text": FRENCH} | ({"tree": conllu_of(CONTRACTED)} if place == "column" else {})
    file, trees = write(tmp_path, "a.jsonl", json.dumps(row)), None
    if place == "file":
        trees = write(tmp_path, "a.conllu", f"{conllu_of(CONTRACTED)}\n")
    elif place == "brackets":
        trees = write(tmp_path, "a.ptb", "(S (V Va) (PP (P de) (NP (D le) (N coin))))\n")
        write(tmp_path, "a.ptb.offsets", "0:2 3:5 3:5 6:10\n")
    tree_format = "ptb" if place == "brackets" else "conllu"
    (example,) = read_examples(job(tree_format=tree_format), file, trees)
    expected = Tree.from_heads([0, 3, 1], ["Va", "du", "coin"], ["dep"] * 3)
    if place == "brackets":
        expected = parse_tree("(S (V Va) (PP (P du) (NP (N coin))))", "ptb")
    assert example.inputs["tree"] == expected


def test_words_and_tokens_that_their_words_spell_stay_as_they_are(tmp_path: Path):
    words = write(tmp_path, "w.jsonl", json.dumps({"words": ["Va", "de", "le", "coin"]}))
    trees = write(tmp_path, "w.conllu", f"{conllu_of(CONTRACTED)}\n")
    (example,) = read_examples(job(tree_format="conllu"), words, trees)
    assert len(example.inputs["tree"]) == 4
    tokens = write(tmp_path, "v.jsonl", json.dumps({"words": ["Va", "du", "coin"]}))
    (example,) = read_examples(job(tree_format="conllu"), tokens, trees)
    assert len(example.inputs["tree"]) == 3
    row = write(tmp_path, "r.jsonl", json.dumps({"tree": conllu_of(CONTRACTED)}))
    (example,) = read_examples(job(tree_format="conllu", columns={"words": "tree"}), row)
    assert example.inputs["words"] == ["Va", "de", "le", "coin"]
    words = write(tmp_path, "d.jsonl", json.dumps({"text": "Va de le coin"}))
    (example,) = read_examples(job(tree_format="conllu"), words, trees)
    assert len(example.inputs["tree"]) == 4
    spelt = conllu_of("1-2|don't|_ 1|do|2 2|n't|0")
    text = write(tmp_path, "t.jsonl", json.dumps({"text": "don't", "tree": spelt}))
    (example,) = read_examples(job(tree_format="conllu"), text)
    assert example.inputs["tree"] == parse_tree(spelt, "conllu")


def test_a_treebank_is_tagged_by_its_parts_of_speech(tmp_path: Path):
    rows = [["1", "the", "DET", "2"], ["2", "cat", "NOUN", "0"]]
    lines = [f"{i}\t{w}\t_\t{tag}\tX{i}\t_\t{head}\tdep\t_\t_" for i, w, tag, head in rows]
    file = write(
        tmp_path,
        "a.conllu",
        "# text = the cat\n1-2\tthecat" + "\t_" * 8 + "\n" + "\n".join(lines) + "\n\n",
    )
    (example,) = read_examples(job("token-classification"), file)
    assert example.inputs["words"] == ["the", "cat"]
    assert example.answer == ["DET", "NOUN"]
    assert len(example.inputs["tree"]) == 2
    (other,) = read_examples(job("token-classification", columns={"label": "xpos"}), file)
    assert other.answer == ["X1", "X2"]


def test_a_line_may_have_several_examples_with_words_of_their_own(tmp_path: Path):
    row = {"tokens": ["the", "cat", "sat"], "heads": [2, 3, 0], "relations": ["d", "s", "r"]}
    row["aspects"] = [
        {"start": 1, "end": 2, "polarity": "good"},
        {"start": 0, "end": 1, "polarity": "bad"},
    ]
    names = {
        "words": "tokens",
        "heads": "heads",
        "relations": "relations",
        "start": "start",
        "end": "end",
        "label": "polarity",
    }
    file = write(tmp_path, "a.jsonl", json.dumps(row))
    examples = read_examples(job(each="aspects", columns=names), file)
    assert [one.inputs["words_pair"] for one in examples] == [["cat"], ["the"]]
    assert [one.source for one in examples] == ["the cat sat ||| cat", "the cat sat ||| the"]
    assert (
        examples[0].inputs["tree"].relations == ("r", "s", "d")
        or examples[0].inputs["tree"].relations
    )
    with pytest.raises(InputError, match="has no list of objects 'aspect'"):
        read_examples(job(each="aspect", columns=names), file)


def test_words_of_the_tree_take_the_place_of_a_text_with_escapes(tmp_path: Path):
    file = write(tmp_path, "a.tsv", "label\ttext\ttree\n1\ta\\/b c\t(S (X a\\/b) (X c))\n")
    (example,) = read_examples(job(columns={"words": "tree"}), file)
    assert example.inputs["words"] == ["a/b", "c"]
    assert "text" not in example.inputs


def test_a_control_has_the_words_under_another_tree(tmp_path: Path):
    file = write(tmp_path, "a.jsonl", json.dumps({"text": "the cat sat", "tree": BRACKETS}))
    (example,) = read_examples(job(control="random", control_seed=7), file)
    assert example.inputs["tree"] == control_tree(TREE, "random", 7)


@pytest.mark.parametrize("count", [1, 40, 99])
def test_no_sentence_is_in_training_and_validation(tmp_path: Path, count: int):
    rows = [{"text": f"s {n // 2}", "tree": None, "label": str(n % 2)} for n in range(200)]
    file = write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    examples = read_examples(job(), file)
    train, valid = held_out(examples, count)
    assert len(train) + len(valid) == 200
    assert count <= len(valid) <= count + 1
    assert not {one.source for one in train} & {one.source for one in valid}
    other_train, _ = held_out(examples[::-1], count)
    assert {one.source for one in train} == {one.source for one in other_train}


def test_what_a_study_writes_is_read_as_the_same(tmp_path: Path):
    row = {"words": ["the", "cat", "sat"], "tree": BRACKETS, "label": ["D", "N", "V"]}
    first = read_examples(job("token-classification"), write(tmp_path, "a.jsonl", json.dumps(row)))
    write_data(job("token-classification"), "train", first, tmp_path)
    again = read_examples(
        job("token-classification", tree_format="jsonl"), tmp_path / "train.jsonl"
    )
    assert again == first
    assert (tmp_path / "train.source").read_text() == "the cat sat\n"
    assert (tmp_path / "train.target").read_text() == "D N V\n"
    write_texts("train", first, tmp_path)
    assert (tmp_path / "train.text").read_text() == "the cat sat\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.jsonl", '{"text": "a"}\n{"text"', "a.jsonl:2: cannot be read as JSON"),
        ("a.jsonl", '{"text": "a"}\n{"text": "a", "label": 1, "label": 2}',
         "a.jsonl:2: cannot be read as JSON (the key 'label' occurs twice)"),
        ("a.jsonl", '{"text": "a", "spans": [{"start": 1, "start": 2}]}', "a.jsonl:1: cannot be read as JSON (the key 'start'"),
        ("a.jsonl", "[1]", "a.jsonl:1: is no object"),
        ("a.jsonl", '{"sentence": "a"}', "a.jsonl:1: has no column text or words"),
        ("a.jsonl", '{"text": "a", "label": 0.5}', "has the label 0.5; a class is a name or a whole number"),
        ("a.jsonl", '{"text": "a", "tree": "(S a"}', "a.jsonl:1: "),
        ("a.tsv", "label\ttext\n1\ta\tb\n", "a.tsv:2: has 3 columns, but label, text are 2"),
        ("a.jsonl", "", "a.jsonl: is empty"),
        ("a.tsv", "label\ttext\ttext\n", "a.tsv:1: has two columns 'text'; rename one of them"),
        ("a.csv", "label;text\n1;a\n", "a.csv:1: seems to have semicolons (';') between its columns; write tabs"),
        ("a.tsv", "label,text\n1,a\n", "a.tsv:1: seems to have commas"),
        ("a.csv", "sep=;\nlabel;text\n1;a\n", "a.csv:1: is 'sep=;', a line for Excel; remove it and write tabs"),
        ("a.csv", "sep=,\nlabel,text\n1,a\n", "a.csv:1: is 'sep=', a line for Excel; remove it and write tabs"),
        ("a.csv", 'label,text\n1,"a"b\n', "a.csv:2: is no CSV"),
        ("a.jsonl", '{"text": NaN}', "has the text nan; it must be text"),
        ("a.jsonl", '{"text": ["a", "b"]}', "has the text ['a', 'b']; it must be text"),
        ("a.jsonl", '{"text": "a\\ud800"}', "has half a surrogate pair in text, which is no character"),
        ("a.jsonl", '{"text": null, "heads": [0]}', "has no column text or words"),
        ("a.jsonl", '{"words": ["a", null]}', "has the words with None; it must be text"),
        ("a.jsonl", '{"text": "a", "tree": NaN}', "has the tree nan; it must be text"),
        ("a.jsonl", '{"words": ["a", "b"], "heads": ["x", 0]}', "has the heads 'x'; they must be whole numbers"),
        ("a.jsonl", '{"words": ["a", "b"], "heads": [0]}', "2 words, but 1 heads; give one of each a word"),
        ("a.jsonl", '{"words": ["a", "b"], "heads": [2, 0], "relations": ["x"]}', "1 relations, but 2 heads"),
        ("a.jsonl", '{"words": ["a"], "heads": [0], "tree": "(S a)"}', "has heads and a tree; choose by --columns"),
        ("a.jsonl", '{"words": ["a", "b"], "start": 1, "end": 3}', "has the start and end [1, 3]; they must be within its 2 words"),
        ("a.jsonl", '{"words": ["a", " "]}', "a.jsonl:1: has an empty word in words, number 2; take it and its tag out"),
        ("a.conllu", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n1\tb\t_\tX\n", "a.conllu:3: "),
        ("a.conllu", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n1 b _ X _ _ 0 root _ _\n", "a.conllu:3: the columns are separated by spaces"),
        ("a.tsv", "text\ttree\na b\t(S a b)\na b\t(S a)\n", "a.tsv:3: the text goes on after the last word of the tree, with 'b'"),
        ("a.jsonl", '{"text": "a", "tree": {"labels": ["S"]}}', "a.jsonl:1: has a tree that is JSON itself; write"),
        ("a.jsonl", '{"text": "a b", "tree": "(S a c)"}', "a.jsonl:1: word 2 ('c') is not at character 2 of the text"),
        ("a.jsonl", '{"words": ["a", "b"], "tree": "(S a)"}', "a.jsonl:1: 2 words, but the tree has 1; give the words of the tree, or parse these by treesyntax parse --pretok"),
        ("a.jsonl", '{"text": "a", "text_pair": "b", "tree_pair": "(S c)"}', "a.jsonl:1: word 1 ('c')"),
        ("a.jsonl", '{"words": ["a", "b"], "start": 1}', "has the start and end None; they must be whole numbers"),
    ],
)  # fmt: skip
def test_a_fault_in_data_is_told_with_its_line(tmp_path: Path, name: str, text: str, message: str):
    with pytest.raises(InputError) as caught:
        read_examples(job(), write(tmp_path, name, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (
            ["S", ["NP", "it"], "rains"],
            "has a tree that is JSON itself; write the tree as a string",
        ),
        (["S", "it", "rains"], "has a tree that is JSON itself; write the tree as a string"),
        (
            '["S", "it", "rains"]',
            "a tree of 3 nodes has no words, so no token can stand on one; read",
        ),
        (['["S", "it"]', '"rains"'], "a tree of 3 nodes has no words"),
    ],
)
def test_trees_in_json_that_no_text_fits_are_named(tmp_path: Path, tree: Any, message: str):
    rows = [{"text": "it rains"}, {"text": "it rains", "tree": tree}]
    file = write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match=f"a.jsonl:2: {message}"):
        read_examples(job(tree_format="jsonl"), file)


def test_numbers_may_be_as_pandas_writes_them(tmp_path: Path):
    file = write(
        tmp_path, "a.jsonl", '{"words": "a b", "heads": [2.0, 0.0], "start": "0", "end": 1.0}'
    )
    (example,) = read_examples(job(), file)
    assert example.inputs["tree"] == Tree.from_heads([2, 0], ["a", "b"])
    assert example.inputs["words_pair"] == ["a"]


@pytest.mark.parametrize(
    ("words", "label", "heads"),
    [
        ("['it', \"isn't\"]", "['O', 'B-X']", "[2, 0]"),
        ("['it',\n 'isn\\'t']", "['O', 'B-X']", "[2.0, 0.0]"),
        ('["it","isn\'t"]', '["O", "B-X"]', "[2,0]"),
        ("it isn't", "O B-X", "2 0"),
    ],
)
def test_lists_of_a_table_may_be_as_pandas_writes_them(
    tmp_path: Path, words: str, label: str, heads: str
):
    fields = ",".join('"' + field.replace('"', '""') + '"' for field in (words, label, heads))
    file = write(tmp_path, "l.csv", f"words,label,heads\n{fields}\n")
    (example,) = read_examples(job("token-classification"), file)
    assert example.inputs["words"] == ["it", "isn't"]
    assert example.inputs["tree"] == Tree.from_heads([2, 0], ["it", "isn't"])
    assert example.answer == ["O", "B-X"]


@pytest.mark.parametrize(
    "fields", [{"text": 'They cried "no"'}, {"words": ["They", "cried", '"', "no", "”"]}]
)
def test_a_text_may_have_other_quotes_than_its_treebank(tmp_path: Path, fields: dict[str, Any]):
    brackets = "(S (X They) (X cried) (`` ``) (X no) ('' ''))"
    file = write(tmp_path, "a.jsonl", json.dumps({**fields, "tree": brackets}))
    (example,) = read_examples(job(), file)
    assert example.inputs["tree"] == parse_tree(brackets, "ptb")


@pytest.mark.parametrize("words", ["[ 1 ]", "[1]", "[Music] plays [2]", "[1, 2]", "[ 'a' ]", "[]"])
def test_words_in_brackets_are_no_list(tmp_path: Path, words: str):
    file = write(tmp_path, "l.tsv", f"words\n{words}\n")
    (example,) = read_examples(job("token-classification"), file)
    assert example.inputs["words"] == words.split()


@pytest.mark.parametrize(
    "row", ["['it' 'rains']\tA B", "['it', None]\tA B", "it rains\t[0 3]", "['\\x']\tA", "it rains\t[ 0 13]"]
)  # fmt: skip
def test_arrays_of_a_table_are_no_words(tmp_path: Path, row: str):
    file = write(tmp_path, "l.tsv", f"words\tlabel\n{row}\n")
    with pytest.raises(InputError, match=r"l.tsv:2: has the .*, a list as Python prints it; write"):
        read_examples(job("token-classification"), file)


def test_heads_or_a_tree_are_chosen_by_name(tmp_path: Path):
    row = {"text": "the cat sat", "heads": [2, 3, 0], "tree": BRACKETS}
    file = write(tmp_path, "a.jsonl", json.dumps(row))
    heads = Tree.from_heads([2, 3, 0], ["the", "cat", "sat"])
    for name, tree in (("heads", heads), ("tree", TREE)):
        (example,) = read_examples(job(columns={name: name}), file)
        assert example.inputs["tree"] == tree


def test_a_control_changes_each_tree_of_a_text(tmp_path: Path):
    row = {"text": "the cat sat " * 2, "tree": [BRACKETS, None, [BRACKETS]]}
    file = write(tmp_path, "a.jsonl", json.dumps(row))
    (example,) = read_examples(job(control="random", control_seed=7), file)
    assert example.inputs["tree"] == [control_tree(TREE, "random", 7)] * 2
    write_data(job(), "train", [example], tmp_path)


def test_white_space_makes_no_other_class(tmp_path: Path):
    rows = [{"text": "a", "label": label} for label in ("very good", " very\n good ", "--1", -1)]
    file = write(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    examples = read_examples(job(), file)
    assert [example.answer for example in examples[:2]] == ["very good"] * 2
    assert classes_of(examples) == ("--1", "-1", "very good")


@pytest.mark.parametrize(("name", "tab"), [("a.csv", ","), ("a.tsv", "\t")])
def test_a_field_may_be_long_and_a_name_have_spaces(tmp_path: Path, name: str, tab: str):
    """Python's reader takes 128 KiB; a quoted table with more was read with its quotes."""
    long = "many words, " * 12_000
    file = write(tmp_path, name, f'text{tab} label\n"{long}"{tab}1\n"a ""b"""{tab}0\n')
    examples = read_examples(job(), file)
    assert [example.inputs["text"] for example in examples] == [long, 'a "b"']
    assert [example.answer for example in examples] == ["1", "0"]


def test_names_of_columns_are_no_example(tmp_path: Path):
    file = write(tmp_path, "a.tsv", "label\ttext\n1\ta\n")
    with pytest.raises(InputError, match=r"a.tsv:1: has the names of the columns; leave --header"):
        read_examples(job(header=("label", "text")), file)


def test_answers_are_those_of_the_training_data(tmp_path: Path):
    file = write(tmp_path, "a.jsonl", '{"text": "a", "label": 10}\n{"text": "b", "label": 9}')
    examples = read_examples(job(), file)
    assert classes_of(examples) == ("9", "10")
    with pytest.raises(
        InputError, match=r"a.jsonl:1: has the class '10', which the training data lacks"
    ):
        check_answers(examples, file, job(labels=("9",)))
    bare = read_examples(job(), write(tmp_path, "b.jsonl", '{"text": "a"}'))
    with pytest.raises(InputError, match=r"b.jsonl:1: has no column 'label'"):
        check_answers(bare, "b.jsonl", job())


def test_tags_are_one_for_each_word(tmp_path: Path):
    file = write(tmp_path, "a.jsonl", '{"words": ["a", "b"], "label": ["X"]}')
    with pytest.raises(InputError, match="has 1 tags for 2 words"):
        read_examples(job("token-classification"), file)


def test_settings_are_read_as_they_are_written(tmp_path: Path):
    settings = {
        "learning_rate": 5e-05,
        "bf16": True,
        "group_by_length": False,
        "optim": "adamw_torch",
        "max_steps": 3,
        "logging_strategy": "no",
        "run_name": "2026-11-28",
        "hub_model_id": "first #1",
        "optim_args": "",
        "logging_dir": "010",
    }
    words = list(setting_words(settings, "--set"))
    assert read_settings(words[1::2]) == settings
    assert read_settings(["learning-rate=1e-5"]) == {"learning_rate": 1e-5}
    with pytest.raises(OptionError, match="--set bf16: write it as NAME=VALUE"):
        read_settings(["bf16"])
    with pytest.raises(OptionError, match="--set max_steps=010: YAML reads 010 as 8; write that"):
        read_settings(["max_steps=010"])
    with pytest.raises(OptionError, match="--generate max_length=: there is no value; for none"):
        read_settings(["max_length="], "--generate")
    one = job(settings=settings, labels=("a",), header=("x",))
    write_job(tmp_path, one)
    assert read_job(tmp_path) == one
