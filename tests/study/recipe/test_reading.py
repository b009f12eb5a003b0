"""Recipes that extend others."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support import ROOT
from support.study_helpers import recipe_content, write_recipe, write_study

from treesyntax.__main__ import main
from treesyntax.errors import InputError, OptionError
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.yaml_text import NotYamlError, parse_yaml


def write(path: Path, **content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def test_a_recipe_says_only_what_it_changes(tmp_path: Path):
    base = read_recipe(write_recipe(tmp_path))
    other = write(
        tmp_path / "sub" / "other.yaml",
        extends="../recipe.yaml",
        name="other",
        train={"lr": 0.5, "max-update": None},
        methods={"stack_pe": None, "relation_mask": {"train": {"lr": 1}}},
    )
    recipe = read_recipe(other)
    assert (recipe.name, recipe.title) == ("other", base.title)
    assert recipe.train == {"lr": 0.5}
    assert [method.name for method in recipe.methods] == ["sequence", "relation_mask"]
    assert recipe.methods[1].binarize == base.methods[1].binarize
    assert recipe.methods[1].train == {"lr": 1}
    assert "extends" not in recipe.content
    assert recipe.content["score"] == base.content["score"]


def test_what_is_merged_by_a_merge_key_may_be_said_otherwise(tmp_path: Path):
    """A mapping that has a merge key, and is itself merged further up, had keys twice."""
    path = write_recipe(tmp_path)
    text = path.read_text().replace("train:\n  max-update:", "train:\n  <<: *t\n  max-update:")
    rows = "shared: &s {lr: 1, dropout: 0.1}\ninner:\n  deeper: &t\n    <<: *s\n    lr: 2\n"
    values = parse_yaml(f"{rows}{text}")
    assert values["train"]["lr"] == 0.001  # of the recipe itself
    assert values["train"]["dropout"] == 0.1
    assert values["inner"]["deeper"] == {"lr": 2, "dropout": 0.1}
    with pytest.raises(NotYamlError, match="the key 'lr' occurs twice"):
        parse_yaml(f"{rows}    lr: 3\n")


def test_a_change_of_a_row_is_none_of_another_that_repeats_its_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In the folder of the recipe both rows were changed, from another folder the first alone."""
    path = write_recipe(tmp_path)
    text = path.read_text().replace("  sequence:\n", "  sequence:\n    train: &t {dropout: 0.1}\n")
    path.write_text(text.replace("  relation_mask:\n", "  relation_mask:\n    train: *t\n"))
    for folder in (tmp_path, ROOT):
        monkeypatch.chdir(folder)
        recipe = read_recipe(path, ["methods.sequence.train.dropout=0.5"])
        assert [row.train.get("dropout") for row in recipe.methods] == [0.5, 0.1, None]


def test_a_list_replaces_a_list_and_overrides_come_last(tmp_path: Path):
    write_recipe(tmp_path)
    recipe = read_recipe(
        write(tmp_path / "other.yaml", extends="recipe.yaml", seeds=[7]), ["train.lr=3"]
    )
    assert recipe.seeds == (7,)
    assert recipe.train["lr"] == 3


def test_a_list_is_added_to_that_of_the_recipe_below(tmp_path: Path):
    base = read_recipe(write_recipe(tmp_path))
    other = write(tmp_path / "other.yaml", extends="recipe.yaml", **{"metrics+": ["chrf", "bleu"]})
    more = [name for name in ("chrf", "bleu") if name not in base.score]
    assert more
    assert read_recipe(other).score == (*base.score, *more)
    assert read_recipe(other, ["seeds+=[7]"]).seeds == (*base.seeds, 7)
    with pytest.raises(OptionError, match=r"--set data\+=\[1\]: data\+ adds to a list data of"):
        read_recipe(other, ["data+=[1]"])
    for added, message in (
        (
            {"name+": ["x"]},
            r"wrong.yaml: name\+ adds to a list name of the recipe below, which has none",
        ),
        ({"score+": "bleu"}, r"wrong.yaml: score\+ is 'bleu'; it must be a list"),
    ):
        wrong = write(tmp_path / "wrong.yaml", extends="recipe.yaml", **added)
        with pytest.raises(OptionError, match=message):
            read_recipe(wrong)


