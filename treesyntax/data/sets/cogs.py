"""COGS and SLOG: English sentences to logical forms, with the trees of the sentences."""

from __future__ import annotations

from collections.abc import Iterable

from treesyntax.data.sets.base import DataSet, Input, Part, Texts, brackets
from treesyntax.data.sets.english import parse
from treesyntax.data.sets.reading import rows_of, unzipped
from treesyntax.errors import InputError, TreeError
from treesyntax.trees.formats.base import Format, Record, parse_record
from treesyntax.trees.formats.cogs import COGS, without_variables
from treesyntax.trees.formats.cogs_varfree import COGS_VARFREE

_COGS = "https://raw.githubusercontent.com/najoungkim/COGS/165a7b669eade971fa47bf568a2e51925360fed8/data/"
_SLOG = "https://raw.githubusercontent.com/bingzhilee/SLOG/1c55df85006d58b842520c79dcb8e1b43df2836f/data/"
_PASSWORD = "SLOG"
"""From its authors' README; it keeps the sets out of corpora that are crawled."""
_GENERALISATION = "generalization_sets/gen_varfreeLF.tsv"


def _examples(rows: Iterable[list[str]], name: str, notation: Format) -> Part:
    examples = Part()
    for number, (sentence, form, category) in enumerate(rows, start=1):
        parse_record(
            notation, name, Record(number, form)
        )  # a check; spaces are single ones already
        try:
            source = brackets(parse(sentence))
        except TreeError as error:
            raise InputError(name, number, error.cause, error.remedy) from None
        examples.add(sentence, form, source, category)
    return examples


def _slog(texts: Texts, _: int) -> dict[str, Part]:
    files = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv"}
    archive = "generalization_sets.zip"
    hard = unzipped(texts[archive], archive, _GENERALISATION, _PASSWORD)
    contents = {split: (name, texts[name]) for split, name in files.items()}
    contents["gen"] = (_GENERALISATION, hard)
    return {
        split: _examples(rows_of(content, name, 3), name, COGS_VARFREE)
        for split, (name, content) in contents.items()
    }


def _cogs(texts: Texts, _: int) -> dict[str, Part]:
    files = {"train": "train.tsv", "valid": "dev.tsv", "test": "test.tsv", "gen": "gen.tsv"}
    return {
        split: _examples(rows_of(texts[name], name, 3), name, COGS) for split, name in files.items()
    }


def _cogs_varfree(texts: Texts, seed: int) -> dict[str, Part]:
    """COGS with the forms of SLOG; those of single words are the words themselves."""
    splits = _cogs(texts, seed)
    for examples in splits.values():
        examples.targets = [
            source if len(source.split()) == 1 else _free(target)
            for source, target in zip(examples.sources, examples.targets, strict=True)
        ]
    return splits


def _free(form: str) -> str:
    return COGS_VARFREE.write(without_variables(COGS.parse(form)))


_COGS_INPUTS = tuple(
    Input((name,), _COGS + name, sha256)
    for name, sha256 in {
        "train.tsv": "220b3804b562c0156ee986eff1bdd15c27e52142549362a64f57baf86e304c78",
        "dev.tsv": "ab66388a309c7ac1ad210c781a6a0ce12281a9ef24619a12422a752cef61bc21",
        "test.tsv": "68f8e51e9f6d9cd22d64efe68dd21d7ea5ba327e9a2359481030161aea757035",
        "gen.tsv": "d013d9eee0bafc153f8decc85f42814ac97260f84964d980e1e2b84577b82361",
    }.items()
)
_SLOG_INPUTS = tuple(
    Input((name.rpartition("/")[2], name), _SLOG + name, sha256)
    for name, sha256 in {
        "varfree_LF/train.tsv": "0afc442d1cfca446a3c356c58e979df631d19f863b62edd2c4d6cc70a34e0778",
        "varfree_LF/dev.tsv": "8677b6b92f9649e74f9e99c2affc9a8a0c4810a612dd32fcd1b45448ca3647f9",
        "varfree_LF/test.tsv": "2f2942a345507ef6af5885ccde48f08bf32a1dd2ba0e19da371d4bbd40b90644",
        "generalization_sets.zip": "99a13618b033b9f5721107f4c163d035d92a2fee340b217a5a1f6abc63842647",
    }.items()
)
_KIM = "Kim & Linzen 2020, COGS: A Compositional Generalization Challenge Based on Semantic Interpretation"
SLOG = DataSet(
    "slog", "English to variable-free forms: structures deeper or elsewhere than in training", "MIT",
    "Li et al. 2023, SLOG: A Structural Generalization Benchmark for Semantic Parsing",
    _slog, _SLOG_INPUTS, "gen has 17 categories of 1,000",
)  # fmt: skip
COGS_SET = DataSet(
    "cogs", "English to forms with variables: new words and structures", "MIT", _KIM,
    _cogs, _COGS_INPUTS, "gen has 21 categories of 1,000",
)  # fmt: skip
COGS_VARFREE_SET = DataSet(
    "cogs_varfree", "the same with the variable-free forms of SLOG", "MIT", _KIM,
    _cogs_varfree, _COGS_INPUTS,
    "forms are computed from those of COGS", home="cogs",
)  # fmt: skip
