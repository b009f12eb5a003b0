"""Penn Treebank brackets and CoNLL-U: independent readers as oracles, and examples."""

from __future__ import annotations

import gzip
import re
from itertools import islice

import conllu
import nltk
import pytest
from hypothesis import given, settings
from support import shared
from support.helpers import CONLLU, MRG, PTB, nested, row
from support.strategies import constituency_trees, dependency_trees

from treesyntax.errors import InputError
from treesyntax.remarks import Finding, remarks_of
from treesyntax.trees.formats import FORMATS, RecordError, parse_record, read_trees
from treesyntax.trees.formats.ptb import NAMES, UNLABELLED
from treesyntax.trees.tree import Tree

# Penn Treebank brackets


@settings(deadline=None, max_examples=100)
@given(constituency_trees())
def test_ptb_agrees_with_nltk(tree):
    text = PTB.write(tree)
    oracle = nltk.Tree.fromstring(text, remove_empty_top_bracketing=True)
    escapes = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-"}
    written = [escapes.get(tree.labels[node], tree.labels[node]) for node in tree.leaves]
    assert oracle.leaves() == written
    found = [tree.labels[n] for n in range(len(tree)) if n not in tree.leaves]
    assert [subtree.label() for subtree in oracle.subtrees()] == found
    assert text == oracle.pformat(margin=10**9)
    for spread in (oracle.pformat(margin=5), f"(\n {oracle.pformat(margin=5)}\n )"):
        assert MRG.parse(spread) == tree


def test_ptb_by_example():
    tree = PTB.parse("(S (NP (DT The) (NN cat)) (VP sleeps))")
    assert nested(tree) == ["S", ["NP", ["DT", "The"], ["NN", "cat"]], ["VP", "sleeps"]]
    assert tree.words.tolist() == [-1, -1, -1, 0, -1, 1, -1, 2]
    assert PTB.parse(" ( S(NP  the\tcat )( VP sleeps))") == PTB.parse(
        "(S (NP the cat) (VP sleeps))"
    )
    assert PTB.parse("(NP 10\u00a0000\u3000)").labels == ("NP", "10\u00a0000\u3000")


def test_ptb_unescapes_brackets_in_words_only():
    line = "(-LRB- -LRB-)"
    assert PTB.parse(line).labels == ("-LRB-", "(")
    assert PTB.write(PTB.parse(line)) == line
    every = "(X -LRB- -RRB- -LCB- -RCB- -LSB- -RSB- a-RRB-b)"
    assert PTB.parse(every).labels[1:] == ("(", ")", "{", "}", "[", "]", "a)b")
    assert PTB.write(PTB.parse(every)) == every


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("( (S a))", "(S a)"),
        ("(((S a)))", "(S a)"),
        ("( (S a) (S b))", "(TOP (S a) (S b))"),
        ("( ( (S a) (S b)))", "(TOP (S a) (S b))"),
        ("(S ( (NP a)))", "(S (X (NP a)))"),
        ("((the cat) sat)", "(TOP (the cat) sat)"),
    ],
)
def test_unlabelled_brackets_around_a_tree_are_dropped_and_others_get_labels(text, kept):
    assert PTB.write(PTB.parse(text)) == kept
    assert PTB.parse(kept) == PTB.parse(text)


def test_the_name_of_a_tree_in_a_historical_corpus_is_no_word_and_counted(tmp_path):
    path = tmp_path / "letters.psd"
    path.write_text(
        "( (IP-MAT (NP-SBJ (PRO I)) (VBP pray))\n  (ID LETTERS-E1,12.7))\n\n"
        "( (IP-MAT (NP-SBJ (-NONE- *con*)))\n  (ID LETTERS-E1,12.8))\n\n( (S (ID a)))\n( (ID a))\n"
    )
    with remarks_of(path) as remarks:
        trees = list(read_trees(path, "mrg"))
    assert list(map(words_of, trees)) == [["I", "pray"], [], ["a"], ["a"]]
    assert nested(trees[0]) == ["IP-MAT", ["NP-SBJ", ["PRO", "I"]], ["VBP", "pray"]]
    (names,) = (finding for kind, finding in remarks.findings.items() if kind == NAMES)
    assert names.lines == 2
    assert UNLABELLED not in remarks.findings


