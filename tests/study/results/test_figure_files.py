"""Figures as files for the screen and for a paper."""

from __future__ import annotations

import re
import struct
import warnings
from argparse import Namespace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.text import Text
from support.study_helpers import make_study

from treesyntax.__main__ import main
from treesyntax.errors import OptionError
from treesyntax.study.results.figure_files import (
    LEAST_POINTS,
    paper_formats,
    papers_of,
    svg_text,
    write_figure_files,
)


def wide_figure() -> Figure:
    figure = Figure(figsize=(12, 4), layout="constrained")
    for panel in figure.subplots(1, 3):
        panel.plot([1, 2], [3, 4])
        panel.set_xticks([1, 2], ["left", "right"], fontsize=8)
        panel.set_title("a panel")
        panel.set_xlabel("a label that is longer than the panel is wide")
    return figure


def named(name: str) -> Figure:
    """A figure with a name in its title and at its ticks."""
    figure = Figure(figsize=(4, 3), layout="constrained")
    panel = figure.subplots()
    panel.bar(["plain", name], [1, 2])
    panel.set_title(name)
    return figure


def test_characters_that_the_font_lacks_are_taken_from_another_font(tmp_path: Path, capfd):
    """They were boxes in PDF and PNG, whatever fonts the machine has."""
    with paper_formats(("png", "pdf")), warnings.catch_warnings():
        warnings.simplefilter("error")
        write_figure_files(named("\N{CIRCLED LATIN SMALL LETTER N}"), tmp_path / "a.svg")
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"STIX" in pdf or b"DejaVuSerif" in pdf
    assert b"LastResort" not in pdf
    assert capfd.readouterr().err == ""


def test_characters_that_no_font_has_are_told_in_one_line(tmp_path: Path, capfd, monkeypatch):
    """Each had a warning of its own with each drawing, four for an SVG alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_figure_files(named("日本語"), tmp_path / "a.svg")
        assert capfd.readouterr().err == ""
        fonts = [font for font in fontManager.ttflist if "DejaVu" in font.name]
        monkeypatch.setattr(fontManager, "ttflist", fonts)
        with paper_formats(("png", "pdf")):
            write_figure_files(named("日本語"), tmp_path / "a.svg")
    assert capfd.readouterr().err == (
        "a as png and pdf: no font here has 日本語, so boxes stand there; install one that has, such as Noto Sans CJK\n"
    )
    assert "日本語" in (tmp_path / "a.svg").read_text()


def test_only_svg_is_written_unless_more_is_asked_for(tmp_path: Path):
    figure = wide_figure()
    text = write_figure_files(figure, tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text() == text == svg_text(figure)
    assert [file.name for file in tmp_path.iterdir()] == ["a.svg"]
    assert figure.get_figwidth() == 12


def test_pdf_and_png_fit_the_text_and_can_be_read(tmp_path: Path):
    figure, width = wide_figure(), 5.0
    screen = svg_text(figure)
    with paper_formats(("svg", "pdf", "png"), width):
        assert write_figure_files(figure, tmp_path / "a.svg") == screen
    pdf, png = ((tmp_path / f"a.{name}").read_bytes() for name in ("pdf", "png"))
    (box,) = re.findall(rb"/MediaBox \[ *0 0 ([\d.]+) ([\d.]+) *\]", pdf)
    assert float(box[0]) == pytest.approx(72 * width, abs=0.5)
    assert b"/CreationDate" not in pdf
    assert b"/FontType 3" not in pdf
    assert struct.unpack(">I", png[16:20])[0] == 300 * width
    sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
    assert min(sizes) == LEAST_POINTS
    assert max(sizes) < 8
    figure.draw_without_rendering()
    for panel in figure.axes:
        room, label = panel.get_window_extent(), panel.xaxis.label
        assert label.get_window_extent().width < 1.1 * room.width
        assert label.get_text().split() == [
            "a",
            "label",
            "that",
            "is",
            "longer",
            "than",
            "the",
            "panel",
            "is",
            "wide",
        ]
    with paper_formats(("png",), 30.0):
        small = wide_figure()
        write_figure_files(small, tmp_path / "b.svg")
    assert small.get_figwidth() == 12


def test_dollar_signs_of_names_are_no_formulas(tmp_path: Path):
    names = ["$$", "$x_1$", r"\$y$", "$0"]
    figure = wide_figure()
    figure.axes[0].set_xticks(range(4), names)
    figure.axes[1].set_title("$a$")
    with paper_formats(("png",)):
        text = write_figure_files(figure, tmp_path / "a.svg")
    for name in (*names, "$a$"):
        assert f">{name}</text>" in text


@pytest.mark.parametrize("width", [0.0, -3.0, 1e9, float("nan")])
def test_an_odd_width_is_refused(width: float):
    with pytest.raises(OptionError, match="give 2 to 40 inches"):
        papers_of(Namespace(format=["pdf"], width=width))


def test_a_report_has_its_figures_in_the_formats_asked_for(tmp_path: Path, capsys):
    folder = make_study(tmp_path, seeds=[1], score=["exact"])
    assert main(["report", str(folder), "--format", "pdf"]) == 0
    names = {file.name for file in (folder / "figures").iterdir()}
    assert {"score_by_cost.svg", "score_by_cost.pdf"} <= names
    assert not [name for name in names if name.endswith(".png")]
    assert "score_by_cost.pdf" not in (folder / "report.html").read_text()
