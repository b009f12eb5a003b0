"""``treesyntax translate`` gives what fairseq-generate gives, for every method and kind of tree."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest
import torch
from reliability.figures import SOAK
from support.translate_helpers import (
    PAIRS,
    binarize,
    generate,
    lines_of,
    save_model,
    study,
    translate,
    write_texts,
)  # fmt: skip

from treesyntax.__main__ import main
from treesyntax.methods import METHODS
from treesyntax.model.bracket_growth import GROWING
from treesyntax.nn.growth import GROWING_LINEARIZATIONS
from treesyntax.nn.injection import methods_of
from treesyntax.trees.formats import get_format, parse_record

GROWN = "stack_pe+relation_mask"
SUBWORDS = ("--subword-vocab", "40", "--subword-policy", "copy")
LINEARIZATIONS = {"linearized": "bracketed", "transformer_grammar": "bracketed_twice"}
METHODS_OF_EACH_KIND = [
    "sequence", "linearized", "transformer_grammar", "relation_mask", "labelled_relation", "random_walk_pairs",
    "stack_pe", "tree_rotary", "hierarchical_accumulation", "parent_head",
]  # fmt: skip
"""The text alone, brackets, pairs, labels, numbers of pairs, encodings, rotations, states, losses."""


GROWN_TREES = [
    (linearization, constraints)
    for linearization in GROWING_LINEARIZATIONS
    for constraints in ("auto", "grammar")
    if SOAK or constraints == "auto" or linearization in ("nary_bfs", "lcrs_dfs")
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translate")
    write_texts(folder)
    for linearization in ("words", *LINEARIZATIONS.values()):
        binarize(folder, linearization, "conllu", "target", "--source-format", "conllu",
                 "--source-linearization", linearization, "--source-labels", *SUBWORDS)  # fmt: skip
    for linearization in (*GROWING, "bracketed"):
        binarize(folder, f"to_{linearization}", "txt", "sexpr", "--target-format", "sexpr",
                 "--target-linearization", linearization)  # fmt: skip
    binarize(folder, "trees", "sexpr", "sexpr", "--source-format", "sexpr", "--target-format",
             "sexpr", "--target-linearization", "lcrs_bfs")  # fmt: skip
    return folder


@pytest.mark.parametrize("method", methods_of("encoder") if SOAK else METHODS_OF_EACH_KIND)
def test_every_method_translates_as_in_fairseq_generate(folder, method, tmp_path):
    data = folder / LINEARIZATIONS.get(method, "words")
    for seed in range(1, 9):  # an untrained model may say the same to every sentence
        flags = ("--arch", f"tree_{method}_tiny")
        if method == "transformer_grammar":  # the paper has it in a decoder
            flags += ("--encoder-injection", method, "--decoder-injection", "none")
        model = save_model(data, tmp_path / f"model-{seed}.pt", *flags, seed=seed)
        outputs = tmp_path / str(seed)
        outputs.mkdir()
        expected = study(data, model, outputs, "", "--post-process", "sentencepiece")
        if len(set(expected)) > 1:
            break
    found = translate(data, model, tmp_path / "out", "--parsed", "--input", folder / "all.conllu")
    assert [re.sub(" ?⁇ ?", "<unk>", line) for line in found] == expected
    assert len(set(found)) > 1


@pytest.mark.parametrize(("linearization", "constraints"), GROWN_TREES)
def test_trees_that_a_decoder_grows_are_written_in_their_notation(
    folder, linearization, constraints, tmp_path
):
    data = folder / f"to_{linearization}"
    flags = ("--arch", "tree_sequence_tiny", "--decoder-injection", GROWN)
    model = save_model(data, tmp_path / "model.pt", *flags, "--no-target-eos-loss")
    flags = ("--tree-constraints", constraints, "--lenpen", "4")  # else leaves alone are best
    expected = study(data, model, tmp_path, linearization, *flags)
    found = translate(data, model, tmp_path / "out", "--input", folder / "all.txt", *flags)
    assert found == expected
    assert "(" not in found
    assert max(map(len, found)) > 1


@pytest.mark.parametrize(
    ("linearization", "method"),
    [
        ("bracketed", "sequence"),
        ("bracketed_twice", "transformer_grammar"),
        ("nary_dfs", "sequence"),
    ],
)
def test_without_constraints_what_is_no_tree_is_malformed_and_counted(
    folder, linearization, method, tmp_path, capsys
):
    data = folder / f"to_{linearization}"
    model = save_model(data, tmp_path / "model.pt", "--arch", f"tree_{method}_tiny")
    flags = ("--tree-constraints", "none")
    expected = study(data, model, tmp_path, linearization, *flags)
    capsys.readouterr()
    found = translate(data, model, tmp_path / "out", "--input", folder / "all.txt", *flags)
    assert found == expected
    assert found.count("(")
    assert f"{found.count('(')} outputs cannot be written as sexpr" in capsys.readouterr().err


def test_trees_on_both_sides_and_several_models(folder, tmp_path):
    data = folder / "trees"
    flags = ("--decoder-injection", GROWN, "--no-target-eos-loss")
    models = ":".join(
        str(save_model(data, tmp_path / f"{m}.pt", "--arch", f"tree_{m}_tiny", *flags, seed=seed))
        for seed, m in enumerate(("stack_pe", "relation_mask"), start=1)
    )
    expected = study(data, models, tmp_path, "lcrs_bfs")
    flags = ("--input", folder / "all.sexpr")
    assert translate(data, models, tmp_path / "out", *flags) == expected
    first = translate(data, models.split(":")[0], tmp_path / "out", *flags)
    assert first != expected


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    return save_model(folder / "words", folder / "model.pt", "--arch", "tree_relation_mask_tiny")


def test_the_best_come_with_their_scores(folder, model, tmp_path):
    flags = ("--parsed", "--input", folder / "all.conllu")
    rows = translate(folder / "words", model, tmp_path / "out", *flags, "--nbest", "2", "--tokens")
    expected = generate(folder / "words", model, tmp_path, "--nbest", "2")
    numbers, scores, tokens = zip(*(row.split("\t") for row in rows), strict=True)
    assert list(map(int, numbers)) == [1 + i // 2 for i in range(2 * PAIRS)]
    assert list(tokens) == [text for _, text in expected]
    assert [float(s) for s in scores] == pytest.approx([s for s, _ in expected], abs=1e-3)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--output", "{text}"), "is the input; name another file for the output"),
        (("--max-len-a", "1e308"), "--max-len-a must be a number from 0 to 1,000,000"),
        (("--max-len-a", "nan"), "--max-len-a must be a number from 0 to 1,000,000"),
        (("--lenpen", "nan"), "--lenpen must be a number"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder, model, tmp_path, capsys, flags, told):
    text = tmp_path / "text"
    text.write_text("a b\n")
    words = [word.format(text=text) for word in flags]
    common = ["--path", str(model), "--input", str(text)]
    assert main(["translate", str(folder / "words"), *common, *words]) == 2
    assert told in capsys.readouterr().err
    assert text.read_text() == "a b\n"


def test_any_order_and_empty_sentences_stay_aligned(folder, model, tmp_path):
    data, flags = folder / "words", ("--parsed", "--batch-size", "2")
    records = (folder / "all.conllu").read_text().split("\n\n")[:6]
    one_by_one = []
    for number, record in enumerate(records):
        path = tmp_path / f"{number}.conllu"
        path.write_text(record + "\n\n")
        one_by_one += translate(data, model, tmp_path / "out", *flags, "--input", path)

    draw = random.Random(2)
    order = [draw.choice([*range(len(records)), None]) for _ in range(50)] + [None]
    mixed = tmp_path / "mixed.conllu"
    mixed.write_text("".join(("# text =" if i is None else records[i]) + "\n\n" for i in order))
    expected = ["" if i is None else one_by_one[i] for i in order]
    assert {"", *one_by_one} == {*expected}
    for buffer in (7, 1000):
        chunked = (*flags, "--input", mixed, "--buffer", str(buffer))
        assert translate(data, model, tmp_path / "out", *chunked) == expected
    scored = translate(data, model, tmp_path / "out", *chunked, "--nbest", "1")
    assert scored[-1] == f"{len(order)}\t0.0000\t"


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision(folder, model, precision, tmp_path):
    flags = ("--parsed", "--input", folder / "all.conllu", f"--{precision}", "--max-tokens", "1")
    found = translate(folder / "words", model, tmp_path / "out", *flags)
    plain = translate(folder / "words", model, tmp_path / "out", *flags[:3])
    assert sum(a == b for a, b in zip(found, plain, strict=True)) >= PAIRS / 2


def test_no_input_gives_no_output(folder, model, tmp_path, capsys):
    (tmp_path / "empty").write_text("")
    flags = ("--parsed", "--input", tmp_path / "empty")
    assert translate(folder / "words", model, tmp_path / "out", *flags) == []
    assert capsys.readouterr().err.startswith("0 sentences in ")
    assert lines_of(tmp_path / "out") == []


LOSSES = [name for name in METHODS if METHODS[name].training_only]
RAW_TEXT = ("--source-text", "--subword-units")


def write_conllu_with_text(folder: Path, path: Path) -> None:
    """The sentences with their raw text in comments."""
    records = (folder / "all.conllu").read_text().split("\n\n")[:-1]
    pairs = zip(lines_of(folder / "all.txt"), records, strict=True)
    path.write_text("".join(f"# text = {text}\n{record}\n\n" for text, record in pairs))


@pytest.mark.parametrize(
    ("method", "notation", "flags"),
    [
        *(
            (method, "conllu", SUBWORDS)
            for method in ((*LOSSES, "sequence") if SOAK else LOSSES[:1])
        ),
        *([("parent_head", "conllu", ())] if SOAK else []),
        ("parent_head", "conllu", (*RAW_TEXT, "line", *SUBWORDS)),
        ("tree_reg", "ptb", SUBWORDS),
    ],
)
def test_a_model_that_needs_trees_in_training_alone_reads_words(
    folder, method, notation, flags, tmp_path, capsys
):
    path, words = tmp_path / f"all.{notation}", tmp_path / "all.txt"
    for file in ("target", "txt", notation):
        shutil.copy(folder / f"all.{file}", tmp_path)
    if "line" in flags:
        write_conllu_with_text(folder, path)
    else:  # as the trees have them, not as they stand in a line
        trees = [parse_record(get_format(notation), path, record)
                 for record in get_format(notation).records(path)]  # fmt: skip
        rows = ([tree.labels[node] for node in tree.word_nodes()] for tree in trees)
        words.write_text("".join(f"{' '.join(row)}\n" for row in rows))
    data = binarize(tmp_path, "data", notation, "target", "--source-format", notation,
                    "--source-linearization", "words", *flags)  # fmt: skip
    model = save_model(data, tmp_path / "model.pt", "--arch", f"tree_{method}_tiny")
    stores = [*data.glob("*.tree")]
    assert stores
    for store in stores:
        store.unlink()
    expected = generate(data, model, tmp_path)
    found = translate(data, model, tmp_path / "out", "--input", words, "--tokens")
    assert found == [text for _, text in expected]
    assert len(set(found)) > 1
    assert "the model needs no trees here" in capsys.readouterr().err
    parsed = ("--parsed", "--input", path, "--tokens")
    assert found == translate(data, model, tmp_path / "out", *parsed)


def test_subwords_cut_where_a_parser_saw_words_need_the_parser(folder, tmp_path, capsys):
    shutil.copy(folder / "all.target", tmp_path)
    write_conllu_with_text(folder, tmp_path / "all.conllu")
    flags = ("--source-format", "conllu", *RAW_TEXT, "token", *SUBWORDS)
    data = binarize(tmp_path, "data", "conllu", "target", *flags)
    model = save_model(data, tmp_path / "model.pt", "--arch", "tree_parent_head_tiny")
    capsys.readouterr()
    words = ["translate", str(data), "--path", str(model), "--input", str(folder / "all.txt")]
    assert main([*words, "--cpu"]) == 2
    message = capsys.readouterr().err
    assert "cut where a parser saw words: give --parser (stanza-dep, spacy" in message
    assert "binarize --subword-units line" in message


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_a_model_with_numbers_that_are_none_is_refused(odd, folder, model, tmp_path, capsys):
    """NaN embeddings ended in an error of torch's, somewhere in the search."""
    state = torch.load(model, weights_only=False)
    state["model"]["encoder.embed_tokens.weight"][5] = odd
    torch.save(state, tmp_path / "model.pt")
    words = ["translate", folder / "words", "--path", tmp_path / "model.pt", "--cpu", "--parsed"]
    assert main([*map(str, words), "--input", str(folder / "all.conllu")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "model.pt: encoder.embed_tokens.weight holds NaN or infinity; the training" in said


def test_a_model_with_sparse_tensors_is_refused(model, tmp_path, capsys):
    """They have no memory of their own that could be counted."""
    state = torch.load(model, weights_only=False)
    state["model"]["decoder.extra"] = torch.eye(3).to_sparse()
    torch.save(state, tmp_path / "model.pt")
    assert main(["analyse", "facts", str(tmp_path / "model.pt")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "its decoder.extra is no plain tensor (sparse" in said
