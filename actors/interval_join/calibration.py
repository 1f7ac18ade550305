"""HP-OIJ's calibration: keys are measured at their homes, then split, while tuples flow.

During its first turns each emitter counts its keys and sends every tuple to its key's home alone.
The master adds the counts of all emitters up, splits the keys, and tells the emitters over feedback
channels. An emitter that hears of it sends what it holds back with its next turn, says at the end
of that turn that it splits keys from now on, and does. Replicas store tuples at their homes until
every emitter has said so: a tuple that an emitter still sends to the home alone is then sure to
find all partners there, and none is met twice.

In the paper the first replica is the master. Here the master is an actor of its own beside it: a
replica that waits for room at an emitter, which waits for room at the replica, would wait forever.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from actors.interval_join.distribution import Assignment, BySplitKey
from actors.interval_join.emitter import Emitter
from actors.interval_join.payloads import Share
from actors.protocol import HEADER_BYTES, NO_SPAN, Actor, Context, Message, State
from joins.hashing import partition
from joins.key_splitting import split_keys

_REPLICA_BYTES = 2


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """How many tuples of each key an emitter saw (emitter to master)."""

    keys: np.ndarray
    counts: np.ndarray

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.keys.nbytes + self.counts.nbytes

    @property
    def rows(self) -> int:
        """Number of keys."""
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Assigned:
    """The replicas of each key (master to emitters)."""

    assignment: Assignment

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        replicas = sum(len(among) for among in self.assignment.values())
        return HEADER_BYTES + 8 * len(self.assignment) + _REPLICA_BYTES * replicas

    @property
    def rows(self) -> int:
        """Number of keys."""
        return len(self.assignment)


class CalibratingEmitter(Emitter):
    """An emitter that begins with each key at its home, and splits keys when the master says how.

    Ports: ``replicas``, ``master``.

    Parameters
    ----------
    calibration_turns
        For how many turns it counts keys, at least 1.
    replicas
        How many there are.
    arguments
        Those of `Emitter`, but for the distribution.
    """

    def __init__(self, *, calibration_turns: int, replicas: int, **arguments: Any) -> None:
        super().__init__(distribution=BySplitKey(replicas), **arguments)
        self._replicas = replicas
        self._calibration_turns = calibration_turns
        self._counts: Counter[int] = Counter()
        self._assignment: Assignment | None = None
        self._split = False

    def receive(self, message: Message, context: Context) -> None:
        """Take the source's next turn, or the assignment of keys to replicas."""
        if isinstance(message.payload, Assigned):
            self._assignment = message.payload.assignment
            return
        share: Share = message.payload
        switches = self._assignment is not None and not self._split
        if self._turn < self._calibration_turns:
            self._count(share)
        self._take_turn(share, context, flush=switches, split=switches or self._split)
        if switches:
            self._switch()
        if self._turn == self._calibration_turns:
            keys = np.array(sorted(self._counts), np.int64)
            counts = np.array([self._counts[key] for key in keys.tolist()], np.int64)
            context.send("master", KeyCounts(keys, counts))

    def snapshot(self) -> State:
        """Return the partial batches, the counts, and the assignment."""
        return super().snapshot() | {
            "counts": [[key, count] for key, count in self._counts.items()],
            "assignment": self._assignment
            and [[key, list(among)] for key, among in self._assignment.items()],
            "split": self._split,
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._counts = Counter({key: count for key, count in state["counts"]})
        assignment = state["assignment"]
        if assignment is not None:
            self._assignment = {key: tuple(among) for key, among in assignment}
        if state["split"]:
            self._switch()

    def _count(self, share: Share) -> None:
        keys, counts = np.unique(self._keyed(share.data).batch.key, return_counts=True)
        self._counts.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))

    def _switch(self) -> None:
        self._distribution = BySplitKey(self._replicas, assignment=self._assignment)
        self._split = True


class Master(Actor):
    """Adds up the key counts of all emitters and splits the keys by Algorithm 1.

    Ports: ``emitters``.

    Parameters
    ----------
    channels, replicas
        How many emitters and replicas there are.
    threshold, max_splitting
        θ and the greatest splitting degree, see `joins.key_splitting.split_keys`.
    """

    def __init__(
        self, *, channels: int, replicas: int, threshold: float, max_splitting: int
    ) -> None:
        self._channels, self._replicas = channels, replicas
        self._threshold, self._max_splitting = threshold, max_splitting
        self._heard = 0
        self._counts: Counter[int] = Counter()

    def receive(self, message: Message, context: Context) -> None:
        """Take one emitter's counts; after the last, tell all emitters."""
        counted: KeyCounts = message.payload
        counts = zip(counted.keys.tolist(), counted.counts.tolist(), strict=True)
        self._counts.update(dict(counts))
        self._heard += 1
        if self._heard < self._channels:
            return
        keys = np.array(sorted(self._counts), np.int64)
        homes = partition(keys, self._replicas)
        assignment = split_keys(
            self._counts,
            dict(zip(keys.tolist(), homes.tolist(), strict=True)),
            replicas=self._replicas,
            threshold=self._threshold,
            max_splitting=self._max_splitting,
        )
        context.send("emitters", Assigned(assignment))

    def snapshot(self) -> State:
        """Return the counts so far."""
        return {
            "heard": self._heard,
            "counts": [[key, count] for key, count in self._counts.items()],
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._heard = state["heard"]
        self._counts = Counter({key: count for key, count in state["counts"]})
