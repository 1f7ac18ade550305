"""The console command: Ctrl-C may come in the seconds before everything is imported."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, see `scenarios.cli.main`."""
    try:
        from scenarios.cli import main as run
    except KeyboardInterrupt:
        print("joinsim: stopped", file=sys.stderr)
        sys.exit(3)  # `failures.EXIT_STOPPED`, which is not imported yet
    run()
