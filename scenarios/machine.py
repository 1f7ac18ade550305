"""The machine that work runs on: its name, its libraries, its free memory, and how fast it is now.

Other work on the machine slows down Python's interpreter, which jumps about in much code, before it
slows down reads of memory: on a machine in a cloud it took 1.3 to 1.7 times as long for a minute,
now and then, while a read of the nearest cache took 1.02 to 1.1 times as long, once 1.24 times.
"""

from __future__ import annotations

import gc
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median

import psutil

from joins.threads import usable_cores

_LIBRARIES = ("joinsim", "numpy", "numba", "pyarrow", "pyspark", "ray", "simpy")
_CPU_INFO = Path("/proc/cpuinfo")  # Linux; platform.processor() is empty there.

_SLOW = 1.15
"""How many times as long as usual the interpreter takes on a machine that is disturbed. In other
minutes what it took was within a tenth of the usual."""
_STEPS = 3000
_ROUNDS = 3


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


@cache  # reading them takes longer than a short run's actors
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


class MachinePace:
    """How fast the machine is, while pieces of work are timed on it one after the other."""

    def __init__(self) -> None:
        self._readings_s: list[float] = []
        self.read()

    def read(self) -> None:
        """Read how fast it is, before work that did not follow on what was timed last."""
        self._readings_s.append(interpret_s())

    def after_work(self) -> float:
        """Return the slower of the interpreter's times before and after the latest work, s."""
        self.read()
        return max(self._readings_s[-2:])

    def is_disturbed(self, seconds: float) -> bool:
        """Whether the machine was slower than usual when `after_work` returned *seconds*.

        Its best pace is no measure: where a machine is faster for some minutes, nearly all would be
        measured again, and what is compared would be of minutes that are not alike.
        """
        return seconds >= _SLOW * median(self._readings_s)


def interpret_s() -> float:
    """Return how many seconds the interpreter takes now for a fixed piece of Python."""
    return min(_interpret() for _ in range(_ROUNDS))


class _Record:
    def __init__(self, fields: dict[str, int]) -> None:
        self.fields = fields

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(self.fields.values())


def _interpret() -> float:
    """Time calls, objects, names and loops, as there are around every kernel."""
    started = time.thread_time()
    for step in range(_STEPS):
        record = _Record({"first": step, "second": 2, "third": 3})
        sum(value + 1 for value in record.values)
    return time.thread_time() - started


@contextmanager
def without_collections() -> Iterator[None]:
    """Collect no garbage meanwhile: to look through all that is loaded takes 50 ms, amid a call.

    Processes of Ray and Spark, which work for long, look through nothing that was there before.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
