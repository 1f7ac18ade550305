"""BLOOM-D: SM-D1 with a Bloom filter of the window's values in place of the values.

N_2 ships the filter anew when its window has changed: bits cannot be taken out of one, and a filter
with counters, which could follow by differences, is several times as large. Tuples let through for
nothing find no match at N_2, so that the results are the same.
"""

from __future__ import annotations

from typing import Any

from actors.semijoins.one_way.bloom_s import BITS_PER_VALUE, probe_keys, stored_keys
from actors.semijoins.part import Desk, DestinationPart, OneWayStep, SourcePart
from actors.semijoins.payloads import Combinations, Filter
from joins.batch import Batch
from joins.semijoins.bloom_filter import BloomFilter
from joins.semijoins.distinct import distinct
from joins.semijoins.joined import Joined


class BloomDSource(SourcePart):
    """Keeps the latest filter, and ships what it lets through, δ later."""

    delayed = True

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._bloom: BloomFilter | None = None

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Reduce B_1 and ship it."""
        attributes = self.step.attributes
        if self._bloom is None:
            reduced = joined.take(joined.seq[:0])
        else:
            keys = probe_keys(attributes, attributes.of_joined(joined))
            reduced = joined.take(self._bloom.may_hold(keys))
        if len(reduced) or desk.execution.ships_nothing:
            self.ship(
                Combinations(step=self.step.number, tick=tick, final=final, joined=reduced), desk
            )

    def hear(self, payload: Filter, desk: Desk) -> None:
        """Take the filter of an interval."""
        self.heard = payload.tick
        self._bloom = payload.bloom

    def snapshot(self) -> dict[str, Any]:
        """Return the filter."""
        return {"bloom": self._bloom, "heard": self.heard}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._bloom, self.heard = state["bloom"], state["heard"]


class BloomDDestination(DestinationPart):
    """Ships a filter of its window, and joins what comes."""

    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Update W_2 and ship the filter of its values."""
        gone = len(self.update(batch, keep_from, desk))
        if not (len(batch) or gone or desk.execution.ships_nothing):
            return
        attributes = self.step.attributes
        keys = stored_keys(attributes, attributes.of_stored(self.window.tuples))
        first, _ = distinct(keys)
        bloom = None
        if len(first):
            bloom = BloomFilter.of([column[first] for column in keys], BITS_PER_VALUE)
        message = Filter(step=self.step.number, tick=tick, bloom=bloom, values=len(first))
        self.ship(message, desk)

    def hear(self, payload: Combinations, desk: Desk) -> None:
        """Join."""
        self.join(payload, desk)
