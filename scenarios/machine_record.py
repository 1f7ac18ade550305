"""The machine that a measured figure was taken on, in words that a reader can compare."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

import psutil

from joins.threads import usable_cores

_CPU_INFO = Path("/proc/cpuinfo")  # Linux; platform.processor() is empty there.


@cache
def describe_machine() -> dict[str, str | int]:
    """Return the ``processor``'s name, how many ``cores`` a process may use, and the ``system``.

    Two machines with equal descriptions are taken for one kind.
    """
    return {
        "processor": _processor(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def free_memory_bytes() -> int:
    """Return how many bytes a process can take without the system swapping."""
    return int(psutil.virtual_memory().available)


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
