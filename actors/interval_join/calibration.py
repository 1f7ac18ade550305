"""HP-OIJ's calibration: keys are counted, then split, and split anew, while tuples flow.

At first each key is at its home. Every emitter counts its keys and sends the counts to the master,
which answers over a feedback channel with the replicas of each key. The change from one assignment
to another takes four steps; before the next, the master waits until every emitter has taken one.

1. *Widened*: from the end of a turn on, tuples go to the old and the new replicas of their key, and
   are stored at the old ones, where emitters that have not taken this step yet still send theirs.
2. *Stored*: from the turn on by which all have widened, tuples are stored at the new replicas.
   Emitters report the latest event time that they have sent to the old ones.
3. *Passed*: an emitter's watermark shows that none of its later tuples can join with what was
   stored at the old replicas.
4. *Narrowed*: from the turn on by which all have passed, tuples go to the new replicas alone. A
   tuple too old for that is late at every replica, since watermarks of all emitters are taken into
   account in the same order of turns everywhere.

Turns are a clock that all emitters share, because collectors take turn n of every channel before
turn n + 1 of any; so no pair is lost or found twice, and no stored tuple has to move.

The paper calibrates once, and lets a key only gain replicas; steps 3 and 4 and all that follows the
first change is this project's own. In the paper the first replica is the master. Here the master is
an actor of its own beside it: a replica that waits for room at an emitter, which waits for room at
the replica, would wait forever.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from actors.interval_join.distribution import Assignment, BySplitKey, Distribution, Homes
from actors.interval_join.emitter import REPLICA_BYTES, Emitter
from actors.protocol import FEEDBACK, HEADER_BYTES, Actor, Context, Message, Payload
from actors.stream_source import Rows
from joins.event_time import NO_WATERMARK
from joins.key_splitting import HEURISTICS, Split, add_counts, copies, loads
from joins.state import State, storable


@dataclass(frozen=True, slots=True)
class KeyCounts(Payload):
    """An emitter's count of tuples per key in one round (emitter to master)."""

    round: int
    keys: np.ndarray
    counts: np.ndarray

    bytes_of = ("keys", "counts")
    rows_of = ("keys",)


@dataclass(frozen=True, slots=True)
class Assigned(Payload):
    """The replicas of each key from now on, its home alone where none are named."""

    assignment: Assignment

    rows_of = ("assignment",)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        replicas = sum(len(among) for among in self.assignment.values())
        return HEADER_BYTES + 8 * len(self.assignment) + REPLICA_BYTES * replicas


@dataclass(frozen=True, slots=True)
class Reached(Payload):
    """An emitter has taken a step of the change, at this turn or time (emitter to master)."""

    value: int

    bytes_of = ("value",)


class AllReached(Reached):
    """All emitters have taken the step, the last at this turn or time (master to emitters)."""


class ChangeStep(IntEnum):
    """How far a change of assignment has come at an emitter."""

    STEADY = 0
    ASSIGNED = 1
    WIDENED = 2
    STORED = 3
    PASSED = 4


