"""A figure as files: SVG always, PDF and PNG beside it where they are asked for.

SVG is drawn at the size that suits a screen. PDF and PNG are for a paper: no wider than its text, so
that they need not be scaled there, and without letters that are too small to read.
"""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from treesyntax.errors import OptionError
from treesyntax.files import atomic_file, write_text

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
TEXT_WIDTH = 5.5
"""Inches: about the text of an article of one column."""
LEAST_WIDTH, MOST_WIDTH = 2.0, 40.0
LEAST_POINTS = 7.0
"""The smallest letters in PDF and PNG."""
DOTS = 300
"""Pixels an inch."""
SHOWN = 20
"""Characters without a font that a remark shows."""
LAST_RESORT = "Last Resort"
"""Begins the name of matplotlib's font with a box for each character."""


_paper: ContextVar[tuple[tuple[str, ...], float, Path | None]] = ContextVar(
    "paper", default=((), TEXT_WIDTH, None)
)
"""The formats beside SVG, the width of their figures, and their folder."""


@contextmanager
def paper_formats(
    formats: Sequence[str], width: float = TEXT_WIDTH, folder: Path | None = None
) -> Iterator[None]:
    """Figures that are written inside are written in these formats too.

    Args:
        formats: of `FORMATS`.
        width: inches that PDF and PNG may be wide.
        folder: for PDF and PNG; None for that of the SVG.
    """
    token = _paper.set((tuple(name for name in formats if name != "svg"), width, folder))
    try:
        yield
    finally:
        _paper.reset(token)


def paper_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare --format and --width of a command that draws figures."""
    parser.add_argument(
        "--format", nargs="+", choices=FORMATS, default=["svg"],
        help="formats of figures; SVG is always written, PDF and PNG beside it (default svg)",
    )  # fmt: skip
    parser.add_argument(
        "--width", type=float, metavar="INCHES",
        help=f"width of PDF and PNG; no letters are smaller than 7 points (default {TEXT_WIDTH})",
    )  # fmt: skip


def papers_of(
    args: argparse.Namespace, default: float = TEXT_WIDTH, folder: Path | None = None
) -> AbstractContextManager[None]:
    """What these arguments ask for; nothing for a command without them.

    Args:
        args: of a command.
        default: width where none is given.
        folder: of PDF and PNG, which is a folder for a paper: PDF is always written there.
    """
    given = getattr(args, "width", None)
    width = default if given is None else given
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise OptionError(f"--width {width:g}: give {LEAST_WIDTH:g} to {MOST_WIDTH:g} inches")
    formats = getattr(args, "format", ())
    return paper_formats([*formats, "pdf"] if folder else formats, width, folder)


def svg_text(figure: Figure, salt: str = "treesyntax") -> str:
    """A figure as SVG with its text as text, so that it can be searched.

    Names are of data: of ``$x$`` matplotlib would make a formula, and ``$$`` is none.

    Args:
        figure: any.
        salt: of its ids; the same figure with the same salt is the same text.
    """
    import matplotlib
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)
    stream = io.StringIO()
    # Whoever shows the SVG takes fonts of its own.
    settings = {"svg.fonttype": "none", "svg.hashsalt": salt}
    with _without_glyph_warnings(), matplotlib.rc_context(settings):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def write_figure_files(figure: Figure, path: Path, salt: str = "treesyntax") -> str:
    """Write a figure; returns its SVG. Where other formats are asked for, the figure is resized.

    Args:
        figure: any.
        path: of the SVG; the others differ in the suffix.
        salt: as for `svg_text`.

    Raises:
        InputError: if the folder cannot be written.
    """
    import matplotlib

    text, (formats, width, folder) = svg_text(figure, salt), _paper.get()
    write_text(path, text)
    if formats:
        if lacking := add_fonts(figure):
            print(
                f"{path.stem} as {' and '.join(dict.fromkeys(formats))}: no font here has {lacking[:SHOWN]}, so boxes "
                "stand there; install one that has, such as Noto Sans CJK",
                file=sys.stderr,
            )
        with _without_glyph_warnings():
            fit(figure, width)
    for name in dict.fromkeys(formats):
        settings: dict[str, Any] = {"metadata": {"CreationDate": None}} if name == "pdf" else {}
        with (
            # Fonts as TrueType: many venues refuse those of type 3.
            matplotlib.rc_context({"pdf.fonttype": 42}),
            atomic_file((folder or path.parent) / f"{path.stem}.{name}") as staged,
            _without_glyph_warnings(),
        ):
            figure.savefig(staged, format=name, dpi=DOTS, **settings)
    return text


@contextmanager
def _without_glyph_warnings() -> Iterator[None]:
    """Without matplotlib's warnings of characters without a glyph, one for each character and drawing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from font")
        yield


def add_fonts(figure: Figure) -> str:
    """Add fonts of this machine for the characters that the font of a figure lacks, such as Chinese ones.

    Returns:
        The characters that no font has.
    """
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    characters = {
        ord(letter) for text in texts for letter in text.get_text() if letter.isprintable()
    }
    lacking = characters - get_font(findfont(FontProperties())).get_charmap().keys()
    fonts = {
        font.name: font.fname
        for font in fontManager.ttflist
        if font.style == "normal" and font.weight == 400 and not font.name.startswith(LAST_RESORT)
    }
    added = []
    for name in sorted(fonts, key=lambda name: ("Sans" not in name, name)) if lacking else ():
        with suppress(OSError, RuntimeError):  # a font of pictures has no outlines
            covered = lacking & get_font(fonts[name]).get_charmap().keys()
            added += [name] * bool(covered)
            lacking -= covered
        if not lacking:
            break
    if added:
        families = [*FontProperties().get_family(), *added]
        for text in texts:
            text.set_fontfamily(families)
        for axes in figure.axes:
            axes.tick_params(labelfontfamily=families)
    return "".join(map(chr, sorted(lacking)))


def fit(figure: Figure, width: float) -> None:
    """Make a figure that was drawn at most so many inches wide; its letters shrink, but not below `LEAST_POINTS`.

    Its height shrinks less than its width, since letters do. Labels that are longer than their panel
    are broken.
    """
    from matplotlib.text import Text

    scale = min(1.0, width / figure.get_figwidth())
    figure.set_size_inches(figure.get_figwidth() * scale, figure.get_figheight() * scale**0.5)
    for text in figure.findobj(Text):
        text.set_fontsize(max(LEAST_POINTS, float(text.get_fontsize()) * scale))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if labels := axis.get_ticklabels():
                axis.set_tick_params(labelsize=labels[0].get_fontsize())
    figure.draw_without_rendering()  # lays it out
    for axes in figure.axes:
        label, room = axes.xaxis.label, axes.get_window_extent().width
        if (length := label.get_window_extent().width) > room:
            words = label.get_text()
            label.set_text(fill(words, max(8, int(len(words) * room / length))))
