"""The chain of one stream's subwindows as the manager knows it (section III-A and III-G2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.panjoin.choice import Choice
from actors.panjoin.payloads import Create, Expire, Insert
from actors.protocol import State
from joins.batch import Batch
from joins.indexes.panjoin.structure import StructureName


@dataclass(frozen=True, kw_only=True)
class ChainRule:
    """How a stream is cut into subwindows, and where they go.

    Attributes
    ----------
    capacity
        Most tuples of a subwindow.
    stretch_ns
        Most event time of a subwindow, in nanoseconds; None sets no bound.
    structure
        Of every subwindow; None chooses for each by what was measured.
    workers
        They take subwindows in turns.
    first_worker
        The one to begin with.
    """

    capacity: int
    stretch_ns: int | None
    structure: StructureName | None
    workers: int
    first_worker: int


@dataclass(slots=True)
class _Link:
    number: int
    worker: int
    first: int
    tuples: int
    stretch: int

    @property
    def stop(self) -> int:
        return self.first + self.tuples


class Chain:
    """Subwindows in the order of time: the last one grows, the first ones expire."""

    def __init__(self, stream: int, rule: ChainRule) -> None:
        self._stream = stream
        self._rule = rule
        self._links: list[_Link] = []
        self._created = 0
        self._splitters: np.ndarray | None = None
        self.choice = Choice()

    @property
    def workers(self) -> set[int]:
        """The workers that have a subwindow with tuples in it."""
        return {link.worker for link in self._links if link.tuples}

    def sampled(self, splitters: np.ndarray) -> None:
        """Take splitters that a worker has sampled, for subwindows to come."""
        self._splitters = splitters

    def store(self, batch: Batch, codes: np.ndarray) -> list[tuple[int, Create | None, Insert]]:
        """Cut a batch at the ends of subwindows.

        Parameters
        ----------
        batch
            The next positions of the stream, in ascending order of the indexed field.
        codes
            That field's codes.

        Returns
        -------
        list
            Per subwindow: its worker, its creation if it is new, what is inserted.
        """
        self.choice.store(codes)
        first, end = int(batch.id.min()), int(batch.id.max()) + 1
        order = np.argsort(batch.id)  # positions are consecutive, so this is where each one is
        stretches = self._stretches(batch.ts[order])
        ends = first + np.append(np.flatnonzero(np.diff(stretches)) + 1, len(order))
        commands = []
        at = first
        while at < end:
            created = None
            stretch = int(stretches[at - first])
            stop = int(ends[np.searchsorted(ends, at, "right")])
            link = self._links[-1] if self._links else None
            if link is None or link.tuples == self._rule.capacity or link.stretch != stretch:
                link, created = self._create(at, stretch)
            stop = min(stop, link.first + self._rule.capacity)
            inside = (batch.id >= at) & (batch.id < stop)
            link.tuples += stop - at
            fills = link.tuples == self._rule.capacity or stop < end
            insert = Insert(self._stream, link.number, batch.take(np.flatnonzero(inside)), fills)
            commands.append((link.worker, created, insert))
            at = stop
        return commands

    def expire(self, before: int) -> list[tuple[int, Expire]]:
        """Let go of subwindows all of whose tuples lie before position *before*.

        Return for each of them its worker and the command. The newest one stays: it is not full.
        """
        gone = [link for link in self._links[:-1] if link.stop <= before]
        self._links = self._links[len(gone) :]
        return [(link.worker, Expire(self._stream, link.number)) for link in gone]

    def _create(self, first: int, stretch: int) -> tuple[_Link, Create]:
        number = self._created
        self._created += 1
        worker = (self._rule.first_worker + number) % self._rule.workers
        structure = self._rule.structure or self.choice.choose()
        link = _Link(number, worker, first, 0, stretch)
        self._links.append(link)
        splitters = self._splitters if structure == "rap_table" else None
        return link, Create(self._stream, number, first, structure, splitters)

    def _stretches(self, ts: np.ndarray) -> np.ndarray:
        """Return the stretch of event time that each tuple lies in: one for all without bound."""
        length = self._rule.stretch_ns
        return np.zeros_like(ts) if length is None else ts // length

    def snapshot(self) -> State:
        """Return the state as plain data."""
        return {
            "links": [
                [link.number, link.worker, link.first, link.tuples, link.stretch]
                for link in self._links
            ],
            "created": self._created,
            "splitters": self._splitters,
            "choice": self.choice.snapshot(),
        }

    def restore(self, state: State) -> None:
        """Take over what `snapshot` returned."""
        self._links = [_Link(*link) for link in state["links"]]
        self._created = state["created"]
        self._splitters = state["splitters"]
        self.choice.restore(state["choice"])
