"""The machine that work runs on: its name, its libraries and its free memory."""

from __future__ import annotations

import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from joins.threads import usable_cores

_LIBRARIES = ("joinsim", "numpy", "numba", "pyarrow", "pyspark", "ray", "simpy")
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


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a run depends on, where they are."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):  # Spark and Ray are extras
            found[name] = version(name)
    return found


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
