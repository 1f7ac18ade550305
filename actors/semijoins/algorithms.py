"""The one-way join algorithms: the paper's six, and two with Bloom filters.

Each is a half at the source N_1 and a half at the destination N_2. They differ in what crosses the
wire and in where results are made, never in what the results are. *Line* numbers are those of the
stream semijoin paper's algorithms.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from actors.semijoins.one_way import (
    FOREVER,
    DestinationHalf,
    OneWayStep,
    PartialTuples,
    Shipment,
    SiteContext,
    SourceHalf,
    WindowUpdate,
)
from joins.batch import Batch
from joins.semijoins.bloom_filter import BloomFilter
from joins.semijoins.combinations import Combinations
from joins.semijoins.distinct_values import DistinctValues, ValueChanges, contained, distinct
from joins.semijoins.one_way_join import OneWayJoin
from joins.semijoins.operand_windows import Horizon, Timeline
from joins.semijoins.stored_tuples import CopiedValues, MixedWindow
from joins.sliding_column import SlidingColumn
from joins.state import storable

# SP-S: simple join at the source (Algorithm 1). W_2 is exported to N_1.


class SpSSource(SourceHalf):
    """Stores W_2@N_1 and joins there, δ later."""

    state = ("_window", "_horizon")

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._window = step.tuple_store()
        self._horizon = Horizon(step.window)

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Join (line 3)."""
        self.join(new, self._window, self._horizon.line, context)

    def on_shipment(self, shipment: Shipment[Batch], context: SiteContext) -> None:
        """Update W_2@N_1 (line 7)."""
        self._horizon.insert(shipment.tick, shipment.content)
        context.charge(self._window.insert(shipment.content))
        keep_from = self._horizon.passed(context.execution.may_remove(shipment.tick, self.begun))
        context.charge(self._window.expire(keep_from)[1])


class SpSDestination(DestinationHalf):
    """Ships its new tuples and stores none."""

    state = ()

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self.complete = FOREVER  # N_1 never asks

    def insert(self, batch: Batch, tick: int, keep_from: int, context: SiteContext) -> None:
        """Ship B_2 (line 6)."""
        if len(batch) or context.execution.punctuated:
            self.announce(batch, tick, context)


# SP-D: simple join at the destination (Algorithm 2). All tuples of S_1 are shipped there, and its
# destination is a `DestinationHalf` as it is (lines 4 and 7).


class SpDSource(SourceHalf):
    """Ships what comes."""

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Ship B_1 (line 3)."""
        self.ship_tuples(new, context)


# What several semijoins share: N_1 asks and its tuples wait; N_2 announces V_2.


@storable
@dataclass(frozen=True, slots=True)
class _Waiting:
    """Combinations that wait for an answer of N_2."""

    new: Shipment[Combinations]
    """The combinations, and their interval."""
    awaits_answer: bool
    """Whether one will come; for no tuples no request is sent."""
    values: tuple[np.ndarray, ...] = ()
    """The partial tuples asked for, a column per attribute, where the answer leaves them out."""


class AskingSource(SourceHalf):
    """A source whose tuples wait for answers of N_2: the buffer Temp, and B_1 in SM-S1.

    Answers come in the order of asking. What needs no answer itself waits for those before it:
    intervals end in their order.
    """

    state: ClassVar[tuple[str, ...]] = ("_queue",)

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._queue: list[_Waiting] = []

    @property
    def waits(self) -> bool:
        """Whether tuples wait here for an answer of N_2."""
        return bool(self._queue)

    @property
    def answered(self) -> _Waiting:
        """The request being answered."""
        return self._queue[0]

    def wait(self, waiting: _Waiting, context: SiteContext) -> None:
        """Queue tuples until their answer and all earlier ones are here."""
        self._queue.append(waiting)
        self._proceed_in_order(context)

    def on_answer(self, left: Shipment[Combinations], context: SiteContext) -> None:
        """Proceed with the tuples *left* after an answer, and with those queued behind them."""
        del self._queue[0]
        self.proceed(left, context)
        self._proceed_in_order(context)

    def _proceed_in_order(self, context: SiteContext) -> None:
        while self._queue and not self._queue[0].awaits_answer:
            self.proceed(self._queue.pop(0).new, context)

    @abstractmethod
    def proceed(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Process tuples that no longer wait."""