def words_of(tree: Tree) -> list[str]:
    return [tree.labels[node] for node in tree.word_nodes()]


def test_traces_are_removed_with_what_they_leave_empty_and_counted(tmp_path):
    text = (
        "( (S (NP-SBJ-1 (NNS Bonds)) (VP (VBD were) (VP (VBN bought) (NP (-NONE- *-1)) (PP (IN at)\n"
        "    (NP (QP (CD 3\\/4) ($ $)) (-NONE- *U*) (JJ Q\\*A))))) (. .)) )\n"
        "( (S (NP-SBJ (-NONE- *)) (VP (-NONE- *?*))) )\n( (S (-NONE- real) (NN work)) )\n"
    )
    path = tmp_path / "wsj.mrg"
    path.write_text(text)
    with remarks_of(path) as remarks:
        for record in MRG.records(path):
            remarks.line, remarks.records = record.line, remarks.records + 1
            MRG.parse(record.text)
    found = list(read_trees(path, "mrg"))
    assert words_of(found[0]) == ["Bonds", "were", "bought", "at", "3/4", "$", "Q*A", "."]
    assert nested(found[0])[2] == [
        "VP", ["VBD", "were"], ["VP", ["VBN", "bought"], ["PP", ["IN", "at"], ["NP",
        ["QP", ["CD", "3/4"], ["$", "$"]], ["JJ", "Q*A"]]]],
    ]  # fmt: skip
    assert (len(found[1]), words_of(found[2])) == (0, ["work"])
    traces, empty = remarks.texts("trees")
    assert traces.startswith(f"{path}:1: 3 of 3 trees hold traces (-NONE-), 5 in all; they are")
    assert empty.startswith(f"{path}:3: 1 of 3 trees holds traces alone; ")


def test_traces_are_those_of_nltks_sample():
    """Words of the Penn Treebank without traces are what nltk calls so."""
    text = "(S (NP (NNP Rolls-Royce)) (VP (VBD said) (SBAR (-NONE- 0) (S (NP (PRP it)) (VP (-NONE- *T*-1))))))"
    oracle = nltk.Tree.fromstring(text)
    wanted = [word for word, tag in oracle.pos() if tag != "-NONE-"]
    assert words_of(PTB.parse(text)) == wanted


@pytest.mark.parametrize(
    ("word", "written"),
    [("1/2", "1/2"), ("a\\/b", "a\\\\/b"), ("\\*", "\\\\*"), ("\\", "\\"), ("a\\b/", "a\\b/")],
)
def test_words_with_backslashes_of_their_own_come_back(word, written):
    tree = Tree([-1, 0], ["NN", word], [-1, 0])
    assert PTB.write(tree) == f"(NN {written})"
    assert PTB.parse(PTB.write(tree)) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(VB like(d))", "the word 'like' stands right before a ( (character 5); brackets that belong"),
        ("(S (NN item(s more)))", "the word 'item' stands right before a ("),
        ("(NN (DT a)b)", "the word 'b' stands right behind a ) (character 11); brackets that belong"),
        ("(NN (X a) (Y ) )", "is empty (character 14); give it a word or remove it; brackets that"),
        ("(S (NN :)))", "closes nothing (character 11); if trees span several lines, use the format mrg; brackets"),
    ],
)  # fmt: skip
def test_brackets_inside_words_get_a_hint(text, message):
    with pytest.raises(RecordError, match=re.escape(message)):
        PTB.parse(text)


def test_mrg_splits_where_the_brackets_close(tmp_path):
    path = tmp_path / "wsj.mrg"
    path.write_text("\n( (S\n    (NP a)\n\n    (VP b)) )\n\n  \n( (S c))\n(S\n d)\n", "utf-8")
    assert [record.line for record in MRG.records(path)] == [2, 8, 9]
    assert list(map(nested, read_trees(path, "mrg"))) == [
        ["S", ["NP", "a"], ["VP", "b"]],
        ["S", "c"],
        ["S", "d"],
    ]


