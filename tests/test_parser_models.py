"""Every parser with a tiny real model made on the spot: the libraries' own loading and parsing."""

from __future__ import annotations

import json
import os
import sys
import types
import unicodedata
from pathlib import Path

import parser_models
import pytest
import torch
from fairseq import options, utils
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hostile_text import hostile_lines
from sentencepiece import SentencePieceProcessor

from treesyntax.cli import main
from treesyntax.errors import OptionError
from treesyntax.formats import ptb, read_trees
from treesyntax.parsers import PARSERS, Settings, load_parser
from treesyntax.parsers.output import ptb_text, read_offsets
from treesyntax.parsers.policy import FAILED, JOINED, TOO_LONG, parse_lines
from treesyntax.parsers.torchaudio_remedy import broken_torchaudio_hidden
from treesyntax.store import TreeStore
from treesyntax.tree import Tree

utils.import_user_module(
    options.argparse.Namespace(user_dir=str(Path(__file__).parents[1] / "fairseq_plugins"))
)
from fairseq_plugins.model import TreeTransformer, TreeTransformerConfig  # noqa: E402
from fairseq_plugins.task import TreeTranslationConfig, TreeTranslationTask  # noqa: E402

MODELS = {
    "stanza-dep": "stanza",
    "stanza-con": "stanza",
    "benepar-characters": "characters.pt",
    "benepar-bert": "bert",
    "spacy": "spacy",
}
GOLD = parser_models.treebank(12, seed=7)
SHARED = Path(__file__).parents[2] / "shared" / "models"


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    with broken_torchaudio_hidden():
        parser_models.make_spacy(folder / "spacy")
        parser_models.make_stanza(folder / "stanza")
        parser_models.make_benepar_characters(folder / "characters.pt")
        parser_models.make_benepar_bert(folder / "bert")
    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    """A connection would be an error."""
    import socket

    def refuse(*args, **kwargs):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def settings(name: str, models: Path, **changes) -> Settings:
    return Settings(
        name.split("-")[0] if "benepar" in name else name, str(models / MODELS[name]), **changes
    )


@pytest.fixture(scope="module")
def loaded(models):
    """Parsers, each loaded once."""
    cache = {}

    def get(name: str, **changes):
        key = (name, *sorted(changes.items()))
        if key not in cache:
            cache[key] = load_parser(settings(name, models, **changes))
        return cache[key]

    return get


def is_dependency(name: str) -> bool:
    return PARSERS[settings(name, Path()).parser].notation == "conllu"


def parse(loaded, name, lines, max_words=150, **changes):
    return parse_lines(loaded(name, **changes), lines, is_dependency(name), max_words)


def words_of_tree(tree: Tree) -> list[str]:
    return [tree.labels[node] for node in tree.word_nodes()]


def words_of(result) -> list[str]:
    return words_of_tree(result.tree)


# -------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("name", MODELS)
def test_pretokenised_lines_keep_their_words(name, loaded):
    lines = [" ".join(gold.words) for gold in GOLD] + ["( a ) [ b ] { c } -LRB- ``"]
    results = parse(loaded, name, lines, pretokenized=True)
    assert not any(result.case == FAILED for result in results)
    for line, result in zip(lines, results, strict=True):
        assert words_of(result) == line.split()
        assert [line[a:b] for a, b in result.spans] == line.split()


@pytest.mark.parametrize("name", MODELS)
def test_raw_lines_keep_their_order_and_offsets(name, loaded):
    lines = [parser_models.text_of(gold) for gold in GOLD]
    results = parse(loaded, name, [lines[0], "", *lines[1:], "  "])
    assert [len(result.tree) > 0 for result in results] == [True, False, *[True] * 11, False]
    for line, result in zip(lines, [results[0], *results[2:-1]], strict=True):
        assert result.case in ("", JOINED)
        assert words_of(result) == [line[a:b] for a, b in result.spans]
        assert "".join(words_of(result)) == line.replace(" ", "")


@pytest.mark.parametrize("name", MODELS)
def test_one_line_at_a_time_gives_the_same_words(name, loaded):
    lines = [parser_models.text_of(gold) for gold in GOLD[:4]]
    together = parse(loaded, name, lines)
    alone = [parse(loaded, name, [line])[0] for line in lines]
    assert [result.spans for result in together] == [result.spans for result in alone]