class ValuedDestination(DestinationHalf):
    """Stores V_2, and which of its values each tuple of W_2 has; announces every change.

    N_1 is sent the distinct join attribute values of W_2 (Algorithms 8 and 9). As it is, it is the
    destination of SM-D1 (Algorithm 5, lines 5, 8 and 9).
    """

    state: ClassVar[tuple[str, ...]] = ("_values", "_entry")

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        fields = step.schema.fields
        self._values = DistinctValues([fields[field] for field in step.attributes.stored])
        self._entry = SlidingColumn(np.int64)

    def insert(self, batch: Batch, tick: int, keep_from: int, context: SiteContext) -> None:
        """Update W_2 and V_2, and announce the change."""
        gone = self.update_window(batch, keep_from, context)
        changes, entries, flagged = self._values.update(
            self.step.attributes.of_stored(batch), self._entry.values[:gone]
        )
        self._entry.drop(gone)
        self._entry.append(entries)
        if len(batch) or gone or context.execution.punctuated:
            self.announce(self._update(changes, batch, flagged, keep_from), tick, context)

    def _update(
        self, changes: ValueChanges, batch: Batch, flagged: np.ndarray, keep_from: int
    ) -> WindowUpdate:
        """Return what N_1 is sent; it has the tuples of the values that are *flagged*."""
        return WindowUpdate(values=changes)


# SM-S1: one-step semijoin at the source (Algorithm 3). N_1 asks with K_1, the join attribute values
# of its new tuples; N_2 ships the tuples of W_2 that match and were not shipped before
# (Algorithm 7); N_1 stores them as W'_2 and joins.


