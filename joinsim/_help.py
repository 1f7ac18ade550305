"""What the shell and ``--help`` show: commands in groups, and completions of names."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

JOINS, PAPERS, SYSTEMS = "Joins", "Scenarios and papers", "Systems, data and machines"


class Grouped(TyperGroup):
    """Commands that are listed in groups, by ``rich_help_panel``."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each group's commands, in their order."""
        groups: dict[str, list[tuple[str, str]]] = {}
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        for name in names:
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                group = getattr(command, "rich_help_panel", None)
                heading = group if isinstance(group, str) else "Commands"
                line = (name, command.get_short_help_str(room))
                groups.setdefault(heading, []).append(line)
        for heading, lines in groups.items():
            with formatter.section(heading):
                formatter.write_dl(lines)


def complete_scenario(incomplete: str) -> list[str]:
    """Return the scenarios whose names begin so, for the shell."""
    return _beginning("scenarios", incomplete)


def complete_topology(incomplete: str) -> list[str]:
    """Return the topologies whose names begin so, for the shell."""
    return _beginning("topologies", incomplete)


def _beginning(kind: str, incomplete: str) -> list[str]:
    from joinsim._listing import listing

    return [one["name"] for one in listing()[kind] if one["name"].startswith(incomplete)]
