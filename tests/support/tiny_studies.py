"""Three studies as small as can be, with the real programs: programs, logical forms, translation.

Each shows other parts of the report: trees on the source and their attention; a decoder that grows
trees; relation masks over words, with BLEU and chrF.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

import support.forked_programs as forked_programs
from treesyntax.jobs.processes import start as process_start

SPLITS = {"train": 60, "valid": 10, "test": 24}
SETTINGS = {
    "max-update": 12, "batch-size": 20, "lr": 0.003, "optimizer": "adam",
    "criterion": "label_smoothed_cross_entropy", "num-workers": 0, "log-interval": 2,
}  # fmt: skip
SEARCH = {"beam": 1, "max-len-a": 0, "max-len-b": 20, "num-workers": 0}


def recipe(name: str, title: str, data: dict, methods: dict, **others: object) -> dict:
    return {
        "name": name, "title": title, "question": "Does it help?", "data": data, "train": SETTINGS,
        "generate": SEARCH, "seeds": [1], "methods": methods, **others,
    }  # fmt: skip


def sides(source: str, target: str, folder: str, suffixes: tuple[str, str]) -> dict:
    return {
        role: {"lang": lang, **{split: f"{folder}/{split}.{suffix}" for split in SPLITS}}
        for role, lang, suffix in zip(("source", "target"), (source, target), suffixes, strict=True)
    }


def programs(folder: Path) -> dict:
    sizes = " ".join(f"--{split} {size}" for split, size in SPLITS.items())
    seen = {"source-format": "for", "source-view": "preorder"}
    return recipe(
        "tiny-programs", "FOR programs to LAMBDA programs",
        sides("for", "lambda", "{data}/p", ("for", "lambda")),
        {
            "sequence": {"arch": "tree_sequence_tiny", "binarize": seen},
            "paths": {
                "arch": "tree_sequence_tiny", "binarize": seen,
                "train": {"encoder-injection": "stack_pe(parameters=4)+relative_depth"},
            },
        },
        prepare=[f"treesyntax generate for2lam --out {{data}}/p {sizes} --size 6 --seed 1"],
        score=["exact", "tree:lambda"],
    )  # fmt: skip


def forms(folder: Path) -> dict:
    draw = random.Random(1)
    for split, size in SPLITS.items():
        states = [draw.choice(("texas", "ohio", "maine", "iowa")) for _ in range(size)]
        kinds = [draw.choice(("city", "river", "lake")) for _ in range(size)]
        pairs = [
            (f"which {kind} is in {state}", f"( lambda $0 e ( and ( {kind} $0 ) ( in $0 {state} ) ) )")
            if draw.random() < 0.5 else (f"how long is {state}", f"( length {state} )")
            for state, kind in zip(states, kinds, strict=True)
        ]  # fmt: skip
        for place, suffix in enumerate(("src", "tgt")):
            text = "".join(f"{pair[place]}\n" for pair in pairs)
            (folder / f"{split}.{suffix}").write_text(text)
    return recipe(
        "tiny-forms", "Questions to logical forms",
        sides("question", "form", str(folder), ("src", "tgt")),
        {
            "grown": {
                "arch": "tree_sequence_tiny", "binarize": {"target-view": "nary_dfs"},
                "train": {
                    "no-target-eos-loss": True,
                    "decoder-injection":
                        "stack_pe(tree='nary', degree=4, depth=8, parameters=4)+relation_mask",
                },
            }
        },
        binarize={"source-format": "text", "target-format": "sexpr"},
        score=["exact", "tree:sexpr", "f1:sexpr", "wellformed:sexpr"],
    )  # fmt: skip


WORDS = {"the": "den", "a": "en", "old": "gamla", "cat": "katten", "dog": "hunden",
         "sees": "ser", "hears": "hör"}  # fmt: skip


def translation(folder: Path) -> dict:
    draw = random.Random(2)
    for split, size in SPLITS.items():
        sentences = [_clause(draw) for _ in range(size)]
        blocks = (
            "".join(f"{row}\n" for row in _conllu(words, heads)) for words, heads in sentences
        )
        (folder / f"{split}.conllu").write_text("\n".join(blocks) + "\n")
        lines = (" ".join(WORDS[word] for word in words) for words, _ in sentences)
        (folder / f"{split}.sv").write_text("".join(f"{line}\n" for line in lines))
    seen = {"source-format": "conllu", "source-view": "words"}
    return recipe(
        "tiny-translation", "English to Swedish",
        sides("en", "sv", str(folder), ("conllu", "sv")),
        {
            "sequence": {"arch": "tree_sequence_tiny", "binarize": seen},
            "relation_mask": {"arch": "tree_relation_mask_tiny", "binarize": seen},
        },
        score=["bleu", "chrf"],
        train={**SETTINGS, "save-interval-updates": 4, "keep-interval-updates": 9},
        average=2,
    )  # fmt: skip


def _clause(draw: random.Random) -> tuple[list[str], list[int]]:
    """Words and the number of each one's head: subject, verb, object."""
    words: list[str] = []
    nouns = []
    for _ in range(2):
        phrase = [draw.choice(("the", "a")), *["old"] * draw.randrange(3)]
        words += [*phrase, draw.choice(("cat", "dog"))]
        nouns.append(len(words))
        if len(nouns) == 1:
            words.append(draw.choice(("sees", "hears")))
    verb = nouns[0] + 1
    heads = [
        0 if place == verb else verb if place in nouns else next(n for n in nouns if n > place)
        for place in range(1, len(words) + 1)
    ]
    return words, heads


def _conllu(words: list[str], heads: list[int]) -> list[str]:
    return [
        f"{place}\t{word}\t_\tX\t_\t_\t{head}\t{'root' if not head else 'dep'}\t_\t_"
        for place, (word, head) in enumerate(zip(words, heads, strict=True), start=1)
    ]


SHADOWS = ("analysis.py", "random.py", "test.py", "treesyntax.py")
"""Files of the user that Python would import instead of modules, were the working folder on its path."""
STUDIES = {"programs": programs, "forms": forms, "translation": translation}


def start_each_program_once() -> Callable[..., Any]:
    """Starts a program as a process of its own the first time, and as a fork from then on."""
    started = set()

    def start(words: Sequence[str], *others: Any) -> Any:
        forks = words[3] in started
        started.add(words[3])
        return (forked_programs.start if forks else process_start)(words, *others)

    return start


def run_study(name: str, folder: Path) -> Path:
    """Run one of `STUDIES` in a folder as users may have it; returns that of its results."""
    data, out = folder / "data", folder / "out"
    data.mkdir()
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump(STUDIES[name](data), sort_keys=False))
    for shadow in SHADOWS:
        (folder / shadow).write_text(f"raise ImportError('{shadow} of the working folder')\n")
    start = start_each_program_once() if name == "forms" else forked_programs.start
    served = name == "programs"
    forked_programs.treesyntax(folder, "study", path, "--out", out, start=start, preload=served)
    return out
