"""Draws a topology into a file, with matplotlib: as SVG, PNG or PDF."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

from actors.whole_files import write_bytes
from scenarios.report.colours import LIGHT
from scenarios.report.style import PNG_DPI, style
from scenarios.report.topology_drawing import Page, Spot, paint_topology, plain_looks
from scenarios.report.topology_layout import lay_out
from scenarios.scenario_files import ConfigError
from topologies.actor_graph import ActorGraph

SUFFIXES = (".svg", ".png", ".pdf")
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""Without its date, the same drawing is the same file."""


class FigurePainter:
    """Paints on a figure of matplotlib's; a `scenarios.report.topology_drawing.Painter`."""

    def __init__(self, page: Page) -> None:
        self.figure = Figure(figsize=(page.right - page.left, page.top - page.bottom))
        self._axes = self.figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(page.left, page.right), ylim=(page.bottom, page.top))
        self._axes.set_axis_off()
        self._above = 0

    def _next(self) -> int:
        self._above += 1
        return self._above

    def box(
        self, corner: Spot, size: Spot, *, fill: str, edge: str, width: float, radius: float
    ) -> None:
        """Draw a box."""
        self._axes.add_patch(
            FancyBboxPatch(
                corner,
                *size,
                boxstyle=f"round,pad=0,rounding_size={radius}",
                facecolor=LIGHT.get(fill, fill),
                edgecolor=LIGHT[edge],
                linewidth=width,
                zorder=self._next(),
            )
        )

    def text(
        self, at: Spot, text: str, *, size: float, colour: str, centred: bool, bold: bool
    ) -> None:
        """Write a text."""
        self._axes.text(
            *at,
            text,
            size=size,
            color=LIGHT.get(colour, colour),
            ha="center" if centred else "left",
            va="center",
            weight="bold" if bold else "normal",
            zorder=self._next(),
        )

    def curve(
        self, spots: Sequence[Spot], *, colour: str, width: float, dashes: Sequence[float]
    ) -> None:
        """Draw a line."""
        codes = [int(Curve.MOVETO)] + [int(Curve.CURVE4)] * (len(spots) - 1)
        self._axes.add_patch(
            PathPatch(
                Curve(list(spots), codes),
                fill=False,
                edgecolor=LIGHT[colour],
                linewidth=width,
                linestyle=(0, tuple(dashes)) if dashes else "-",
                alpha=0.85,
                capstyle="butt",
                zorder=self._next(),
            )
        )

    def triangle(self, spots: Sequence[Spot], *, colour: str) -> None:
        """Fill a triangle."""
        outline = Curve([*spots, spots[0]])
        self._axes.add_patch(
            PathPatch(outline, facecolor=LIGHT[colour], linewidth=0, zorder=self._next())
        )


def draw_topology(graph: ActorGraph, title: str, path: Path) -> None:
    """Draw *graph* into *path*: operators left to right, a box a PE, a colour a port.

    Raises
    ------
    ConfigError
        The suffix of *path* is not one of `SUFFIXES`.
    OutputError
        The file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot draw into {path}: the file's name must end in {', '.join(SUFFIXES)}"
        )
    layout, looks = lay_out(graph), plain_looks(graph)
    page = Page.of(layout, title, looks)
    with style():
        painter = FigurePainter(page)
        paint_topology(painter, layout, page, title, looks)
        drawing = BytesIO()
        painter.figure.savefig(
            drawing,
            format=suffix[1:],
            dpi=PNG_DPI,
            facecolor="white",
            metadata=_UNDATED.get(suffix, {}),
        )
    write_bytes(path, drawing.getvalue())
