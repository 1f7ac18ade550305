"""The pairs of ``results.parquet`` as they lie on disk, added up again per probing tuple.

What a run reported of a tuple (its count and fingerprint) and what it listed are two files. Here
the listed ids are hashed anew, so that the oracle's sums can be compared with both of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from actors.result_files import id_columns
from joins.hashing import mix_rows
from joins.tuple_sums import TupleSums
from scenarios.results import RowGroups


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
        self._columns = [id_columns(streams, stream) for stream in range(len(streams))]
        read = ["probe_stream", *dict.fromkeys(name for names in self._columns for name in names)]
        self._groups = RowGroups(path, read, [names[0] for names in self._columns])
        self._sums = [TupleSums(tuples) for tuples in probing]
        self._examples = examples
        self.rows = self._groups.rows
        self.stray_rows = 0
        self.strays: list[StrayPair] = []

    def take(self, stream: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Return count and fingerprint of the tuples of *stream* from the last *stop* to this."""
        while (group := self._groups.take(stop, stream)) is not None:
            self._add(group)
        sums = self._sums[stream].take(stop)
        return sums.pairs, sums.fingerprint

    def finish(self) -> None:
        """Read what is left, and close the file: it should be of no tuple at all."""
        while (group := self._groups.take(None)) is not None:
            self._add(group)
        self._groups.close()

    def _add(self, group: pa.Table) -> None:
        columns = {name: group[name].to_numpy() for name in group.column_names}
        stream = columns.pop("probe_stream")
        stray = np.ones(len(stream), np.bool_)
        for place, (names, sums) in enumerate(zip(self._columns, self._sums, strict=True)):
            mine = stream == place
            if not mine.any():
                continue
            probe_id, *others = (columns[name] for name in names)
            sums.add_pairs(probe_id, mix_rows(others), mine, stray)
        rows = np.flatnonzero(stray)
        self.stray_rows += len(rows)
        for row in rows[: self._examples - len(self.strays)].tolist():
            known = 0 <= stream[row] < len(self._columns)
            names = self._columns[stream[row] if known else 0]
            probe_id, *matches = (int(columns[name][row]) for name in names)
            self.strays.append(StrayPair(int(stream[row]), probe_id, tuple(matches)))
