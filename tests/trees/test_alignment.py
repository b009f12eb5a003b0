"""Tokens of real tokenizers on the words of trees; each kind is trained here on a few sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.errors import TreeError
from treesyntax.trees.alignment import align, align_words, check_words, word_spans
from treesyntax.trees.formats import parse_tree
from treesyntax.trees.tree import Tree

tokenizers = pytest.importorskip("tokenizers", reason="tokenizers come with the extra huggingface")
models, normalizers, pre_tokenizers, processors, trainers = (
    getattr(tokenizers, name)
    for name in ("models", "normalizers", "pre_tokenizers", "processors", "trainers")
)

SENTENCES = [
    "the cat sat unhappily",
    "A dog  barked , Twice !",
    "Sample input 😀 naïve cafe\u0301 ½ ﬁne",
    "我 喜欢 猫",
    "I am",
    "ΟΔΟΣ İstanbul straße",
    " \t the cat\n",
    "don't stop",
]
MARKS = ["<s>", "</s>", "<pad>", "<unk>", "<ent>"]


def trained(tokenizer, trainer, template: bool = True):
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if template:
        marks = [("<s>", tokenizer.token_to_id("<s>")), ("</s>", tokenizer.token_to_id("</s>"))]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=marks
        )
    return tokenizer


def word_piece():
    one = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
    one.normalizer = normalizers.BertNormalizer(lowercase=True)
    one.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return trained(one, trainers.WordPieceTrainer(vocab_size=90, special_tokens=MARKS))


def byte_level(add_prefix_space: bool, trim_offsets: bool, size: int = 280):
    one = tokenizers.Tokenizer(models.BPE())
    one.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=MARKS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    trained(one, trainer, template=False)
    one.post_processor = processors.RobertaProcessing(
        ("</s>", 1), ("<s>", 0), trim_offsets=trim_offsets, add_prefix_space=add_prefix_space
    )
    return one


def llama3():
    one = tokenizers.Tokenizer(models.BPE(ignore_merges=True))
    one.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(r" ?\p{L}+|\s+| ?[^\s\p{L}]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return trained(
        one, trainers.BpeTrainer(vocab_size=330, special_tokens=MARKS, initial_alphabet=alphabet)
    )


def unigram(prepend_scheme: str):
    one = tokenizers.Tokenizer(models.Unigram())
    one.normalizer = normalizers.NFKC()
    one.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend_scheme)
    return trained(
        one, trainers.UnigramTrainer(vocab_size=60, special_tokens=MARKS, unk_token="<unk>")
    )


def byte_fallback():
    pieces = ["<unk>", *MARKS[:3], "▁", "t", "h", "e", *[f"<0x{byte:02X}>" for byte in range(256)]]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    one = tokenizers.Tokenizer(models.BPE(numbers, [], unk_token="<unk>", byte_fallback=True))
    one.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    one.add_special_tokens(MARKS)
    marks = [("<s>", 1), ("</s>", 2)]
    one.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=marks
    )
    return one


TOKENIZERS = {
    "WordPiece": word_piece,
    "bytes": lambda: byte_level(False, False),
    "bytes, trimmed": lambda: byte_level(False, True),
    "bytes after a space": lambda: byte_level(True, False),
    "bytes after a space, trimmed": lambda: byte_level(True, True),
    "large pieces of bytes": lambda: byte_level(True, True, 400),
    "Llama 3": llama3,
    "Unigram, ▁ first": lambda: unigram("first"),
    "Unigram, ▁ always": lambda: unigram("always"),
    "Unigram, no ▁ first": lambda: unigram("never"),
    "bytes of unknown characters": byte_fallback,
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def tokenizer(request: pytest.FixtureRequest):
    return TOKENIZERS[request.param]()


def flat(words: Iterable[str]) -> Tree:
    """A root over its words."""
    words = list(words)
    return Tree([-1, *[0] * len(words)], ["S", *words], [-1, *range(len(words))])


def by_characters(text: str, words: list[str], encoding, sequence: int = 0) -> list[int]:
    """What a reader would do: the word of a token's first character that is in one."""
    owner: dict[int, int] = {}
    for number, (start, end) in enumerate(word_spans(text, words)):
        owner.update(dict.fromkeys(range(start, end), number))
    found = []
    rows = zip(encoding.offsets, encoding.sequence_ids, strict=True)
    for (start, end), own in rows:
        if own != sequence:
            found.append(-1)
            continue
        # White space counts to the word after it, at the end to the last one.
        known = [owner[at] for at in range(start, max(end, start)) if at in owner]
        known += [owner[at] for at in range(max(end, start), len(text)) if at in owner]
        found.append(1 + (known[0] if known else len(words) - 1))
    return found


