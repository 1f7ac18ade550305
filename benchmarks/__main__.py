"""Run the benchmarks but those that take half an hour or more, one after the other.

With ``--json`` each prints one JSON object.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.measure import command_line

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
    options = command_line(__doc__).parse_args()
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    failed = 0
    for name in names:
        if name not in _LEFT_OUT:
            command = [
                sys.executable,
                "-m",
                f"benchmarks.{name}",
                *(["--json"] if options.json else []),
            ]
            failed |= subprocess.run(command, check=False).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
