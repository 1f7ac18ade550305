"""Pictures as data, and the pages and files that they are drawn on.

A picture is a table, and panels that each draw some of it, written in Vega-Lite. Its colours are
names of `COLOURS`, as ``var(--NAME)``, so that they follow a page's theme. Times in the data are
seconds; axes show them in a unit of their size.

A page is a template of this folder, filled; it needs nothing but itself. Pages are in light and
dark, and bring along the JavaScript that draws their pictures (``templates/pictures.js``). This is
made once, by this module as a program, then stored in the cache folder. `write_figure` draws a
picture into a file.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from io import StringIO
from math import isfinite
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from actors.whole_files import write_bytes, write_text
from joins.errors import OutputError, show_controls
from joins.machine.cache import cache_folder
from scenarios.formatting import format_bytes, format_count, format_duration
from scenarios.scenario_files import ConfigError
from scenarios.subprocesses import start_program

if TYPE_CHECKING:
    from jinja2 import Environment

COLOURS = {
    "ink": ("#1f2329", "#e6e8ec"),
    "muted": ("#69707a", "#9aa2ad"),
    "line": ("#c9ced6", "#454b55"),
    "panel": ("#f2f4f7", "#1e232b"),
    "paper": ("#fefefe", "#14171c"),
    "blue": ("#2f6fb5", "#6ea8e6"),
    "orange": ("#d9762b", "#f0a060"),
    "amber": ("#ad550f", "#f0a060"),
    "green": ("#2d7a4c", "#6cc492"),
    "purple": ("#7f5fb0", "#b39ae0"),
    "red": ("#c4383f", "#f07d80"),
    "teal": ("#1f8f98", "#5cc4cb"),
    "brown": ("#8b6b4a", "#c4a27e"),
    "pink": ("#c75b96", "#e898c4"),
}
"""Name to the colour on light and on dark ground; amber is orange that can be read as text."""

LIGHT = {name: light for name, (light, _) in COLOURS.items()}
SERIES = ("blue", "orange", "green", "purple", "red", "teal", "brown", "pink")
"""Colours of lines and ports, in the order of their use."""

Spec = dict[str, Any]
"""A part of a Vega-Lite specification."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
SUFFIXES = (".pdf", ".svg", ".png")
_COLUMN_WIDTH, _PAGE_WIDTH = 240.0, 504.0
"""Points: a column and the width of a page, as most journals set them."""
_KEY_MARK, _LETTER = 26.0, 4.2
"""Points of a sign in a figure's key, and of a letter of a figure's text."""
_PRINT_FONT = "Helvetica, Arial, Liberation Sans, sans-serif"
_PNG_SCALE = 3.0
_COLOUR = re.compile(r"var\(--(\w+)\)")
_UNITS = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What a figure shows."""

    title: str
    """What it is, for those who do not see it."""
    data: Mapping[str, Sequence[Any]]
    """Columns of one length, by name."""
    panels: Sequence[Spec]
    """Each a view of the data, side by side where there is room for *columns* of them."""
    columns: int = 1
    legend: Mapping[str, str] = field(default_factory=dict)
    """What is drawn, to its colour."""
    signs: str = "■"
    """Letters that look like its marks, in turn."""
    span_s: tuple[float, float] | None = None
    """The seconds that its x axes show, which the reader can zoom into; None for other axes."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The data row by row."""
        columns = ([_plain(value) for value in column] for column in self.data.values())
        return [dict(zip(self.data, row, strict=True)) for row in zip(*columns, strict=True)]

    def as_json(self) -> dict[str, Any]:
        """Return what a page needs to draw it."""
        data = {name: [_plain(value) for value in column] for name, column in self.data.items()}
        return {
            "data": data,
            "panels": self.panels,
            "span": self.span_s,
            "config": _vega_config(11),
        }

    def csv(self) -> str:
        """Return its data as text, with a line of names first."""
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.data)
        writer.writerows(row.values() for row in self.rows)
        return file.getvalue()

    def spec(self) -> Spec:
        """Return it as one specification for print, at the size of a column or of a page."""
        panels = list(map(dict, self.panels))
        columns = min(self.columns, len(panels))
        room = _COLUMN_WIDTH if len(panels) == 1 and self.columns > 1 else _PAGE_WIDTH
        width = room / columns - 48
        for panel in panels:
            panel |= {"width": width, "height": panel["height"] * 0.62}
        drawn: Spec = {
            "$schema": SCHEMA,
            "data": {"name": "table", "values": self.rows},
            # `time_axis` refers to these.
            "params": [
                {"name": name, "value": at}
                for name, at in zip(("begin", "end"), self.span_s or (), strict=False)
            ],
            "concat": panels,
            "columns": columns,
            "spacing": 12,
            "config": _vega_config(8) | {"font": _PRINT_FONT, "background": "white"},
        }
        entry = _KEY_MARK + _LETTER * max(map(len, self.legend), default=0)
        legend: Spec = {
            "orient": "top",
            "columns": max(1, min(4, int(room // entry))),
            "title": None,
            "symbolType": "square" if self.signs == "■" else "stroke",
        }
        text = json.dumps(drawn).replace('"legend": null', f'"legend": {json.dumps(legend)}')
        titles = [panel.get("encoding", {}).get("x", {}).get("title") for panel in panels]
        for title in dict.fromkeys(json.dumps(title) for title in titles if title):
            one = json.loads(title)  # a text, or its lines
            lines = wrap(one if isinstance(one, str) else " ".join(one), int(width // _LETTER))
            if len(lines) > 1:
                # In every layer of a panel, which would draw titles that differ side by side.
                text = text.replace(f'"title": {title}', f'"title": {json.dumps(lines)}')
        light: Spec = json.loads(_COLOUR.sub(lambda name: LIGHT[name[1]], text))
        return light


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: a Python number, and nothing for one that is not finite."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not isfinite(value) else value


def _vega_config(size: float) -> Spec:
    """Return how all pictures look, in text of *size*."""
    muted, ink, line = "var(--muted)", "var(--ink)", "var(--line)"
    text = {"labelFontSize": size, "titleFontSize": size, "titleFontWeight": "normal"}
    return {
        "background": "transparent",
        "view": {"stroke": None},
        "axis": text
        | {"labelColor": muted, "titleColor": ink, "gridColor": line, "gridOpacity": 0.6}
        | {"domainColor": line, "tickColor": line, "labelOverlap": True, "labelLimit": 15 * size},
        "axisX": {"grid": False},
        "legend": text | {"labelColor": ink},
        "title": {"anchor": "start", "color": ink, "fontSize": size, "fontWeight": "bold"},
        "text": {"color": ink, "fontSize": size - 1},
        "line": {"strokeWidth": 1.6, "color": ink},
        "rule": {"color": ink},
    }


def short(name: str) -> str:
    """Return the text of a mark's or an axis's number, with a letter for thousands and so on."""
    number = f"datum['{name}']"
    return f"abs({number}) < 1000 ? format({number}, '.3~g') : format({number}, '.3~s')"


def _time_labels(length_s: float) -> tuple[str, str]:
    """Return how times up to *length_s* are written on an axis, and in which unit."""
    scale, unit = next((one for one in _UNITS if length_s * one[0] >= 2), _UNITS[-1])
    return f"format(datum.value * {scale:g}, '.6~g')", unit


def time_axis(name: str, span_s: tuple[float, float], title: str) -> Spec:
    """Return an x axis over seconds, that shows the part which the reader chose."""
    labels, unit = _time_labels(span_s[1] - span_s[0])
    return {
        "field": name,
        "type": "quantitative",
        "title": f"{title} ({unit})" if title else None,
        "scale": {"domain": [{"expr": "begin"}, {"expr": "end"}], "nice": False, "zero": False},
        "axis": {"labelExpr": labels, "tickCount": 6, "labels": bool(title)},
    }


def number_axis(
    name: str, title: str | Sequence[str] | None, *, most_s: float | None = None, **scale: Any
) -> Spec:
    """Return an axis of numbers, written short; of times to *most_s*, in a unit of their size."""
    labels = short("value")
    if most_s is not None:
        labels, unit = _time_labels(most_s)
        title = f"{title} ({unit})"
    if scale.get("type") == "log":
        labels = f"datum.label == '' ? '' : {labels}"
    return {
        "field": name,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"labelExpr": labels, "tickCount": 5},
    }


def colour_of(name: str, colours: Mapping[str, str]) -> Spec:
    """Return the encoding of a field by *colours* of its values; the page has a key of them."""
    range_ = [f"var(--{colour})" for colour in colours.values()]
    scale = {"domain": list(colours), "range": range_}
    return {"field": name, "type": "nominal", "scale": scale, "legend": None}


def row_axis(name: str, rows: Sequence[str]) -> Spec:
    """Return an axis of named rows, the first on top."""
    return {
        "field": name,
        "type": "nominal",
        "title": None,
        "scale": {"domain": list(rows)},
        "axis": {"grid": True, "ticks": False, "domain": False},
    }


def tooltip(**titles: str) -> list[Spec]:
    """Return what is shown of a mark: fields, by their names for a reader."""
    return [{"field": name, "title": title} for name, title in titles.items()]


def layer(mark: str, *transform: Spec, look: Spec | None = None, **encoding: Any) -> Spec:
    """Return a layer of a panel: a mark for each row of the transformed data, of one *look*.

    A channel's encoding that is a text is the name of a field.
    """
    channels = {
        channel: {"field": of} if isinstance(of, str) else of for channel, of in encoding.items()
    }
    drawn = {"type": mark} | (look or {})
    return {"transform": list(transform), "mark": drawn, "encoding": channels}


def pictures_json(pictures: Mapping[str, Picture]) -> Markup:
    """Return pictures as the text of a script element of a page."""
    named = {name: picture.as_json() for name, picture in pictures.items()}
    return Markup(json.dumps(named, separators=(",", ":")).replace("<", "\\u003c"))


def fill_page(path: Path, template: str, **context: Any) -> Path:
    """Fill *template* with *context*, write it to *path*, and return that.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    write_text(path, show_controls(render(template, colours=COLOURS, **context)))
    return path


def render(template: str, **context: Any) -> str:
    """Return *template* filled with *context*."""
    return _environment().get_template(template).render(**context)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # not for the program

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "count": format_count,
        "duration": format_duration,
        "pictures_json": pictures_json,
        "points": format_points,
        "table": lambda table: Markup(table.html()),
    }
    environment.globals["vega_script"] = vega_script
    return environment


def format_points(length: float) -> str:
    """Return a length of a drawing, to a hundredth of a point."""
    return f"{length:.2f}".rstrip("0").rstrip(".")


@cache
def vega_script() -> Markup:
    """Return the script, which takes two seconds to make; it is stored for each version."""
    path = script_path()
    if path.is_file():
        return Markup(path.read_text(encoding="utf-8"))
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    bundle = bundle.replace("</script", "<\\/script")
    with suppress(OSError, OutputError):  # no folder to write to: it is made in every process
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, bundle)
    return Markup(bundle)


@contextmanager
def making_vega_script() -> Iterator[None]:
    """Have another process make the script during the ``with``, where it is not stored yet.

    A thread would stop this one: the library that makes it holds Python's lock.
    """
    with ExitStack() as until_the_end:
        if not script_path().is_file():
            with suppress(OSError):  # no process may begin: who needs the script makes it
                process = start_program(__name__)
                until_the_end.enter_context(process)
                until_the_end.callback(process.kill)
        yield


def script_path() -> Path:
    """Return where the script of this version is stored."""
    return cache_folder() / f"vega-{version('vl-convert-python')}.js"


def check_suffix(path: Path) -> str:
    """Return the suffix of a figure's file; raise :exc:`ConfigError` where it is none of ours."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(
            f"cannot draw into {path}: the file's name must end in {', '.join(SUFFIXES)}"
        )
    return path.suffix.lower()


def figure_data(path: Path) -> Path:
    """Return where a figure's data goes: not ``orders.csv``, which may be what it was drawn of."""
    return path.with_name(f"{path.name}.csv")


def write_svg(svg: str, path: Path) -> None:
    """Write a drawing, in light colours, into a file of one of `SUFFIXES`.

    Raise :exc:`ConfigError` for another suffix, :exc:`OutputError` where it cannot be written.
    """
    suffix = check_suffix(path)
    import vl_convert

    svg = _COLOUR.sub(lambda name: LIGHT[name[1]], svg)
    if suffix == ".svg":
        write_text(path, svg)
    elif suffix == ".pdf":
        write_bytes(path, vl_convert.svg_to_pdf(svg))
    else:
        write_bytes(path, vl_convert.svg_to_png(svg, scale=_PNG_SCALE))


def write_figure(picture: Picture, path: Path) -> None:
    """Draw a picture into a file of one of `SUFFIXES`, and write its data beside it as CSV.

    Raise :exc:`ConfigError` for another suffix, :exc:`OutputError` where it cannot be written.
    """
    check_suffix(path)
    import vl_convert

    write_svg(vl_convert.vegalite_to_svg(picture.spec()), path)
    write_text(figure_data(path), picture.csv())


if __name__ == "__main__":
    vega_script()