@pytest.mark.parametrize("text", SENTENCES)
def test_each_token_is_on_the_word_of_its_characters(tokenizer, text: str):
    encoding = tokenizer.encode(text)
    expected = by_characters(text, text.split(), encoding)
    ids = encoding.sequence_ids
    assert align(flat(text.split()), encoding.offsets, text, sequence_ids=ids) == expected
    # Without ids, a space of no width before the text looks like a special token.
    spaces = [one == 0 and span == (0, 0) for one, span in zip(ids, encoding.offsets, strict=True)]
    seen = [-1 if space else node for space, node in zip(spaces, expected, strict=True)]
    assert align(flat(text.split()), encoding.offsets, text) == seen
    assert {*expected} >= {*range(1, len(text.split()) + 1)}  # none is left out


@pytest.mark.parametrize("text", SENTENCES)
def test_words_tokenized_one_by_one(tokenizer, text: str):
    encoding = tokenizer.encode(text.split(), is_pretokenized=True)
    expected = [-1 if word is None else word + 1 for word in encoding.word_ids]
    assert align_words(flat(text.split()), encoding.word_ids) == expected
    with pytest.raises(TreeError, match=r"use align_words\(tree, encoding.word_ids\(row\)\)"):
        align(flat(text.split()), encoding.offsets, text)


@pytest.mark.parametrize(
    ("first", "second"), [(SENTENCES[0], SENTENCES[1]), ("a", "a dog"), ("I am", "I"), ("I", "I")]
)
def test_pairs(tokenizer, first: str, second: str):
    texts = [first, second]
    trees = [flat(text.split()) for text in texts]
    encoding = tokenizer.encode(*texts)
    ids = encoding.sequence_ids
    alone = [by_characters(text, text.split(), encoding, i) for i, text in enumerate(texts)]
    pairs = list(zip(*alone, strict=True))
    after = len(trees[0])
    expected = [one if one >= 0 else after + other if other >= 0 else -1 for one, other in pairs]
    assert align(trees, encoding.offsets, texts, sequence_ids=ids) == expected
    assert align([trees[0], None], encoding.offsets, texts, sequence_ids=ids) == alone[0]
    assert align([None, trees[1]], encoding.offsets, texts, sequence_ids=ids) == alone[1]

    split = tokenizer.encode(*[text.split() for text in texts], is_pretokenized=True)
    nodes = align_words(trees, split.word_ids, sequence_ids=split.sequence_ids)
    rows = zip(split.word_ids, split.sequence_ids, strict=True)
    assert nodes == [-1 if one is None else 1 + word + one * after for word, one in rows]
    with pytest.raises(TreeError, match="of a pair; give align_words the trees of both and seq"):
        align_words(trees[0], split.word_ids)


def test_a_pair_of_texts_is_refused_as_one(tokenizer):
    encoding = tokenizer.encode(SENTENCES[0], SENTENCES[1])
    with pytest.raises(TreeError, match=r"offsets go back, .* sequence_ids=encoding.sequence_ids"):
        align(flat(SENTENCES[0].split()), encoding.offsets, SENTENCES[0])
    with pytest.raises(TreeError, match="do not say of which text a token is; give sequence_ids"):
        align([flat("a"), flat("b")], encoding.offsets, ["a", "b"])
    with pytest.raises(TreeError, match="a token is of text 2, but there are trees for 1"):
        align(flat("a"), encoding.offsets, ["a"], sequence_ids=encoding.sequence_ids)
    with pytest.raises(TreeError, match="2 texts, but trees for 1; give one entry for each text"):
        align(flat("a"), encoding.offsets, ["a", "b"], sequence_ids=encoding.sequence_ids)
    with pytest.raises(TreeError, match="1 sequence ids, but "):
        align(flat("a"), encoding.offsets, "a", sequence_ids=[0])


