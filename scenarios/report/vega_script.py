"""The JavaScript that draws the pictures of a page: made once, then stored in the cache folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from markupsafe import Markup

from actors.whole_files import write_text
from joins.errors import OutputError
from joins.machine.cache import cache_folder
from scenarios.subprocesses import start_program


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