@pytest.mark.parametrize("name", MODELS)
def test_hostile_lines_stay_aligned_from_text_to_data(name, models, tmp_path):
    """``HOSTILE_LINES=1000`` for a longer test."""
    lines = hostile_lines(int(os.environ.get("HOSTILE_LINES", "60")), 3)
    text, numbers = tmp_path / "in.txt", tmp_path / "numbers.txt"
    text.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    numbers.write_text("".join(f"n{i}\n" for i in range(len(lines))))
    output, data = tmp_path / "trees", tmp_path / "data"
    parser = settings(name, models)
    options = ["--parser", parser.parser, "--model", parser.model, "--workers", "1"]
    assert main(["parse", str(text), str(output), *options]) == 0
    notation = PARSERS[parser.parser].notation
    check_records(name, lines, output, notation)
    sides = ["--source-lang", "a", "--source-format", notation, "--target-lang", "b"]
    files = ["--train", str(output), str(numbers), "--workers", "1"]
    assert main(["binarize", str(data), *sides, *files]) == 0
    check_data(data, list(read_trees(output, notation)))
    pieces = [
        "--source-text",
        str(text),
        "--subword-vocab",
        "125",
        "--joined-subwords",
        "--overwrite",
    ]
    assert main(["binarize", str(data), *sides, *files, *pieces]) == 0
    check_pieces(data, lines)
    # Once with pairs: 5,000 words have 25 million.
    train_one_step(
        data, len(lines), "relation_mask" if name == "spacy" else "stack_pe(parameters=4)"
    )
    cases = json.loads((tmp_path / "trees.report.json").read_text())["cases"]
    assert cases[TOO_LONG]["count"] > 0
    assert cases[FAILED]["count"] <= len(lines) // 10


def check_records(name: str, lines: list[str], output: Path, notation: str) -> None:
    """A record for every line, and every character that is not white space has its word."""
    records = zip(lines, read_trees(output, notation), read_offsets(output, notation), strict=True)
    for line, tree, spans in records:
        assert len(tree.word_nodes()) == len(spans)
        assert bool(spans) == bool(line.split())
        kept = {i for start, end in spans for i in range(start, end)}
        dropped = {c for i, c in enumerate(line) if i not in kept and not c.isspace()}
        # Stanza takes control characters for white space.
        assert all(unicodedata.category(c) == "Cc" for c in dropped)
        assert "stanza" in name or not dropped


def check_data(data: Path, trees: list[Tree]) -> None:
    """Sentence i of the data has tree i on one side and line i on the other."""
    store = TreeStore(data / "train.a-b.a.tree")
    assert len(store) == len(trees)
    for i, tree in enumerate(trees):
        # A word with white space in it, as stanza has them, becomes several nodes.
        if not any(c.isspace() for word in words_of_tree(tree) for c in word):
            assert store[i].parents.tolist() == tree.parents.tolist()
    dictionary = Dictionary.load(str(data / "dict.b.txt"))
    numbers = MMapIndexedDataset(str(data / "train.a-b.b"))
    found = [dictionary[int(numbers[i][0])] for i in range(len(numbers))]
    assert found == [f"n{i}" for i in range(len(trees))]


def check_pieces(data: Path, lines: list[str]) -> None:
    """Every line is spelt by the pieces of its words, whatever the parser made of it."""
    model = SentencePieceProcessor(str(data / "subwords.a.model"))
    symbols = Dictionary.load(str(data / "dict.a.txt"))
    tokens = MMapIndexedDataset(str(data / "train.a-b.a"))
    preorder = (
        json.loads((data / "binarize.json").read_text())["sides"]["source"]["view"] != "words"
    )
    for number, line in enumerate(lines):
        pieces = [symbols[int(token)] for token in tokens[number][:-1]]
        if not preorder and symbols.unk_word not in pieces:
            spelt, expected = "".join(pieces), model.normalize(line)
            # An accent and its letter may be two words of a parser.
            assert _plain(spelt) == _plain(expected)


def _plain(pieces: str) -> list[str]:
    return unicodedata.normalize("NFKC", pieces.replace("▁", " ")).split()


