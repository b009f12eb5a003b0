"""The scorers of the plugin, built and fed as fairseq-generate does."""

from __future__ import annotations

import pytest
from fairseq import options
from fairseq.data import Dictionary
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.scoring import SCORER_REGISTRY, BaseScorer, build_scorer

import fairseq_plugins  # noqa: F401, registers the scorers
from treesyntax import __version__
from treesyntax.errors import OptionError

REFERENCES = ["( and ( p $0 ) ( q ci0 ) )", "( f a b )"]
HYPOTHESES = ["( and ( q ci0 ) ( p $0 ) )", "( f a b"]


def scorer(name: str, *flags: str) -> BaseScorer:
    """A scorer from the command line of fairseq-generate."""
    parser = options.get_generation_parser()
    arguments = ["data", "--path", "model.pt", "--scoring", name, *flags]
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, arguments))
    return build_scorer(config.scoring, Dictionary())


def result(built: BaseScorer, hypotheses: list[str], references: list[str]) -> str:
    for reference, hypothesis in zip(references, hypotheses, strict=True):
        built.add_string(reference, hypothesis)
    text = built.result_string()
    assert f"= {built.score():.2f} " in text
    return text


@pytest.mark.parametrize(
    ("name", "metric", "value"),
    [
        ("tree_exact", "tree:sexpr", "0.00"),
        ("tree_program", "program:sexpr", "0.00"),
        ("tree_unordered", "unordered:sexpr", "50.00"),
        ("tree_dong_lapata", "dong_lapata:sexpr", "100.00"),
        ("tree_modulo", "modulo:sexpr", "50.00"),
        ("tree_wellformed", "wellformed:sexpr", "50.00"),
    ],
)
def test_scores_of_text(name, metric, value):
    found = result(scorer(name), HYPOTHESES, REFERENCES)
    assert found == f"{metric} = {value} n=2 {metric}|v:{__version__}"


def test_f1_and_strings():
    assert result(scorer("tree_f1"), HYPOTHESES, REFERENCES).startswith("f1:sexpr = 76.92 n=2 ")
    found = result(scorer("tree_productions"), HYPOTHESES, REFERENCES)
    assert found.startswith("productions:sexpr = 85.71 n=2 ")
    assert result(scorer("string_exact"), ["a  b"], ["a b"]).startswith("exact = 100.00 n=1 exact|")


def test_top_nodes():
    rule, other = "( if ( weather rain ) ( lights on ) )", "( if ( weather rain ) ( lights off ) )"
    assert result(scorer("tree_top1"), [other], [rule]).startswith("top1:sexpr = 100.00 n=1 ")
    assert result(scorer("tree_top2"), [other], [rule]).startswith("top2:sexpr = 0.00 n=1 ")


def test_every_scorer_of_ours_is_tested_here():
    ours = {name for name, kind in SCORER_REGISTRY.items() if "plugins" in kind.__module__}
    assert ours == {
        "string_exact", "tree_dong_lapata", "tree_exact", "tree_f1", "tree_modulo",
        "tree_productions", "tree_program", "tree_top1", "tree_top2", "tree_unordered", "tree_wellformed",
    }  # fmt: skip


def test_the_format_is_an_option():
    goals = ["job ( ANS ) , p ( ANS , A )"], ["p ( ANS , B ) , job ( ANS )"]
    found = result(scorer("tree_modulo", "--scoring-format", "prolog"), *goals)
    assert found.startswith("modulo:prolog = 100.00")


@pytest.mark.parametrize(
    ("name", "value"), [("tree_exact", 50), ("tree_modulo", 75), ("tree_wellformed", 75)]
)
def test_lines_may_be_tokens_of_a_linearization(name, value):
    flags = ("--scoring-linearization", "nary_dfs")
    references = ["and/2 p/0 q/0", "f/1 a/0", "f/1 a/0", "f/0"]
    hypotheses = ["and/2 q/0 p/0", "f/1 a/0", "f/2 a/0", "f/0"]
    assert f"= {value}.00" in result(scorer(name, *flags), hypotheses, references)


def test_unknown_nodes_are_never_right():
    built = scorer("tree_exact", "--scoring-linearization", "nary_dfs")
    found = result(built, ["f/1 <unk>/0", "f/1 a/0"], ["f/1 <unk>/0", "f/1 a/0"])
    assert found.startswith("tree:sexpr = 50.00")
    assert result(scorer("string_exact"), ["<unk>/0"], ["<unk>/0"]).startswith("exact = 0.00")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("tree_exact", "--scoring-format", "sexp"), "no metric is named 'tree:sexp'"),
        (("tree_modulo", "--scoring-format", "ptb"), "no metric is named 'modulo:ptb'"),
        (("tree_f1", "--scoring-linearization", "nary"), "no linearization is named 'nary'"),
        (
            ("tree_f1", "--scoring-linearization", "preorder"),
            "the tokens of the linearization preorder do not",
        ),
    ],
)
def test_options_are_checked_before_anything_is_generated(flags, message):
    with pytest.raises(OptionError, match=message):
        scorer(*flags)


def test_references_must_be_trees():
    built = scorer("tree_exact", "--scoring-linearization", "lcrs_bfs")
    built.add_string("a/0", "a/0")
    with pytest.raises(OptionError, match="^reference 2: token 1, '<unk>', is not a label"):
        built.add_string("<unk>", "a/0")
    built = scorer("tree_exact")
    built.add_string("( a", "( a")
    with pytest.raises(OptionError, match="^reference 1 is not sexpr: 1 parenthesis still open"):
        built.result_string()
    with pytest.raises(OptionError, match="^there are no lines to score"):
        scorer("tree_f1").score()
