"""The README and the pages that it leads to: the code works as printed, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support import ROOT
from support.bridges.tiny_models import make, tokenizer

from treesyntax.__main__ import main
from treesyntax.parsers import stanza_parser
from treesyntax.study.recipe.recipe import read_recipe

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "recipes").glob("*/*.md")]
(MODEL,) = re.findall(r"```python\n(.*?)```", README, re.S)


def test_it_is_short():
    assert sum(bool(re.search(r"\w", word)) for word in README.split()) <= 600


def test_the_hugging_face_model_of_the_readme(monkeypatch: pytest.MonkeyPatch):
    """As printed, with a tiny model and tokenizer in place of BERT."""
    import transformers

    for name, made in (
        ("AutoTokenizer", tokenizer(["the cat sat", "a dog barked"])),
        ("AutoModelForSequenceClassification", make("Bert", "ForSequenceClassification")),
    ):
        monkeypatch.setattr(
            getattr(transformers, name), "from_pretrained", lambda *_, made=made, **__: made
        )
    names: dict = {}
    exec(MODEL, names)
    names["loss"].backward()
    own = [one for name, one in names["bridge"].named_parameters() if "trees." in name]
    assert own
    assert all(one.grad is not None for one in own)
    assert len(MODEL.strip().splitlines()) - MODEL.strip().count("\n\n") <= 12


@pytest.mark.usefixtures("quick_flags")
def test_a_study_of_own_data_is_planned_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    pairs = "".join(f"who sleeps {number}\t(sleeps x)\n" for number in range(40))
    (tmp_path / "pairs.tsv").write_text(pairs, encoding="utf-8")
    (tmp_path / "corpus").mkdir()
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            (tmp_path / f"corpus/{split}.{language}").write_text("words\n")
    blocks = [block.replace("\\\n", "") for block in re.findall(r"```bash\n(.*?)```", README, re.S)]
    pairs, parallel = (
        [
            words[1:]
            for line in block.splitlines()
            if (words := shlex.split(line, comments=True))[:1] == ["treesyntax"]
        ]
        for block in blocks
    )
    new, plan, first = pairs
    assert main(new) == 0
    assert f"treesyntax {shlex.join(first)}\n" in capsys.readouterr().out
    assert main(plan) == 0
    assert re.search(
        r"nary_dfs +0 of 3 runs done  grows the form as a tree", capsys.readouterr().out
    )
    assert main([*first, "--dry-run"]) == 0
    assert "--data pairs.tsv --out runs/my/data/questions" in capsys.readouterr().out
    monkeypatch.setattr(stanza_parser, "_home", lambda: tmp_path)
    new, parse, study, _ = parallel
    assert main(new) == 0
    assert f"treesyntax {shlex.join(study)}\n" in capsys.readouterr().out
    assert main([*study, "--plan"]) == 2  # the line before it downloads the model
    assert "there is no stanza-dep model 'en'" in capsys.readouterr().err
    (tmp_path / "en/depparse").mkdir(parents=True)
    assert main([*study, "--plan"]) == 0
    assert re.search(r"relation_mask +0 of 3 runs done", capsys.readouterr().out)
    assert main([*study, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "treesyntax parse runs/mt/data/text/valid.en" in printed
    for words in (parse, ["--parser", "stanza-dep", "--model", "en"]):
        assert set(words) - {"parse", "valid.trees", "corpus/valid.en", "--download"} <= set(
            printed.split()
        )


def anchors(page: Path) -> set[str]:
    """What links into a page may name: its titles as GitHub and MkDocs write them, and names of its own."""
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.S)
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    slugs = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_titles(page: Path):
    gone = []
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        if "://" in link:
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            gone.append(link)
    assert not gone


def test_the_recipe_for_code_to_code_is_read(tmp_path: Path):
    page = (ROOT / "docs/which-method.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.S)
    (tmp_path / "code.yaml").write_text(text, "utf-8")
    recipe = read_recipe(tmp_path / "code.yaml")
    assert [row.name for row in recipe.methods] == ["sequence", "tree2tree", "tree2tree/random"]
    assert {Path(row.source.train).name for row in recipe.methods} == {"train.for"}
    assert recipe.prepare in ([], ())
