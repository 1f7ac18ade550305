"""How every page is made: a template of this folder, filled; it needs nothing but itself.

Pages are in light and dark, and bring along the JavaScript that draws their pictures. This is made
once, by this module as a program, then stored in the cache folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from actors.whole_files import write_text
from joins.errors import OutputError, show_controls
from joins.machine.cache import cache_folder
from scenarios.formatting import format_bytes, format_count, format_duration
from scenarios.report.picture import COLOURS, pictures_json
from scenarios.subprocesses import start_program

if TYPE_CHECKING:
    from jinja2 import Environment


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


if __name__ == "__main__":
    vega_script()
