"""Figures that go into a page and into a file of their own."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from scenarios.drawing.style import svg_markup

_DPI = 160


def page_and_png(figure: Figure, name: str, description: str, png: Path) -> Markup:
    """Write *figure* to the file *png* and return it as markup for a page.

    To be called inside `style.style`.
    """
    figure.savefig(png, dpi=_DPI, facecolor="white", metadata={})
    return Markup(svg_markup(figure, name, description))
