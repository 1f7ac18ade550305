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


def in_ms(ms: float) -> str:
    """Say milliseconds to three digits, whole ones from a thousand on."""
    return f"{ms:,.0f}" if ms >= 1000 else f"{ms:,.3g}"
