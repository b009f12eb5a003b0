"""Every parser with a tiny real model made on the spot: the libraries' own loading and parsing."""

from __future__ import annotations

import inspect
import json
import shutil

import pytest
import support.parser_models as parser_models
from support import shared
from support.parser_fixtures import GOLD, MODELS, parse, words_of

from treesyntax.errors import OptionError
from treesyntax.parsers import ParserConfig, get_kind, load_parser, named_models
from treesyntax.parsers.policy import FAILED, JOINED, parse_lines
from treesyntax.parsers.record_text import ptb_text

pytestmark = pytest.mark.usefixtures("no_network")


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
def test_several_sentences_are_joined(name, loaded):
    # The splitters that have sentences by rule or by training; spaCy's parser decides by itself.
    line = f"{parser_models.text_of(GOLD[0])} {parser_models.text_of(GOLD[1])}"
    (result,) = parse(loaded, name, [line])
    assert "".join(words_of(result)) == line.replace(" ", "")
    if "benepar" in name:
        assert result.case == JOINED


STANZA = "stanza-dep needs tokenize.pt, pos.pt, lemma.pt, depparse.pt"
REFUSED = [
    ("benepar", "empty", "benepar cannot load .*a folder with config.json and benepar_model.bin"),
    ("benepar", "file.pt", "benepar cannot load .*file.pt"),
    (
        "benepar",
        "benepar_en9",
        "no benepar model 'benepar_en9' in nltk's data folders; .*--download",
    ),
    (
        "benepar",
        "benepar_zh2",
        "is for the language 'zh', but words would be split by the rules for 'en'; give --lang zh",
    ),
    ("spacy", "empty", "is no spaCy pipeline"),
    ("spacy", "blank", "has no component named parser"),
    ("spacy", "xx_zz", "no spacy model 'xx_zz' among the installed packages; .*--download"),
    ("stanza-dep", "missing", f"has no depparse.pt; {STANZA}"),
    ("stanza-dep", "broken", "stanza cannot load its models from .*check that they are complete"),
    ("stanza-dep", "file.pt", "is not a folder; stanza needs several models"),
    (
        "stanza-dep",
        "~no_such_user/models",
        "there is no model at ~no_such_user/models in /.*; check --model",
    ),
    ("stanza-dep", "nowhere/at/all", "there is no model at nowhere/at/all in /.*; check --model"),
    ("stanza-dep", "xx-zz", "no stanza-dep model 'xx-zz' in .*give the folder .*--download"),
]


@pytest.mark.parametrize(("parser", "model", "message"), REFUSED)
def test_models_that_cannot_be_loaded(parser, model, message, models, tmp_path):
    import spacy

    (tmp_path / "empty").mkdir()
    (tmp_path / "file.pt").write_bytes(b"no model")
    spacy.blank("en").to_disk(tmp_path / "blank")
    for name in ("missing", "broken"):
        shutil.copytree(models / "stanza", tmp_path / name)
    (tmp_path / "missing" / "depparse.pt").unlink()
    (tmp_path / "broken" / "pos.pt").write_bytes(b"no model")
    path = tmp_path / model
    with pytest.raises(OptionError, match=message):
        load_parser(ParserConfig(parser, str(path) if path.exists() else model))


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        (".", "has models for de, fr, but none for 'en'; give --lang"),
        ("de", "of a single language; give the folder above it and --lang de"),
    ],
)
def test_downloads_of_another_language_are_told(folder, message, tmp_path):
    for language in ("fr", "de"):
        (tmp_path / language / "tokenize").mkdir(parents=True)
    with pytest.raises(OptionError, match=message):
        load_parser(ParserConfig("stanza-dep", str(tmp_path / folder)))