# CoNLL-U


@settings(deadline=None, max_examples=100)
@given(dependency_trees())
def test_conllu_agrees_with_the_conllu_package(tree):
    (sentence,) = conllu.parse(CONLLU.write(tree) + "\n\n")
    assert [token["head"] for token in sentence] == tree.heads()
    nodes = tree.word_nodes()
    assert [token["form"] for token in sentence] == [tree.labels[node] for node in nodes]
    assert [token["deprel"] for token in sentence] == [tree.relations[node] for node in nodes]


def test_conllu_by_example():
    lines = [
        "# sent_id = 1",
        row("1-2", "cannot", "_", "_"),
        row(1, "can", 3, "aux"),
        row(2, "not", 3, "advmod"),
        row(3, "go"),
        row("3.1", "there", "_", "_"),
    ]
    tree = CONLLU.parse("\n".join(lines))
    assert tree == Tree.from_heads([3, 3, 0], ["can", "not", "go"], ["aux", "advmod", "root"])
    assert CONLLU.write(tree).split("\n") == [lines[2], lines[3], lines[4]]


def test_conllu_without_relations_and_with_spaces_in_words():
    tree = Tree.from_heads([0, 1], ["20 000", "_"])
    assert CONLLU.parse(CONLLU.write(tree)) == tree