def test_metrics_are_what_score_says(tmp_path: Path):
    write_recipe(tmp_path)
    other = write(tmp_path / "other.yaml", extends="recipe.yaml", metrics=["chrf"])
    assert read_recipe(other).score == ("chrf",)
    assert read_recipe(other, ["metrics=[bleu]"]).score == ("bleu",)
    both = write(tmp_path / "both.yaml", extends="recipe.yaml", metrics=["chrf"], score=["bleu"])
    with pytest.raises(InputError, match=r"both\.yaml: has metrics and score, which are one"):
        read_recipe(both)


def test_a_shipped_recipe_by_its_path_in_a_clone(tmp_path: Path, capsys, monkeypatch):
    """Where there is no clone, the name is told under which the recipe is found."""
    other = write(tmp_path / "other.yaml", extends="recipes/nmt/dependency.yaml", name="other")
    with pytest.raises(OptionError, match="comes with treesyntax is named nmt/dependency"):
        read_recipe(other)
    assert main(["study", "recipes/nmt/depend.yaml"]) == 2
    assert "is named" not in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert main(["study", "recipes/nmt/dependency.yaml"]) == 2
    assert "comes with treesyntax is named nmt/dependency" in capsys.readouterr().err


def test_of_several_the_later_win(tmp_path: Path):
    write_recipe(tmp_path)
    write(tmp_path / "a.yaml", train={"lr": 1, "dropout": 0.1})
    write(tmp_path / "b.yaml", train={"lr": 2})
    both = write(tmp_path / "both.yaml", extends=["recipe.yaml", "a.yaml", "b.yaml"])
    train = read_recipe(both).train
    assert (train["lr"], train["dropout"]) == (2, 0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": {"stack_pee": None}}, "methods below has no 'stack_pee'; did you mean 'stack_pe'?"),
        ({"train": {"max-updat": None}}, "train below has no 'max-updat'; did you mean 'max-update'?"),
        ({"train": {"lerning-rate": None}}, "train below has no 'lerning-rate'; it has max-update, lr"),
        ({"methods": {"stack_pe": {"tran": None}}}, "methods.stack_pe below has no 'tran'"),
        ({"methods": {"stack_pe": {"train": {"max-updat": None}}}},
         "methods.stack_pe.train.max-updat: null leaves nothing out, since no row has 'max-updat'; did you mean 'max-update'?"),
        ({"methods": {"stack_pe": {"generate": {"sampling": None}}}}, "no row has 'sampling'; take it out"),
        ({"vars": {"siz": None}}, "vars below has no 'siz'; did you mean 'size'?"),
        ({"vars": {"siz": 60}}, "vars.siz: nothing uses this variable; did you mean 'size'?"),
        ({"seed": None}, "the recipe below has no 'seed'; did you mean 'seeds'?"),
    ],
)  # fmt: skip
def test_a_misspelt_name_that_would_do_nothing_is_refused(
    changes: dict, message: str, tmp_path: Path
):
    write_recipe(tmp_path)
    other = write(tmp_path / "other.yaml", extends="recipe.yaml", **changes)
    with pytest.raises(InputError) as error:
        read_recipe(other)
    assert str(error.value).startswith(f"{other}: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"methods": {"stack_pe": {"train": {"max_update": None}, "controls": None}}},
        {"methods": {"stack_pe": {"train": {"log-interval": None}}}},  # the study sets it
        {"categories": None},
        {"vars": {"unlike": 60}},
        {"vars": {"sizes": "9"}, "title": "{sizes} pairs"},
    ],
)
def test_a_null_may_name_what_other_recipes_have(changes: dict, tmp_path: Path):
    write_recipe(tmp_path)
    read_recipe(write(tmp_path / "other.yaml", extends="recipe.yaml", **changes))


def test_null_without_extends_stays_a_flag_that_is_left_out(tmp_path: Path):
    recipe = read_recipe(write_recipe(tmp_path, generate={"beam": None}))
    assert recipe.generate == {"beam": None}


@pytest.mark.parametrize("own", [{}, {"dropout": 0.1}])
def test_null_leaves_out_of_a_row_what_all_rows_have(own: dict, tmp_path: Path):
    """Whatever the row below has of its own: it had done nothing where that was another flag."""
    rows = recipe_content()["methods"]
    path = write_recipe(tmp_path, methods={**rows, "stack_pe": {**rows["stack_pe"], "train": own}})
    change = {"methods": {"stack_pe": {"train": {"lr": None}}}}
    above = read_recipe(write(tmp_path / "other.yaml", extends="recipe.yaml", **change))
    for recipe in (above, read_recipe(path, ["methods.stack_pe.train.lr=null"])):
        flags = {row.name: recipe.flags(row, "train")["lr"] for row in recipe.methods}
        assert flags == {"sequence": 0.001, "relation_mask": 0.001, "stack_pe": None}
    taken = read_recipe(
        path, ["methods.stack_pe.train.dropout=0.3", "methods.stack_pe.train.dropout=null"]
    )
    assert "dropout" not in taken.methods[-1].train