def test_stanzas_models_of_a_language_are_where_stanza_looks(tmp_path, monkeypatch):
    """The folder of its downloads has changed with versions of stanza, and ``--plan`` looked into another one."""
    import stanza
    from stanza.resources import common

    kind = get_kind("stanza-con")
    assert inspect.signature(stanza.Pipeline).parameters["dir"].default == common.DEFAULT_MODEL_DIR
    monkeypatch.setattr(common, "DEFAULT_MODEL_DIR", str(tmp_path))
    assert named_models(kind, "en") == []
    for name in ("pos", "constituency", "depparse", "ner", "pretrain"):
        (tmp_path / "en" / name).mkdir(parents=True)
    needed = [tmp_path / "en" / name for name in ("pos", "constituency", "pretrain")]
    assert named_models(kind, "en") == needed
    needed[1].rmdir()  # what a dependency parser needs is all there is
    assert named_models(kind, "en") == []
    with pytest.raises(OptionError, match="no stanza-con model 'en' in .*--download"):
        load_parser(ParserConfig("stanza-con", "en"))


def test_stanzas_other_names_of_a_language(models, tmp_path, monkeypatch):
    """Downloads of ``zh`` lie in ``zh-hans``, so ``--model zh --download`` fetched models that were not seen then."""
    from stanza.resources import common

    packages = {file.stem: "tiny" for file in (models / "stanza").glob("*.pt")}
    for name in packages:
        (tmp_path / "zh-hans" / name).mkdir(parents=True)
        shutil.copy(models / "stanza" / f"{name}.pt", tmp_path / "zh-hans" / name / "tiny.pt")
    known = {"packages": {"default": packages}, **{name: {"tiny": {}} for name in packages}}
    languages = {"zh-hans": known, "zh": {"alias": "zh-hans"}}
    (tmp_path / "resources.json").write_text(json.dumps(languages))
    monkeypatch.setattr(common, "DEFAULT_MODEL_DIR", str(tmp_path))
    for name in ("zh", "ZH-hans"):
        assert tmp_path / "zh-hans/depparse" in named_models(get_kind("stanza-dep"), name)
        load_parser(ParserConfig("stanza-dep", name))
    load_parser(ParserConfig("stanza-dep", str(tmp_path), "zh"))


def test_benepars_models_are_where_nltk_has_them(tmp_path, monkeypatch):
    from nltk import data

    monkeypatch.setattr(data, "path", [str(tmp_path)])
    model = tmp_path / "models" / "benepar_en3"
    model.parent.mkdir()
    (tmp_path / "models" / "benepar_en3.zip").touch()
    assert named_models(get_kind("benepar"), "benepar_en3") == []
    with pytest.raises(OptionError, match=r"benepar_en3.zip is packed; unzip it in its folder"):
        load_parser(ParserConfig("benepar", "benepar_en3"))
    model.mkdir()
    tmp_path.chmod(0o775)  # as by Ubuntu's umask; nltk's search refuses it
    assert named_models(get_kind("benepar"), "benepar_en3") == [model]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            SystemExit(1),
            "no spacy model 'xx_zz' among the installed packages; give its folder, inst",
        ),
        (ConnectionError("no route"), r"spaCy cannot download xx_zz \(no route\)"),
    ],
)
def test_downloads_of_spacy_that_fail(error, message, monkeypatch):
    import spacy

    def download(name):
        raise error

    monkeypatch.setattr(spacy.cli, "download", download)
    with pytest.raises(OptionError, match=message):
        load_parser(ParserConfig("spacy", "xx_zz", download=True))


def test_a_package_that_is_there_is_not_downloaded(models, monkeypatch):
    import spacy

    monkeypatch.setattr(spacy.util, "is_package", lambda name: True)
    monkeypatch.setattr(spacy, "load", lambda name: spacy.util.load_model(models / "spacy"))
    load_parser(ParserConfig("spacy", "xx_zz", download=True))


def test_the_real_stanza_model():
    model = shared("models", "stanza_ewt_small")
    parser = load_parser(ParserConfig("stanza-dep", str(model)))
    line = "She doesn't like the cats. He does."
    (result,) = parse_lines(parser, [line], True, 150)
    assert result.case == JOINED
    assert words_of(result)[:4] == ["She", "does", "n't", "like"]
    assert [line[a:b] for a, b in result.spans[1:3]] == ["does", "n't"]


def test_the_real_benepar_model():
    parser = load_parser(ParserConfig("benepar", str(shared("models", "benepar_minilm_ptb"))))
    (result,) = parse_lines(parser, ["The cat sits (there)."], False, 150)
    text = ptb_text(result.tree)
    assert text.startswith("(TOP (S (NP (DT The) (NN cat)) (VP (VBZ sits)")
