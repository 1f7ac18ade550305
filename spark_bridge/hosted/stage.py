"""What runs one stage's shards inside Spark, and the files of results that they write.

Results are Parquet files that the executors write themselves, each whole or not at all, as is the
log of their state (`state_log`). Passed on through Spark, they would go through the JVM row by row,
which costs several times what finding them does. Each trigger of each shard writes one file, named
by both, and makes it visible when it is complete. A trigger that Spark runs again, because it was
killed, begins with the same state and takes the same arrivals: it writes the same file again. So no
result is missing, and none is there twice.
"""

from __future__ import annotations

import gc
import secrets
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row

from actors.hosting.process_memory import keep_freed_memory
from actors.protocol import ActorSpec, Wiring
from actors.results import Late, Output
from actors.serialisation import to_bytes
from actors.whole_files import whole_file
from joins.batch import Schema
from spark_bridge.hosted.shard import (
    Home,
    ShardLetter,
    ShardOutcome,
    Stages,
    StageShard,
    pack_letters,
    unpack_letters,
)
from spark_bridge.hosted.state_log import LogHead, StateLog


def write_results(emitted: Sequence[Any], path: Path, *, pairs: bool) -> None:
    """Write the results among what was *emitted* to *path*; no file where there are none.

    The columns are `spark_bridge.query_runs.PAIRS`, or `COUNTS`. Actors' reports about themselves
    are left out. Ids hardly repeat, and fingerprints never: a dictionary and compression would each
    cost more than the rest of writing. So, nearly, would a null mark for each value.
    """
    has_late = any(isinstance(one, Late) for one in emitted)
    tables = [
        _matched(one, pairs=pairs, nullable=has_late) for one in emitted if isinstance(one, Output)
    ]
    tables += [_late(one, pairs=pairs) for one in emitted if isinstance(one, Late)]
    if not tables:
        return
    with whole_file(path) as unfinished:
        pq.write_table(
            pa.concat_tables(tables), unfinished, compression="none", use_dictionary=False
        )


def _matched(output: Output, *, pairs: bool, nullable: bool) -> pa.Table:
    matches = output.matches
    if pairs:
        probe_id, match_id = matches.pairs()
        rest = {"match_id": _arrow(match_id)}
    else:
        probe_id, count = matches.probe_id, matches.count
        fingerprint = matches.fingerprint.view(np.int64)
        rest = {"count": _arrow(count), "fingerprint": _arrow(fingerprint)}
    return _table(matches.stream, probe_id, rest, nullable=nullable)


def _late(late: Late, *, pairs: bool) -> pa.Table:
    nothing = pa.nulls(len(late.ids), pa.int64())
    names = ("match_id",) if pairs else ("count", "fingerprint")
    return _table(late.stream, late.ids, dict.fromkeys(names, nothing), nullable=True)


def _table(
    stream: int, ids: np.ndarray, rest: Mapping[str, pa.Array], *, nullable: bool
) -> pa.Table:
    streams = np.full(len(ids), stream, np.int8)
    columns = {"probe_stream": _arrow(streams), "probe_id": _arrow(ids), **rest}
    fields = [pa.field(name, column.type, nullable) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))


def _arrow(values: np.ndarray) -> pa.Array:
    """Return numbers as Arrow has them; `pyarrow.array` would load pandas, a fifth of a second."""
    buffers = [None, pa.py_buffer(np.ascontiguousarray(values))]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


_live: dict[tuple[str, Home], tuple[LogHead, StageShard]] = {}
"""Shards in this worker process, each with its head.

A shard is used again only if Spark's state has the same head: a worker that ran a trigger in vain,
or missed one that another worker ran, rebuilds the shard from its log.
"""


@dataclass(frozen=True, kw_only=True)
class HostedQuery:
    """A graph of actors to host."""

    text: str
    """The join query, for messages and the checkpoint."""
    schemas: tuple[Schema, ...]
    """Its streams' fields."""
    specs: Mapping[str, ActorSpec]
    wiring: Wiring
    """The graph: how actors are built, and who is wired to whom."""
    pairs: bool = True
    """Whether the output is pairs; otherwise matches are counted."""
    seed: int = 1
    """The run's seed."""
    fold: str | None = None
    """Why all of it is to run in one stage, even where the graph could be cut; None: it is cut."""


