"""What runs one stage's shards inside Spark, the log of their state, and the files of results.

Rewriting the whole state in every trigger would cost as much as the window is long; a log of all
parcels would never end. So parcels are stored until they are as large as the snapshot before them;
then a new snapshot replaces both. What is written follows the batch or the window, whichever is
less, and so does what has to be read to rebuild a shard.

Both are files next to Spark's checkpoint, one for each trigger. Spark's state store, which takes
more than ten times as long over a megabyte, has the `LogHead` alone. A file is whole before the
trigger that names it is committed. A trigger that Spark runs again writes the same file again; and
the files that a snapshot replaces are deleted by the trigger after it, behind which no recovery
goes back.

Results are Parquet files that the executors write themselves, too, each whole or not at all. Passed
on through Spark, they would go through the JVM row by row, which costs several times what finding
them does. Each trigger of each shard writes one file, named by both, and makes it visible when it
is complete. A trigger that Spark runs again, because it was killed, begins with the same state and
takes the same arrivals: it writes the same file again. So no result is missing, and none is there
twice.
"""

from __future__ import annotations

import gc
import secrets
import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row

from actors.protocol import ActorSpec, Wiring
from actors.results import Late, Output
from actors.serialisation import FormatError, from_bytes, to_bytes
from actors.whole_files import whole_file
from joins.batch import Schema
from joins.errors import DataError
from joins.machine.memory import keep_freed_memory
from spark_bridge.hosted.shard import (
    Home,
    ShardLetter,
    ShardOutcome,
    Stages,
    StageShard,
    cut_into_stages,
    pack_letters,
    unpack_letters,
)


class LogHead(NamedTuple):
    """The last trigger of a shard that is in the log.

    Attributes
    ----------
    trigger
        Its number among those that brought the shard something, from 1.
    nonce
        Drawn anew each time the trigger runs: of two runs, one is in the log.
    snapshot, replaced
        The triggers that stored the latest snapshot and the one before; 0 without.
    snapshot_bytes, log_bytes
        Sizes of the latest snapshot, and of the parcels since.
    """

    trigger: int = 0
    nonce: int = 0
    snapshot: int = 0
    replaced: int = 0
    snapshot_bytes: int = 0
    log_bytes: int = 0


_HEAD = struct.Struct(f"<{len(LogHead._fields)}q")
_LENGTH = struct.Struct("<q")


class StateLog:
    """The state of one group: files in *folder*, and Spark's variable *head* that names them."""

    def __init__(self, head: Any, folder: Path) -> None:
        self._head, self._folder = head, folder

    @property
    def head(self) -> LogHead:
        """The last trigger that was stored."""
        stored = self._head.get()
        return LogHead(*_HEAD.unpack(stored[0])) if stored else LogHead()

    def rebuild(self, head: LogHead, shard: StageShard) -> None:
        """Restore a new *shard* to its state after *head*; what it sends again is dropped.

        Raise :exc:`DataError` naming a file that no longer exists, or is damaged.
        """
        needed = range(head.snapshot or 1, head.trigger + 1)
        missing = [p for p in (self._file(shard, t) for t in needed) if not p.exists()]
        if missing:
            raise DataError(
                f"{missing[0]} is missing, which the checkpoint next to it needs: put it back, or "
                f"delete {self._folder.parent} and the results next to it, and begin anew"
            )
        if head.snapshot:
            path = self._file(shard, head.snapshot)
            with self._naming(path):
                # Arrays in a bytearray can be written to, as actors do with what they restore.
                shard.restore(from_bytes(bytearray(path.read_bytes())))
        for trigger in range(head.snapshot + 1, head.trigger + 1):
            path = self._file(shard, trigger)
            with self._naming(path):
                letters = unpack_letters(list(_parcels_in(path)))
            shard.deliver(letters)

    @contextmanager
    def _naming(self, path: Path) -> Iterator[None]:
        """Raise :exc:`DataError` for whatever reading a damaged file leads to."""
        try:
            yield
        except Exception as error:
            raise DataError(
                f"{path} is damaged ({type(error).__name__}: {error}): put it back as it was, or "
                f"delete {self._folder.parent} and the results next to it, and begin anew"
            ) from error

    def store(
        self, before: LogHead, nonce: int, parcels: Sequence[bytes], shard: StageShard
    ) -> LogHead:
        """Store the state of *shard* after *parcels*; return the new head."""
        head = before._replace(trigger=before.trigger + 1, nonce=nonce)
        grown = before.log_bytes + sum(map(len, parcels))
        path = self._file(shard, head.trigger)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            if grown < before.snapshot_bytes:
                head = head._replace(log_bytes=grown)
                for parcel in parcels:
                    file.write(_LENGTH.pack(len(parcel)))
                    file.write(parcel)
            else:
                size = file.write(to_bytes(shard.snapshot()))
                head = head._replace(
                    snapshot=head.trigger,
                    replaced=before.snapshot,
                    snapshot_bytes=size,
                    log_bytes=0,
                )
        self._head.update((_HEAD.pack(*head),))
        if before.trigger == before.snapshot:
            for trigger in range(before.replaced, before.snapshot):
                self._file(shard, trigger).unlink(missing_ok=True)
        return head

    def _file(self, shard: StageShard, trigger: int) -> Path:
        stage, number = shard.home
        return self._folder / f"{trigger:06d}-{stage}-{number}"