@pytest.mark.parametrize("second", ["I", "I am", "a dog barked"])
def test_a_pair_whose_first_text_is_a_letter_is_refused_as_one(second: str):
    """Two tokens may share a letter, a ``▁`` before it is one, but nothing stands between them."""
    encoding = word_piece().encode("I", second)
    with pytest.raises(TreeError, match="sequence_ids=encoding.sequence_ids"):
        align(flat(["I"]), encoding.offsets, "I")


@pytest.mark.parametrize("side", ["left", "right"])
def test_words_that_are_cut_off_have_no_token(tokenizer, side: str):
    text = SENTENCES[0]
    whole = tokenizer.encode(text)
    for length in range(4, len(whole.ids)):
        tokenizer.enable_truncation(length, direction=side)
        encoding = tokenizer.encode(text)
        tokenizer.no_truncation()
        found = align(flat(text.split()), encoding.offsets, text)
        assert found == by_characters(text, text.split(), encoding)


def test_a_text_of_which_special_tokens_are_left_alone():
    one = word_piece()
    one.enable_truncation(2)
    encoding = one.encode("the cat")
    ids = encoding.sequence_ids
    assert align(flat(["the", "cat"]), encoding.offsets, "the cat", sequence_ids=ids) == [-1, -1]
    with pytest.raises(TreeError, match="no token stands on a word"):
        align(flat(["the", "cat"]), encoding.offsets, "the cat")
    assert align(flat([]), encoding.offsets, "") == [-1, -1]


def test_a_document_has_a_tree_for_each_sentence(tokenizer):
    sentences = [text.split() for text in SENTENCES[:3]]
    text = " ".join(" ".join(words) for words in sentences)
    encoding = tokenizer.encode(text)
    trees = [flat(words) for words in sentences]
    words = text.split()
    starts = [0, len(sentences[0]), len(sentences[0]) + len(sentences[1])]
    nodes = [word + 1 + sum(word >= start for start in starts[1:]) for word in range(len(words))]
    expected = [-1 if one < 0 else nodes[one - 1] for one in by_characters(text, words, encoding)]
    assert align(trees, encoding.offsets, text) == expected
    split = tokenizer.encode(words, is_pretokenized=True)
    assert align_words(trees, split.word_ids) == [
        -1 if word is None else nodes[word] for word in split.word_ids
    ]


def test_a_text_may_spell_words_as_a_treebank_does():
    """The text column of a treebank has ``-LRB-`` where its trees, once read, have the bracket."""
    written = r"-LRB- a -rcb- and\/or 3\*4 :-RRB- b/c"
    tree = parse_tree(f"(S {written})".replace(" ", ") (X ").replace("(S)", "(S") + ")", "ptb")
    words = [tree.labels[node] for node in tree.word_nodes()]
    assert words == ["(", "a", "}", "and/or", "3*4", ":)", "b/c"]
    for text in (written, " ".join(words)):
        assert [text[start:end] for start, end in word_spans(text, words)] == text.split()
    with pytest.raises(TreeError, match=r"word 1 \('\('\) is not at character 0 .* '-RRB-"):
        word_spans("-RRB- a", ["(", "a"])
    with pytest.raises(TreeError, match="word 1 "):
        word_spans("a", [""])


def test_a_prompt_around_the_words_has_no_node(tokenizer):
    words, before, after = ["the", "cat", "sat"], "Translate : ", " - now"
    source = " ".join(words)
    text = before + source + after
    spans = [(a + len(before), b + len(before)) for a, b in word_spans(source, words)]
    encoding = tokenizer.encode(text)
    nodes = align(flat(words), encoding.offsets, text, spans)
    for (start, end), own, node in zip(encoding.offsets, encoding.sequence_ids, nodes, strict=True):
        inside = [i for i, (a, b) in enumerate(spans) if max(a, start) < min(b, end)]
        if inside:
            assert node == inside[0] + 1
        elif own is None or text[start:end].strip() or end < len(before) or start >= spans[-1][1]:
            assert node == -1


