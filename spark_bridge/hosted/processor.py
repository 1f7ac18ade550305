"""The stateful operator of Spark that runs one stage's shards."""

from __future__ import annotations

import gc
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from actors.protocol import ActorSpec, Wiring
from joins.machine.memory import keep_freed_memory
from spark_bridge.hosted import found
from spark_bridge.hosted.kept import Head, Kept
from spark_bridge.hosted.parcels import Letter, pack, unpack, wrap
from spark_bridge.hosted.shard import Outcome, StageShard
from spark_bridge.hosted.stages import Home, Stages

_live: dict[tuple[str, Home], tuple[Head, StageShard]] = {}
"""Shards in this worker process, each with the head under which it was kept.

One is used again only where Spark's state says the same: so a worker that has run a trigger in
vain, or stood by while another ran it, rebuilds the shard from what was kept.
"""


@dataclass(frozen=True, kw_only=True)
class Hosted:
    """What every stage of a query knows.

    Attributes
    ----------
    run
        Names the query, so that worker processes tell its shards from another's.
    specs, wiring, seed
        As for every host.
    stages
        Where each actor runs.
    keys
        Per shard number the key of its groups: Spark hashes keys, and these fall into its
        partitions in turns.
    kept
        The folder of what shards keep.
    found, pairs
        The folder that receives results, and whether they are pairs.
    """

    run: str
    specs: Mapping[str, ActorSpec]
    wiring: Wiring
    seed: int
    stages: Stages
    keys: tuple[int, ...]
    kept: Path
    found: Path
    pairs: bool

    def shard(self, home: Home) -> StageShard:
        """Return a new shard."""
        rank = 1 + sum(len(shards) for shards in self.stages.actors[: home[0]]) + home[1]
        return StageShard(home, self.stages.homes, rank, self.specs, self.wiring, self.seed)

    def via(self, stage: int, home: Home) -> int:
        """Return the key that takes a row for *home* through *stage*, or to it."""
        return self.keys[home[1] % len(self.stages.actors[stage])]


class StageProcessor(StatefulProcessor):
    """Runs the shards of stage *stage*, and lets pass what is for later ones."""

    def __init__(self, hosted: Hosted, stage: int) -> None:
        self._hosted, self._stage = hosted, stage

    def init(self, handle: Any) -> None:
        """Find the state variable."""
        keep_freed_memory()
        self._kept = Kept(handle, self._hosted.kept)

    def handleInputRows(  # noqa: N802  (Spark's name)
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[Row]:
        """Take what a trigger brings one group."""
        mine: list[Row] = []
        for row in rows:
            if row.stage == self._stage:
                mine.append(row)
            else:
                yield self._row((row.stage, row.shard), row.parcel)
        if mine:
            home = (self._stage, mine[0].shard)
            yield from self._run(home, [bytes(row.parcel) for row in mine])

    def close(self) -> None:
        """Nothing is open."""

    def _run(self, home: Home, parcels: list[bytes]) -> Iterator[Row]:
        head = self._kept.head
        # Taken out: should the work fail half way, the shard must not be used again.
        before, live = _live.pop((self._hosted.run, home), (None, None))
        shard = live if live and before == head else self._rebuilt(home, head)
        outcome = shard.deliver(unpack(parcels))
        kept = self._kept.keep(head, secrets.randbits(62), parcels, shard)
        _live[self._hosted.run, home] = (kept, shard)
        name = f"{kept.trigger:06d}-{home[0]}-{home[1]}.parquet"
        found.write(outcome.emitted, self._hosted.found / name, pairs=self._hosted.pairs)
        if shard is not live:
            # Spark collects garbage after each task. What modules and kernels hold, all of it
            # loaded by now, is put out of its sight: looking through it takes 60 ms.
            gc.collect()
            gc.freeze()
        yield from self._parcels(outcome)

    def _rebuilt(self, home: Home, head: Head) -> StageShard:
        shard = self._hosted.shard(home)
        self._kept.rebuild(head, shard)
        for other in [other for other in _live if other[0] != self._hosted.run]:
            del _live[other]  # of a query that has ended, in all likelihood
        return shard

    def _parcels(self, outcome: Outcome) -> Iterator[Row]:
        wrapped: dict[int, bytes] = {}  # a payload for several shards is turned into bytes once

        def data(letter: Letter) -> bytes:
            if letter.order not in wrapped:
                wrapped[letter.order] = wrap(letter.payload)
            return wrapped[letter.order]

        for home, letters in outcome.letters.items():
            yield self._row(home, pack((letter, data(letter)) for letter in letters))

    def _row(self, home: Home, parcel: bytes) -> Row:
        via = self._hosted.via(self._stage + 1, home)
        return Row(via=via, stage=home[0], shard=home[1], parcel=parcel)
