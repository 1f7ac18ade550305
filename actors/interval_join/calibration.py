"""HP-OIJ's emitters: keys are measured, then split, and split anew, while tuples flow.

At first each key is at its home. Every emitter counts its keys and sends the counts to the master,
which answers over a feedback channel with the replicas of each key. The change from one assignment
to another takes four steps; before the next, the master waits until every emitter has taken one.

1. *Widened*: from the end of a turn on, tuples go to the old and the new replicas of their key, and
   are stored at the old ones, where emitters that know of nothing yet still look for them.
2. *Stored*: from the turn on by which all have widened, tuples are stored at the new replicas.
   Emitters tell the latest event time that they have sent to the old ones.
3. *Passed*: an emitter's watermark says that nothing it still sends can join with what was stored
   at the old replicas.
4. *Narrowed*: from the turn on by which all have passed, tuples go to the new replicas alone. A
   tuple too old for that is late at every replica, since watermarks of all emitters are taken into
   account in the same order of turns everywhere.

Turns are a clock that all emitters share, because collectors take turn n of every channel before
turn n + 1 of any; so no pair is lost or found twice, and no stored tuple has to move.

The paper calibrates once, and lets a key only gain replicas; steps 3 and 4 and all that follows the
first change is this project's own.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import Any

import numpy as np

from actors.interval_join.calibration_messages import AllReached, Assigned, KeyCounts, Reached
from actors.interval_join.distribution import Assignment, BetweenSplits, BySplitKey, Homes
from actors.interval_join.emitter import Emitter, keyed
from actors.interval_join.payloads import BEGINNING, Share
from actors.protocol import Context, Message
from joins.state import State


class Step(IntEnum):
    """How far a change of assignment has come at an emitter."""

    STEADY = 0
    ASSIGNED = 1
    WIDENED = 2
    STORED = 3
    PASSED = 4


class CalibratingEmitter(Emitter):
    """An emitter that begins with each key at its home, and splits keys when the master says how.

    Ports: ``replicas``, ``master``.

    Parameters
    ----------
    calibration_turns
        For how many turns it counts keys at first, at least 1.
    recalibration_turns
        For how many it counts them again and again after that; None never does.
    homes
        Where each key is at first.
    arguments
        Those of `Emitter`, but for the distribution.
    """

    def __init__(
        self,
        *,
        calibration_turns: int,
        recalibration_turns: int | None,
        homes: Homes,
        **arguments: Any,
    ) -> None:
        super().__init__(distribution=BySplitKey(homes), **arguments)
        self._homes = homes
        self._recalibration_turns = recalibration_turns
        self._counts: Counter[int] = Counter()
        self._round = 0
        self._round_ends: int | None = calibration_turns
        self._latest = BEGINNING
        self._step = Step.STEADY
        self._agreed: int | None = None
        self._old: Assignment = {}
        self._new: Assignment = {}

    def receive(self, message: Message, context: Context) -> None:
        """Take the source's next turn, or what the master says."""
        payload = message.payload
        if isinstance(payload, Assigned):
            self._new, self._step = payload.assignment, Step.ASSIGNED
        elif isinstance(payload, AllReached):
            self._agreed = payload.value
        else:
            self._change_before_turn(context)
            self._latest = max(self._latest, int(payload.data.batch.ts.max(initial=BEGINNING)))
            if self._round_ends is not None:
                self._count(payload)
            flush = self._step is Step.ASSIGNED
            watermark = self._take_turn(payload, context, flush=flush)
            self._change_after_turn(watermark, context)
            if self._turn == self._round_ends:
                self._end_round(context)

    def snapshot(self) -> State:
        """Return the partial batches, the counts, and how far the change has come."""
        return super().snapshot() | {
            "counts": [[key, count] for key, count in self._counts.items()],
            "round": self._round,
            "round_ends": self._round_ends,
            "latest": self._latest,
            "step": int(self._step),
            "agreed": self._agreed,
            "old": _as_lists(self._old),
            "new": _as_lists(self._new),
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._counts = Counter({key: count for key, count in state["counts"]})
        self._round, self._round_ends = state["round"], state["round_ends"]
        self._latest = state["latest"]
        self._step, self._agreed = Step(state["step"]), state["agreed"]
        self._old, self._new = _as_assignment(state["old"]), _as_assignment(state["new"])
        self._distribute()

    def _change_before_turn(self, context: Context) -> None:
        if self._agreed is None or self._turn < self._agreed:
            return
        if self._step is Step.WIDENED:
            self._take_step(Step.STORED, self._latest, context)
        elif self._step is Step.PASSED:
            self._old = self._new
            self._take_step(Step.STEADY, self._turn, context)

    def _change_after_turn(self, watermark: int, context: Context) -> None:
        """Go on with what becomes true at the end of a turn, in which *watermark* was sent."""
        if self._step is Step.ASSIGNED:
            # Nothing is held back now, so watermarks of keys hold for all keys from here on, and
            # replicas that are new to a key agree with the others on what is late.
            self._take_step(Step.WIDENED, self._turn, context)
        elif self._step is Step.STORED and self._agreed is not None:
            reach = self._query.reach
            if all(reach.horizon(stream, watermark) > self._agreed for stream in (0, 1)):
                self._take_step(Step.PASSED, self._turn, context)

    def _take_step(self, step: Step, value: int, context: Context) -> None:
        self._step, self._agreed = step, None
        self._distribute()
        context.send("master", Reached(value))

    def _distribute(self) -> None:
        """Distribute tuples as the present step says."""
        old = BySplitKey(self._homes, assignment=self._old)
        new = BySplitKey(self._homes, assignment=self._new)
        if self._step in (Step.STEADY, Step.ASSIGNED):
            self._distribution = old
        elif self._step is Step.WIDENED:
            self._distribution = BetweenSplits(stored=old, probed=new)
        else:
            self._distribution = BetweenSplits(stored=new, probed=old)

    def _count(self, share: Share) -> None:
        data = keyed(self._query, self._schemas, self._stream, share.data)
        keys, counts = np.unique(data.batch.key, return_counts=True)
        self._counts.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))

    def _end_round(self, context: Context) -> None:
        keys = np.array(sorted(self._counts), np.int64)
        counts = np.array([self._counts[key] for key in keys.tolist()], np.int64)
        context.send("master", KeyCounts(self._round, keys, counts))
        self._counts.clear()
        self._round += 1
        again = self._recalibration_turns
        self._round_ends = None if again is None else self._turn + again


def _as_lists(assignment: Assignment) -> list[list[int]]:
    return [[key, *replicas] for key, replicas in assignment.items()]


def _as_assignment(lists: list[list[int]]) -> Assignment:
    return {key: tuple(replicas) for key, *replicas in lists}
