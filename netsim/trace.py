"""The trace of a run: one row for every message and timer that was served, and its digest.

The digest is the identity of a run: two runs with one digest had the same messages, of the same
sizes, at the same virtual times, in the same order.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from actors.protocol import START, TIMER, Wiring
from actors.whole_files import WholeTable

COLUMNS = (
    "sender", "receiver", "port", "seq", "nbytes", "rows", "first", "last",
    "sent_ns", "left_ns", "arrived_ns", "started_ns", "done_ns",
)  # fmt: skip
"""Sender, receiver and port are names; seq counts the sender's messages; nbytes is the size on the
wire; first and last are the arrival numbers of the tuples it speaks of (-1: none); then the virtual
times at which it was handed to the network, left the sender's port, arrived, started service and
was done."""

pack_row = struct.Struct(f"<{len(COLUMNS)}q").pack
"""Return the bytes of one row, from its integers in the order of `COLUMNS`."""

_NAMED = COLUMNS[:3]
TIMES = COLUMNS[8:]
"""The virtual times of a message's life, in order."""

TRACE_SCHEMA = pa.schema(
    [
        (name, pa.dictionary(pa.int32(), pa.string()) if name in _NAMED else pa.int64())
        for name in COLUMNS
    ]
)
"""Of the file."""
_FLUSH_ROWS = 16_384
"""Rows in memory at most; also the size of a row group on disk."""

READ_ROWS = 65_536
"""Rows that readers take at a time."""


def trace_names(wiring: Wiring) -> list[str]:
    """Return what the codes in the trace of a system of this wiring stand for: actors, ports."""
    ports = {port for ports in wiring.values() for port in ports}
    return [*wiring, *sorted(ports), START, TIMER]


def name_codes(names: pa.DictionaryArray, codes: Mapping[str, int]) -> np.ndarray:
    """Return the codes of the names in rows that were read, int64; -1 where a name has none."""
    known = np.array([codes.get(name, -1) for name in names.dictionary.to_pylist()], np.int64)
    found: np.ndarray = known[names.indices.to_numpy()]
    return found


@dataclass(eq=False)
class Trace:
    """Collects rows, updates a running digest, and writes Parquet if given a path."""

    names: Sequence[str]
    """What the small integers of the columns sender, receiver and port stand for."""
    path: Path | None = None
    """Parquet file to write; None computes only the digest."""
    on_rows: Callable[[Sequence[str], np.ndarray], None] | None = None
    """Called with the names, and some thousand rows at a time: int64, columns as `COLUMNS`."""

    def __post_init__(self) -> None:
        self._names = pa.array(list(self.names), pa.string())
        self._rows: list[bytes] = []
        self._hash = hashlib.sha256("\n".join(self.names).encode())
        # Sequence numbers and times differ little from row to row: their differences are short.
        self._file = self.path and WholeTable(
            self.path,
            TRACE_SCHEMA,
            compression="zstd",
            use_dictionary=list(_NAMED),
            column_encoding=dict.fromkeys(COLUMNS[3:], "DELTA_BINARY_PACKED"),
        )
        self._closed = False
        self.record = self._rows.append
        """Add one row, as `pack_row` has it."""

    def __enter__(self) -> Trace:
        """Return the trace itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Return when the file of a trace that was closed has appeared; discard another."""
        if self._file:
            try:
                if self._closed:
                    self._file.close()
            finally:
                self._file.discard()

    def flush_if_full(self) -> None:
        """Move rows to disk when enough have gathered; call now and then."""
        if len(self._rows) >= _FLUSH_ROWS:
            self._flush()

    def close(self) -> str:
        """Write what is left and return the digest (hexadecimal, 16 digits).

        The file appears some milliseconds later, at the end of the ``with`` at the latest.
        """
        self._flush()
        if self._file:
            self._file.publish()
        self._closed = True
        return self._hash.hexdigest()[:16]

    def _flush(self) -> None:
        if not self._rows:
            return
        packed = b"".join(self._rows)
        self._rows.clear()
        self._hash.update(packed)
        rows = np.frombuffer(packed, "<i8").reshape(-1, len(COLUMNS))
        if self.on_rows:
            self.on_rows(self.names, rows)
        if self._file:
            columns = [
                pa.DictionaryArray.from_arrays(pa.array(rows[:, i], pa.int32()), self._names)
                if name in _NAMED
                else pa.array(rows[:, i])
                for i, name in enumerate(COLUMNS)
            ]
            self._file.write(pa.table(columns, schema=TRACE_SCHEMA))