def test_conllu_splits_at_blank_lines(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(
        f"\n\n# a\n{row(1)}\n\n \t\n\n# text =\n\n{row(1)}\n{row(2, 'v', 1, 'x')}", "utf-8"
    )
    assert [record.line for record in CONLLU.records(path)] == [3, 8, 10]
    assert [len(tree) for tree in read_trees(path, "conllu")] == [1, 0, 2]


def test_comments_before_a_sentence_are_no_sentence(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(
        "# written by hand\n# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n\n# text = a\n"
        f"{row(1)}\n\n# text =\n\n# newdoc\n\n\n{row(1)}\n{row(2, 'v', 9, 'x')}\n\n# the end\n"
    )
    records = list(CONLLU.records(path))
    assert [record.line for record in records] == [1, 7, 9]
    assert [len(CONLLU.parse(record.text)) for record in records[:2]] == [1, 0]
    with (
        remarks_of(path) as remarks,
        pytest.raises(InputError, match="trees.conllu:13: the head 9 of"),
    ):
        for record in records:
            remarks.line, remarks.records = record.line, remarks.records + 1
            parse_record(CONLLU, path, record)
    assert [*remarks.findings.values()] == [Finding(2, 2, 1)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (f"# text = a\n{row(1)}\n# id = 2\n# text = b\n{row(1)}\n", 3, "another sentence begins here"),
        (f"{row(1)}\n{row(1)}\n", 2, "(ID 1), but no blank line stands before it; put one before this"),
        (f"# id = 1\n# text = a b\n\n{row(1)}\n", 2, "the sentence with the text 'a b' has no words; take"),
    ],
)  # fmt: skip
def test_blank_lines_at_the_wrong_place_are_told_where_they_are(tmp_path, text, line, message):
    path = tmp_path / "trees.conllu"
    path.write_text(text)
    with pytest.raises(InputError, match=f"trees.conllu:{line}: .*{re.escape(message)}"):
        list(read_trees(path, "conllu"))


@pytest.mark.parametrize("between", ["\n\n", "\n\n# text = b\n"])
def test_several_sentences_in_one_string_are_named(between):
    with pytest.raises(RecordError, match="several sentences in one string; give a list of") as e:
        CONLLU.parse(f"{row(1)}\n{row(2, 'v', 1, 'x')}{between}{row(1)}")
    assert e.value.offset == 3


def test_blank_lines_behind_a_sentence_are_nothing_odd():
    with remarks_of("x.conllu") as remarks:
        assert len(CONLLU.parse(f"# text = a\n{row(1)}\n\n")) == 1
    assert not remarks.findings


def test_withheld_words_and_escapes_of_moses_are_counted(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(
        f"{row(1, '_')}\n\n{row(1, '_')}\n{row(2, '_', 1, 'x')}\n\n"
        f"{row(1, 'it')}\n{row(2, '&apos;s', 1, 'x')}\n{row(3, '@-@', 1, 'x')}\n\n{row(1, 'R&D')}\n"
    )
    with remarks_of(path) as remarks:
        for record in CONLLU.records(path):
            remarks.line, remarks.records = record.line, remarks.records + 1
            CONLLU.parse(record.text)
    withheld, escapes = remarks.texts("sentences")
    assert withheld.startswith(
        f"{path}:3: 1 of 4 sentences holds _ for most words; the text of such"
    )
    assert escapes.startswith(
        f"{path}:6: 1 of 4 sentences holds escapes of Moses' tokenizer (&apos;"
    )
    assert ", 2 in all; they are read as words: detokenize both sides before" in escapes


def test_spaces_around_words_and_relations_are_counted():
    with remarks_of("x.conllu") as remarks:
        CONLLU.parse(f"{row(1, 'it ')}\n{row(2, 'is 10 000', 1, ' x')}")
        CONLLU.parse(f"# text = it \n{row(1, 'is 10 000')} ")
    assert [(kind.content, finding.times) for kind, finding in remarks.findings.items()] == [
        ("spaces around a FORM or a DEPREL", 1)
    ]


@pytest.mark.parametrize(
    ("forms", "count"),
    [(["___", "__", "_"], 1), (["_", ".", "_"], 1), (["a", "_", "b"], 0), (["_a", "__init__"], 0)],
)
def test_words_are_withheld_where_most_are_underscores(forms, count):
    with remarks_of("x.conllu") as remarks:
        CONLLU.parse("\n".join(row(n, form, n - 1) for n, form in enumerate(forms, start=1)))
    assert len(remarks.findings) == count


@pytest.mark.parametrize(
    ("trace", "count"),
    [
        ("(NP (-NONE- (X *)))", 1),
        ("(NP+-NONE- *T*-1)", 1),
        ("(-NONE-NP 0)", 1),
        ("(NP (-NONE--1 *) (-NONE- 0))", 2),
    ],
)
def test_traces_under_other_labels_are_removed(trace, count):
    with remarks_of("x.ptb") as remarks:
        tree = PTB.parse(f"(S|<-NONE--S> {trace} (VP go))")
    assert nested(tree) == ["S|<-NONE--S>", ["VP", "go"]]
    assert [finding.times for finding in remarks.findings.values()] == [count]


def test_lower_cased_brackets_are_brackets():
    assert PTB.parse("(X -lrb- a-rrb- -lsb- -Lrb-)").labels[1:] == ("(", "a)", "[", "-Lrb-")


def test_words_with_their_places_are_refused():
    """In discbracket words may stand in another order than in the sentence."""
    for text in ("(TOP (S (NP 0=Wen 2=er) (VP 1=sah)))", "(S 0=Ja)"):
        with pytest.raises(RecordError, match=r"have their places \(0=[WJ].*\), as in discbracket"):
            PTB.parse(text)
    assert PTB.parse("(S (X 1=1) (NP-SBJ=2 a=b))").labels == ("S", "X", "1=1", "NP-SBJ=2", "a=b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(S (NP the/DT dog/NN) barked/VBD)", "tags or factors in all words (cat/NN"),
        (
            "(S (NP well/UH ,/, the/DT dogs/NNS) ran/VERB ``/`` -LRB-/-LRB- ./.)",
            "tags or factors in all words",
        ),
        ("(S (NP qāla#qāl#qāla) (. .#.#.))", "tags or factors in all words"),
        ("(S (NP C# the|DT) (VP ran) (NP #1))", None),
        ("(S (NP and/or) (VP ran) (. /.) (. ./.))", "escapes of the Penn Treebank"),
        ("(ROOT [12.3] (S [-4.5] (NP the)))", "numbers in brackets as words ([12.3])"),
        ("(S (NP it) (VP &apos;s))", "escapes of Moses' tokenizer"),
        ("(S (NP &ldquo;) (VP &#8220;) (X &LR;))", "escapes of HTML or SGML"),
        ("(S (NP R&D) (NP AT&T;) (VP &))", None),
        ("(S (NP and/or) (VP [1] x@y.z 1/2))", None),
        ("(S (NP-SBJ *T*-1) (VP go))", "words that look like traces"),
        ("(S (NP-SBJ *) (VP go (QP *U*)))", "words that look like traces"),
        ("(IP (NP-SBJ *speaker*) (NP-OB1 *hearer+pro*) (VB go))", "words that look like traces"),
        ("(S (NP he) (CP-REL (WNP-1 who) (C 0) (VP sat)))", "words that look like traces"),
        ("(S (CP-REL (WADVP-1 0) (VP sat)))", "words that look like traces"),
        ("(S (NP (CD 0)) (WP 0) (NN C) (VP C))", None),
        ("( (IP-MAT (CODE <P_1,3>) (VBD came)))", "brackets CODE, METADATA or -DFL-"),
        (
            "(S (EDITED (RM (-DFL- \\[)) (PRP I)) (VBP go) (-DFL- E_S))",
            "brackets CODE, METADATA or -DFL-",
        ),
        ("(S (NP-SBJ Það-það) (VP er-vera) (. .-.))", "lemmas in words"),
        ("(S (NP a well-known) (VP fact) (. .-.))", None),
        (
            "(S (NP Paula) (VP sits) (. /.))",
            "escapes of the Penn Treebank (-LRB-) or OntoNotes (/.)",
        ),
        ("(S (NP CODE) (VP is))", None),
        ("(S (NP a) (SYM *) (NP 2*3) (VP *bold* ***))", None),
    ],
)
def test_words_of_brackets_that_look_like_something_else_are_counted(text, said):
    with remarks_of("x.ptb") as remarks:
        PTB.parse(text)
    assert [said in kind.content for kind in remarks.findings] == [True] * bool(said)


