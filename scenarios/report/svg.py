"""Drawings as SVG: shapes, and panels with axes. All lengths are points, y grows downwards.

The figures of a run's page are drawn with this: they are the same few shapes every time, and to
import and run matplotlib takes a second. Studies and files are drawn by matplotlib.

Colours are names of `scenarios.report.colours`, which follow the page's theme, or ``#`` codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import ceil, floor, isfinite, log10

INCH = 72.0
"""Points."""
_PIXELS = 100 / INCH
"""Of a screen, per point: as wide as a figure may become."""
_FONTS = "system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
_TICK = 3.5
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
"""Distances between ticks, of a power of ten."""


def paint(colour: str) -> str:
    """Return a colour as a style has it."""
    return colour if colour.startswith("#") or colour == "none" else f"var(--{colour})"


def number(value: float) -> str:
    """Return a coordinate, to a hundredth of a point."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Drawing:
    """An SVG picture of some width and height; shapes drawn later are above earlier ones."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._elements: list[str] = []

    def path(
        self,
        outline: str,
        *,
        fill: str = "none",
        stroke: str = "none",
        width: float = 1.0,
        dashes: Sequence[float] = (),
        opacity: float = 1.0,
    ) -> None:
        """Draw an outline in SVG's own notation."""
        style = f"fill:{paint(fill)};stroke:{paint(stroke)}"
        if stroke != "none":
            style += f";stroke-width:{number(width)}"
        if dashes:
            style += ";stroke-dasharray:" + ",".join(number(one * width) for one in dashes)
        if opacity < 1:
            style += f";opacity:{opacity:.3g}"
        self._elements.append(f'<path d="{outline}" style="{style}"/>')

    def rectangle(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        stroke: str = "none",
        line: float = 1.0,
        radius: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """Draw a rectangle from its upper left corner."""
        style = f"fill:{paint(fill)}"
        if stroke != "none":
            style += f";stroke:{paint(stroke)};stroke-width:{number(line)}"
        if opacity < 1:
            style += f";opacity:{opacity:.3g}"
        rounded = f' rx="{number(radius)}"' if radius else ""
        self._elements.append(
            f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
            f'height="{number(height)}"{rounded} style="{style}"/>'
        )

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 9.0,
        colour: str = "ink",
        anchor: str = "start",
        bold: bool = False,
        upwards: bool = False,
    ) -> None:
        """Write *text*, its middle at height *y*; *anchor* is ``start``, ``middle`` or ``end``."""
        style = f"font:{'bold ' if bold else ''}{number(size)}px {_FONTS};fill:{paint(colour)}"
        if anchor != "start":
            style += f";text-anchor:{anchor}"
        if upwards:
            place = f'transform="translate({number(x)} {number(y)}) rotate(-90)" dy="0.35em"'
        else:
            place = f'x="{number(x)}" y="{number(y)}" dy="0.35em"'
        self._elements.append(f'<text {place} style="{style}">{escape(text)}</text>')

    def legend(
        self, x: float, y: float, entries: Iterable[tuple[str, str]], *, thick: bool
    ) -> None:
        """Write names beside samples of their colours, in a row; *thick* samples are of bars."""
        for name, colour in entries:
            height = 6.0 if thick else 1.6
            self.rectangle(x, y - height / 2, 10, height, fill=colour)
            self.text(x + 15, y, name, size=8)
            x += 30 + 4.6 * len(name)

    def markup(self, description: str) -> str:
        """Return the ``<svg>`` element; *description* is for those who do not see it."""
        return "\n".join(
            [
                f'<svg role="img" aria-label="{escape(description)}" '
                f'style="max-width: {self.width * _PIXELS:.0f}px" '
                f'viewBox="0 0 {number(self.width)} {number(self.height)}" '
                'version="1.1" xmlns="http://www.w3.org/2000/svg">',
                *self._elements,
                "</svg>",
            ]
        )