def train_one_step(data: Path, size: int, spec: str) -> None:
    """One step over every line, the 5,000 words included, in batches of like length."""
    general = {"train_subset": "train", "dataset_impl": None, "required_seq_len_multiple": 1}
    config = TreeTranslationConfig(
        data=str(data), source_lang="a", target_lang="b", max_source_positions=20000, **general
    )
    task = TreeTranslationTask.setup_task(config)
    task.load_dataset("train")
    sizes = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("embed_dim", 16), ("ffn_embed_dim", 16), ("layers", 1), ("attention_heads", 1))
    }  # fmt: skip
    longest = {"max_source_positions": 20000, "max_target_positions": 10}
    flags = TreeTransformerConfig(encoder_injection=spec, **sizes, **longest)
    model = TreeTransformer.build_model(flags, task)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = task.get_batch_iterator(
        task.dataset("train"), max_tokens=20000, max_positions=(20000, 10), seed=1
    ).next_epoch_itr(shuffle=False)
    seen = []
    for batch in batches:
        seen += batch["id"].tolist()
        logits = model(**batch["net_input"])[0]
        loss = torch.nn.functional.cross_entropy(
            logits.transpose(1, 2), batch["target"], ignore_index=task.target_dictionary.pad()
        )
        loss.backward()
    assert torch.isfinite(loss)
    optimizer.step()
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert sorted(seen) == list(range(size))


@pytest.mark.parametrize("name", MODELS)
def test_several_sentences_are_joined(name, loaded):
    # The splitters that have sentences by rule or by training; spaCy's parser decides by itself.
    line = f"{parser_models.text_of(GOLD[0])} {parser_models.text_of(GOLD[1])}"
    (result,) = parse(loaded, name, [line])
    assert "".join(words_of(result)) == line.replace(" ", "")
    if "benepar" in name:
        assert result.case == JOINED


# ------------------------------------------------------------------------------------- stanza


def test_stanza_parses_what_it_has_learnt(loaded):
    lines = [" ".join(gold.words) for gold in GOLD]
    results = parse(loaded, "stanza-dep", lines, pretokenized=True)
    right = sum(
        head == wanted
        for gold, result in zip(GOLD, results, strict=True)
        for head, wanted in zip(result.tree.heads(), gold.heads, strict=True)
    )
    assert right > 0.6 * sum(len(gold.words) for gold in GOLD)


def test_stanza_gets_lemmas_without_being_asked(models, loaded):
    """The dependency parser embeds them, and parses to garbage in silence without them."""
    pipeline = loaded("stanza-dep")._pipeline
    assert {"pos", "lemma", "depparse"} <= set(pipeline.processors)
    seen = []
    processor = pipeline.processors["depparse"]
    original = processor.process
    processor.process = lambda document: (
        seen.extend(word.lemma for sentence in document.sentences for word in sentence.words)
        or original(document)
    )
    try:
        parse(loaded, "stanza-dep", ["The cat sees the Dog ."])
    finally:
        processor.process = original
    assert seen
    assert None not in seen


def test_stanza_needs_no_list_of_resources_and_writes_none(models, loaded):
    loaded("stanza-dep")
    assert not (models / "stanza" / "resources.json").exists()


def test_a_stanza_token_of_more_than_1000_characters(loaded):
    line = "The " + "x" * 1200 + " ."
    (result,) = parse(loaded, "stanza-dep", [line])
    assert result.case in ("", JOINED)
    assert [line[a:b] for a, b in result.spans] == words_of(result)
    assert max(len(word) for word in words_of(result)) > 1000


def test_stanza_multi_word_tokens_have_the_place_of_their_token():
    from stanza.utils.conll import CoNLL

    from treesyntax.parsers.stanza_parser import sentence_of

    rows = ["1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tstart_char=1|end_char=3"]
    rows += [f"{i}\t{w}\t{w}\tX\tX\t_\t0\troot\t_\t_" for i, w in enumerate(["de", "le"], start=1)]
    rows += ["3\tCHAT\tchat\tX\tX\t_\t1\tdep\t_\tstart_char=4|end_char=8"]
    document = CoNLL.conll2doc(input_str="\n".join(rows) + "\n\n")
    sentence = sentence_of(document.sentences[0], " du chat")
    assert sentence.words == ("de", "le", "chat")
    assert sentence.spans == ((1, 3), (1, 3), (4, 8))