def test_a_text_may_spell_quotes_otherwise_than_its_treebank():
    words = ["``", "`", "no", "'", "''", "he"]
    for text in ("\"'no'\" he", "“‘no’” he", "« ‹ no › » he", "`` ` no ' '' he", "''`no'\"he"):
        spelt = [text[start:end] for start, end in word_spans(text, words)]
        assert "".join(spelt) == "".join(text.split())
        assert (spelt[2], spelt[5]) == ("no", "he")
    with pytest.raises(TreeError, match="word 1 "):
        word_spans("no", ["``", "no"])


def test_a_text_may_have_dashes_and_apostrophes_that_its_treebank_writes_in_ascii():
    """CoreNLP writes ``--`` for a dash, ``...`` for an ellipsis and ``'s`` for ``’s``."""
    words = ["it", "'s", "--", "well", "..."]
    for text in ("it's -- well ...", "it’s — well…", "it’s–well ..."):
        spelt = [text[start:end] for start, end in word_spans(text, words)]
        assert "".join(spelt) == "".join(text.split())
        assert (spelt[0], spelt[3]) == ("it", "well")
    assert word_spans("don't", ["do", "n’t"]) == [(0, 2), (2, 5)]
    for text in ("it's - well ...", "it's -- well .", "its -- well ..."):
        with pytest.raises(TreeError, match="word [235] "):
            word_spans(text, words)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("user: it rains <end>\n", [-1, -1, 1, 2, -1, -1]),
        ("user: it rains\n", [-1, -1, 1, 2, 2]),
        ("user: it rains <end>\n\n", [-1, -1, 1, 2, -1, -1, -1]),
    ],
)
def test_the_end_of_a_line_behind_a_prompt_has_no_node(text, nodes):
    """Templates of chats end with one; the words of the tree are far before it."""
    offsets = [match.span() for match in re.finditer(r"[a-z]+|[:\n]|<end>", text)]
    assert align(flat(["it", "rains"]), offsets, text, [(6, 8), (9, 14)]) == nodes


def test_a_prompt_may_be_all_that_is_left():
    text, spans = "Parse : the", [(8, 11)]
    assert align(flat(["the"]), [(0, 0), (0, 5), (6, 7)], text, spans) == [-1, -1, -1]
    assert align(flat(["the"]), [(0, 5), (5, 7), (7, 8)], text, spans) == [-1, -1, 1]
    assert align(flat(["the"]), [(0, 1)], " the") == [1]
    for offsets in ([(7, 7)], [(0, 0)], [(0, 5), (8, 8)]):
        with pytest.raises(TreeError, match="no token stands on a word"):
            align(flat(["the"]), offsets, text, spans)


def test_an_added_token_is_a_word_or_none():
    one = word_piece()
    one.add_special_tokens(["<ent>"])
    text = "<ent> the cat <ent>"
    encoding = one.encode(text)
    assert "<ent>" in encoding.tokens
    words = flat(text.split())
    assert align(words, encoding.offsets, text)[1] == 1
    nodes = align(flat(["the", "cat"]), encoding.offsets, text, [(6, 9), (10, 13)])
    ents = [node for token, node in zip(encoding.tokens, nodes, strict=True) if token == "<ent>"]
    assert ents == [-1, -1]


