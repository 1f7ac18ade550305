"""How every page is made: a template of this folder, filled; it needs nothing but itself.

Pages are in light and dark, and bring along the JavaScript that draws their pictures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from actors.whole_files import write_text
from joins.errors import show_controls
from scenarios.formatting import format_bytes, format_count, format_duration
from scenarios.report.picture import COLOURS, pictures_json
from scenarios.report.vega_script import vega_script

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
    write_text(path, show_controls(page))
    return path
