"""The chain of one stream's subwindows as the manager knows it (section III-A and III-G2)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from actors.panjoin.choice import Choice
from actors.panjoin.payloads import Create, Expire, Insert
from joins.batch import Batch
from joins.indexes.panjoin.structure import StructureName
from joins.state import State


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


_NOTHING = (-1, np.iinfo(np.int64).min)
"""The newest position and event time of no tuple."""


@dataclass(slots=True)
class _Link:
    number: int
    worker: int
    first: int
    tuples: int
    stretch: int
    newest_id: int
    newest_ns: int

    @property
    def stop(self) -> int:
        return self.first + self.tuples


class Chain:
    """Subwindows in the order of time: the last one grows, the first ones expire."""

    def __init__(self, stream: int, rule: ChainRule) -> None:
        self._stream = stream
        self._rule = rule
        self._links: list[_Link] = []
        self._created = self._stored = 0
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

        A tuple that is older than the newest of a closed subwindow is for that one's buffer. In
        streams that arrive in order there are none.

        Parameters
        ----------
        batch
            The next tuples of the stream, in ascending order of the indexed field.
        codes
            That field's codes.

        Returns
        -------
        list
            Per subwindow: its worker, its creation if it is new, what is inserted.
        """
        self.choice.store(codes)
        commands: list[tuple[int, Create | None, Insert]] = []
        left = batch
        while len(left):
            closed = [link for link in self._links if not self._takes_more(link)]
            home = np.searchsorted([link.newest_id for link in closed], left.id)
            for place in np.unique(home[home < len(closed)]).tolist():
                link, late = closed[place], _only(left, home == place)
                insert = Insert(self._stream, link.number, late, fills=False, late=True)
                commands.append((link.worker, None, insert))
            left = _only(left, home == len(closed))
            if len(left):
                link, created, new, left = self._fill(left)
                fills = link.tuples == self._rule.capacity or len(left) > 0
                insert = Insert(self._stream, link.number, new, fills=fills, late=False)
                commands.append((link.worker, created, insert))
        return commands

    def _takes_more(self, link: _Link) -> bool:
        return link is self._links[-1] and link.tuples < self._rule.capacity

    def _fill(self, batch: Batch) -> tuple[_Link, Create | None, Batch, Batch]:
        """Give a batch, newer than all closed subwindows, to one that takes more.

        Return it, its creation if it is new, the earliest tuples, which it takes, and the rest.
        """
        created = None
        stretches = self._stretches(batch.ts)
        first = int(stretches.min())
        link = self._links[-1] if self._links else None
        if link is None or not self._takes_more(link) or link.stretch < first:
            link, created = self._create(first)
        taken = stretches <= link.stretch
        room = self._rule.capacity - link.tuples
        if np.count_nonzero(taken) > room:  # positions are in the order of event times
            taken = batch.id < np.partition(batch.id, room)[room]
        new = _only(batch, taken)
        link.tuples += len(new)
        self._stored += len(new)
        link.newest_id = max(link.newest_id, int(new.id.max()))
        link.newest_ns = max(link.newest_ns, int(new.ts.max()))
        return link, created, new, _only(batch, ~taken)

    def expire(self, before: int) -> list[tuple[int, Expire]]:
        """Let go of subwindows all of whose tuples lie before position *before*.

        Return for each of them its worker and the command. The newest one stays: it is not full.
        """
        return self._let_go(sum(link.stop <= before for link in self._links[:-1]))

    def expire_older(self, than_ns: int) -> list[tuple[int, Expire]]:
        """Let go of subwindows all of whose tuples are older than an event time, as `expire`."""
        return self._let_go(sum(link.newest_ns < than_ns for link in self._links[:-1]))

    def _let_go(self, links: int) -> list[tuple[int, Expire]]:
        gone, self._links = self._links[:links], self._links[links:]
        return [(link.worker, Expire(self._stream, link.number)) for link in gone]

    def _create(self, stretch: int) -> tuple[_Link, Create]:
        number = self._created
        self._created += 1
        worker = (self._rule.first_worker + number) % self._rule.workers
        structure = self._rule.structure or self.choice.choose()
        link = _Link(number, worker, self._stored, 0, stretch, *_NOTHING)
        self._links.append(link)
        splitters = self._splitters if structure == "rap_table" else None
        return link, Create(self._stream, number, link.first, structure, splitters)

    def _stretches(self, ts: np.ndarray) -> np.ndarray:
        """Return the stretch of event time that each tuple lies in: one for all without bound."""
        length = self._rule.stretch_ns
        return np.zeros_like(ts) if length is None else ts // length

    def snapshot(self) -> State:
        """Return the state as plain data."""
        return {
            "links": [
                [getattr(link, field.name) for field in fields(link)] for link in self._links
            ],
            "created": self._created,
            "stored": self._stored,
            "splitters": self._splitters,
            "choice": self.choice.snapshot(),
        }

    def restore(self, state: State) -> None:
        """Take over what `snapshot` returned."""
        self._links = [_Link(*link) for link in state["links"]]
        self._created, self._stored = state["created"], state["stored"]
        self._splitters = state["splitters"]
        self.choice.restore(state["choice"])


def _only(batch: Batch, rows: np.ndarray) -> Batch:
    """Return the *rows* of a batch, a mask, in their order: mostly all of them, and no copy."""
    return batch if rows.all() else batch.take(rows)
