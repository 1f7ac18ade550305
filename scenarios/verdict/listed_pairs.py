"""The pairs of ``results.parquet`` as they lie on disk, added up again per probing tuple.

What a run reported of a tuple (its count and fingerprint) and what it listed are two files. Here
the listed ids are hashed anew, so that the oracle's sums can be compared with both of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from joins.hashing import mix_rows
from scenarios.results import id_columns, least_to_come


class StrayPair(NamedTuple):
    """A listed pair of a probing tuple, or of a stream, that does not exist."""

    stream: int
    probe_id: int
    match_ids: tuple[int, ...]


class ListedPairs:
    """Adds the listed pairs up by ascending ranges of probing tuples; each row is read once.

    Parameters
    ----------
    path
        The file of pairs.
    streams
        Names, in the order of the query.
    probing
        Per stream how many of its tuples may have pairs, the first ones.
    examples
        How many stray pairs to remember.

    Attributes
    ----------
    rows
        Pairs in the file.
    stray_rows
        Of those read so far, the ones whose probing tuple does not exist.
    strays
        The first of them.
    """

    def __init__(
        self, path: Path, streams: Sequence[str], probing: Sequence[int], *, examples: int
    ) -> None:
        self._file = pq.ParquetFile(path)
        self._columns = [id_columns(streams, stream) for stream in range(len(streams))]
        self._least = [least_to_come(self._file, names[0]) for names in self._columns]
        self._next_group = 0
        self._sums = [_Sums(tuples) for tuples in probing]
        self._examples = examples
        self.rows = self._file.metadata.num_rows
        self.stray_rows = 0
        self.strays: list[StrayPair] = []

    def take(self, stream: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return count and fingerprint of the tuples of *stream* from the last *stop* to this."""
        least = self._least[stream]
        while self._next_group < len(least) and least[self._next_group] < stop:
            self._read_group()
        return self._sums[stream].take(stop)

    def finish(self) -> None:
        """Read what is left, and close the file: it should be of no tuple at all."""
        while self._next_group < self._file.num_row_groups:
            self._read_group()
        self._file.close()

    def _read_group(self) -> None:
        table = self._file.read_row_group(self._next_group, use_threads=False)
        self._next_group += 1
        columns = {name: table[name].to_numpy() for name in table.column_names}
        stream = columns.pop("probe_stream")
        stray = np.ones(len(stream), np.bool_)
        for place, (names, sums) in enumerate(zip(self._columns, self._sums, strict=True)):
            mine = np.flatnonzero(stream == place)
            probe_id, *others = (columns[name][mine] for name in names)
            stray[mine] = sums.add(probe_id, mix_rows(others))
        rows = np.flatnonzero(stray)
        self.stray_rows += len(rows)
        for row in rows[: self._examples - len(self.strays)].tolist():
            known = 0 <= stream[row] < len(self._columns)
            names = self._columns[stream[row] if known else 0]
            probe_id, *matches = (int(columns[name][row]) for name in names)
            self.strays.append(StrayPair(int(stream[row]), probe_id, tuple(matches)))


class _Sums:
    """Count and fingerprint of the tuples that have not been taken, of *tuples* that there are."""

    def __init__(self, tuples: int) -> None:
        self._tuples = tuples
        self._first = 0
        self._count, self._fingerprint = np.zeros(0, np.int64), np.zeros(0, np.uint64)

    def add(self, probe_id: np.ndarray, hashes: np.ndarray) -> np.ndarray:
        """Add one pair for each of *probe_id*, and return which of these do not exist."""
        stray: np.ndarray = (probe_id < self._first) | (probe_id >= self._tuples)
        if stray.any():
            probe_id, hashes = probe_id[~stray], hashes[~stray]
        if len(probe_id):
            place = probe_id - self._first
            self._grow(int(place.max()) + 1)
            np.add.at(self._count, place, 1)
            np.add.at(self._fingerprint, place, hashes)
        return stray

    def take(self, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of all tuples below *stop*."""
        tuples = stop - self._first
        self._grow(tuples)
        taken = self._count[:tuples], self._fingerprint[:tuples]
        self._count, self._fingerprint = self._count[tuples:], self._fingerprint[tuples:]
        self._first = stop
        return taken

    def _grow(self, tuples: int) -> None:
        more = tuples - len(self._count)
        if more > 0:
            more = max(more, len(self._count))
            self._count = np.concatenate([self._count, np.zeros(more, np.int64)])
            self._fingerprint = np.concatenate([self._fingerprint, np.zeros(more, np.uint64)])