@pytest.mark.parametrize(
    ("offsets", "fault"),
    [
        ([(0, 0), (0, 0), (3, 3), (7, 7), (11, 11)], "no token stands on a word"),
        ([(0, 3), (0, 0), (7, 7), (11, 21)], r"token 2 has the empty span \(7, 7\), and no other"),
        ([(0, 3), (0, 3), (0, 3), (0, 9)], r"offsets go back, from \(0, 3\) to \(0, 3\)"),
        ([(0, 1), (1, 3), (1, 1), (1, 3), (0, 3)], r"from \(1, 3\) to \(1, 3\)"),
        ([(0, 3), (4, 7), (0, 0), (0, 3)], r"offsets go back, from \(4, 7\) to \(0, 3\)"),
        ([(30, 33), (34, 37)], r"the span \(34, 37\) in a text of 21 characters"),
        ([(0, 3), (4, 30)], r"the span \(4, 30\) in a text of 21 characters"),
    ],
)
def test_offsets_that_cannot_be_of_the_text(offsets, fault):
    text = SENTENCES[0]
    with pytest.raises(TreeError, match=fault) as error:
        align(flat(text.split()), offsets, text)
    assert "align_words" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "spans", [[(4, 7), (0, 3)], [(-1, 3), (4, 7)], [(0, 3), (4, 8)], [(3, 0), (4, 7)]]
)
def test_spans_go_from_left_to_right_within_the_text(spans):
    with pytest.raises(TreeError, match="spans go back or out of the text"):
        align(flat(["a", "b"]), [(0, 3), (4, 7)], "the cat", spans)
    same = [(0, 3), (0, 3)]  # both words of a contraction
    assert align(flat(["a", "b"]), [(0, 3), (4, 7)], "the cat", same) == [1, -1]


def test_what_is_cut_off_within_white_space_is_read():
    """Offsets of byte-level pieces without the space before them, and of a ``▁`` of its own."""
    text = " ¼ \na_b c"
    offsets = [(0, 0), (1, 2), (1, 2), (3, 3), (3, 4), (0, 0)]
    assert align(flat(["¼", "a_b", "c"]), offsets, text) == [-1, 1, 1, 2, 2, -1]
    assert align(flat(["abc", "de"]), [(0, 1), (0, 1), (1, 2), (2, 3)], "abc  de") == [1, 1, 1, 1]


letters = st.sampled_from(["a", "é", "e\u0301", "猫", "😀", "ﬁ", "½", ".", "각"])
texts = st.lists(st.lists(letters, min_size=1, max_size=4).map("".join), min_size=1, max_size=6)


@pytest.fixture(scope="module")
def all_tokenizers() -> list:
    return [make() for make in TOKENIZERS.values()]


@settings(deadline=None, max_examples=150)
@given(words=texts, spaces=st.lists(st.sampled_from([" ", "  ", "\n"]), min_size=7, max_size=7))
def test_any_text_is_read_by_any_tokenizer(all_tokenizers, words, spaces):
    text = "".join(space + word for space, word in zip(spaces, words, strict=False))
    for one in all_tokenizers:
        encoding = one.encode(text)
        ids = encoding.sequence_ids
        found = align(flat(words), encoding.offsets, text, sequence_ids=ids)
        assert found == by_characters(text, words, encoding)


def test_padding_has_no_node(tokenizer):
    tokenizer.enable_padding(pad_id=2, pad_token="<pad>", length=40)
    encoding = tokenizer.encode("the cat")
    tokenizer.no_padding()
    nodes = align(flat(["the", "cat"]), encoding.offsets, "the cat")
    assert [one for one in nodes if one >= 0] == nodes[1 : 1 + sum(one >= 0 for one in nodes)]
    assert nodes[-1] == -1


def test_a_token_over_several_words_belongs_to_the_highest():
    tree = Tree([-1, 0, 1, 0], ["S", "NP", "a", "b"], [-1, -1, 0, 1])
    assert align(tree, [(0, 3)], "a b") == [3]
    assert align(tree, [(0, 3), (2, 3)], "a b", spans=[(0, 1), (2, 3)]) == [3, 3]


def test_a_tree_without_words_is_refused_over_a_text():
    bare = Tree([-1, 0], ["S", "a"])
    bare = Tree(bare.parents, bare.labels, [-1, -1])
    with pytest.raises(TreeError, match="a tree of 2 nodes has no words, so no token"):
        align(bare, [(0, 0), (0, 1)], "a")
    assert align([], [(0, 0), (0, 1)], "a") == [-1, -1]


