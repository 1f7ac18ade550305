"""Draws a topology into a file."""

from __future__ import annotations

from pathlib import Path

from scenarios.run_directory import OutputError
from scenarios.scenario_files import ConfigError
from topologies.actor_graph import ActorGraph

SUFFIXES = (".svg", ".png", ".pdf")
_PNG_DPI = 160
_UNDATED = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}
"""Without its date, the same drawing is the same file."""


def draw(graph: ActorGraph, title: str, path: Path) -> None:
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
    # Only here: importing matplotlib takes half a second that other commands need not spend.
    from scenarios.drawing.painting import plain_figure
    from scenarios.drawing.style import style

    with style():
        figure = plain_figure(graph, title)
        try:
            figure.savefig(
                path,
                format=suffix[1:],
                dpi=_PNG_DPI,
                facecolor="white",
                metadata=_UNDATED[suffix],
            )
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from None
