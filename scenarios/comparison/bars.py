"""What is compared, drawn: a row of bars for each, a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scenarios.drawing.numbers import short
from scenarios.drawing.style import LIGHT

_WIDTH, _LABEL_WIDTH, _ROW, _TOP, _BOTTOM = 11.0, 1.9, 0.34, 0.45, 0.75


@dataclass(frozen=True, kw_only=True)
class Row:
    """One of those compared.

    Attributes
    ----------
    values
        A value for each panel; None where there is none.
    colour
        Of its bars, a name in `LIGHT`.
    """

    values: Sequence[float | None]
    colour: str


def bar_figure(
    rows: Mapping[str, Row], panels: Sequence[str], meanings: Mapping[str, str]
) -> Figure:
    """Return a figure of *rows* by label, in the order given.

    Parameters
    ----------
    panels
        Their titles.
    meanings
        Colour to what it says, for the key.
    """
    places = np.arange(len(rows))
    height = _TOP + _BOTTOM + _ROW * max(1, len(rows))
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(
        left=_LABEL_WIDTH / _WIDTH,
        right=0.985,
        top=1 - _TOP / height,
        bottom=_BOTTOM / height,
        wspace=0.14,
    )
    colours = [LIGHT[row.colour] for row in rows.values()]
    for place, (panel, title) in enumerate(zip(axes, panels, strict=True)):
        values = [row.values[place] for row in rows.values()]
        widths = np.array([np.nan if value is None else value for value in values])
        panel.barh(places, np.nan_to_num(widths), height=0.68, color=colours)
        longest = np.nanmax(widths, initial=0.0) or 1.0
        for row, width in zip(places, widths, strict=True):
            told = "–" if np.isnan(width) else short(width)
            panel.text(np.nan_to_num(width) + 0.02 * longest, row, told, va="center", size=8)
        panel.set(xlim=(0, longest * 1.32), ylim=(len(rows) - 0.4, -0.6))
        panel.set_title(title)
        panel.xaxis.set_major_locator(MaxNLocator(3))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        panel.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
        panel.grid(axis="x")
    axes[0].set_yticks(places, list(rows))
    _key(figure, height, meanings)
    return figure


def _key(figure: Figure, height: float, meanings: Mapping[str, str]) -> None:
    at = _LABEL_WIDTH / _WIDTH
    for colour, told in meanings.items():
        figure.text(at, 0.14 / height, "■", color=LIGHT[colour], size=9)
        figure.text(at + 0.014, 0.14 / height, told, color=LIGHT["muted"], size=8)
        at += 0.024 + 0.0068 * len(told)
