"""Runs the benchmarks but those that take long: ``python -m benchmarks``.

With ``--json`` each prints one JSON object.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_LEFT_OUT = {
    "__init__",
    "__main__",
    # What others share.
    "contest",
    "cpp",
    "inequality_work",
    "interval_work",
    "measure",
    # What takes half an hour or more; `benchmarks/README.md` says what each is for.
    "hostile",
    "kills",
    "mutants",
    "soak",
}


def main() -> int:
    """Run the benchmarks one after the other, each in a process of its own."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    failed = 0
    for name in names:
        if name not in _LEFT_OUT:
            command = [sys.executable, "-m", f"benchmarks.{name}", *sys.argv[1:]]
            failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
