"""The keys of a recipe as a user meets them: type, default, an example, what a change of it does.

``docs/recipe-keys.md`` is written from this table, and a test reads every example and compares the keys with those
that recipes are checked for.
"""

from __future__ import annotations

from typing import NamedTuple

REQUIRED = "required"
NONE = "none"

REPORT = "the report"
SCORES = "scores"
OUTPUTS = "outputs and scores"
TRAINING = "trains the rows that use it"
DATA = "prepares data and trains"
ROWS = "trains new rows"


class Key(NamedTuple):
    """A key of a recipe.

    Attributes:
        type: what its value is.
        default: the value without it, or `REQUIRED`.
        example: a value, as YAML.
        changes: what a study does anew after an edit of it.
        meaning: what it says, in a sentence.
    """

    type: str
    default: str
    example: str
    changes: str
    meaning: str


KEYS: dict[str, Key] = {
    "extends": Key(
        "name, or list of names", NONE, "nmt/dependency", "what differs",
        "Recipes to begin with: files beside this one, or those of `treesyntax recipes`; later ones lie over earlier ones.",
    ),
    "import": Key(
        "file, or list of files", NONE, "shared_ancestors.py", "refuses to mix runs of other code",
        "Python files with methods of your own, relative to the recipe.",
    ),
    "name": Key("text", REQUIRED, "my-study", "a new folder", "The folder of the study, `runs/NAME`."),
    "title": Key("text", REQUIRED, "English to Swedish", REPORT, "The title of the report."),
    "question": Key(
        "text", '""', "Do masks over dependency trees help?", REPORT, "What the study is to answer."
    ),
    "vars": Key(
        "mapping of text", "{}", "{size: small, root: corpus}", "what uses the variable",
        "Variables: `{size}` in any text stands for the value.",
    ),
    "prepare": Key(
        "list of commands", "[]",
        '["treesyntax data make for2lam --out {data}/programs --train 100 --valid 10 --test 10"]', DATA,
        "Commands that make the data, in a folder `{data}` of the study.",
    ),
    "data": Key(
        "mapping", REQUIRED,
        "{source: {lang: en, train: a.en, valid: b.en, test: c.en}, target: {lang: sv, train: a.sv, valid: b.sv, test: c.sv}}",
        DATA, "For `source` and `target` the language and the three files.",
    ),
    "binarize": Key(
        "flags", "{}", "{source-format: conllu, source-view: words}", DATA,
        "Flags of `treesyntax binarize` for all rows.",
    ),
    "train": Key(
        "flags", REQUIRED, "{max-update: 3000, batch-size: 64, lr: 0.001}", TRAINING,
        "Flags of `fairseq-train` for all rows; `patience` lets trainings end by themselves.",
    ),
    "generate": Key("flags", "{}", "{beam: 1, batch-size: 100}", OUTPUTS, "Flags of `fairseq-generate` for all rows."),
    "score": Key(
        "list of metrics", REQUIRED, '[bleu, chrf]', SCORES,
        "The metrics, see `treesyntax score`; `metrics` is another name of this key.",
    ),
    "seeds": Key("list of numbers", REQUIRED, "[1, 2, 3, 4, 5]", "trains new seeds", "One run of every row for each."),
    "methods": Key(
        "mapping of rows", REQUIRED, "{sequence: {arch: tree_sequence_small}}", ROWS,
        "The rows of the table by name; the first is the baseline unless `baseline` names another.",
    ),
    "analyses": Key("true or false", "true", "false", "analyses", "Whether each run is analysed, some ten seconds each."),
    "average": Key(
        "number", "0", "8", OUTPUTS, "How many of the last checkpoints are averaged to be tested; 0 tests the best one."
    ),
    "axes": Key(
        "mapping of axes", "{}", "{pairs: {vars.pairs: [1000, 4000]}}", ROWS,
        "Options that vary, as a grid; rows are named after their values.",
    ),
    "baseline": Key("row", "the first row", "sequence", REPORT, "The row that others are compared with."),
    "budget": Key(
        "rest, fixed", "rest", "fixed", REPORT,
        "`rest`: comparisons of runs that were still learning have no mark. `fixed`: the question is what so many updates bring.",
    ),
    "categories": Key("file", NONE, "test.categories", SCORES, "The category of each test line, to score each by itself."),
    "differences": Key(
        "mapping", "{}", "{train.lr: the paper has a rate of its own for encodings}", REPORT,
        "Why rows differ in an option that should be the same; without a reason they are refused.",
    ),
    "primary": Key("metric", "the first of score", "bleu", REPORT, "The metric that decides, and that p is corrected in."),
    "search": Key(
        "mapping", NONE, "{over: {train.lr: [0.001, 0.002]}}", "new trials, then trains",
        "Settings found on validation data before the runs, see below.",
    ),
    "skip": Key(
        "allowed, refused", "refused", "allowed", DATA,
        "Whether pairs that some row cannot use are left out of all rows.",
    ),
    "trainer": Key(
        "fairseq, huggingface", "fairseq", "fairseq", ROWS,
        "What trains: models from scratch, or pretrained models of Hugging Face, see [pretrained models](pretrained.md).",
    ),
    "model": Key(
        "folder or name", NONE, "bert-base", TRAINING, "The pretrained model, for `trainer: huggingface`."
    ),
    "task": Key(
        "name", NONE, "seq2seq", DATA,
        "For `trainer: huggingface`: `sequence-classification`, `token-classification`, `seq2seq` or `causal`.",
    ),
    "strongest": Key(
        "list of rows", "[]", "[sequence]", REPORT, "Plain rows; the map compares with the best of them on each test set."
    ),
    "train-on": Key(
        "number from 1 on", "1", "2", "trains on",
        "How many times the updates and epochs of the recipe trainings may go on, as `--train-on`.",
    ),
}  # fmt: skip
"""The keys of a recipe."""

