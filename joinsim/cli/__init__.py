"""The command line: each command is a call of the public package, and prints what it returns.

Nothing heavy but typer is imported before a command runs.
"""

from joinsim.cli import joins, papers, systems  # noqa: F401  (they add their commands)
from joinsim.cli.command_line import app

__all__ = ["app"]
