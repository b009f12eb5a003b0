"""`treesyntax new` and `treesyntax recipes`: from files of one's own to a study that plans."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
import yaml

from treesyntax.__main__ import main
from treesyntax.commands.study_present import check_present
from treesyntax.data.sentencepiece import train_model
from treesyntax.errors import OptionError
from treesyntax.files import write_json
from treesyntax.metrics import text as text_metrics
from treesyntax.study.recipe.reading import read_extended
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.recipe.shipped import shipped_recipes
from treesyntax.study.run.ledger import marker_of
from treesyntax.study.run.plan import make_plan


@pytest.fixture
def corpus(tmp_path: Path, quick_flags: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "corpus"
    folder.mkdir()
    (tmp_path / "m").mkdir()  # the parser's model
    for split in ("train", "valid", "test"):
        trees = {"conllu": "1\twords\t_\t_\t_\t_\t0\troot\t_\t_\n", "ptb": "(NP (NNS words))\n"}
        for suffix in ("en", "de", *trees):
            (folder / f"{split}.{suffix}").write_text(trees.get(suffix, "words\n"))
    (tmp_path / "a{x}").mkdir()
    for name in ("pairs.tsv", "a{x}/pairs.tsv", "pairs.csv", "c.jsonl"):
        pairs = "".join(f"question {number}\t( form )\n" for number in range(40))
        (tmp_path / name).write_text(pairs)
    return folder


PARSED = ["--source", "corpus/train.en", "--target", "corpus/train.de", "--model", "m", "--parser"]
GIVEN = ["--source", "corpus/train.conllu", "--target", "corpus/train.de", "--source-format"]
GIVEN_PTB = [word.replace("conllu", "ptb") for word in GIVEN]


@pytest.mark.parametrize(
    ("arguments", "base", "command"),
    [
        ([*PARSED, "benepar"], "nmt/constituency", "--parser benepar --model m --lang en"),
        ([*PARSED, "spacy"], "nmt/dependency", "--train corpus/train.en corpus/train.de"),
        ([*GIVEN, "conllu"], "nmt/dependency", "--train corpus/train.conllu corpus/train.de"),
        ([*GIVEN_PTB, "ptb"], "nmt/constituency", "--train corpus/train.ptb corpus/train.de"),
        ([*GIVEN_PTB, "mrg"], "nmt/constituency", "--source-view preorder"),
        (
            ["--source", "pairs.tsv", "--target-format", "sexpr"],
            "semantic_parsing/geo",
            "--data pairs.tsv --out runs/my/data/questions --notation sexpr --valid 4 --test 4",
        ),
    ],
)
def test_a_recipe_for_data_of_ones_own_can_be_planned(
    corpus: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], base: str, command: str
):
    assert main(["new", "my.yaml", "--title", "Mine", *arguments]) == 0
    written = yaml.safe_load(Path("my.yaml").read_text())
    assert (written["extends"], read_recipe("my.yaml").title) == (base, "Mine")
    said = capsys.readouterr().out
    first = re.findall(r"^  (treesyntax study my.yaml --only .*)", said, re.M)
    assert main([*first[0].split()[1:], "--plan"]) == 0
    capsys.readouterr()
    assert main(["study", "my.yaml", "--dry-run"]) == 0
    assert command in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--source", "corpus/train.en"],
            "--target is missing: the file with the training targets",
        ),
        (PARSED[:4], "--parser is missing: the parser of the sources"),
        ([*PARSED, "stanza"], "no parser is named 'stanza'; did you mean 'stanza-dep'?"),
        (["--source", "corpus/train.fr"], "corpus/train.fr: does not exist"),
        (["--source", "pairs.csv"], "pairs.csv: a .csv is not read; write a TSV"),
        (
            ["--source", "c.jsonl"],
            "c.jsonl: is no file with both sides; for questions with forms give a",
        ),
        (
            ["--source", "a{x}/pairs.tsv"],
            "a{x}/pairs.tsv: a recipe takes what is in braces for a var",
        ),
        ([*PARSED[:4], "--target-format", "sexpr"], "paste corpus/train.en corpus/train.de"),
        (
            GIVEN_PTB[:4],
            "corpus/train.ptb: would be parsed as text, and .ptb is for trees; give --source-format ptb in place of",
        ),
        ([*GIVEN[:4], "--parser", "spacy", "--model", "m"], "give --source-format conllu in place"),
        (["--source", "pairs.tsv", "--target-format", "lisp"], "no tree format is named 'lisp'"),
        (
            ["--source", "pairs.tsv", "--parser", "spacy"],
            "leave out --parser and name the notation of the forms, --target-format sexpr; for text",
        ),
        (
            ["--source", "pairs.tsv", "--target-format", "text"],
            "text to text make files, with the suffixes of your languages: cut -f 1 pairs.tsv > all.en",
        ),
    ],
)
def test_what_is_missing_is_named(
    corpus: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
):
    assert main(["new", "my.yaml", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("my.yaml").exists()


def test_a_recipe_says_what_its_rows_are_and_what_is_to_be_done(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["new", "my.yaml", "--source", "pairs.tsv", "--target-format", "sexpr"]) == 0
    text, said = Path("my.yaml").read_text(), capsys.readouterr().out
    assert "#   nary_dfs   grows the form as a tree, depth first" in text
    assert (
        "8 rows, which it explains, and 3 seeds\nof the pairs are drawn: 4 for valid, 4 for test"
        in said
    )
    sizes = "A training: size mini, 1,500 updates of 64 pairs, no early stopping (budget: fixed)"
    assert sizes in text
    assert sizes in said
    assert "a first table, of 9 trainings:" in said
    assert re.search(r"a run of this size takes about \d+ to \d+ minutes on a CPU core", said)
    assert "corrected for all rows" in said


@pytest.mark.parametrize(
    "arguments", [["--source", "pairs.tsv", "--target-format", "sexpr"], [*GIVEN, "conllu"], PARSED]
)
def test_nobody_elses_data_is_named(corpus: Path, arguments: list[str]):
    more = ["spacy"] if arguments is PARSED else []
    assert main(["new", "my.yaml", *arguments, *more]) == 0
    content = str(read_recipe("my.yaml").content)
    assert not re.search("geoquery|geo_lambda|multi30k|shared", content, re.I)


def test_a_file_of_pairs_is_read_before_a_recipe_is_written(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    for text, message in (
        ("question\tform\nwho sleeps\t(sleeps x)\n", ":1: looks like a header (question, form)"),
        (
            "(sleeps x)\twho sleeps\n(runs x)\twho runs\n",
            ":1: has brackets in each first column and in no second",
        ),
        ("who sleeps\t(sleeps x)\n" * 40, ": has 1 different pair to train on; give some dozens"),
        ("who sleeps\t(sleeps x)\n\n", ":2: has 1 columns"),
        ("who sleeps\t(sleeps x\n", ":1: "),
    ):
        Path("own.tsv").write_text(text)
        assert main(["new", "my.yaml", "--source", "own.tsv", "--target-format", "sexpr"]) == 2
        assert f"own.tsv{message}" in capsys.readouterr().err
    assert not Path("my.yaml").exists()


@pytest.mark.parametrize(
    ("arguments", "lengthened", "message"),
    [
        ([*PARSED, "spacy"], "train.en", "corpus/train.en: has 3 lines, and corpus/train.de 1 lines; line N"),
        ([*GIVEN, "conllu"], "test.de", "corpus/test.conllu: has 1 trees, and corpus/test.de 3 lines; line N"),
        ([*GIVEN_PTB, "mrg"], "train.de", "corpus/train.ptb: has 1 trees, and corpus/train.de 3 lines; line N"),
    ],
)  # fmt: skip
def test_files_of_different_lengths_are_refused(
    corpus: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    lengthened: str,
    message: str,
):
    (corpus / lengthened).write_text("words\n" * 3)
    assert main(["new", "my.yaml", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not Path("my.yaml").exists()


def test_sets_beside_the_training_files_are_needed(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    for language in ("en", "de"):
        (corpus / f"valid.{language}").rename(corpus / f"dev.{language}")
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    assert read_extended(Path("my.yaml"))["vars"]["valid"] == "dev"
    (corpus / "test.en").unlink()
    assert main(["new", "other.yaml", *PARSED, "spacy"]) == 2
    assert "a study needs a test set beside train.en" in capsys.readouterr().err


def test_a_training_file_of_another_name_is_told(corpus: Path, capsys: pytest.CaptureFixture[str]):
    (corpus / "train.en").rename(corpus / "a.en")
    words = ["new", "my.yaml", *(word.replace("train.en", "a.en") for word in PARSED), "spacy"]
    assert main(words) == 2
    assert "a.en: has no «train» in its name" in capsys.readouterr().err


def test_the_user_is_asked_on_a_terminal(corpus: Path, monkeypatch: pytest.MonkeyPatch):
    class Terminal:
        answers = iter(["pairs.tsv\n", "sexpr\n"])

        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return next(self.answers)

    monkeypatch.setattr("sys.stdin", Terminal())
    assert main(["new", "my.yaml"]) == 0
    assert read_extended(Path("my.yaml"))["vars"]["root"] == "pairs.tsv"


def test_an_existing_recipe_stays(corpus: Path, capsys: pytest.CaptureFixture[str]):
    Path("my.yaml").write_text("mine\n")
    for command in (
        ["new", "my.yaml", *PARSED, "spacy"],
        ["recipes", "copy", "lines_en_sv", "my.yaml"],
    ):
        assert main(command) == 2
        assert "my.yaml: already exists" in capsys.readouterr().err
    assert Path("my.yaml").read_text() == "mine\n"


def test_all_recipes_are_listed_with_their_titles(capsys: pytest.CaptureFixture[str]):
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*shipped_recipes()]
    assert not [line for line in lines if len(line.split()) < 2 or "{" in line]


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_copy_of_a_recipe_is_the_same_anywhere(tmp_path: Path, name: str):
    copy = tmp_path / "copy.yaml"
    assert main(["recipes", "copy", name, str(copy)]) == 0
    assert read_extended(copy) == read_extended(shipped_recipes()[name])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("demo/for2lan", "no recipe is named 'demo/for2lan'; did you mean 'demo/for2lam'?"),
        ("for2lan.yaml", "for2lan.yaml: "),
    ],
)
def test_a_recipe_that_does_not_exist_is_told(
    capsys: pytest.CaptureFixture[str], name: str, message: str
):
    assert main(["study", name, "--dry-run"]) == 2
    assert message in capsys.readouterr().err


def test_an_extended_recipe_that_does_not_exist_is_told_with_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    recipe = tmp_path / "my.yaml"
    recipe.write_text("extends: nmt/dependancy\n")
    assert main(["study", str(recipe), "--dry-run"]) == 2
    assert f"{recipe}: extends: no recipe is named 'nmt/dependancy'" in capsys.readouterr().err


def test_what_was_read_is_told_by_new_and_by_the_plan(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    pairs = (f"question {number}\tform ( 'a b' ) .\n" for number in range(40))
    Path("pairs.tsv").write_text("".join(pairs))
    row = "1\twords\t_\t_\t_\t_\t0\troot\t_\t_\n"
    for split in ("train", "valid", "test"):
        (corpus / f"{split}.conllu").write_text(f"# by hand\n\n{row}\n")
        (corpus / f"{split}.en").write_text("it &apos;s\n")
    expected = {
        "forms.yaml": ["pairs.tsv: 40 trees (prolog)", "40 of 40 trees hold the full stop", "'a␣b'"],
        "trees.yaml": ["train.conllu: 1 trees (conllu), 0 empty; 1 words", "a blank line behind their",
                       "train.de: 1 lines of text", "1:words  root"],
        "parsed.yaml": ["train.en: 1 lines of text", "train.en:1: 1 of 1 lines holds escapes of Moses"],
    }  # fmt: skip
    given = (
        ["--source", "pairs.tsv", "--target-format", "prolog"],
        [*GIVEN, "conllu"],
        [*PARSED, "spacy"],
    )
    for (name, wanted), arguments in zip(expected.items(), given, strict=True):
        for command in (["new", name, *arguments], ["study", name, "--plan"]):
            assert main(command) == 0
            said = capsys.readouterr().out
            assert [text for text in wanted if text not in said] == []
    assert main(["study", "forms.yaml", "--plan", "--json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)["data"]
    assert (data["records"], data["remarks"][0]["lines"]) == (40, 40)
    (corpus / "train.conllu").write_text("no trees\n")
    assert main(["study", "trees.yaml", "--plan"]) == 2
    assert "train.conllu:1: is not CoNLL-U" in capsys.readouterr().err


def test_the_sizes_fit_the_corpus(corpus: Path):
    """4,000 subwords for 2,000 lines failed after everything was parsed."""
    draw = random.Random(1)
    for suffix in ("en", "de"):
        words = ["".join(draw.choices("abcdefgh", k=draw.randrange(2, 9))) for _ in range(900)]
        lines = (" ".join(draw.choices(words, k=8)) for _ in range(2000))
        (corpus / f"train.{suffix}").write_text("".join(f"{line}\n" for line in lines))
    sizes = []
    for name in ("rich", "poor"):
        if name == "poor":
            for suffix in ("en", "de"):
                (corpus / f"train.{suffix}").write_text("five of the words\n" * 2000)
        assert main(["new", f"{name}.yaml", *PARSED, "spacy"]) == 0
        sizes.append(int(read_recipe(f"{name}.yaml").content["vars"]["vocab"]))
        both = [(corpus / f"train.{suffix}").read_text().splitlines() for suffix in ("en", "de")]
        train_model([*both[0], *both[1]], sizes[-1], "unigram", corpus / "model", "text")
    assert 1000 < sizes[0] <= 2000
    assert sizes[1] < 30


@pytest.mark.parametrize(
    ("line", "mecab", "score"),
    [
        ("昨日は雨が降っていました", True, ["bleu:ja-mecab", "chrf"]),
        ("昨日は雨が降っていました", False, ["bleu:char", "chrf"]),
        ("我们昨天去了学校", True, ["bleu:char", "chrf"]),
        ("es hat geregnet", True, ["bleu", "chrf", "ter"]),
    ],
)
def test_text_without_spaces_gets_metrics_that_fit(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, line: str, mecab: bool, score: list[str]
):
    monkeypatch.setattr(text_metrics, "find_spec", lambda name: mecab)
    for suffix in ("en", "de"):
        (corpus / f"train.{suffix}").write_text(f"{line}\n" * 30)
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    assert list(read_recipe("my.yaml").score) == score


def test_the_way_from_a_table_of_text_that_is_told_leads_to_a_recipe(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    """Each command of the message, as it stands there."""
    shutil.rmtree(corpus)
    Path("texts.tsv").write_text("".join(f"a word {n}\tein Wort {n}\n" for n in range(300)))
    assert (
        main(["new", "my.yaml", "--source", "texts.tsv", "--parser", "spacy", "--model", "m"]) == 2
    )
    told = capsys.readouterr().err.partition("languages: ")[2]
    first, second, split, give = (part.strip() for part in told.split(";"))
    for command in (first, second):
        subprocess.run(command, shell=True, check=True)
    assert main(split.split()[1:]) == 0
    words = give.removeprefix("and give ").replace("NAME", "spacy").replace("MODEL", "m").split()
    assert main(["new", "my.yaml", *words]) == 0
    assert read_recipe("my.yaml").source.lang == "en"


@pytest.mark.parametrize(
    ("lost", "model", "told"),
    [
        ("corpus/valid.de", "m", "prepare, command 1: no such file or folder: corpus/valid.de"),
        ("", "models/en", "prepare, command 3: there is no model at models/en"),
        ("", "en_core_web_xy", "command 3: there is no spacy model 'en_core_web_xy': give its folder"),
    ],
)  # fmt: skip
def test_a_plan_says_what_is_missing(
    corpus: Path, capsys: pytest.CaptureFixture[str], lost: str, model: str, told: str
):
    words = [model if word == "m" else word for word in PARSED]
    assert main(["new", "my.yaml", *words, "spacy"]) == 0
    if lost:
        Path(lost).unlink()
    assert main(["study", "my.yaml", "--plan"]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pieces", "subwords"])
def test_a_plan_knows_a_flag_by_both_names(
    corpus: Path, capsys: pytest.CaptureFixture[str], name: str
):
    assert main(["new", "my.yaml", *GIVEN, "conllu"]) == 0
    files = f"binarize.source-{name}=[lost/train, lost/valid, lost/test]"
    settings = ["--set", files, "--set", "binarize.joined-subwords=null"]
    assert main(["study", "my.yaml", "--plan", *settings]) == 2
    assert f"binarize.source-{name}: no such file: lost/train" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["generate", "data make"])
def test_a_plan_knows_a_command_by_both_names(
    corpus: Path, capsys: pytest.CaptureFixture[str], name: str
):
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    (corpus / "valid.de").unlink()
    recipe = Path("my.yaml")
    recipe.write_text(
        re.sub("treesyntax (generate|data make) ", f"treesyntax {name} ", recipe.read_text())
    )
    assert main(["study", "my.yaml", "--plan"]) == 2
    assert "command 1: no such file or folder: corpus/valid.de" in capsys.readouterr().err


def test_a_plan_does_not_take_a_packed_file_for_one_to_parse(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    """Only ``data make pairs`` reads NAME.gz where there is no NAME."""
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    command = "treesyntax parse corpus/train.en {data}/train.conllu --parser spacy --model m"
    Path("my.yaml").write_text(f"{Path('my.yaml').read_text()}prepare: ['{command}']\n")
    assert main(["study", "my.yaml", "--plan"]) == 0
    (corpus / "train.en").rename(corpus / "train.en.gz")
    capsys.readouterr()
    assert main(["study", "my.yaml", "--plan"]) == 2
    assert "command 1: no such file or folder: corpus/train.en" in capsys.readouterr().err


def test_a_plan_asks_for_nothing_that_is_made_already(corpus: Path):
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    (corpus.parent / "m").rmdir()
    for number in range(1, 6):
        write_json(marker_of(Path("runs/my"), f"prepare-{number}"), {})
    check_present(make_plan(read_recipe("my.yaml")), Path("runs/my"))
    with pytest.raises(OptionError, match="command 3: there is no spacy model 'm'"):
        check_present(make_plan(read_recipe("my.yaml")), Path("runs/other"))


def test_a_plan_with_gpus_that_are_not_there(corpus: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    if not torch.cuda.is_available():
        assert main(["study", "my.yaml", "--plan", "--gpus", "0"]) == 2
        assert "there is no GPU" in capsys.readouterr().err


def test_text_is_trained_to_rest_and_its_first_table_has_the_control(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    """A fixed budget inherited from a recipe gave opposite conclusions at 500 and at 1,500 updates."""
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 0
    said = capsys.readouterr().out
    assert (
        "at most 2,000 updates of 64 pairs; it ends after 3 validations, one in 100 updates" in said
    )
    assert "--only sequence relation_mask relation_mask/random\n" in said
    assert "if none ends before its cap" in said
    assert "budget: rest\n" in Path("my.yaml").read_text()


def test_where_sets_are_missing_the_command_that_draws_them_is_told(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    for suffix in ("en", "de"):
        (corpus / f"valid.{suffix}").unlink()
        (corpus / f"train.{suffix}").write_text("some words\n" * 40)
    assert main(["new", "my.yaml", *PARSED, "spacy"]) == 2
    draw, _, source = capsys.readouterr().err.strip().partition(", and then give --source ")
    words = draw.partition("draw sets from it: ")[2].split()
    assert words[-4:] == ["--valid", "4", "--test", "4"]
    assert main(words[1:]) == 0
    target = source.replace("train.en", "train.de")
    assert Path(target).is_file()
    again = ["--source", source, "--target", target, "--parser", "spacy", "--model", "en"]
    assert main(["new", "my.yaml", *again]) == 0


def test_no_command_is_told_that_would_cut_a_treebank_by_lines(
    corpus: Path, capsys: pytest.CaptureFixture[str]
):
    (corpus / "valid.conllu").unlink()
    assert main(["new", "my.yaml", *GIVEN, "conllu"]) == 2
    message = capsys.readouterr().err
    assert "corpus/valid.conllu: does not exist; a study needs a valid set" in message
    assert "cut train, valid and test from your trees and their targets by hand" in message
    assert "make split" not in message
