"""Fills a template of this folder: pages that need nothing but themselves, in light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from actors.whole_files import write_text
from scenarios.formatting import format_bytes, format_count, format_duration
from scenarios.report.colours import COLOURS
from scenarios.report.picture import pictures_json, vega_script

_TEMPLATES = Path(__file__).parent / "templates"


def fill_page(path: Path, template: str, **context: Any) -> Path:
    """Fill *template* with *context*, write it to *path*, and return that.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
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
        "table": lambda table: Markup(table.html()),
    }
    environment.globals["vega_script"] = vega_script
    page = environment.get_template(template).render(colours=COLOURS, **context)
    write_text(path, page)
    return path