@dataclass(kw_only=True, eq=False)
class CalibratingEmitter(Emitter):
    """An emitter that begins with each key at its home, and splits keys as the master decides.

    Ports: ``replicas``, ``master``.
    """

    calibration_turns: int
    """Turns of its first round of counting keys, at least 1."""
    recalibration_turns: int | None
    """Turns of every later round; None: there is no later round."""
    homes: Homes
    """Where each key is at first."""
    distribution: Distribution = field(init=False)

    state = (
        "_counts",
        "_round",
        "_round_ends",
        "_latest",
        "_step",
        "_agreed",
        "_old",
        "_new",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.distribution = BySplitKey(self.homes)
        self._counts: dict[int, int] = {}
        self._round = 0
        self._round_ends: int | None = self.calibration_turns
        self._latest = NO_WATERMARK
        self._step = ChangeStep.STEADY
        self._agreed: int | None = None
        self._old: Assignment = {}
        self._new: Assignment = {}

    def receive(self, message: Message, context: Context) -> None:
        """Handle the source's next turn, or a message of the master."""
        payload = message.payload
        if isinstance(payload, Assigned):
            self._new, self._step = payload.assignment, ChangeStep.ASSIGNED
        elif isinstance(payload, AllReached):
            self._agreed = payload.value
        else:
            self._change_before_turn(context)
            self._latest = max(self._latest, int(payload.data.batch.ts.max(initial=NO_WATERMARK)))
            flush = self._step == ChangeStep.ASSIGNED
            watermark = self._take_turn(payload, context, flush=flush)
            self._change_after_turn(watermark, context)
            if self._turn == self._round_ends:
                self._end_round(context)

    def restore(self, state: State) -> None:
        """Go back to a snapshot, and to the distribution of its step."""
        super().restore(state)
        self._distribute()

    def _change_before_turn(self, context: Context) -> None:
        if self._agreed is None or self._turn < self._agreed:
            return
        if self._step == ChangeStep.WIDENED:
            self._take_step(ChangeStep.STORED, self._latest, context)
        elif self._step == ChangeStep.PASSED:
            self._old = self._new
            self._take_step(ChangeStep.STEADY, self._turn, context)

    def _change_after_turn(self, watermark: int, context: Context) -> None:
        """Take the step that the end of a turn makes possible; *watermark* was sent in it."""
        if self._step == ChangeStep.ASSIGNED:
            # Partial batches are empty now, so watermarks of keys are valid for all keys from here
            # on, and replicas that are new to a key agree with the others on what is late.
            self._take_step(ChangeStep.WIDENED, self._turn, context)
        elif self._step == ChangeStep.STORED and self._agreed is not None:
            interval = self.query.bound_interval
            if all(interval.horizon(stream, watermark) > self._agreed for stream in (0, 1)):
                self._take_step(ChangeStep.PASSED, self._turn, context)

    def _take_step(self, step: ChangeStep, value: int, context: Context) -> None:
        self._step, self._agreed = step, None
        self._distribute()
        context.send("master", Reached(value))

    def _distribute(self) -> None:
        """Distribute tuples as the present step requires."""
        stored, probed = self._old, self._new
        if self._step in (ChangeStep.STEADY, ChangeStep.ASSIGNED):
            probed = self._old
        elif self._step != ChangeStep.WIDENED:
            stored, probed = self._new, self._old
        self.distribution = BySplitKey(self.homes, stored=stored, probed=probed)

    def _keyed(self, data: Rows) -> Rows:
        """Return tuples that have come, and count their keys where a round is on."""
        rows = super()._keyed(data)
        if self._round_ends is not None:
            keys, counts = np.unique(rows.batch.key, return_counts=True)
            add_counts(self._counts, keys, counts)
        return rows

    def _end_round(self, context: Context) -> None:
        keys = np.array(sorted(self._counts), np.int64)
        counts = np.array([self._counts[key] for key in keys.tolist()], np.int64)
        context.send("master", KeyCounts(self._round, keys, counts))
        self._counts = {}
        self._round += 1
        again = self.recalibration_turns
        self._round_ends = None if again is None else self._turn + again


@storable
@dataclass
class _Round:
    """The counts of one round, as far as they have arrived."""

    emitters: int = 0
    counts: dict[int, int] = field(default_factory=dict)


@dataclass(kw_only=True, eq=False)
class Master(Actor):
    """Adds up the key counts of all emitters and splits the keys; at first each is at its home.

    After every round of counts it compares the present assignment with the one that suits them. The
    distribution has drifted when a replica has more than θ times the average load and the other
    assignment would lower that, or when tuples travel to more than θ times the replicas they would.
    A round that ends while a change is in progress is ignored.

    Ports: `FEEDBACK` to the emitters.
    """

    channels: int
    """How many emitters there are."""
    homes: Homes
    """Where each key is at first."""
    heuristic: str
    """How keys are split, see `joins.key_splitting.HEURISTICS`."""
    threshold: float
    max_splitting: int
    """θ and the greatest splitting degree, see `joins.key_splitting.split_keys`."""

    state = ("_rounds", "_assignment", "_step", "_reached")

    def __post_init__(self) -> None:
        self._split = HEURISTICS[self.heuristic]
        self._rounds: dict[int, _Round] = {}
        self._assignment: Assignment = {}
        self._step = ChangeStep.STEADY
        self._reached: list[int] = []

    def receive(self, message: Message, context: Context) -> None:
        """Handle one emitter's counts, or that it has taken a step."""
        if isinstance(message.payload, KeyCounts):
            self._add_counts(message.payload, context)
        else:
            self._add_reached(message.payload, context)

    def _add_counts(self, counted: KeyCounts, context: Context) -> None:
        one = self._rounds.setdefault(counted.round, _Round())
        one.emitters += 1
        add_counts(one.counts, counted.keys, counted.counts)
        if one.emitters < self.channels:
            return
        del self._rounds[counted.round]
        if self._step == ChangeStep.STEADY and one.counts:
            self._reassign(one.counts, context)

    def _reassign(self, counts: dict[int, int], context: Context) -> None:
        """Assign keys anew if their distribution has drifted."""
        homes = self.homes.by_key(counts)
        present = {key: self._assignment.get(key, (home,)) for key, home in homes.items()}
        suited = self._split(
            counts,
            homes,
            replicas=self.homes.replicas,
            threshold=self.threshold,
            max_splitting=self.max_splitting,
        )
        if self._drifted(counts, present, suited):
            self._assignment = suited
            self._step = ChangeStep.ASSIGNED
            context.send(FEEDBACK, Assigned(suited))

    def _drifted(self, counts: Mapping[int, int], present: Split, suited: Split) -> bool:
        replicas = self.homes.replicas
        most = max(loads(counts, present, replicas))
        least_possible = max(loads(counts, suited, replicas))
        overloaded = most * replicas > self.threshold * sum(counts.values())
        if overloaded and least_possible < most:
            return True
        return copies(counts, present) > self.threshold * copies(counts, suited)

    def _add_reached(self, reached: Reached, context: Context) -> None:
        """Inform the emitters when all have taken a step."""
        self._reached.append(reached.value)
        if len(self._reached) < self.channels:
            return
        last = max(self._reached)
        self._reached = []
        if self._step == ChangeStep.PASSED:
            self._step = ChangeStep.STEADY
            return
        self._step = ChangeStep(self._step + 1)
        context.send(FEEDBACK, AllReached(last))
