"""Pages that need nothing but themselves: one look, light and dark, from templates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scenarios.report.settings import duration, in_bytes
from scenarios.run_directory import OutputError
from scenarios.terminal.words import in_ms

TEMPLATES = Path(__file__).parent / "templates"


def write_page(path: Path, template: str, **context: Any) -> None:
    """Fill *template* with *context* and write it to *path*.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    # Only here: the page's libraries take a second that other commands need not spend.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    from scenarios.drawing.style import COLOURS

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"bytes": in_bytes, "duration": duration, "ms": in_ms}
    page = environment.get_template(template).render(colours=COLOURS, **context)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None
