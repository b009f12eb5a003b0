"""Programs that compile to the same JavaScript, by a compiler of our own."""

from __future__ import annotations

import gzip
from itertools import islice

import pytest
from support import SHARED, needs_data
from support.helpers import value

from treesyntax.errors import OptionError
from treesyntax.metrics import ITEM_METRICS, METRICS
from treesyntax.metrics.coffeescript import compile_tree
from treesyntax.trees.formats.coffeescript import parse

NAME = "compiled:coffeescript"
LOOP = "( function ( ) {{ var {0} ; {0} = [ ] ; while ( {1} ) {{ {0} . push ( {2} ) ; }} return {0} ; }} ) ( )"


def compiled(program: str) -> str | None:
    tokens = compile_tree(parse(program))
    return None if tokens is None else " ".join(tokens)


@pytest.mark.parametrize(
    ("program", "javascript"),
    [
        # What CoffeeScript 2.7.0 writes.
        ("( ( 1 + 2 ) )", "1 + 2 ;"),
        ("( 1 ) * 3", "1 * 3 ;"),
        ("( ( a ) ) * ( ( b + c ) ) + ( d * e )", "a * ( b + c ) + ( d * e ) ;"),
        ("a = ( ( b == c ) ) == d", "var a ; a = ( b === c ) === d ;"),
        ("a = 1 <NL> a10 = a <NL> a2 = 2", "var a , a10 , a2 ; a = 1 ; a10 = a ; a2 = 2 ;"),
        ("6 <NL> b <NL> a = 1", "6 ; b ; var a ; a = 1 ;"),
        ("6 + 1 <NL> a = 1", "var a ; 6 + 1 ; a = 1 ;"),
        ("x if ( 1 == 2 )", "if ( 1 === 2 ) { x ; }"),
        ("a if b if c", "if ( c ) { if ( b ) { a ; } }"),
        ("if a then b else c while d", "if ( a ) { b ; } else { while ( d ) { c ; } }"),
        (
            "if a <IND> b <DED> <NL> else <IND> if c <IND> d <DED> <DED>",
            "if ( a ) { b ; } else { if ( c ) { d ; } }",
        ),
        ("x while a = 1 while b", f"var a ; while ( {LOOP.format('results', 'b', 'a = 1')} ) {{ x ; }}"),
        (
            "a while b while c while d",
            f"while ( {LOOP.format('results', LOOP.format('results1', 'd', 'c'), 'b')} ) {{ a ; }}",
        ),
        (
            "results while a while results1",
            f"while ( {LOOP.format('results2', 'results1', 'a')} ) {{ results ; }}",
        ),
        ("yes = 1", None),
        ("a = 01", None),
    ],
)  # fmt: skip
def test_compiled_programs(program: str, javascript: str | None) -> None:
    assert compiled(program) == javascript


def test_another_form_is_right_and_other_code_is_not() -> None:
    reference = "a0 = 1 if a1"
    forms = [
        "a0 = 1 if a1", "if a1 <IND> a0 = 1 <DED>", "a0 = ( 1 ) if ( a1 )",
        "a0 = 1 if a2", "a0 = 1 if", "", "yes = 1", "yes = 1 if a1",
    ]  # fmt: skip
    right = [True, True, True, False, False, False, None, None]
    assert ITEM_METRICS[NAME](forms, [reference] * len(forms)) == right
    (score,) = METRICS[NAME](forms, [reference] * len(forms))
    assert score.value == pytest.approx(100 * 3 / 8)
    assert "|undecided:2|" in score.signature
    assert value(NAME, ["yes = 1"], ["yes = 1"]) == 100
    with pytest.raises(OptionError, match="^reference 2 is not coffeescript: token 3 is"):
        METRICS[NAME](["a", "a"], ["a", "a = = 1"])


@pytest.mark.parametrize(
    ("opening", "core", "closing"),
    [("(", "1", ")"), ("if 1 <IND>", "1", "<DED>"), ("1 while", "1", ""), ("", "1", "+ ( 1 )")],
)
def test_deeply_nested_programs_compile(opening: str, core: str, closing: str) -> None:
    tokens = [*[opening] * 2_000, core, *[closing] * 2_000]
    javascript = compiled(" ".join(tokens).strip())
    assert javascript is not None
    assert javascript.count("1") >= (1 if opening == "(" else 2_001)


@needs_data(SHARED / "data" / "cs_js_drissi")
def test_published_programs_compile_as_their_compiler_did() -> None:
    files = [SHARED / "data" / "cs_js_drissi" / f"valid.{name}.gz" for name in ("coffee", "js")]
    with gzip.open(files[0], "rt") as coffee, gzip.open(files[1], "rt") as javascript:
        for program, wanted in islice(zip(coffee, javascript, strict=True), 300):
            assert compiled(program.rstrip("\n")) == " ".join(wanted.split())
