"""Runs every benchmark: ``python -m benchmarks`` (``--json`` for one JSON object each)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_SHARED = {
    "__init__",
    "__main__",
    "contest",
    "cpp",
    "hostile",  # takes hours, and measures nothing
    "soak",  # takes long
    "inequality_work",
    "interval_work",
    "kills",  # takes half an hour, and measures nothing
    "measure",
    "mutants",  # the same
    "one_off",
}


def main() -> int:
    """Run the benchmarks one after the other, each in a process of its own."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    failed = 0
    for name in names:
        if name not in _SHARED:
            command = [sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]
            failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