class SmS1Source(AskingSource):
    """Asks, stores W'_2 and joins."""

    state: ClassVar[tuple[str, ...]] = ("_window", "_line")

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._window = step.tuple_store()
        self._line = Timeline()

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Project the tuples on the join attributes and ship the distinct values (line 3)."""
        values = distinct(self.step.attributes.of_combinations(new.content))
        some = len(new.content) > 0
        if some or context.execution.punctuated:
            self.ship(new.of(self._question(values)), context)
        self.wait(_Waiting(new, some), context)

    def _question(self, values: tuple[np.ndarray, ...]) -> PartialTuples | BloomFilter:
        """Return the request for matches of some values."""
        return PartialTuples(values)

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Insert ΔW'_2 and join (line 6), or remove what expired (line 11, Algorithm 8)."""
        if isinstance(update := shipment.content, WindowUpdate):
            context.charge(self._window.expire_first(update.expired))
            _extend(self._line, update)
            return
        context.charge(self._window.insert(shipment.content))
        self.on_answer(self.answered.new, context)

    def proceed(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Join."""
        self.join(new, self._window, self._line, context)


class SmS1Destination(DestinationHalf):
    """Ships what matches and has not been shipped: the non-redundant semijoin."""

    state: ClassVar[tuple[str, ...]] = ("_shipped",)

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._shipped = SlidingColumn(np.bool_)

    def insert(self, batch: Batch, tick: int, keep_from: int, context: SiteContext) -> None:
        """Update W_2, and ship how many shipped tuples are gone (lines 9 and 10, Algorithm 8)."""
        gone = self.update_window(batch, keep_from, context)
        self._shipped.append(np.zeros(len(batch), np.bool_))
        expired = int(self._shipped.values[:gone].sum())
        self._shipped.drop(gone)
        update = self.window_update(batch, keep_from, expired=expired)
        if expired or len(update.ts):
            self.announce(update, tick, context)

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Ship the matches that have not been shipped (lines 4 and 5)."""
        if not shipment.rows:
            return
        rows = self._matching_rows(shipment.content, context)
        new = rows[~self._shipped.values[rows]]
        self._shipped.values[new] = True
        self.ship(shipment.of(self.window.tuples.take(new)), context)

    def _matching_rows(self, question: Any, context: SiteContext) -> np.ndarray:
        """Return the rows of W_2 that match what N_1 asks with."""
        rows, work = self.window.matching_rows(question.values)
        context.charge(work)
        return rows


# BLOOM-S: SM-S1 with a Bloom filter of the new tuples' values in place of the values. False
# positives ship tuples for nothing; the join at N_1 compares the values themselves, so that its
# results are the same. One of the paper's four future works.


class BloomSSource(SmS1Source):
    """Asks with a filter."""

    def _question(self, values: tuple[np.ndarray, ...]) -> BloomFilter:
        """Return a filter of the values that equalities compare."""
        return BloomFilter.of(self.step.attributes.probe_keys(values))


class BloomSDestination(SmS1Destination):
    """Ships what the filter lets through and has not been shipped."""

    def _matching_rows(self, question: Any, context: SiteContext) -> np.ndarray:
        """Return the rows of W_2 that may match."""
        attributes = self.step.attributes
        stored = attributes.stored_keys(attributes.of_stored(self.window.tuples))
        return np.flatnonzero(question.may_contain(stored))


# SM-S2: two-step semijoin at the source (Algorithm 4). N_1 stores M_2: the distinct join attribute
# values of W_2, with the full tuples of those values that it has asked for; N_2 announces every
# change (Algorithm 9).
#
# A tuple that matches both values with and without full tuples, which only predicates other than
# one equality allow, waits in Temp for all of its matches. And Temp is joined with M_2 rather than
# with what was just shipped (line 8): where two intervals in a row need a value, the second one's
# answer does not bring it again.
#
# Tuples that match full ones alone are joined at once in the last step (line 3). In others they
# wait in Temp, too: what an interval's tuples match goes on in one batch, so that the next step
# ships once in τ, as the cost formulas have it, and not twice as often as the step before.


class SmS2Source(AskingSource):
    """Stores M_2, asks for full tuples it lacks, and joins."""

    state = ("_mixed", "_line")

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._mixed = MixedWindow(
            stream=step.stored, schema=step.schema, attributes=step.attributes
        )
        self._line = Timeline()

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Join with full tuples; ask for those that only match partial ones (lines 3 and 4)."""
        rows = new.content
        waits, values, work = self._mixed.missing(rows)
        context.charge(work)
        asks = bool(waits.any())
        if asks or context.execution.punctuated:
            self.ship(new.of(PartialTuples(values)), context)
        if asks and self.step.is_last:
            self.proceed(replace(new.of(rows.take(~waits)), final=False), context)
            new = new.of(rows.take(waits))
        self.wait(_Waiting(new, asks, values), context)

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Repeat a change of W_2 (line 13), or insert ΔW'_2 and join Temp (lines 7 and 8)."""
        if isinstance(update := shipment.content, WindowUpdate):
            assert update.values is not None
            assert update.tuples is not None
            context.charge(self._mixed.update(update.values, update.tuples))
            _extend(self._line, update)
            return
        context.charge(self._mixed.fetched(self.answered.values, shipment.content))
        self.on_answer(self.answered.new, context)

    def proceed(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Join, if there is anything to join or to pass on."""
        if len(new.content) or new.final:
            self.join(new, self._mixed.full, self._line, context)


class SmS2Destination(ValuedDestination):
    """Announces the changes of V_2 (lines 11 and 12); ships the tuples of the values asked for."""

    def _update(
        self, changes: ValueChanges, batch: Batch, flagged: np.ndarray, keep_from: int
    ) -> WindowUpdate:
        return self.window_update(batch, keep_from, values=changes, tuples=batch.take(flagged))

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Ship the tuples of values that have not been shipped (lines 5 and 6)."""
        if not shipment.rows:
            return
        values = self._values
        place = values.find(shipment.content.values)
        place = place[place >= 0]
        new = values.entry[place[~values.flag[place]]]
        values.flag[place] = True
        rows = np.isin(self._entry.values, new, kind="table")
        self.ship(shipment.of(self.window.tuples.take(rows)), context)


def _extend(line: Timeline, update: WindowUpdate) -> None:
    """Add the positions and event times of an update, for a count window stored in part."""
    line.extend(update.ids, update.ts)
    line.expire(update.keep_from)


# SM-D1: one-step semijoin at the destination (Algorithm 5). N_1 stores V_2@N_1, the distinct join
# attribute values of W_2, and ships only the tuples that match one of them. N_2 announces V_2 and
# joins what comes: it is a `ValuedDestination`.


class SmD1Source(SourceHalf):
    """Stores V_2@N_1 and ships what matches, δ later."""

    state = ("_copied",)

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._copied = CopiedValues(step.schema, step.attributes)

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Reduce B_1 and ship it (lines 3 and 4)."""
        row, _, work = self._copied.matches(new.content)
        context.charge(work)
        self.ship_tuples(new.of(new.content.take(np.unique(row))), context)

    def on_shipment(self, shipment: Shipment[WindowUpdate], context: SiteContext) -> None:
        """Update V_2@N_1 (line 10)."""
        assert shipment.content.values is not None
        context.charge(self._copied.update(shipment.content.values))


# BLOOM-D: SM-D1 with a Bloom filter of the window's values in place of the values. N_2 ships the
# filter anew when its window has changed: bits cannot be removed from one, and a filter with
# counters, which could be updated by differences, is several times as large. Tuples let through for
# nothing find no match at N_2, so that the results are the same.


class BloomDSource(SourceHalf):
    """Stores the latest filter, and ships what it lets through, δ later."""

    state = ("_bloom",)

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._bloom = BloomFilter.of([np.empty(0, np.int64)])

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Reduce B_1 and ship it."""
        attributes, rows = self.step.attributes, new.content
        passing = self._bloom.may_contain(attributes.probe_keys(attributes.of_combinations(rows)))
        self.ship_tuples(new.of(rows.take(passing)), context)

    def on_shipment(self, shipment: Shipment[BloomFilter], context: SiteContext) -> None:
        """Store the filter of an interval."""
        self._bloom = shipment.content


class BloomDDestination(DestinationHalf):
    """Ships a filter of its window, and joins what comes."""

    def insert(self, batch: Batch, tick: int, keep_from: int, context: SiteContext) -> None:
        """Update W_2 and ship the filter of its values."""
        gone = self.update_window(batch, keep_from, context)
        if not (len(batch) or gone or context.execution.punctuated):
            return
        attributes = self.step.attributes
        keys = attributes.stored_keys(attributes.of_stored(self.window.tuples))
        self.announce(BloomFilter.of(distinct(keys)), tick, context)


# SM-D2: two-step semijoin at the destination (Algorithm 6). N_1 asks with K_1, N_2 answers K'_1,
# the values that have matches in W_2, and N_1 ships the tuples of these. The paper stores the
# matches meanwhile in Temp, to scan W_2 once; here W_2 is hashed.


class SmD2Source(AskingSource):
    """Asks which values match, and ships the tuples of those."""

    def start(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Project the tuples on the join attributes and ship the distinct values (line 3)."""
        values = distinct(self.step.attributes.of_combinations(new.content))
        some = len(new.content) > 0
        if some:
            # This is not the end of the interval for N_2: the tuples themselves will be.
            self.ship(replace(new.of(PartialTuples(values)), final=False), context)
        self.wait(_Waiting(new, some), context)

    def on_shipment(self, shipment: Shipment[PartialTuples], context: SiteContext) -> None:
        """Reduce B_1 by K'_1 and ship it (lines 6 and 7)."""
        new = self.answered.new
        columns = self.step.attributes.of_combinations(new.content)
        matching = contained(columns, shipment.content.values)
        self.on_answer(new.of(new.content.take(matching)), context)

    def proceed(self, new: Shipment[Combinations], context: SiteContext) -> None:
        """Ship what is left."""
        self.ship_tuples(new, context)


class SmD2Destination(DestinationHalf):
    """Answers which values match, and joins what then comes (line 8)."""

    def on_shipment(self, shipment: Shipment[Any], context: SiteContext) -> None:
        """Ship K'_1 (lines 4 and 5), or join."""
        if not isinstance(question := shipment.content, PartialTuples):
            super().on_shipment(shipment, context)
            return
        matched, work = self.window.have_matches(question.values)
        context.charge(work)
        matching = tuple(column[matched] for column in question.values)
        self.ship(shipment.of(PartialTuples(matching)), context)


HALVES: dict[OneWayJoin, tuple[type[SourceHalf], type[DestinationHalf]]] = {
    OneWayJoin.SP_S: (SpSSource, SpSDestination),
    OneWayJoin.SP_D: (SpDSource, DestinationHalf),
    OneWayJoin.SM_S1: (SmS1Source, SmS1Destination),
    OneWayJoin.SM_S2: (SmS2Source, SmS2Destination),
    OneWayJoin.SM_D1: (SmD1Source, ValuedDestination),
    OneWayJoin.SM_D2: (SmD2Source, SmD2Destination),
    OneWayJoin.BLOOM_S: (BloomSSource, BloomSDestination),
    OneWayJoin.BLOOM_D: (BloomDSource, BloomDDestination),
}
"""Algorithm to its half at N_1 and its half at N_2."""