METHOD_KEYS: dict[str, Key] = {
    "arch": Key(
        "name", "required, unless `like` gives it", "tree_relation_mask_small", TRAINING, "The architecture: `tree_METHOD_SIZE`."
    ),
    "like": Key(
        "row", NONE, "sequence", ROWS,
        "A row to take everything from but its `about` and `controls`; what this row says itself counts.",
    ),
    "about": Key("text", '""', "masks by relation in the tree", REPORT, "What the row is, in a phrase."),
    "controls": Key(
        "list", "[]", "[random]", ROWS,
        "Rows over trees without syntax: `random`, `flat`, `right_branching`, `shuffled`, or the name of a row.",
    ),
    "binarize": Key("flags", "{}", "{source-format: conllu}", DATA, "Flags of `treesyntax binarize` for this row."),
    "train": Key(
        "flags", "{}", "{encoder-injection: stack_pe+relation_mask}", TRAINING, "Flags of `fairseq-train` for this row."
    ),
    "generate": Key("flags", "{}", "{beam: 1}", OUTPUTS, "Flags of `fairseq-generate` for this row."),
    "vars": Key("mapping of text", "{}", "{size: tiny}", "what uses the variable", "Values of variables in this row."),
    "data": Key(
        "mapping", "{}", "{source: {train: a.conllu, valid: b.conllu, test: c.conllu}}", DATA,
        "Other trees of the same source text.",
    ),
    "at": Key(
        "mapping of labels", "{}", "{pairs: [1000]}", ROWS, "The points of an axis at which the row stands; all without it."
    ),
}  # fmt: skip
"""The keys of a row, below ``methods.NAME``."""

PRETRAINED_ROW_KEYS: dict[str, Key] = {
    "injection": Key(
        "methods, joined by +", "none: a plain row", "relation_mask+tree_distance", TRAINING,
        "The methods in the pretrained model.",
    ),
    "model": Key("folder or name", "that of the recipe", "bert-large", TRAINING, "Another pretrained model for this row."),
    "train": Key(
        "settings", "{}", "{learning_rate: 0.00003}", TRAINING, "Settings of training for this row, as those of the recipe."
    ),
    "generate": Key(
        "settings", "{}", "{num_beams: 4}", OUTPUTS, "Settings of transformers' `generate` for this row."
    ),
    **{name: METHOD_KEYS[name] for name in ("about", "controls", "vars", "at")},
}  # fmt: skip
"""The keys of a row with ``trainer: huggingface``; it has no ``arch``, and may have none of these."""

PRETRAINED_DATA_KEYS: dict[str, Key] = {
    "train": Key("file", REQUIRED, "train.jsonl", DATA, "Examples to train on: JSON lines, `.tsv`, CoNLL-U or plain lines."),
    "valid": Key("file", "required without `hold-out`", "valid.jsonl", DATA, "Examples to validate on."),
    "test": Key("file", REQUIRED, "test.jsonl", DATA, "Examples to test on."),
    "hold-out": Key("number", "0", "500", DATA, "So many examples of train to validate on, in place of `valid`."),
    "format": Key("format of trees", "heads, or what the file is", "ptb", DATA, "How the trees of examples are written."),
    "columns": Key("mapping", "the names of ours", "{text: sentence, label: class}", DATA, "Names of columns in your files."),
    "header": Key("list of names", "the first line", "[label, text, tree]", DATA, "Names of the columns of a `.tsv` without header."),
    "each": Key("column", NONE, "aspects", DATA, "A list in each line, every entry of which is an example."),
    "trees": Key(
        "files of each set", NONE, "{train: train.ptb, valid: valid.ptb, test: test.ptb}", DATA,
        "Trees in files of their own, a line an example.",
    ),
    "targets": Key(
        "files of each set", NONE, "{train: train.de, valid: valid.de, test: test.de}", DATA,
        "Texts to write, in files of their own.",
    ),
    "parser": Key(
        "flags of `treesyntax parse`", NONE, '"--parser stanza-dep --model FOLDER"', DATA, "Makes the trees, in `format`; not with `trees`."
    ),
}  # fmt: skip
"""The keys below ``data`` with ``trainer: huggingface``."""

SEARCH_KEYS: dict[str, Key] = {
    "over": Key(
        "mapping", REQUIRED, "{train.lr: [0.001, 0.002], train.dropout: [0.1, 0.3]}", "new trials",
        "Flags of training with their values: lists, or ranges `{log: [LOW, HIGH]}` and `{uniform: [LOW, HIGH]}`.",
    ),
    "kind": Key("grid, random", "grid", "random", "new trials", "All combinations, or as many draws as `trials` says."),
    "trials": Key("number", "all of a grid", "2", "new trials", "How many settings each row tries; needed for `random`."),
    "seed": Key("number", "1", "7", "new trials", "What random draws start from; for `kind: random` alone."),
    "metric": Key(
        "loss, nll_loss, ppl, accuracy", "loss", "accuracy", "the choice", "What decides, on the validation set."
    ),
    "seeds": Key("list of numbers", "the first of seeds", "[1, 2]", "new trials", "Seeds of the trials; the mean decides."),
    "train": Key("flags", "{}", "{max-update: 500}", "new trials", "Flags of the trials alone, for all rows."),
}  # fmt: skip
"""The keys of ``search``."""