def _parcels_in(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while size := file.read(_LENGTH.size):
            (length,) = _LENGTH.unpack(size)
            parcel = file.read(min(length, path.stat().st_size))
            if len(parcel) != length:
                raise FormatError(f"a parcel of {length} bytes is not whole")
            yield parcel


def write_results(emitted: Sequence[Any], path: Path, *, pairs: bool) -> None:
    """Write the results among what was *emitted* to *path*; no file where there are none.

    The columns are `spark_bridge.query_runs.PAIRS`, or `COUNTS`. Actors' reports about themselves
    are left out. Ids hardly repeat, and fingerprints never: a dictionary and compression would each
    cost more than the rest of writing. So, nearly, would a null mark for each value.
    """
    matched = [_matched(e, pairs=pairs) for e in emitted if isinstance(e, Output)]
    late = [_late(e, pairs=pairs) for e in emitted if isinstance(e, Late)]
    if not matched and not late:
        return
    table = pa.concat_tables([*matched, *late])
    fields = [field.with_nullable(bool(late)) for field in table.schema]
    with whole_file(path) as unfinished:
        pq.write_table(
            table.cast(pa.schema(fields)), unfinished, compression="none", use_dictionary=False
        )


def _matched(output: Output, *, pairs: bool) -> pa.Table:
    matches = output.matches
    if pairs:
        probe_id, match_id = matches.pairs()
        rest = {"match_id": match_id}
    else:
        probe_id = matches.probe_id
        rest = {"count": matches.count, "fingerprint": matches.fingerprint.view(np.int64)}
    return _table(matches.stream, probe_id, rest)


def _late(late: Late, *, pairs: bool) -> pa.Table:
    nothing = pa.nulls(len(late.ids), pa.int64())
    names = ("match_id",) if pairs else ("count", "fingerprint")
    return _table(late.stream, late.ids, dict.fromkeys(names, nothing))


def _table(stream: int, ids: np.ndarray, rest: Mapping[str, Any]) -> pa.Table:
    return pa.table({"probe_stream": np.full(len(ids), stream, np.int8), "probe_id": ids, **rest})


_live: dict[tuple[str, Home], tuple[LogHead, StageShard]] = {}
"""Shards in this worker process, each with its head.

A shard is used again only if Spark's state has the same head: a worker that ran a trigger in vain,
or missed one that another worker ran, rebuilds the shard from its log.
"""


@dataclass(frozen=True, kw_only=True)
class HostedQuery:
    """A graph of actors to host.

    Attributes
    ----------
    text
        The join query, for messages and the checkpoint.
    schemas
        Its streams' fields.
    specs, wiring
        The graph: how actors are built, and who is wired to whom.
    pairs
        Whether the output is pairs; otherwise matches are counted.
    seed
        The run's seed.
    fold
        Why all of it is to run in one stage, even where the graph could be cut; None: it is cut.
    """

    text: str
    schemas: tuple[Schema, ...]
    specs: Mapping[str, ActorSpec]
    wiring: Wiring
    pairs: bool = True
    seed: int = 1
    fold: str | None = None


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """What all stages of a query share.

    Attributes
    ----------
    run
        Identifies the run, so that worker processes distinguish its shards from another's.
    query, stages
        What runs, and where each actor does.
    keys
        Per shard number the key of its groups: Spark hashes keys, and these fall into its
        partitions in turns.
    folder
        The run's folder.
    """

    run: str
    query: HostedQuery
    stages: Stages
    keys: tuple[int, ...]
    folder: Path

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

    def __init__(self, hosted: Hosted, stage: int) -> None:
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
        stages = cut_into_stages(query.specs, query.wiring, fold="a rehearsal")
        shard = StageShard((0, 0), stages, query.specs, query.wiring, query.seed)
        outcome = shard.deliver(unpack_letters([parcel]))
        to_bytes(shard.snapshot())
        with tempfile.TemporaryDirectory() as folder:
            write_results(outcome.emitted, Path(folder) / "found.parquet", pairs=query.pairs)