@dataclass(frozen=True, kw_only=True)
class HostedRun:
    """A run of a hosted query: what its stages share."""

    run: str
    """Identifies the run, so that worker processes distinguish its shards from another's."""
    query: HostedQuery
    stages: Stages
    """What runs, and where each actor does."""
    keys: tuple[int, ...]
    """Per shard number the key of its groups: Spark hashes keys, and these fall into its partitions
    in turns."""
    folder: Path
    """The run's folder."""

    @property
    def log(self) -> Path:
        """The folder of the shards' state logs."""
        return self.folder / "checkpoint" / "kept"

    @property
    def results(self) -> Path:
        """The folder that receives results."""
        return self.folder / "found"

    def via(self, stage: int, home: Home) -> int:
        """Return the key that takes a row for *home* through *stage*, or to it."""
        return self.keys[home[1] % len(self.stages.actors[stage])]


class Stage:
    """Runs the shards of stage *stage*, and passes on what is for later ones."""

    def __init__(self, hosted: HostedRun, stage: int) -> None:
        self._hosted, self._stage = hosted, stage

    def process(self, head: Any, rows: Iterator[Row]) -> Iterator[Row]:
        """Process the rows of one group in a trigger; Spark's variable *head* is the group's."""
        self._log = StateLog(head, self._hosted.log)
        mine: list[Row] = []
        for row in rows:
            if row.stage == self._stage:
                mine.append(row)
            else:
                yield self._row((row.stage, row.shard), row.parcel)
        if mine:
            home = (self._stage, mine[0].shard)
            yield from self._run(home, [bytes(row.parcel) for row in mine])

    def _run(self, home: Home, parcels: list[bytes]) -> Iterator[Row]:
        head = self._log.head
        # Removed, because a shard whose work fails half way must not be used again.
        before, live = _live.pop((self._hosted.run, home), (None, None))
        shard = live if live and before == head else self._rebuilt(home, head)
        outcome = shard.deliver(unpack_letters(parcels))
        stored = self._log.store(head, secrets.randbits(62), parcels, shard)
        _live[self._hosted.run, home] = (stored, shard)
        name = f"{stored.trigger:06d}-{home[0]}-{home[1]}.parquet"
        write_results(outcome.emitted, self._hosted.results / name, pairs=self._hosted.query.pairs)
        if shard is not live:
            # Spark collects garbage after each task. The objects of modules and kernels, all loaded
            # by now, are exempt from then on: scanning them takes 60 ms.
            gc.collect()
            gc.freeze()
        yield from self._parcels(outcome)

    def _rebuilt(self, home: Home, head: LogHead) -> StageShard:
        keep_freed_memory()
        query = self._hosted.query
        shard = StageShard(home, self._hosted.stages, query.specs, query.wiring, query.seed)
        self._log.rebuild(head, shard)
        for other in [other for other in _live if other[0] != self._hosted.run]:
            del _live[other]  # probably of a query that has ended
        return shard

    def _parcels(self, outcome: ShardOutcome) -> Iterator[Row]:
        by_order: dict[int, bytes] = {}  # a payload for several shards is turned into bytes once

        def data(letter: ShardLetter) -> bytes:
            if letter.order not in by_order:
                by_order[letter.order] = to_bytes(letter.payload)
            return by_order[letter.order]

        for home, letters in outcome.letters.items():
            yield self._row(home, pack_letters((letter, data(letter)) for letter in letters))

    def _row(self, home: Home, parcel: bytes) -> Row:
        via = self._hosted.via(self._stage + 1, home)
        return Row(via=via, stage=home[0], shard=home[1], parcel=parcel)


def rehearse(query: HostedQuery, parcel: bytes, numbers: Iterable[int]) -> None:
    """Run all actors of *query* in this process; Spark passes the *numbers* of its tasks."""
    with suppress(Exception):
        keep_freed_memory()
        stages = Stages.one(query.specs, "a rehearsal")
        shard = StageShard((0, 0), stages, query.specs, query.wiring, query.seed)
        outcome = shard.deliver(unpack_letters([parcel]))
        to_bytes(shard.snapshot())
        with tempfile.TemporaryDirectory() as folder:
            write_results(outcome.emitted, Path(folder) / "found.parquet", pairs=query.pairs)
