"""A malicious pickle in any file that is loaded executes nothing."""

from __future__ import annotations

import importlib.util
import io
import os
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from reliability.figures import SOAK, count
from reliability.hostile.readers import READERS
from support import ROOT

from treesyntax.__main__ import main
from treesyntax.data.sentencepiece import Segmenter
from treesyntax.errors import InputError, OptionError, TreeSyntaxError
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.parsers import ParserConfig, load_parser


class Malice:
    """Unpickled, it makes a file: whoever can do that can do anything."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple:
        return (os.mkdir, (str(self.trace),))


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return tmp_path / "executed"


def executed_nothing(trace: Path) -> None:
    assert not trace.exists()
    count("untrusted: files with a malicious pickle")


def raw(trace: Path) -> bytes:
    """A bare pickle, with the protocol that every loader knows."""
    return pickle.dumps(Malice(trace), protocol=2)


def in_dictionary(trace: Path) -> bytes:
    return pickle.dumps({"model": {}, "config": Malice(trace)}, protocol=2)


def torch_archive(trace: Path) -> bytes:
    """As torch saves since 1.6."""
    stream = io.BytesIO()
    torch.save({"model": {"a": torch.ones(2)}, "cfg": Malice(trace)}, stream)
    return stream.getvalue()


def torch_legacy(trace: Path) -> bytes:
    """As torch saved before: pickles one after the other."""
    stream = io.BytesIO()
    torch.save({"cfg": Malice(trace)}, stream, _use_new_zipfile_serialization=False)
    return stream.getvalue()


def script_archive(trace: Path) -> bytes:
    """An archive that passes for TorchScript."""
    stream = io.BytesIO(torch_archive(trace))
    with zipfile.ZipFile(stream, "a") as archive:
        archive.writestr("archive/constants.pkl", raw(trace))
    return stream.getvalue()


def numpy_array(trace: Path) -> bytes:
    """``.npy`` with objects in it."""
    stream = io.BytesIO()
    np.save(stream, np.array([Malice(trace)], dtype=object), allow_pickle=True)
    return stream.getvalue()


PAYLOADS: dict[str, Callable[[Path], bytes]] = {
    "pickle": raw, "pickle of a dictionary": in_dictionary, "torch": torch_archive,
    "torch before 1.6": torch_legacy, "torch script": script_archive, "npy": numpy_array,
}  # fmt: skip
every_payload = pytest.mark.parametrize("payload", PAYLOADS)


def test_the_malice_works(tmp_path: Path):
    """Loaded without protection every payload does its work, so the tests below mean something."""
    for name, payload in PAYLOADS.items():
        trace, path = tmp_path / f"{name} executed", tmp_path / name
        path.write_bytes(payload(trace))
        if name == "npy":
            np.load(path, allow_pickle=True)
        elif "torch" in name and "script" not in name:
            torch.load(path, weights_only=False)
        elif "script" not in name:
            pickle.loads(path.read_bytes())
        else:
            continue
        assert trace.exists(), name


@every_payload
@pytest.mark.parametrize("name", READERS)
def test_no_reader_executes_it(name: str, payload: str, tmp_path: Path, trace: Path):
    reader, folder = READERS[name], tmp_path / "files"
    folder.mkdir()
    reader.prepare(folder)
    (folder / reader.file).write_bytes(PAYLOADS[payload](trace))
    try:
        reader.read(folder)
    except TreeSyntaxError as error:
        assert "\n" not in str(error).rstrip("\n")  # noqa: PT017
    executed_nothing(trace)


LOADERS = {"checkpoint_best.pt": (load_checkpoint, ""),
           "subwords.model": (Segmenter, "is not a SentencePiece model")}  # fmt: skip


@every_payload
@pytest.mark.parametrize("name", LOADERS)
def test_no_model_executes_anything(name: str, payload: str, tmp_path: Path, trace: Path):
    load, says = LOADERS[name]
    (tmp_path / name).write_bytes(PAYLOADS[payload](trace))
    with pytest.raises(TreeSyntaxError, match=f"{re.escape(name)}: {says}"):
        load(tmp_path / name)
    executed_nothing(trace)


@pytest.mark.parametrize("module", ["mask_strengths", "facts"])
def test_the_commands_that_take_checkpoints_execute_nothing(
    module: str, tmp_path: Path, trace: Path, capsys
):
    path = tmp_path / "checkpoint_best.pt"
    path.write_bytes(torch_archive(trace))
    out = [] if module == "facts" else ["--out", str(tmp_path / "out")]
    assert main(["analyse", module, str(path), *out]) == 2
    said = capsys.readouterr().err
    assert re.search("not a plain checkpoint: it asks for .*load only checkpoints written by", said)
    assert said.count("\n") == 1
    executed_nothing(trace)


def test_fairseq_under_the_plugin_executes_nothing(tmp_path: Path, trace: Path):
    """fairseq's own loading, as fairseq-generate and a resumed fairseq-train call it."""
    from fairseq import checkpoint_utils

    import fairseq_plugins  # noqa: F401  (it says what a checkpoint may hold)

    path = tmp_path / "checkpoint_best.pt"
    for payload in (torch_archive, torch_legacy):
        path.write_bytes(payload(trace))
        with pytest.raises(InputError, match="not a plain checkpoint"):
            checkpoint_utils.load_checkpoint_to_cpu(str(path))
        executed_nothing(trace)