class Panel:
    """A pair of axes in a drawing, from its upper left corner; the y axis may be logarithmic."""

    def __init__(
        self,
        drawing: Drawing,
        corner: tuple[float, float],
        size: tuple[float, float],
        *,
        xlim: tuple[float, float],
        ylim: tuple[float, float],
        log: bool = False,
    ) -> None:
        self.drawing = drawing
        self.left, self.top = corner
        self.right, self.bottom = corner[0] + size[0], corner[1] + size[1]
        self._xlim, self._ylim, self.log = xlim, ylim, log

    def x(self, value: float) -> float:
        """Return where a value of the x axis is."""
        low, high = self._xlim
        return self.left + (value - low) / (high - low) * (self.right - self.left)

    def y(self, value: float) -> float:
        """Return where a value of the y axis is."""
        low, high = self._ylim
        if self.log:
            low, high, value = log10(low), log10(high), log10(value)
        return self.bottom - (value - low) / (high - low) * (self.bottom - self.top)

    def frame(self, *, whole: bool = False) -> None:
        """Draw the axes' lines: left and below, or all around."""
        left, right, top, bottom = map(number, (self.left, self.right, self.top, self.bottom))
        around = f"H{right}V{top}H{left}Z" if whole else f"H{right}"
        start = f"M{left} {bottom}" if whole else f"M{left} {top}V{bottom}"
        self.drawing.path(start + around, stroke="line", width=0.8)

    def x_axis(self, label: str, ticks: Sequence[float], *, grid: bool = False) -> None:
        """Draw ticks with their values below the panel, and what they are of."""
        if grid:
            lines = (
                f"M{number(self.x(at))} {number(self.top)}V{number(self.bottom)}" for at in ticks
            )
            self.drawing.path("".join(lines), stroke="line", width=0.5)
        self.name_columns(ticks, [f"{at:g}" for at in ticks], marks=True)
        self.drawing.text((self.left + self.right) / 2, self.bottom + 23, label, anchor="middle")

    def name_columns(self, at: Sequence[float], names: Sequence[str], *, marks: bool) -> None:
        """Write names below the panel."""
        for place, name in zip(at, names, strict=True):
            x = self.x(place)
            self.drawing.text(x, self.bottom + 9, name, size=8, colour="muted", anchor="middle")
        if marks and at:
            lines = (f"M{number(self.x(one))} {number(self.bottom)}v{_TICK}" for one in at)
            self.drawing.path("".join(lines), stroke="line", width=0.8)

    def y_axis(
        self,
        label: str,
        ticks: Sequence[float],
        write: Callable[[float], str],
        *,
        offset: float = 44.0,
        grid: bool = True,
    ) -> None:
        """Draw ticks with their values left of the panel, and what they are of."""
        if grid and ticks:
            lines = (
                f"M{number(self.left)} {number(self.y(at))}H{number(self.right)}" for at in ticks
            )
            self.drawing.path("".join(lines), stroke="line", width=0.5)
        for at in ticks:
            x, y = self.left - _TICK, self.y(at)
            self.drawing.path(f"M{number(x)} {number(y)}h{_TICK}", stroke="line", width=0.8)
            self.drawing.text(x - 3, y, write(at), size=8, colour="muted", anchor="end")
        middle = (self.top + self.bottom) / 2
        self.drawing.text(self.left - offset, middle, label, anchor="middle", upwards=True)

    def name_rows(self, names: Sequence[str]) -> None:
        """Write a name left of each row, the first, 0, at the top."""
        for row, name in enumerate(names):
            self.drawing.text(self.left - 6, self.y(row), name, size=8, anchor="end")

    def steps(self, values: Sequence[float], edges: Sequence[float], colour: str) -> None:
        """Draw a line that has a value from each edge to the next; a value may be missing, NaN."""
        outline, open_ = [], False
        for value, start, stop in zip(values, edges, edges[1:], strict=False):
            if not isfinite(value) or (self.log and value <= 0):
                open_ = False
                continue
            y = number(self.y(value))
            outline.append(f"V{y}" if open_ else f"M{number(self.x(start))} {y}")
            outline.append(f"H{number(self.x(stop))}")
            open_ = True
        if outline:
            self.drawing.path("".join(outline), stroke=colour, width=1.6)


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round values from *low* to *high*, at most *most* distances between them."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(one * power for one in _STEPS if one * power >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [round(place * step, 12) for place in range(first, last + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return the powers of ten from *low* to *high*; where these are few, twice and five times."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    factors = (1, 2, 5) if len(powers) <= 3 else (1,)
    values = [factor * 10.0**power for power in powers for factor in factors]
    return [value for value in values if low <= value <= high]
