"""The command that all others belong to: their groups in ``--help``, and completion of names."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from joinsim.cli.output import EXIT_PASS, Finished

JOINS, PAPERS, SYSTEMS = "Joins", "Scenarios and papers", "Systems, data and machines"

_WHOLE = 1_000  # characters of a summary: it goes on in the next line, it is not cut


class Grouped(TyperGroup):
    """Commands that are listed in groups, by ``rich_help_panel``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group's commands, in their order."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                group = getattr(command, "rich_help_panel", None)
                heading = group if isinstance(group, str) else "Commands"
                line = (name, command.get_short_help_str(_WHOLE))
                groups.setdefault(heading, []).append(line)
        for heading, lines in groups.items():
            with formatter.section(heading):
                formatter.write_dl(lines)


app = typer.Typer(
    name="joinsim",
    help="A laboratory for distributed stream joins.\n\n"
    "Exit codes: 0 the verdict is pass, 1 fail, 2 unknown (nothing was tested, or pairs differ "
    "in a run that claims nothing of them), 3 no verdict (bad input or a crash).",
    no_args_is_help=True,
    cls=Grouped,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"joinsim {version('joinsim')}")
        raise typer.Exit


def _finish(code: int | None, **_: Any) -> None:
    """End with the exit code that a command returned; one that judges nothing returns none."""
    raise Finished(code or EXIT_PASS)


@app.callback(result_callback=_finish)
def main(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Read the options that come before a command."""


def complete_scenario(incomplete: str) -> list[str]:
    """Return the scenarios whose names begin so, for the shell."""
    return _beginning("scenarios", incomplete)


def complete_topology(incomplete: str) -> list[str]:
    """Return the topologies whose names begin so, for the shell."""
    return _beginning("topologies", incomplete)


def _beginning(kind: str, incomplete: str) -> list[str]:
    from joinsim._listing import listing

    return [one["name"] for one in listing()[kind] if one["name"].startswith(incomplete)]