@pytest.mark.parametrize("form", ["-LRB-", "-rrb-", "/?", "/-"])
def test_escapes_of_brackets_in_conllu_are_counted(form):
    """They are words there: brackets of a treebank that was converted stay as the treebank has them."""
    with remarks_of("x.conllu") as remarks:
        tree = CONLLU.parse("\n".join((row(1, "go"), row(2, form, 1, "x"), row(3, form, 1, "x"))))
    assert tree.labels == ("go", form, form)
    ((kind, finding),) = remarks.findings.items()
    assert (kind.content, finding.times) == (
        "escapes of the Penn Treebank (-LRB-) or OntoNotes (/.)",
        2,
    )


@pytest.mark.parametrize("name", ["UD_English-EWT/dev", "UD_Japanese-PUD/test"])
def test_treebanks_agree_with_the_conllu_package(name):
    path = shared("data", "treebanks", f"{name}.conllu.gz")
    found = list(read_trees(path, "conllu"))[:600]
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        expected = list(islice(conllu.parse_incr(stream), 600))
    for tree, sentence in zip(found, expected, strict=True):
        words = [token for token in sentence if isinstance(token["id"], int)]
        nodes = tree.word_nodes()
        assert tree.heads() == [token["head"] for token in words]
        assert [tree.labels[node] for node in nodes] == [token["form"] for token in words]
        assert [tree.relations[node] for node in nodes] == [token["deprel"] for token in words]
        assert CONLLU.parse(CONLLU.write(tree)) == tree


def test_the_sign_of_traces_as_a_word_is_no_trace():
    tree = FORMATS["ptb"].parse("(S (NN -NONE-) (VB is))")
    assert tree.labels == ("S", "NN", "-NONE-", "VB", "is")
