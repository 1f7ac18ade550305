"""Words and figures as they stand in the terminal."""

from __future__ import annotations

PASSED = {True: ("PASS", "bold green"), False: ("FAIL", "bold red"), None: ("UNKNOWN", "yellow")}
"""What a verdict is called, and its style."""


def in_bytes(count: float) -> str:
    """Say a number of bytes with a unit of its size."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:,.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