@pytest.mark.parametrize("override", ["train.lerning-rate", "generate.bem", "vars.siz"])
def test_an_override_that_takes_nothing_away_is_refused(override: str, tmp_path: Path):
    path = write_recipe(tmp_path)
    with pytest.raises(OptionError, match=f"--set {override}=null: takes nothing away, since"):
        read_recipe(path, [f"{override}=null"])
    with pytest.raises(InputError, match="null leaves nothing out"):
        read_recipe(path, ["methods.stack_pe.train.lerning-rate=null"])


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ("other.yaml", "extends itself"),
        ("again.yaml", "extends itself"),
        (3, "extends is 3; give the name of a recipe file"),
        ("none.yaml", "none.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_extended_is_named(tmp_path: Path, extends: object, message: str):
    write(tmp_path / "again.yaml", extends="other.yaml")
    other = write(tmp_path / "other.yaml", extends=extends)
    with pytest.raises(InputError, match=message):
        read_recipe(other)


def test_titles_name_the_data_of_the_user():
    """As README of the recipes has it: the questions of mine.tsv in the recipe for GeoQuery."""
    recipe = ROOT / "recipes/semantic_parsing/geo.yaml"
    assert read_recipe(recipe).title == "GeoQuery: questions to logical forms"
    assert read_recipe(recipe, ["data=x/mine.tsv"]).title == "mine: questions to logical forms"
    named = read_recipe(recipe, ["data=x/mine/", "corpus=My questions"])
    assert named.title == "My questions: questions to logical forms"
    pairs = read_recipe(ROOT / "recipes/nmt/dependency.yaml", ["root=news", "source=fi"])
    assert pairs.title == "news: fi to de with dependency trees of the source"


PATHS = {
    "vars": {"root": "corpus", "kind": "train", "model": "en", "size": 8},
    "prepare": [
        "treesyntax generate pairs --train {root}/{kind}.src --model {model} --out {data}/p"
    ],
    "binarize": {"source-dict": "corpus/dict.txt", "workers": 1},
}


def test_paths_are_relative_to_the_recipe_before_the_shell(tmp_path: Path, monkeypatch):
    for folder in ("here/corpus", "here/train", "elsewhere/corpus"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "here/corpus/dict.txt").touch()
    write_recipe(tmp_path / "here", **PATHS)
    monkeypatch.chdir(tmp_path / "elsewhere")
    for path, root in (
        ("../here/recipe.yaml", "../here/corpus"),
        (tmp_path / "here/recipe.yaml", tmp_path / "here/corpus"),
    ):
        recipe = read_recipe(path)
        # The folder train beside the recipe is not what {kind} stands for inside a path.
        words = f"treesyntax generate pairs --train {root}/train.src --model en --out {{data}}/p"
        assert recipe.prepare == (words,)
        assert recipe.binarize["source-dict"] == f"{root}/dict.txt"
    (tmp_path / "here/corpus").rename(tmp_path / "here/gone")
    assert "--train corpus/train.src" in read_recipe("../here/recipe.yaml").prepare[0]
    typed = read_recipe("../here/recipe.yaml", ["root=gone"])
    assert "--train gone/train.src" in typed.prepare[0]


def test_a_resolved_recipe_keeps_its_paths(tmp_path: Path):
    path = write_recipe(tmp_path, **PATHS)
    (tmp_path / "corpus").mkdir()
    assert str(tmp_path / "corpus") in read_recipe(path).prepare[0]
    path.write_text(f"# resolved from there\n{path.read_text()}")
    assert "--train corpus/train.src" in read_recipe(path).prepare[0]


def test_paths_that_are_added_to_a_list_are_relative_to_the_recipe_too(tmp_path: Path, monkeypatch):
    (tmp_path / "below").mkdir()
    write_recipe(tmp_path / "below", **{"import": ["below.py"]})
    added = {"prepare+": ["cp raw.txt {data}/p/raw"], "import+": ["own.py"]}
    path = write(tmp_path / "above/recipe.yaml", extends="../below/recipe.yaml", **added)
    (path.parent / "raw.txt").touch()
    for folder, name in ((tmp_path, "above/recipe.yaml"), (path.parent, "recipe.yaml")):
        monkeypatch.chdir(folder)
        recipe = read_recipe(name)
        words = recipe.prepare[-1].split()
        assert Path(words[1]).resolve() == path.parent / "raw.txt"
        files = [tmp_path / "below/below.py", path.parent / "own.py"]
        assert [file.resolve() for file in recipe.own_files] == files


def over_folders(values: object, **vars_of_row: str) -> dict[str, object]:
    """A recipe with an axis of data folders, and a row with a folder of its own."""
    content = recipe_content()
    for side in ("source", "target"):
        content["data"][side]["test"] = "{root}/{kind}." + side
    content["methods"]["stack_pe"]["vars"] = vars_of_row
    axes = {"domain": {"vars.root": values, "vars.kind": ["test", "test"]}}
    variables = {"size": 8, "root": "law", "kind": "test"}
    return {key: content[key] for key in ("data", "methods")} | {"axes": axes, "vars": variables}


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["law", "news"], ["law", "news"]),
        (["data/law", "data/news"], ["data_law", "data_news"]),
        ({"a": "law", "b": "data/news"}, ["a", "b"]),
    ],
)
def test_rows_are_the_same_wherever_a_command_is_typed(
    values: object, labels: list[str], tmp_path: Path, monkeypatch
):
    """Names of rows said where that was, and a bare name of a folder was looked for there."""
    for folder in ("law", "news", "data/law", "data/news", "test"):
        (tmp_path / "here" / folder).mkdir(parents=True)
    write_recipe(tmp_path / "here", **over_folders(values))
    folders = [*values.values()] if isinstance(values, dict) else values
    for typed_in, name in (("here", "recipe.yaml"), (".", "here/recipe.yaml")):
        monkeypatch.chdir(tmp_path / typed_in)
        rows = read_recipe(name).methods[:2]
        assert [row.name for row in rows] == [f"sequence-domain={label}" for label in labels]
        tests = [Path(row.source.test).resolve() for row in rows]
        assert tests == [tmp_path / "here" / folder / "test.source" for folder in folders]


