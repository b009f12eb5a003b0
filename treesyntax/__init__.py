"""treesyntax: trees in Transformers, and whether they help.

The public names, each loaded when it is first used::

    import treesyntax as ts

    tree = ts.parse_tree("(S (NP (DT the) (NN cat)) (VP sleeps))", "ptb")
    encoding = tokenizer(text, return_offsets_mapping=True)
    nodes = ts.align(tree, encoding["offset_mapping"], text)
    batch = ts.batch_trees([tree], [nodes])
    methods = ts.compose("stack_pe+relation_mask", d_model=512, heads=8, layers=6)

Nothing here needs fairseq. What a command or a bridge needs besides, it names where it is missing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treesyntax.bridges.collator import TreeCollator
    from treesyntax.bridges.flex import score_mods
    from treesyntax.bridges.huggingface import HuggingFaceBridge
    from treesyntax.bridges.torch_encoder import TransformerEncoderBridge
    from treesyntax.data.sets.base import DataSet, Input, Part, register_data_set
    from treesyntax.errors import InputError, OptionError, TreeError, TreeSyntaxError
    from treesyntax.methods import METHODS
    from treesyntax.metrics import Score, get_metric, register_metric, score
    from treesyntax.metrics.conclusions import Conclusion, conclude
    from treesyntax.metrics.runs import RunComparison, compare_corpus_scores, compare_runs
    from treesyntax.metrics.statistics import holm
    from treesyntax.metrics.worth import Curve, Times, Worth, data_worth
    from treesyntax.model.composition import Composition, compose
    from treesyntax.model.decoder import Decoder, KVCache
    from treesyntax.model.encoder import Encoder, EncoderOutput
    from treesyntax.model.layers import TransformerConfig
    from treesyntax.nn.growth import GrowingTrees
    from treesyntax.nn.injection import Injection, Site, register
    from treesyntax.nn.tree_batch import TreeBatch, batch_trees
    from treesyntax.study.read import StudyData, read_study
    from treesyntax.trees.alignment import align, align_words, word_spans
    from treesyntax.trees.binary import from_binary, to_binary
    from treesyntax.trees.controls import control_tree
    from treesyntax.trees.formats import (
        Format,
        parse_tree,
        read_trees,
        register_format,
        write_trees,
    )
    from treesyntax.trees.linearizations import get_linearization
    from treesyntax.trees.tree import Tree

__version__ = "0.2.0"

_PLACES = {
    "bridges.collator": ("TreeCollator",),
    "bridges.flex": ("score_mods",),
    "bridges.huggingface": ("HuggingFaceBridge",),
    "bridges.torch_encoder": ("TransformerEncoderBridge",),
    "data.sets.base": ("DataSet", "Input", "Part", "register_data_set"),
    "errors": ("InputError", "OptionError", "TreeError", "TreeSyntaxError"),
    "methods": ("METHODS",),
    "metrics": ("Score", "get_metric", "register_metric", "score"),
    "metrics.conclusions": ("Conclusion", "conclude"),
    "metrics.runs": ("RunComparison", "compare_corpus_scores", "compare_runs"),
    "metrics.statistics": ("holm",),
    "metrics.worth": ("Curve", "Times", "Worth", "data_worth"),
    "model.composition": ("Composition", "compose"),
    "model.decoder": ("Decoder", "KVCache"),
    "model.encoder": ("Encoder", "EncoderOutput"),
    "model.layers": ("TransformerConfig",),
    "nn.growth": ("GrowingTrees",),
    "nn.injection": ("Injection", "Site", "register"),
    "nn.tree_batch": ("TreeBatch", "batch_trees"),
    "study.read": ("StudyData", "read_study"),
    "trees.alignment": ("align", "align_words", "word_spans"),
    "trees.binary": ("from_binary", "to_binary"),
    "trees.controls": ("control_tree",),
    "trees.formats": ("Format", "parse_tree", "read_trees", "register_format", "write_trees"),
    "trees.linearizations": ("get_linearization",),
    "trees.tree": ("Tree",),
}
"""The public names by the module that has them."""
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "METHODS",
    "Composition",
    "Conclusion",
    "Curve",
    "DataSet",
    "Decoder",
    "Encoder",
    "EncoderOutput",
    "Format",
    "GrowingTrees",
    "HuggingFaceBridge",
    "Injection",
    "Input",
    "InputError",
    "KVCache",
    "OptionError",
    "Part",
    "RunComparison",
    "Score",
    "Site",
    "StudyData",
    "Times",
    "TransformerConfig",
    "TransformerEncoderBridge",
    "Tree",
    "TreeBatch",
    "TreeCollator",
    "TreeError",
    "TreeSyntaxError",
    "Worth",
    "align",
    "align_words",
    "batch_trees",
    "compare_corpus_scores",
    "compare_runs",
    "compose",
    "conclude",
    "control_tree",
    "data_worth",
    "from_binary",
    "get_linearization",
    "get_metric",
    "holm",
    "parse_tree",
    "read_study",
    "read_trees",
    "register",
    "register_data_set",
    "register_format",
    "register_metric",
    "score",
    "score_mods",
    "to_binary",
    "word_spans",
    "write_trees",
]


class _BeforeTransformers:
    """A finder of modules that finds none, but looks at torchaudio just before transformers imports it.

    So neither is imported here, and a torchaudio that works is imported when it would be. All models of
    transformers import the named part.
    """

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "transformers.audio_utils":
            from treesyntax.parsers.torchaudio_remedy import hide_broken_torchaudio

            hide_broken_torchaudio()


sys.meta_path.insert(0, _BeforeTransformers())


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: torch takes seconds, and commands' --help needs none."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
