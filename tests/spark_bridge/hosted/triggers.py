"""Runs a graph's stages as Spark would, trigger by trigger, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actors.results import Late, Output
from actors.serialisation import to_bytes
from actors.source import TakesArrivals
from joins.arrivals import Arrivals
from joins.matches import Matches
from spark_bridge.hosted.host import arrivals_parcel
from spark_bridge.hosted.shard import (
    Home,
    Stages,
    StageShard,
    pack_letters,
    unpack_letters,
)
from spark_bridge.hosted.state_log import StateLog
from topologies.actor_graph import ActorGraph


class Variable:
    """Spark's handle to the state of one group, and its state variable: a value."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None

    def getValueState(self, name: str, schema: str) -> Variable:  # noqa: N802
        return self

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value


class Triggers:
    """All shards of all stages; what travels between them goes through bytes.

    What shards keep goes to *folder*.
    """

    def __init__(self, graph: ActorGraph, stages: Stages, folder: Path, seed: int) -> None:
        self._graph, self._stages, self._seed = graph, stages, seed
        self._homes = list(dict.fromkeys(stages.homes.values()))
        self._shards = {home: self._new(home) for home in self._homes}
        self._committed = {home: Variable() for home in self._homes}
        self._kept = {home: StateLog(self._committed[home], folder) for home in self._homes}
        self.emitted: list[Any] = []

    def _new(self, home: Home) -> StageShard:
        graph = self._graph
        return StageShard(home, self._stages, graph.specs, graph.wiring, self._seed)

    def run(self, pieces: Sequence[Arrivals], *, last: bool) -> None:
        """Take some runs of arrivals as one trigger."""
        parcels: dict[Home, list[bytes]] = {home: [] for home in self._homes}
        for piece in pieces:
            data = arrivals_parcel(piece, last=last and piece is pieces[-1])
            sources = (
                home
                for name, home in self._stages.homes.items()
                if issubclass(self._graph.specs[name].actor, TakesArrivals)
            )
            for home in dict.fromkeys(sources):
                parcels[home].append(data)
        for home in self._homes:
            if not parcels[home]:
                continue
            shard, kept = self._shards[home], self._kept[home]
            outcome = shard.deliver(unpack_letters(parcels[home][::-1]))
            kept.store(kept.head, len(self.emitted), parcels[home], shard)
            self.emitted += outcome.emitted
            for to, letters in outcome.letters.items():
                assert to[0] > home[0], "data flows one way"
                parcels[to].append(
                    pack_letters((letter, to_bytes(letter.payload)) for letter in letters)
                )

    def run_in_vain(self, pieces: Sequence[Arrivals], *, last: bool) -> None:
        """Take a trigger that is killed before it is committed."""
        heads = {home: variable.value for home, variable in self._committed.items()}
        emitted = list(self.emitted)
        self.run(pieces, last=last)
        self.emitted = emitted
        for which, home in enumerate(self._homes):
            self._committed[home].value = heads[home]
            self.rebuild(which)

    def rebuild(self, which: int) -> None:
        """Put a new shard in one's place, by what was kept of it."""
        home = self._homes[which % len(self._homes)]
        self._shards[home] = self._new(home)
        self._kept[home].rebuild(self._kept[home].head, self._shards[home])

    def late(self, streams: int) -> list[np.ndarray]:
        """Return per stream the ids of tuples that were dropped as late, ascending."""
        dropped = [e for e in self.emitted if isinstance(e, Late)]
        return [
            np.sort(
                np.concatenate([np.empty(0, np.int64), *(e.ids for e in dropped if e.stream == s)])
            )
            for s in range(streams)
        ]

    def results(self) -> list[tuple[int, ...]]:
        """Return all results, in order."""
        outputs = [e for e in self.emitted if isinstance(e, Output)]
        return sorted(result for output in outputs for result in results(output.matches))


def results(matches: Matches) -> list[tuple[int, ...]]:
    """Return enumerated matches as probing stream, probe id, and the ids of the others."""
    probe, match = matches.pairs()
    rows = np.column_stack([np.full(len(probe), matches.stream), probe, match]).tolist()
    return [tuple(row) for row in rows]
