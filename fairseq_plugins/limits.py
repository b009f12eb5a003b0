"""What cannot be: options that are refused, and warnings of what a search or an encoding cannot hold."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fairseq import utils
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.data import data_utils
from fairseq.data.data_utils import collate_tokens
from fairseq.dataclass.configs import GenerationConfig
from torch import Tensor, nn

from fairseq_plugins.dataset import TreePairDataset
from treesyntax.data.limits import (
    MOST_A,
    RANGE_OF_A,
    TOO_MANY,
    PathTree,
    large_trees,
    long_references,
)
from treesyntax.data.tree_store import TreeStore
from treesyntax.errors import OptionError, unknown_name
from treesyntax.files import check_path
from treesyntax.jobs.flags import Fault
from treesyntax.methods import METHODS
from treesyntax.methods.encodings.stack_pe import StackEncoding
from treesyntax.model.blindness import LOOKED_AT
from treesyntax.model.bracket_growth import GrowingBrackets
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.tree_batch import NO_NODE, TreeBatch, batch_trees
from treesyntax.trees.controls import LABEL, RANDOM, control_tree
from treesyntax.trees.tree import Tree

logger = logging.getLogger(__name__)
CHUNK = 256
"""Target trees that are grown at once."""
CRITERIA = (
    "cross_entropy",
    "label_smoothed_cross_entropy",
    "label_smoothed_cross_entropy_with_rdrop",
)
"""Of fairseq's own those for logits over a dictionary; others ask for an adaptive softmax, attention
weights, CTC or speech, and end in an assertion."""
LOSSES = ("loss", "nll_loss", "ppl")
"""What a validation reports that is the better the lower it is."""
SCORES = {
    "accuracy": "add --report-accuracy, which the criteria with label smoothing have",
    "bleu": "add --eval-bleu",
}
"""What is the better the higher it is, and how a validation comes to report it."""
CLEAR = (
    "Size of sample", "Index file doesn't match", "--sampling", "--temperature",
    "Provided Search parameters are mutually exclusive", "min_len cannot be larger than max_len",
)  # fmt: skip
"""How messages of fairseq begin that say what to do."""
BEAM = 5
"""fairseq's default."""
OUT_OF_MEMORY = ("out of memory", "can't allocate memory")
LONGEST = 200
"""Characters of a wrong setting that a message shows."""


def tell_limits(datasets: Mapping[str, TreePairDataset], models: Sequence[Any], args: Any) -> None:
    """Warn of references that no output can reach and of trees that encodings cut.

    Args:
        datasets: what is loaded, by split; none where sentences come one by one.
        models: those that search together.
        args: fairseq's options of the search.
    """
    for split, dataset in datasets.items():
        pairs, notes = dataset.dataset, set()
        if pairs.tgt_sizes is not None:
            positions = min(model.max_decoder_positions() for model in models)
            a, b = getattr(args, "max_len_a", 0), getattr(args, "max_len_b", 200)
            notes.add(long_references(pairs.src_sizes, pairs.tgt_sizes, a, b, positions))
        for side in ("source", "target"):
            for limits, model in _encodings(models, side).items():
                trees = _source_trees(dataset) if side == "source" else _target_trees(pairs, model)
                notes.add(large_trees(trees, *limits, side))
        for note in sorted(notes - {""}):
            logger.warning("%s: %s", split, note)


def _encodings(models: Sequence[Any], side: str) -> dict[tuple[int, int, bool], Any]:
    """The different limits of the stack encodings of one side, each with a model that has it."""
    encodings = {}
    for model in models:
        side_model: nn.Module = model.encoder if side == "source" else model.decoder
        for module in side_model.modules():
            if isinstance(module, StackEncoding) and module.tree in ("lcrs", "nary"):
                encodings[module.depth, module.degree, module.tree == "lcrs"] = model
    return encodings


def _source_trees(dataset: TreePairDataset) -> Iterator[PathTree]:
    store = dataset.store
    for tree in () if store is None else map(store.__getitem__, range(len(store))):
        yield tree.parents.tolist(), tree.branches.tolist()


def _target_trees(pairs: Any, model: Any) -> Iterator[PathTree]:
    """The trees that the references grow."""
    growing: GrowingTrees | GrowingBrackets = model.decoder.trees
    number = 0 if pairs.tgt is None else len(pairs)
    for start in range(0, number, CHUNK):
        tokens = decoder_input(pairs, range(start, min(start + CHUNK, number)))
        tree = growing.grow(tokens.to(growing.labels.device)).tree
        yield from zip(tree.parent.tolist(), tree.branch.tolist(), strict=True)


