"""benepar with tiny real models: its own conversion, its limits, what libraries took away."""

from __future__ import annotations

import sys

import pytest
import torch
from support.parser_fixtures import GOLD, parse, settings, words_of

from treesyntax.errors import OptionError
from treesyntax.parsers import load_parser
from treesyntax.parsers.policy import FAILED
from treesyntax.parsers.record_text import ptb_text
from treesyntax.parsers.torchaudio_remedy import broken_torchaudio_hidden, hide_broken_torchaudio
from treesyntax.trees.formats import ptb

pytestmark = pytest.mark.usefixtures("no_network")


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


def test_it_is_hidden_from_transformers_that_has_found_it_before(monkeypatch, tmp_path):
    from transformers.utils.import_utils import is_torchaudio_available

    (tmp_path / "torchaudio.py").write_text("raise OSError('libc10_cuda.so: cannot open')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torchaudio", raising=False)
    is_torchaudio_available.cache_clear()
    assert is_torchaudio_available()
    with broken_torchaudio_hidden():
        assert not is_torchaudio_available()
    assert is_torchaudio_available()
    hide_broken_torchaudio()  # for good, as a bridge does
    with broken_torchaudio_hidden():
        assert not is_torchaudio_available()
    still_hidden = not is_torchaudio_available()
    del sys.modules["torchaudio"]
    is_torchaudio_available.cache_clear()
    assert still_hidden
