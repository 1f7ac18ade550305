"""A run's output, written as it comes."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.results import Collected, Late, Output
from scenarios.output.result_files import (
    COLLECTORS_SCHEMA,
    LATE_SCHEMA,
    SUMMARY_SCHEMA,
    collectors_path,
    late_path,
    pairs_path,
    pairs_schema,
    summary_path,
)

_GROUP_ROWS = 16_384


class _Columns:
    """Gathers columns in buffers of `_GROUP_ROWS` rows, and writes a row group when they are full.

    The buffers are made once: many short-lived arrays of changing size would leave holes in the
    heap, and the process would grow with the number of results. There are two sets of them: one is
    filled while a thread compresses and writes the other.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: Future[None] | None = None
        self._schema = schema
        # Ids hardly repeat within a group: a dictionary of them would only cost.
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False)
        self._buffers, self._spare = (
            [np.empty(_GROUP_ROWS, f.type.to_pandas_dtype()) for f in schema] for _ in range(2)
        )
        self._rows = 0

    def add(self, *columns: np.ndarray) -> None:
        taken, rows = 0, len(columns[0])
        while taken < rows:
            step = min(rows - taken, _GROUP_ROWS - self._rows)
            for buffer, column in zip(self._buffers, columns, strict=True):
                buffer[self._rows : self._rows + step] = column[taken : taken + step]
            taken += step
            self._rows += step
            if self._rows == _GROUP_ROWS:
                self._flush()

    def close(self) -> None:
        self._flush()
        self._wait()
        self._thread.shutdown()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._wait()
            columns = [buffer[: self._rows] for buffer in self._buffers]
            table = pa.table(columns, schema=self._schema)
            self._writing = self._thread.submit(self._writer.write_table, table)
            self._buffers, self._spare = self._spare, self._buffers
        self._rows = 0

    def _wait(self) -> None:
        """Let the thread finish; raise what it raised."""
        if self._writing:
            self._writing.result()


class ResultWriter:
    """Takes what sinks emit; a context manager that closes its files.

    Parameters
    ----------
    directory
        Where to write ``probes-N.parquet`` per probing stream N and, with *pairs*,
        ``results.parquet``; tuples dropped as late go into ``late.parquet``, and
        what collectors of interval joins did into ``collectors.parquet``.
    streams
        Their names, in the order of the query.
    pairs
        Whether matches come with their ids.
    """

    def __init__(self, directory: Path, *, streams: Sequence[str], pairs: bool) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._streams = streams
        self._summaries = [
            _Columns(summary_path(directory, stream), SUMMARY_SCHEMA)
            for stream in range(len(streams))
        ]
        self._pairs = _Columns(pairs_path(directory), pairs_schema(streams)) if pairs else None
        self._late = _Columns(late_path(directory), LATE_SCHEMA)
        self._collectors = _Columns(collectors_path(directory), COLLECTORS_SCHEMA)
        self.produced = 0

    def __enter__(self) -> ResultWriter:
        """Return the writer itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Write what is left."""
        for columns in [*self._summaries, self._pairs, self._late, self._collectors]:
            if columns:
                columns.close()

    def collect(self, outputs: list[Output | Late | Collected]) -> None:
        """Write *outputs*."""
        for output in outputs:
            if isinstance(output, Collected):
                figures = [getattr(output, name) for name in COLLECTORS_SCHEMA.names]
                self._collectors.add(*(np.array([figure]) for figure in figures))
                continue
            if isinstance(output, Late):
                rows = len(output.ids)
                stream, watermark = np.full(rows, output.stream), np.full(rows, output.watermark)
                self._late.add(stream, output.ids, output.ts, watermark)
                continue
            matches = output.matches
            self.produced += matches.total
            self._summaries[matches.stream].add(
                matches.probe_id, matches.count, matches.fingerprint, output.latency_ns
            )
            if self._pairs:
                probe_id, match_id = matches.pairs()
                stream = np.full(len(probe_id), matches.stream, np.int8)
                ids = [probe_id, *np.atleast_2d(match_id.T)]
                if len(self._streams) > 2:
                    ids.insert(matches.stream, ids.pop(0))
                self._pairs.add(stream, *ids)
