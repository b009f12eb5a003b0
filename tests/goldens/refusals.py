"""Command lines that are refused, and the files that they name."""

from __future__ import annotations

from pathlib import Path

import yaml
from support.study_helpers import recipe_content

FILES = {
    "a.txt": "one two\nthree\n",
    "b.txt": "one two\n",
    "latin.txt": b"caf\xe9\n",
    "bad.ptb": "(S (NP the)\n",
    "good.ptb": "(S (NP (DT the)) (VP sleeps))\n",
    "words.ptb": "(S (A one) (B two))\n(S (A three))\n",
    "bad.conllu": "1\tthe\t_\t_\t_\t_\tx\t_\t_\t_\n\n",
    "loop.conllu": "1\ta\t_\t_\t_\t_\t2\tx\t_\t_\n2\tb\t_\t_\t_\t_\t1\tx\t_\t_\n\n",
    "a.sexpr": "( f x\n",
    "b.sexpr": "( f x )\n",
    "empty.txt": "",
    "checkpoint.pt": "no checkpoint\n",
    "results.jsonl": "{}\n",
    "items.jsonl": "{}\n",
    "map.csv": "a,b\n1,2\n",
    "broken.yaml": "name: [\n",
    "list.yaml": "- a\n",
}
CHANGES: dict[str, dict[str, object]] = {
    "noname": {"name": ""},
    "unknown": {"wrong": 1},
    "seeds": {"seeds": [1, 1]},
    "noseeds": {"seeds": []},
    "score": {"score": ["nothing"]},
    "score2": {"score": ["tree:nothing"]},
    "primary": {"primary": "bleu"},
    "method": {"methods": {"a": {"arch": "tree_sequence_mini", "wrong": 1}}},
    "noarch": {"methods": {"a": {}}},
    "rowname": {"methods": {"a b/c": {"arch": "tree_sequence_mini"}}},
    "flag": {"train": {"no-such-flag": 1}},
    "seedflag": {"train": {"seed": 3}},
    "average": {"average": 8},
    "average2": {"average": -1},
    "average3": {"average": "many"},
    "baseline": {"baseline": "nobody"},
    "prepare": {"prepare": ["echo 'x"]},
    "prepare2": {"prepare": [1]},
    "axes": {"axes": {"x": {}}},
    "axes2": {"axes": {"x": {"vars.unknown": [1, 2]}}},
    "import": {"import": "nothing.py"},
    "extends": {"extends": "nothing.yaml"},
    "vars": {"vars": {"size": [1]}},
    "data": {"data": {"source": {"lang": "a"}}},
    "lang": {"data": {**recipe_content()["data"], "target": recipe_content()["data"]["source"]}},
    "categories": {"categories": "nothing.txt"},
    "unfair": {
        "methods": {
            "sequence": {"arch": "tree_sequence_mini"},
            "other": {"arch": "tree_sequence_mini", "train": {"lr": 1}},
        }
    },
    "format": {"methods": {"a": {"arch": "tree_stack_pe_mini", "binarize": {"source-format": "x"}}}},
    "beam": {"generate": {"beam": 0}},
}  # fmt: skip
REFUSALS = [
    "nothing",
    "study",
    "study nothing.yaml",
    "study broken.yaml",
    "study list.yaml",
    *(f"study {name}.yaml --dry-run" for name in CHANGES),
    "study fine.yaml --jobs 0",
    "study fine.yaml --dry-run --set size",
    "study fine.yaml --dry-run --set nothing=1",
    "study fine.yaml --dry-run --only nobody",
    "study fine.yaml --retries -1",
    "study fine.yaml --gpus 0,0",
    "study fine.yaml --out a.txt",
    "study fine.yaml --out folder",
    "report nothing",
    "report folder",
    "report items.jsonl",
    "report map.csv",
    "report folder folder",
    "report folder --out x",
    "score --reference a.txt --hypothesis b.txt --metric exact",
    "score --reference a.txt --hypothesis a.txt --metric nothing",
    "score --reference nothing.txt --hypothesis a.txt --metric exact",
    "score --reference latin.txt --hypothesis a.txt --metric exact",
    "score --reference empty.txt --hypothesis empty.txt --metric exact",
    "score --reference a.sexpr --hypothesis b.sexpr --metric tree:sexpr",
    "score --reference a.txt --hypothesis a.txt --metric exact:unseen",
    "generate",
    "generate nothing",
    "generate for2lam --out new",
    "generate for2lam --out new --train -1",
    "generate for2lam --out folder --train 1",
    "generate for2lam --out new --train 2 --small-train 3",
    "generate for2lam --out new --train 2 --length 20",
    "generate split --source a.txt --target b.txt --out new --valid 1",
    "generate split --source a.txt --target a.txt --out new --valid 9",
    "generate pairs --train a.txt b.txt --valid a.txt a.txt --test a.txt a.txt --langs x y --out new",
    "generate pairs --langs x x --train a.txt a.txt --valid a.txt a.txt --test a.txt a.txt --out new",
    "generate questions --data nothing --out new",
    "data get nothing new",
    "data get slog new --from nothing",
    "data get scan_length new --seed -1",
    "data get listops folder",
    "inspect nothing.ptb",
    "inspect bad.ptb",
    "inspect bad.conllu",
    "inspect loop.conllu",
    "inspect nothing --split nothing",
    "methods nothing",
    "new a-b",
    "recipes copy nothing",
    "parse a.txt new.ptb --parser nothing --model x",
    "parse nothing.txt new.ptb --parser stanza-con --model x",
    "average nothing --last 2 --out new.pt",
    "average folder --last 2 --out new.pt",
    "average folder --last 0 --out new.pt",
    "analyse",
    "analyse nothing",
    "analyse facts nothing.pt",
    "analyse facts checkpoint.pt",
    "analyse run folder nothing --out new",
    "translate nothing --path checkpoint.pt --input a.txt",
    "translate folder --path nothing.pt --input a.txt",
    *(
        f"binarize new --train {a} {b} --valid {a} {b} --test {a} {b} --source-lang x --target-lang y{flags}"
        for a, b, flags in (
            ("a.txt", "b.txt", ""),
            ("a.txt", "nothing.txt", ""),
            ("empty.txt", "empty.txt", ""),
            ("latin.txt", "a.txt", ""),
            ("bad.ptb", "b.txt", " --source-format ptb"),
            ("bad.conllu", "b.txt", " --source-format conllu"),
            ("loop.conllu", "b.txt", " --source-format conllu"),
            ("good.ptb", "b.txt", " --source-format nothing"),
            ("good.ptb", "b.txt", " --source-format ptb --source-linearization nothing"),
            ("words.ptb", "b.txt", " --source-format ptb"),
            ("b.txt", "a.sexpr", " --target-format sexpr --target-linearization nary_dfs"),
            ("a.txt", "a.txt", " --workers 0"),
            ("a.txt", "a.txt", " --source-threshold -1"),
            ("a.txt", "a.txt", " --source-control random"),
            ("a.txt", "a.txt", " --source-subword-model nothing.model"),
            ("a.txt", "a.txt", " --source-dict a.txt --source-threshold 2"),
            ("a.txt", "a.txt", " --joined-dictionary --source-dict b.txt"),
            ("a.txt", "a.txt", " --subword-vocab 8000"),
        )
    ),
]


def write_files(folder: Path) -> None:
    """Write what the command lines name."""
    for name, text in FILES.items():
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    (folder / "folder").mkdir()
    (folder / "folder/file.txt").write_text("a\n")
    for name, changes in {"fine": {}, **CHANGES}.items():
        content = {**recipe_content(), **changes}
        content["train"] = {"batch-size": 4, **content["train"]}
        text = yaml.safe_dump(content, sort_keys=False)
        (folder / f"{name}.yaml").write_text(text)
