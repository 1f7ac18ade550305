"""HP-OIJ's master: splits keys by how frequent they are, again when that has changed.

In the paper the first replica is the master. Here the master is an actor of its own beside it: a
replica that waits for room at an emitter, which waits for room at the replica, would wait forever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from actors.interval_join.calibration import Step
from actors.interval_join.calibration_messages import AllReached, Assigned, KeyCounts, Reached
from actors.interval_join.distribution import Assignment, Homes
from actors.protocol import FEEDBACK, Actor, Context, Message
from joins.key_splitting import HEURISTICS, Split, copies, loads
from joins.state import State


class Master(Actor):
    """Adds up the key counts of all emitters and splits the keys, each at its home at first.

    After every round of counts it compares the present assignment with the one that suits them. The
    distribution has drifted when a replica has more than θ times the average load and the other
    assignment would lower that, or when tuples travel to more than θ times the replicas they would.
    A round that ends while a change is under way is left out: the next one tells.

    Ports: `FEEDBACK` to the emitters.

    Parameters
    ----------
    channels
        How many emitters there are.
    homes
        Where each key is at first.
    heuristic
        How keys are split, see `joins.key_splitting.HEURISTICS`.
    threshold, max_splitting
        θ and the greatest splitting degree, see `joins.key_splitting.split_keys`.
    """

    def __init__(
        self,
        *,
        channels: int,
        homes: Homes,
        heuristic: str,
        threshold: float,
        max_splitting: int,
    ) -> None:
        self._split = HEURISTICS[heuristic]
        self._channels, self._homes = channels, homes
        self._threshold, self._max_splitting = threshold, max_splitting
        self._rounds: dict[int, _Round] = {}
        self._assignment: Assignment = {}
        self._step = Step.STEADY
        self._reached: list[int] = []

    def receive(self, message: Message, context: Context) -> None:
        """Take one emitter's counts, or that it has taken a step."""
        if isinstance(message.payload, KeyCounts):
            self._add_counts(message.payload, context)
        else:
            self._add_reached(message.payload, context)

    def snapshot(self) -> State:
        """Return the counts so far, the assignment, and how far a change has come."""
        return {
            "rounds": [
                [number, one.heard, [[key, count] for key, count in one.counts.items()]]
                for number, one in self._rounds.items()
            ],
            "assignment": [[key, *replicas] for key, replicas in self._assignment.items()],
            "step": int(self._step),
            "reached": list(self._reached),
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._rounds = {
            number: _Round(heard, {key: count for key, count in counts})
            for number, heard, counts in state["rounds"]
        }
        self._assignment = {key: tuple(replicas) for key, *replicas in state["assignment"]}
        self._step, self._reached = Step(state["step"]), list(state["reached"])

    def _add_counts(self, counted: KeyCounts, context: Context) -> None:
        one = self._rounds.setdefault(counted.round, _Round())
        one.heard += 1
        one.counts.update(dict(zip(counted.keys.tolist(), counted.counts.tolist(), strict=True)))
        if one.heard < self._channels:
            return
        del self._rounds[counted.round]
        if self._step is Step.STEADY and one.counts:
            self._suit(one.counts, context)

    def _suit(self, counts: Counter[int], context: Context) -> None:
        """Assign keys anew if their distribution has drifted."""
        keys = np.array(sorted(counts), np.int64)
        homes = dict(zip(keys.tolist(), self._homes.of(keys).tolist(), strict=True))
        present = {key: self._assignment.get(key, (home,)) for key, home in homes.items()}
        suited = self._split(
            counts,
            homes,
            replicas=self._homes.replicas,
            threshold=self._threshold,
            max_splitting=self._max_splitting,
        )
        if self._drifted(counts, present, suited):
            self._assignment = suited
            self._step = Step.ASSIGNED
            context.send(FEEDBACK, Assigned(suited))

    def _drifted(self, counts: Mapping[int, int], present: Split, suited: Split) -> bool:
        replicas = self._homes.replicas
        most = max(loads(counts, present, replicas))
        least_possible = max(loads(counts, suited, replicas))
        overloaded = most * replicas > self._threshold * sum(counts.values())
        if overloaded and least_possible < most:
            return True
        return copies(counts, present) > self._threshold * copies(counts, suited)

    def _add_reached(self, reached: Reached, context: Context) -> None:
        """Let emitters go on when all have taken a step."""
        self._reached.append(reached.value)
        if len(self._reached) < self._channels:
            return
        last = max(self._reached)
        self._reached = []
        if self._step is Step.PASSED:
            self._step = Step.STEADY
            return
        self._step = Step(self._step + 1)
        context.send(FEEDBACK, AllReached(last))


class _Round:
    """The counts of one round of measuring, as far as they are in."""

    def __init__(self, heard: int = 0, counts: Mapping[int, int] | None = None) -> None:
        self.heard = heard
        self.counts: Counter[int] = Counter(counts)
