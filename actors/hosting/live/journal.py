"""What a process writes down while it runs: results and the trace, to be fetched afterwards.

Nothing of a live run goes through the process that started it. What leaves the system is written
here, on the machine where it left, and read by others only when all clocks have stopped.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

_IN_MEMORY_BYTES = 2**26
_ENTRY_ROWS = 16_384

Entry = list[Any] | np.ndarray
"""Results in the order they left; or rows of the trace, int64, in the order of service, by columns
as `netsim.trace` has them."""


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
