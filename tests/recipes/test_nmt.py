"""The recipes of translation: what they compare, and the way from raw text to the table."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
import sentencepiece
from support import ROOT
from support.forked_programs import treesyntax
from support.parser_models import make_benepar_characters, text_of, treebank

from treesyntax.data.dictionary import Dictionary
from treesyntax.data.token_files import TokenData
from treesyntax.metrics import METRICS
from treesyntax.model.composition import parse_spec
from treesyntax.study.recipe.backbone import positions_of
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import Recipe, read_recipe
from treesyntax.study.run.plan import make_plan
from treesyntax.trees.subwords import POLICIES

FOLDER = ROOT / "recipes" / "nmt"
GOLD = ("lines_en_sv", "lines_en_sv_controls")
PARSED = sorted(file.stem for file in FOLDER.glob("*.yaml") if file.stem not in GOLD)
WORDS_ALONE = ("relative_depth_paper", "relative_depth_ablation_paper")
PAPERS = ("masks_paper", *WORDS_ALONE)
DEPENDENCY = {
    "sequence", "linearized", "relation_mask", "relation_mask/random", "stack_pe", "relative_depth",
    "mask_and_depth",
}  # fmt: skip
CONTROLS = {"relation_mask/random", "relation_mask/right_branching"}
LOSSES = {"parent_head"}
CONTROLLED = {"en_sw", "en_ha"}
TINY = {"multi30k_tiny", "multi30k_tiny_constituency"}
CONSTITUENCY = {
    "sequence", "linearized", "relation_mask", "relation_mask/random", "stack_pe", "mask_and_stack",
}  # fmt: skip


def read(name: str, *overrides: str) -> Recipe:
    return read_recipe(FOLDER / f"{name}.yaml", overrides)


def test_every_corpus_of_the_papers_has_a_recipe():
    assert {
        "multi30k_en_de", "iwslt14_de_en", "iwslt14_de_en_subset", "iwslt15_en_vi", "wmt16_en_de",
        "en_sw", "en_ha", "ja_en", *PAPERS,
    } < set(PARSED)  # fmt: skip


@pytest.mark.parametrize("name", PARSED)
def test_a_fair_comparison_on_detokenised_text(name: str):
    recipe = read(name)
    assert recipe.score == ("bleu", "chrf", "ter")
    assert set(recipe.score) <= METRICS.keys()
    joins = None if name in WORDS_ALONE else "sentencepiece"
    assert recipe.generate.get("post-process") == joins
    assert len(recipe.seeds) >= 5
    assert recipe.baseline == "sequence"
    if name not in PAPERS:  # every row is the baseline plus a method, and nothing else differs
        check_fairness(recipe)
        assert not recipe.differences
        rows = [recipe.flags(method, "train") for method in recipe.methods]
        assert {flags["embedding-scaling"] for flags in rows} == {"down"}
        for side in ("encoder", "decoder"):
            positions = {
                positions_of(m.arch, recipe.flags(m, "train"), side) for m in recipe.methods
            }
            assert positions == {"relative_position"}
    for method in recipe.methods:
        if spec := recipe.flags(method, "train").get("encoder-injection"):
            assert parse_spec(spec)


@pytest.mark.parametrize("name", [name for name in PARSED if name not in WORDS_ALONE])
def test_what_is_parsed_is_what_is_segmented(name: str):
    recipe = read(name)
    parsed = {
        command.split()[3]: command.split()[2]
        for command in recipe.prepare
        if command.startswith("treesyntax parse")
    }
    for method in recipe.methods:
        flags = recipe.flags(method, "binarize")
        trees = [method.source.train, method.source.valid, method.source.test]
        pairs = method.source.train.split("text-")[1].split("/")[0]
        texts = [path.replace("{pairs}", pairs) for path in flags["source-text"]]
        assert [parsed[path] for path in trees] == texts
        assert flags["subword-policy"] in POLICIES
        assert (flags["joined-subwords"], flags["joined-dictionary"]) == (True, True)


@pytest.mark.parametrize("name", [name for name in PARSED if name not in {*PAPERS, *TINY}])
def test_all_methods_are_compared(name: str):
    recipe = read(name)
    expected = DEPENDENCY if recipe.binarize["source-format"] == "conllu" else CONSTITUENCY
    expected = expected | CONTROLS if name in CONTROLLED else expected
    expected = expected | LOSSES if name == "multi30k_en_de" else expected
    assert {method.base for method in recipe.methods} == expected
    linearizations = {
        method.base: recipe.flags(method, "binarize")["source-view"] for method in recipe.methods
    }
    assert (linearizations.pop("sequence"), linearizations.pop("linearized")) == (
        "words",
        "bracketed",
    )
    assert set(linearizations.values()) == {recipe.binarize["source-view"]}


@pytest.mark.parametrize("name", sorted(TINY))
def test_the_size_of_transformer_tiny_on_three_test_sets(name: str):
    recipe = read(name)
    assert {method.base for method in recipe.methods} >= {
        "sequence", "linearized", "relation_mask", "tree_rotary", *CONTROLS
    }  # fmt: skip
    for method in recipe.methods:
        flags = recipe.flags(method, "train")
        sizes = ("encoder-layers", "decoder-layers", "encoder-embed-dim", "decoder-ffn-embed-dim")
        assert [flags[size] for size in sizes] == [4, 4, 128, 256]
        assert (flags["max-update"], flags["lr"], recipe.average) == (8000, 0.005, 10)
    assert str(recipe.content["categories"]).endswith("text/test.set")
    (command,) = (command for command in recipe.prepare if "--test" in command)
    assert [command.count(f"/{test}.en") for test in ("test", "test2017", "testcoco")] == [1] * 3
    controls = {m.base: recipe.flags(m, "binarize").get("source-control") for m in recipe.methods}
    assert controls["relation_mask/random"] == "random"
    assert controls["relation_mask"] is None
    plan = make_plan(read(name, "axes.pairs={vars.pairs: [5000, 10000, 20000]}"))
    assert len(plan.runs) == 3 * len(recipe.methods) * 5


def test_sizes_of_training_data_are_an_axis():
    plan = make_plan(read("wmt16_en_de"))
    commands = [" ".join(step.command) for step in plan.steps if step.name.startswith("prepare")]
    assert sum("--pairs" in command for command in commands) == 3
    assert sum("test.trees" in command for command in commands) == 1
    assert len(plan.runs) == 3 * len(CONSTITUENCY) * 5


def test_the_settings_of_the_papers():
    masks, depth = read("masks_paper"), read("relative_depth_paper")
    shown = ("lr", "adam-betas", "label-smoothing", "dropout", "max-tokens", "lr-shrink")
    assert [masks.train[flag] for flag in shown] == [0.0003, "(0.9, 0.999)", 0.1, 0.3, 4096, 0.8]
    assert "batch-size" not in masks.train
    assert {method.arch for method in masks.methods} == {
        "tree_sequence_base", "tree_linearized_base", "tree_relation_mask_base",
    }  # fmt: skip
    shown = ("batch-size", "max-epoch", "adam-betas", "adam-eps", "warmup-updates")
    assert [depth.train[flag] for flag in shown] == [256, 30, "(0.9, 0.98)", 1e-9, 4000]
    assert "max-update" not in depth.train
    assert depth.train["best-checkpoint-metric"] == "accuracy"
    assert float(depth.train["lr"]) == pytest.approx(512**-0.5 * 4000**-0.5, rel=1e-3)
    assert depth.generate["beam"] == 1
    assert any("--most-words 50" in command for command in depth.prepare)
    assert not depth.binarize.keys() & {"subword-vocab", "joined-dictionary", "source-text"}


def injections(recipe: Recipe) -> dict[str, tuple[str | None, ...]]:
    return {
        method.base: tuple(
            recipe.flags(method, "train").get(f"{side}-injection")
            for side in ("encoder", "decoder")
        )
        for method in recipe.methods
    }


def test_the_rows_of_omote_have_vectors_on_both_sides():
    recipe = read("relative_depth_paper")
    rows = injections(recipe)
    decoder = "relative_position_omote"
    assert rows["sequence"] == (None, None)
    for row, encoder in (
        ("relative_position", "relative_position_omote"),
        ("relative_depth", "relative_depth_omote"),
        ("depth_and_position", "depth_and_position_omote"),
    ):
        assert rows[row] == (encoder, decoder)
    assert not any("encoder-positions" in method.train for method in recipe.methods)


def test_the_ablation_of_omote():
    recipe = read("relative_depth_ablation_paper")
    shown = ("batch-size", "max-epoch", "encoder-positions", "decoder-positions")
    assert [recipe.train[flag] for flag in shown] == [100, 50, "none", "none"]
    assert any("--pairs 100000 " in command for command in recipe.prepare)
    depth, position = "relative_depth_omote", "relative_position_omote"
    assert injections(recipe) == {
        "sequence": (None, None),
        "keys_and_values": (depth, position),
        "keys": (f"{depth}(values=False)", f"{position}(values=False)"),
        "values": (f"{depth}(keys=False)", f"{position}(keys=False)"),
    }


@pytest.mark.parametrize("name", PAPERS)
def test_the_size_of_a_paper_can_be_set(name: str):
    for size in ("base", "mini"):
        rows = read(name, f"size={size}").methods
        assert {row.arch.rpartition("_")[2] for row in rows} == {size}
    assert {row.arch.rpartition("_")[2] for row in read(name).methods} == {"base"}


WORDS = {"the": "den", "a": "en", "every": "varje", "this": "denna"}


def write_corpus(folder: Path) -> None:
    folder.mkdir()
    for split, size in (("train", 60), ("valid", 8), ("test", 12)):
        lines = [text_of(gold) for gold in treebank(size, seed=size)]
        lines[0] = "Tom"  # its masks are drawn: quickly, as it is short
        if split == "test":
            lines[3] = "  An  odd\tline (with brackets) ½ ﬁn\u200bal… 日本語 !"
            lines[5] = ""
        others = [
            " ".join(WORDS.get(word.lower(), word[::-1]) for word in line.split()) or "tom"
            for line in lines
        ]
        (folder / f"{split}.en").write_text("".join(f"{line}\n" for line in lines), "utf-8")
        (folder / f"{split}.sv").write_text("".join(f"{line}\n" for line in others), "utf-8")


QUICK = (
    "size=tiny", "vocab=65", "seeds=[1]", "train.max-update=4", "train.batch-size=30", "target=sv",
    "train.warmup-updates=1", "binarize.workers=1", "parse=--workers 1", "generate.beam=1",
)  # fmt: skip


# The way from raw text over dependency trees is that of the tutorial, see test_tutorial.py.
@pytest.mark.usefixtures("empty_figures")
def test_from_raw_text_over_constituency_trees_to_the_table(tmp_path: Path):
    pytest.importorskip("benepar")
    write_corpus(tmp_path / "corpus")
    row = read("constituency", "size=tiny").content["methods"]["relation_mask"]
    kept = {"relation_mask": {**row, "controls": []}}
    settings = (*QUICK, f"data={tmp_path / 'corpus'}", "parser=benepar", f"methods={kept}",
                f"model={make_benepar_characters(tmp_path / 'model')}")  # fmt: skip
    out = tmp_path / "out"
    words = [word for setting in settings for word in ("--set", setting)]
    treesyntax(tmp_path, "study", FOLDER / "constituency.yaml", "--out", out, "--jobs", "1", *words)
    with (out / "tables" / "results.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert {(row["row"], row["metric"]) for row in rows} == {
        ("relation_mask", metric) for metric in ("bleu", "chrf", "ter")
    }
    assert all(int(row["lines"]) == 12 for row in rows)
    check_source_text(out, (tmp_path / "corpus" / "test.en").read_text("utf-8").splitlines())


def check_source_text(out: Path, lines: list[str]) -> None:
    """Rows of one binarized folder or several: the pieces of each line give back the line."""
    shown = set()
    for data in sorted((out / "binarized").iterdir()):
        model = data / "subwords.en.model"
        shown.add(model.read_bytes())
        processor = sentencepiece.SentencePieceProcessor(str(model))
        dictionary = Dictionary.read(data / "dict.en.txt")
        sentences = TokenData(data / "test.en-sv.en")
        assert len(sentences) == len(lines)
        for number, line in enumerate(lines):
            ids = sentences[number][:-1]
            if (ids == dictionary.index("<unk>")).any():
                continue
            pieces = [dictionary.symbols[i] for i in ids]
            leaves = [piece for piece in pieces if processor.piece_to_id(piece)]
            assert (
                processor.decode(leaves).split()
                == processor.normalize(line).replace("▁", " ").split()
            )
    assert len(shown) == 1  # trained on the same raw lines, so the same pieces