def test_spans_may_be_lists_or_an_array():
    tree, text = flat(["it", "rains"]), "Oh , it rains"
    offsets = [(0, 2), (3, 4), (5, 7), (8, 13)]
    for spans in ([[5, 7], [8, 13]], np.array([[5, 7], [8, 13]])):
        assert align(tree, offsets, text, spans=spans) == [-1, -1, 1, 2]
    for spans in ([5, 13], [[5, 7, 8], [8, 13, 14]], ["57", "83"], [[5.5, 7], [8, 13]], 5):
        with pytest.raises(
            TreeError, match=r"are no list of \(start, end\) in whole numbers; give"
        ):
            align(tree, offsets, text, spans=spans)


@pytest.mark.parametrize("end", ["", " ."])
def test_spans_that_count_utf16_are_refused(end):
    """Most words stand before the emoji, where both counts are the same."""
    words, text = ["we", "like", "all", "of", "it", "now"], f"we like all of it 🌧🌧 now{end}"
    spans = [(0, 2), (3, 7), (8, 11), (12, 14), (15, 17)]
    assert align(flat(words), [(21, 24)], text, [*spans, (21, 24)]) == [6]
    with pytest.raises(TreeError, match="the spans count UTF-16 units, of which an emoji has two"):
        align(flat(words), [(21, 24)], text, [*spans, (23, 26)])


def test_spans_that_count_bytes_are_refused():
    """As SentencePiece, tiktoken and tree-sitter give them; most words stand before the accent."""
    words, text = ["we", "like", "all", "of", "it", "été", "now"], "we like all of it été now ."
    spans = [(0, 2), (3, 7), (8, 11), (12, 14), (15, 17)]
    tokens = [(0, 2), (22, 25)]
    assert align(flat(words), tokens, text, [*spans, (18, 21), (22, 25)]) == [1, 7]
    for line in (text, text.removesuffix(" .")):
        with pytest.raises(TreeError, match="the spans count bytes of UTF-8, of which an accented"):
            align(flat(words), tokens, line, [*spans, (18, 23), (24, 27)])


@pytest.mark.parametrize(
    "offsets", [[[(0, 3), (4, 7)]], np.array([[[0, 3], [4, 7]]]), [None, (4, 7)], [3, 7]]
)
def test_offsets_of_a_batch_are_refused(offsets):
    """return_tensors="pt" gives them for all rows."""
    with pytest.raises(
        TreeError, match=r"offsets .* are no list of \(start, end\) .* give those of"
    ):
        align(flat(["the", "cat"]), offsets, "the cat")


def test_lengths_are_no_ends():
    tokens = [(0, 3), (4, 3), (8, 3)]
    with pytest.raises(
        TreeError, match=r"token 1 has the span \(4, 3\), which ends before it begi"
    ):
        align(flat(["the", "cat", "sat"]), tokens, "the cat sat")


def test_words_in_another_normal_form_are_named():
    composed, decomposed = "nai\u0308f \u00e9t\u00e9", "na\u00eff e\u0301te\u0301"
    form = r"in other Unicode characters \(NFC and NFD\): normalize both; give"
    for text, words in ((composed, decomposed.split()), (decomposed, composed.split())):
        with pytest.raises(TreeError, match=f"word 1 .* stands {form}"):
            word_spans(text, words)
        with pytest.raises(TreeError, match=f"word 1 is .* in the tree {form}"):
            check_words(text.split(), flat(words))
    with pytest.raises(TreeError, match="where 'ete' stands; give"):
        word_spans("ete", ["\u00e9t\u00e9"])


def test_spans_of_other_words_are_refused():
    tree, text = flat(["the", "dog", "barks"]), "The dog barks loudly"
    tokens = [(0, 3), (4, 7), (8, 13), (14, 20)]
    nodes = align(tree, tokens, text, spans=tokens[:3])
    assert nodes[3] == -1
    with pytest.raises(TreeError, match="the word 'the' is not at 4:7 of the text, where 'dog' st"):
        align(tree, tokens, text, spans=tokens[1:])


def test_spans_are_of_one_text():
    with pytest.raises(TreeError, match="spans are of one text"):
        align(
            [flat(["a"]), flat(["b"])], [(0, 1), (0, 1)], ["a", "b"],
            spans=[(0, 1)], sequence_ids=[0, 1],
        )  # fmt: skip
