"""How matplotlib's figures look, and how they get into pages and files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scenarios.formatting import format_value
from scenarios.report.colours import LIGHT

PNG_DPI = 160

_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "svg.fonttype": "none",
    "svg.hashsalt": "joinsim",  # ids in the file would otherwise be random
    "text.parse_math": False,  # names may contain a $
    "text.color": LIGHT["ink"],
    "axes.edgecolor": LIGHT["line"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.axisbelow": True,
    "xtick.color": LIGHT["line"],
    "ytick.color": LIGHT["line"],
    "xtick.labelcolor": LIGHT["muted"],
    "ytick.labelcolor": LIGHT["muted"],
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "grid.color": LIGHT["line"],
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
_FONT = re.compile(r"font: ([\d.]+)px [^;\"]*")
_FONTS = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_SIZE = re.compile(r' width="[^"]*" height="[^"]*"', re.DOTALL)
_CLOSE = re.compile(r" ?\n\s*")


@contextmanager
def style() -> Iterator[None]:
    """Make figures and files made inside look alike, on every machine."""
    with mpl.rc_context(_STYLE):
        yield


def svg_markup(figure: Figure, name: str, description: str) -> str:
    """Return *figure* as an ``<svg>`` element for a page that defines a ``--NAME`` per colour.

    *name* sets its ids apart from those of other figures; *description* is read out to those who do
    not see it.
    """
    with mpl.rc_context({"svg.hashsalt": name}):
        file = StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    text = file.getvalue()
    text = _METADATA.sub("", text[text.index("<svg ") :])
    text = _GROUP_ID.sub("<g", text)  # ids of figures would clash; none is referred to
    text = _FONT.sub(rf"font: \1px {_FONTS}", text)
    for colour, light in LIGHT.items():
        text = text.replace(light, f"var(--{colour})")
    width = figure.get_figwidth() * mpl.rcParams["figure.dpi"]
    label = description.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    label = f' role="img" aria-label="{label}" style="max-width: {width:.0f}px"'
    text = _SIZE.sub(label.replace("\\", "\\\\"), text, count=1)
    return _CLOSE.sub("\n", text)


def use_short_numbers(axis: Axis, ticks: int | None = None) -> None:
    """Write the axis's numbers with a letter for thousands and so on, at up to *ticks* places."""
    if ticks is not None:
        axis.set_major_locator(MaxNLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_value(value)))


def name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Write a name beside each row of a figure, the first at the top."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
    axes.set_ylim(len(names) - 0.4, -0.6)
