"""What a process of a live run measures time by, and what it writes down.

A live run has no virtual time. All processes count from one moment. On one machine their clocks
agree to the microsecond; between machines as well as the machines' own clocks do, so that latencies
across them are as good as those.

Results and the trace do not go through the process that started the run. They are written down on
the machine where they arise, and read by others only when all clocks have stopped.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

_IN_MEMORY_BYTES = 2**26
_ENTRY_ROWS = 16_384

Entry = list[Any] | np.ndarray
"""Results in the order they left; or rows of the trace, int64, in the order of service, by columns
as `netsim.trace` has them."""


def moment_ns() -> int:
    """Return the present, for other processes to count from."""
    return time.time_ns()


class Clock:
    """Nanoseconds since the run began, never going back.

    Parameters
    ----------
    began_ns
        When that was, from `moment_ns`.
    """

    def __init__(self, began_ns: int) -> None:
        self._zero_ns = time.monotonic_ns() - (time.time_ns() - began_ns)

    def now(self) -> int:
        """Return the nanoseconds since the run began."""
        return time.monotonic_ns() - self._zero_ns

    @staticmethod
    def processor_ns() -> int:
        """Return the processor time that all threads of this process have used."""
        return time.process_time_ns()

    @staticmethod
    def worked_ns() -> int:
        """Return the processor time that this thread has used."""
        return time.thread_time_ns()


class Journal:
    """Takes results and rows of a trace; in memory as long as they are few, then in a file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115
        self._rows: list[tuple[int, ...]] = []

    def emit(self, results: list[Any]) -> None:
        """Take results that left the system."""
        pickle.dump(results, self._file, protocol=5)

    def record(self, row: tuple[int, ...]) -> None:
        """Take one row of the trace."""
        self._rows.append(row)
        if len(self._rows) == _ENTRY_ROWS:
            self._write_rows()

    def entries(self) -> Iterator[Entry]:
        """Return all that was taken, some at a time; once only."""
        if self._rows:
            self._write_rows()
        with self._file:
            self._file.seek(0)
            while True:
                try:
                    yield pickle.load(self._file)
                except EOFError:
                    return

    def _write_rows(self) -> None:
        pickle.dump(np.array(self._rows, np.int64), self._file, protocol=5)
        self._rows.clear()