def decoder_input(pairs: Any, numbers: Iterable[int]) -> Tensor:
    """The targets of some pairs as a decoder reads them: the end mark stands where it has the start symbol."""
    rows = [pairs.tgt[index] for index in numbers]
    dictionary = pairs.tgt_dict
    tokens: Tensor = collate_tokens(
        rows, dictionary.pad(), dictionary.eos(), move_eos_to_beginning=True
    )
    return tokens


def refuse_options(cfg: Any) -> None:
    """Refuse options of fairseq's translation under which trees would not match, or nothing would come."""
    for is_set, why in (
        (cfg.truncate_source, "--truncate-source cuts tokens off trees; shorten the data instead"),
        (
            cfg.upsample_primary != -1,
            "--upsample-primary would repeat sentences without their trees",
        ),
        (
            cfg.load_alignments,
            "--load-alignments needs attention weights, which these models do not return",
        ),
        (
            cfg.num_batch_buckets > 0,
            "--num-batch-buckets pads tokens without their trees; leave it out",
        ),
        (
            cfg.leave_out and len(utils.split_paths(cfg.data or "")) > 1,
            "--leave-out numbers the pairs of one data folder, and would leave out others of the next; give one folder",
        ),
    ):
        if is_set:
            raise OptionError(why)
    if cfg.eval_bleu:
        _refuse_bleu(cfg)


def _refuse_bleu(cfg: Any) -> None:
    """Refuse settings for the BLEU of validation that cannot be read, or that fairseq would pass over."""
    given = {}
    for name in ("eval_bleu_args", "eval_bleu_detok_args"):
        flag, text = "--" + name.replace("_", "-"), str(getattr(cfg, name))
        try:
            given[flag] = json.loads(text)
        except ValueError:
            given[flag] = None
        if not isinstance(given[flag], dict):
            raise OptionError(f"{flag} {text[:LONGEST]} is no JSON object; write '{{\"name\": 4}}'")
    known = GenerationConfig.__dataclass_fields__
    for name in given["--eval-bleu-args"]:
        if name not in known:
            raise unknown_name("setting of a search", name, known, "--eval-bleu-args:")


def refuse_search(args: Any) -> None:
    """Refuse options of a search that end in a traceback, or that find nothing.

    Args:
        args: fairseq's options of the search; some may be missing.
    """
    for name in ("beam", "nbest"):
        if getattr(args, name, 1) < 1:
            raise OptionError(f"--{name} {getattr(args, name)}: at least 1 is needed")
    for name in ("print_step", "retain_iter_history"):
        if getattr(args, name, False):
            flag = name.replace("_", "-")
            raise OptionError(
                f"--{flag} is for models that refine an output in steps; leave it out"
            )
    groups, beam = getattr(args, "diverse_beam_groups", -1), getattr(args, "beam", BEAM)
    if (nbest := getattr(args, "nbest", 1)) > beam:
        raise OptionError(TOO_MANY.format(nbest=nbest, beam=beam))
    if groups > 0 and beam % groups:
        raise OptionError(f"--diverse-beam-groups {groups}: divides no --beam {beam}")
    if not 0 <= getattr(args, "max_len_a", 0) <= MOST_A:
        raise OptionError(f"--max-len-a {args.max_len_a:g}: {RANGE_OF_A}")


def check_folder(cfg: Any) -> None:
    """Refuse a task whose data folder does not exist, or has no dictionaries of its languages."""
    paths = utils.split_paths(cfg.data) if cfg.data else [""]
    if len(paths) > 1 and not all(map(os.path.isdir, paths)):
        check_path(str(cfg.data)[:LONGEST], "the data folder")
    folder = paths[0]
    if not os.path.isdir(folder):  # Path raises an error where a name is too long
        name = str(cfg.data)[:LONGEST]
        raise OptionError(f"no such data folder: {name}; make one with treesyntax binarize")
    if data_utils.infer_language_pair(folder) is None and not cfg.source_lang:
        raise OptionError(f"{folder} holds no binarized data; run treesyntax binarize")
    for side, language in (("source", cfg.source_lang), ("target", cfg.target_lang)):
        if language is not None and not os.path.isfile(f"{folder}/dict.{language}.txt"):
            raise OptionError(
                f"{folder} has no dictionary of the {side} language {language[:LONGEST]!r}; give the "
                "languages that binarize was told"
            )


def check_trees(names: Iterable[str], store: TreeStore | None, training: bool) -> None:
    """Refuse data without what the encoder reads, before a training or a search begins.

    Args:
        names: of the encoder's methods.
        store: the trees of a split.
        training: whether methods that need trees in training alone need these.
    """
    methods = {name: METHODS[name] for name in sorted(names)}
    for name, method in methods.items():
        if store is None and method.needs_tree and (training or not method.training_only):
            raise OptionError(
                f"the method {name} needs trees, but the data has none; binarize it from tree files "
                "(treesyntax binarize --source-format …)"
            )
        if store is not None and method.needs_labels and not store.has_labels:
            raise OptionError(
                f"the method {name} needs the labels of nodes, but {store.path} has none; binarize "
                "it with --source-labels"
            )