def test_a_variable_of_a_row_is_a_path_where_it_begins_words(tmp_path: Path, monkeypatch):
    content = over_folders(["law", "news"], root="news", kind="x.y")
    content["data"]["target"]["test"] = "law/test.target"
    (tmp_path / "here/news").mkdir(parents=True)
    (tmp_path / "here/x.y").touch()
    write_recipe(tmp_path / "here", **{key: content[key] for key in content if key != "axes"})
    monkeypatch.chdir(tmp_path)
    assert read_recipe("here/recipe.yaml").methods[-1].source.test == "here/news/x.y.source"


def test_a_variable_that_changes_nothing_is_refused(tmp_path: Path):
    """As that of a study's own recipe, which has the values in their places."""
    recipe = read_recipe(write_recipe(tmp_path))
    write_study(tmp_path / "out", recipe)
    other = write(tmp_path / "other.yaml", extends="out/recipe.yaml", vars={"size": 9})
    with pytest.raises(InputError, match=r"vars\.size: nothing uses this variable; it uses none"):
        read_recipe(other)
    axes = {"size": {"vars.size": [8, 9]}}
    rows = {"stack_pe": {"vars": {"size": 9}}}
    for changes in ({"axes": axes}, {"methods": rows}):
        other = write(tmp_path / "other.yaml", extends="out/recipe.yaml", **changes)
        with pytest.raises(OptionError, match="the recipe has no use for the variable size"):
            read_recipe(other)
    read_recipe(write(tmp_path / "other.yaml", extends="out/recipe.yaml", vars={"size": 8}))
    read_recipe(write(tmp_path / "other.yaml", extends="recipe.yaml", axes=axes))


def test_files_of_a_recipe_below_are_the_same_through_a_link(tmp_path: Path):
    """A path through the link of another folder led above where the link leads to."""
    (tmp_path / "below").mkdir()
    below = write_recipe(tmp_path / "below", **{"import": ["own.py"]})
    above = write(tmp_path / "deep/er/recipes/above.yaml", extends=str(below))
    (tmp_path / "link").symlink_to(above.parent)
    (file,) = read_recipe(tmp_path / "link/above.yaml").own_files
    assert file.resolve() == tmp_path / "below/own.py"