def test_stanza_constituents_are_walked_not_printed():
    from stanza.models.constituency.parse_tree import Tree as StanzaTree

    from treesyntax.parsers.base import Sentence
    from treesyntax.parsers.stanza_parser import _constituents

    leaf = StanzaTree(None, StanzaTree("-LRB-"))
    top = StanzaTree("ROOT", StanzaTree("S", [leaf, StanzaTree("N", StanzaTree("b"))]))
    for _ in range(3000):
        top = StanzaTree("S", top)
    parsed = types.SimpleNamespace(constituency=top)
    tree = _constituents(parsed, Sentence(("(", "b"), ((0, 1), (2, 3))))
    assert tree.labels[-4:] == ("XX", "(", "N", "b")
    assert len(tree) == 3000 + 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            "missing",
            r"has no depparse\.pt; stanza-dep needs tokenize\.pt, pos\.pt, lemma\.pt, depparse\.pt",
        ),
        ("broken", r"stanza cannot load its models from .*check that they are complete"),
        ("file", r"is not a folder; stanza needs several models"),
        ("absent", r"there is no model at .*nowhere; check the path"),
        ("name", r"there is no stanza-dep model 'xx-nothing' in .*give the folder .*--download"),
    ],
)
def test_stanza_models_that_are_not_there(change, message, models, tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for file in (models / "stanza").glob("*.pt"):
        (folder / file.name).write_bytes(file.read_bytes())
    model = str(folder)
    if change == "missing":
        (folder / "depparse.pt").unlink()
    elif change == "broken":
        (folder / "pos.pt").write_bytes(b"no model")
    elif change == "file":
        model = str(folder / "pos.pt")
    else:
        model = str(tmp_path / "nowhere") if change == "absent" else "xx-nothing"
    with pytest.raises(OptionError, match=message):
        load_parser(Settings("stanza-dep", model))


# ------------------------------------------------------------------------------------ benepar


@pytest.mark.parametrize("name", ["benepar-characters", "benepar-bert"])
@pytest.mark.filterwarnings("ignore:[\\s\\S]*arg_constraints:UserWarning")
def test_benepar_trees_are_those_of_its_own_conversion(name, loaded):
    from benepar import InputSentence

    parser = loaded(name, pretokenized=True)
    for gold in GOLD:
        ((sentence,),) = parser.split([" ".join(gold.words)])
        example = InputSentence(
            words=gold.words, space_after=sentence.spaces, escaped_words=gold.words
        )
        (output,) = parser._model.parse([example], return_compressed=True)
        labels, tags = parser._model.decoder.label_from_index, parser._model.tag_from_index
        wanted = output.to_tree(example.pos(), labels, tags).pformat(margin=10**6)
        ((tree,),) = parser.parse([sentence])
        assert ptb_text(tree) == wanted


def test_benepar_bert_needs_the_method_that_transformers_took_away(models):
    from transformers import PreTrainedTokenizerBase

    from treesyntax.parsers.benepar_remedies import TolerantChartParser, special_tokens_method

    if hasattr(PreTrainedTokenizerBase, "build_inputs_with_special_tokens"):
        pytest.skip("this version of transformers has it")
    with pytest.raises(AttributeError, match="build_inputs_with_special_tokens"):
        TolerantChartParser.from_trained(str(models / "bert"))
    with special_tokens_method():
        parser = TolerantChartParser.from_trained(str(models / "bert"))
    assert not hasattr(PreTrainedTokenizerBase, "build_inputs_with_special_tokens")
    retokenizer = parser.retokenizer
    assert (retokenizer.start_token_idx, retokenizer.stop_token_idx) == (0, -1)


def test_the_prefix_and_suffix_of_other_kinds_of_tokenizers():
    """T5 has a suffix only; some have neither."""
    from treesyntax.parsers.benepar_remedies import build_inputs_with_special_tokens

    def tokenizer(ids, mask):
        return lambda text, **_: {"input_ids": ids, "special_tokens_mask": mask}

    t5 = tokenizer([3, 9, 1], [0, 0, 1])
    assert build_inputs_with_special_tokens(t5, [-100]) == [-100, 1]
    assert build_inputs_with_special_tokens(tokenizer([8], [0]), [-100]) == [-100]
    bert = tokenizer([2, 7, 3], [1, 0, 1])
    assert build_inputs_with_special_tokens(bert, [5, 6]) == [2, 5, 6, 3]


def test_benepar_loads_checkpoints_with_position_ids(models):
    import torch
    from benepar.parse_chart import ChartParser

    from treesyntax.parsers.benepar_remedies import special_tokens_method

    weights = torch.load(models / "bert" / "benepar_model.bin")
    assert "pretrained_model.embeddings.position_ids" in weights
    with special_tokens_method(), pytest.raises(RuntimeError, match="position_ids"):
        ChartParser.from_trained(str(models / "bert"))


@pytest.mark.parametrize("word", ["\u00ad", "\u200b", "\ufe0f", "\x00", "\ufffd", "\u0301"])
def test_benepar_takes_words_that_tokenizers_delete(word, loaded):
    (result,) = parse(loaded, "benepar-bert", [f"the {word} cat"], pretokenized=True)
    assert result.case == ""
    assert words_of(result) == ["the", word, "cat"]


def test_a_sentence_over_benepars_limit_costs_no_other_sentence(loaded):
    lines = ["the cat", "the " * 700, "sees the cat"]
    results = parse(loaded, "benepar-bert", lines, max_words=1000, pretokenized=True)
    assert [result.case for result in results] == ["", FAILED, ""]
    assert "exceeds the maximum supported length" in results[1].reason
    assert len(results[1].spans) == 700


def test_benepar_never_asks_nltk_for_words(loaded, monkeypatch):
    import nltk

    monkeypatch.setattr(nltk, "word_tokenize", None)
    monkeypatch.setattr(nltk, "sent_tokenize", None)
    (result,) = parse(loaded, "benepar-characters", ["Hello (you)! Fine."])
    assert words_of(result) == ["Hello", "(", "you", ")", "!", "Fine", "."]
    assert ptb.parse(ptb_text(result.tree)).labels[0] == "TOP"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("empty", r"benepar cannot load .*give a folder with config.json and benepar_model.bin"),
        ("file.pt", r"benepar cannot load .*file.pt"),
        (
            "benepar_zz9",
            r"no benepar model 'benepar_zz9' in nltk's data folders; give its path, or add --download",
        ),
    ],
)
def test_benepar_models_that_are_not_there(model, message, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.pt").write_bytes(b"no model")
    path = tmp_path / model
    with pytest.raises(OptionError, match=message):
        load_parser(Settings("benepar", str(path) if path.exists() else model))


def test_a_language_without_rules_for_words(models):
    with pytest.raises(OptionError, match=r"spaCy cannot split 'zz'"):
        load_parser(settings("benepar-characters", models, language="zz"))


def test_a_torchaudio_that_cannot_be_imported_is_hidden(monkeypatch, tmp_path):
    (tmp_path / "torchaudio.py").write_text("raise OSError('libc10_cuda.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    with broken_torchaudio_hidden():
        import importlib.util

        assert importlib.util.find_spec("torchaudio") is None
    assert "torchaudio" not in sys.modules


# -------------------------------------------------------------------------------------- spaCy


def test_spacy_runs_only_what_its_parser_needs(loaded):
    assert loaded("spacy")._nlp.pipe_names == ["tok2vec", "parser"]


def test_white_space_is_no_word_for_spacy(loaded):
    (result,) = parse(loaded, "spacy", ["  The  cat \u3000 sees . "])
    assert words_of(result) == ["The", "cat", "sees", "."]
    assert result.spans == ((2, 5), (7, 10), (13, 17), (18, 19))


def test_pretokenised_lines_are_one_sentence_for_spacy(loaded):
    line = "The cat sees . The dog sees . A dog ."
    (result,) = parse(loaded, "spacy", [line], pretokenized=True)
    assert result.case == ""
    assert result.tree.heads().count(0) == 1


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("empty", r"is no spaCy pipeline"),
        ("blank", r"has no component named parser"),
        (
            "xx_no_such_model",
            r"no spacy model 'xx_no_such_model' among the installed packages; .*--download",
        ),
    ],
)
def test_spacy_models_that_are_not_there(model, message, tmp_path):
    import spacy

    (tmp_path / "empty").mkdir()
    spacy.blank("en").to_disk(tmp_path / "blank")
    path = tmp_path / model
    with pytest.raises(OptionError, match=message):
        load_parser(Settings("spacy", str(path) if path.exists() else model))


# ---------------------------------------------------------------------------- real models


def test_the_real_stanza_model():
    if not (SHARED / "stanza_ewt_small").is_dir():
        pytest.skip("there are no shared models")
    parser = load_parser(Settings("stanza-dep", str(SHARED / "stanza_ewt_small")))
    line = "She doesn't like the cats. He does."
    (result,) = parse_lines(parser, [line], True, 150)
    assert result.case == JOINED
    assert words_of(result)[:4] == ["She", "does", "n't", "like"]
    assert [line[a:b] for a, b in result.spans[1:3]] == ["does", "n't"]


def test_the_real_benepar_model():
    if not (SHARED / "benepar_minilm_ptb").is_dir():
        pytest.skip("there are no shared models")
    parser = load_parser(Settings("benepar", str(SHARED / "benepar_minilm_ptb")))
    (result,) = parse_lines(parser, ["The cat sits (there)."], False, 150)
    text = ptb_text(result.tree)
    assert text.startswith("(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sits)")