def with_random(store: TreeStore) -> Iterator[tuple[TreeBatch, TreeBatch]]:
    """The first trees whose leaves alone are tokens, and random ones in their place, where these differ.

    Where tokens are inner nodes as well, each method sees some of the tree.
    """
    for number in range(min(LOOKED_AT, len(store))):
        parents, _, nodes, *_ = store[number]
        above = {*parents.tolist()}
        leaves = [node for node in range(len(parents)) if node not in above]
        words = {node: word for word, node in enumerate(leaves)}
        tree = Tree(
            parents.tolist(),
            [LABEL] * len(parents),
            [words.get(node, -1) for node in range(len(parents))],
        )
        if len(leaves) < len(parents) and {*nodes.tolist()} <= {NO_NODE, *leaves}:
            other = control_tree(tree, RANDOM, 1)
            moved = dict(zip([NO_NODE, *leaves], [NO_NODE, *other.word_nodes()], strict=True))
            if other != tree:
                tokens = nodes.tolist()
                yield (
                    batch_trees([tree], [tokens], labels={LABEL: 1}),
                    batch_trees([other], [[moved[node] for node in tokens]], labels={LABEL: 1}),
                )


@contextmanager
def in_one_line() -> Iterator[None]:
    """Turn exceptions that end in a traceback, though the user can help it, into an OptionError.

    These are fairseq's for sentences that are too long, for splits that are not there or of another kind and for
    options of a search that exclude each other, and torch's for memory.
    """
    try:
        yield
    except Exception as error:
        text = " ".join(str(error).split())
        if text.startswith(CLEAR):
            raise OptionError(text) from None
        if text.startswith("Dataset not found"):
            raise OptionError(
                f"{text}; binarize that split, or name another (--gen-subset, --valid-subset)"
            ) from None
        if any(phrase in text for phrase in OUT_OF_MEMORY):
            raise OptionError(
                "out of memory; give a smaller --max-tokens, --batch-size or --beam"
            ) from None
        raise


def misplaced_criterion(name: Any) -> str:
    """Why a criterion of fairseq's own does not fit these models; "" if it may."""
    criterion = CRITERION_REGISTRY.get(name)
    if name in CRITERIA or criterion is None or not criterion.__module__.startswith("fairseq."):
        return ""
    return f"is {name}, for models with other outputs; take one of {', '.join(CRITERIA)}"


def best_fault(checkpoint: Any, criterion: str, settings: Any, task: Any) -> Fault | None:
    """What is wrong with the number that chooses the best checkpoint.

    fairseq takes the lowest for the best unless it is told otherwise, and looks for the number when the first
    validation is over.

    Args:
        checkpoint: holds the options of checkpoints.
        criterion: its name.
        settings: hold those of the criterion.
        task: holds those of the task.
    """
    metric, highest = (
        getattr(checkpoint, f"{name}_metric")
        for name in ("best_checkpoint", "maximize_best_checkpoint")
    )
    reported = ["loss", "ppl"]
    if criterion != "cross_entropy" or getattr(settings, "sentence_avg", False):
        reported.append("nll_loss")
    reported += ["accuracy"] if getattr(settings, "report_accuracy", False) else []
    reported += ["bleu"] if getattr(task, "eval_bleu", False) else []
    if criterion in CRITERIA and metric not in reported:
        remedy = SCORES.get(metric, f"take one of {', '.join(reported)}")
        return Fault(
            "best-checkpoint-metric", f"is {metric}, which a validation does not report; {remedy}"
        )
    if metric in SCORES and not highest:
        return Fault(
            "best-checkpoint-metric",
            f"is {metric}, and the lowest would be kept as the best; add --maximize-best-checkpoint-metric",
        )
    if metric in LOSSES and highest:
        return Fault(
            "maximize-best-checkpoint-metric",
            f"would keep the highest {metric} as the best; leave it out, or name a score as "
            "--best-checkpoint-metric",
        )
    return None


def known_criterion(build: Callable[..., Any], cfg: Any, *arguments: Any) -> Any:
    """What ``build`` makes of the settings of a criterion.

    Raises:
        OptionError: where it makes none, or one that asks models for what these do not have.
    """
    if fault := misplaced_criterion(getattr(cfg, "_name", None)):
        raise OptionError(f"--criterion {fault}")
    try:
        built = build(cfg, *arguments)
    except KeyError as error:
        name = " ".join(str(error).split())[:LONGEST]
        raise OptionError(f"no criterion {name} is known here") from None
    if built is None:
        raise OptionError("no criterion is set; give --criterion")
    return built