def test_nothing_is_unpickled_without_protection():
    """The only loaders of pickles in the package: torch.load with weights_only, numpy without."""
    unsafe = (r"pickle\.loads?\(|allow_pickle=True|yaml\.unsafe|yaml\.full|weights_only=False"
              r"|(?<![.\w])(eval|exec)\(|shell=True")  # fmt: skip
    for folder in ("treesyntax", "fairseq_plugins"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            for call in re.findall(r"torch\.load\([^)]*\)", text):
                assert "weights_only=True" in call, path
            assert not re.search(unsafe, text), path


def needs(*packages: str) -> None:
    """Skip where one is not installed, without importing it, which must be left to load_parser."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


STANZA = ("tokenize.pt", "pos.pt", "lemma.pt", "depparse.pt", "constituency.pt", "pretrain.pt")
FILES = {"stanza-dep": STANZA, "benepar": ("model.pt",), **({"stanza-con": STANZA} if SOAK else {})}


@pytest.mark.parametrize("parser", FILES)
@pytest.mark.parametrize("payload", ["torch", *(["torch before 1.6", "pickle"] if SOAK else [])])
def test_models_of_parsers_execute_nothing(payload: str, parser: str, tmp_path: Path, trace: Path):
    needs(parser.split("-")[0])
    for name in FILES[parser]:
        (tmp_path / name).write_bytes(PAYLOADS[payload](trace))
    model = tmp_path / "model.pt" if parser == "benepar" else tmp_path
    with pytest.raises(OptionError) as caught:
        load_parser(ParserConfig(parser, str(model)))
    assert "\n" not in str(caught.value)
    executed_nothing(trace)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real models, of which one file after the other is replaced."""
    needs("stanza", "benepar", "spacy")
    import support.parser_models as parser_models

    from treesyntax.parsers.torchaudio_remedy import broken_torchaudio_hidden

    folder = tmp_path_factory.mktemp("models")
    with broken_torchaudio_hidden():
        parser_models.make_spacy(folder / "spacy")
        parser_models.make_stanza(folder / "stanza")
        parser_models.make_benepar_bert(folder / "benepar")
    return folder


@pytest.mark.parametrize("parser", ["spacy", "stanza-dep", "stanza-con", "benepar"] if SOAK else [])
def test_no_file_of_a_model_executes_anything(parser: str, models: Path, trace: Path):
    folder = models / parser.split("-")[0]
    settings = ParserConfig(parser, str(folder))
    load_parser(settings)
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        whole = path.read_bytes()
        for payload in ("pickle", "torch", "npy"):
            path.write_bytes(PAYLOADS[payload](trace))
            try:
                load_parser(settings)
            except OptionError as error:
                assert "\n" not in str(error)  # noqa: PT017
            executed_nothing(trace)
        path.write_bytes(whole)
