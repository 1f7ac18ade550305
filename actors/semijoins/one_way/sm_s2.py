"""SM-S2: two-step semijoin at the source (Algorithm 4).

N_1 keeps M_2: the distinct join attribute values of W_2, with the full tuples of those values that
it has asked for; N_2 tells of every change (Algorithm 9).

A tuple that matches both values with and without full tuples, which only predicates other than one
equality allow, waits in Temp for all of its matches. And Temp is joined with M_2 rather than with
what was just shipped (line 8): where two intervals in a row need a value, the second one's answer
does not bring it again.

Tuples that match full ones alone are joined at once in the last step (line 3). In others they wait
in Temp, too: what an interval's tuples find goes on in one batch, so that the next step ships once
in τ, as the cost formulas have it, and not twice as often as the step before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.semijoins.asked import Asked
from actors.semijoins.one_way.asking_source import AskingSource
from actors.semijoins.one_way.valued_destination import ValuedDestination
from actors.semijoins.part import Desk, OneWayStep
from actors.semijoins.payloads import FullTuples, PartialTuples, WindowUpdate
from actors.semijoins.updates import follow, window_update
from joins.batch import Batch
from joins.semijoins.distinct_values import ValueChanges
from joins.semijoins.horizon import Timeline
from joins.semijoins.joined import Joined
from joins.semijoins.mixed_window import MixedWindow


class SmS2Source(AskingSource):
    """Keeps M_2, asks for full tuples it lacks, and joins."""

    delayed = True

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._mixed = MixedWindow(
            stream=step.stored, schema=step.schema, attributes=step.attributes
        )
        self._line = Timeline()

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Join with full tuples; ask for those that only match partial ones (lines 3 and 4)."""
        waits, values, work = self._mixed.missing(joined)
        desk.charge(work)
        if waits.any() or desk.execution.ships_nothing:
            question = PartialTuples(step=self.step.number, tick=tick, final=final, values=values)
            self.ship(question, desk)
        rest = joined
        if waits.any() and self.step.is_last:
            self._join(joined.take(~waits), tick, False, desk)
            rest = joined.take(waits)
        asked = Asked(tick, final, rest, values, answered=not waits.any())
        for ready in self._asked.add(asked):
            self._join(ready.joined, ready.tick, ready.final, desk)

    def hear(self, payload: FullTuples | WindowUpdate, desk: Desk) -> None:
        """Follow W_2 (line 13), or take ΔW'_2 and join Temp (lines 7 and 8)."""
        if isinstance(payload, WindowUpdate):
            self.heard = payload.tick
            assert payload.values is not None
            assert payload.tuples is not None
            desk.charge(self._mixed.update(payload.values, payload.tuples))
            follow(self._line, payload)
            return
        asked, *ready = self._asked.answered()
        desk.charge(self._mixed.fetched(asked.values, payload.batch))
        for waiting in (asked, *ready):
            self._join(waiting.joined, waiting.tick, waiting.final, desk)

    def _join(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        if not (len(joined) or final):
            return
        found, work = self._mixed.full.join(joined, self.step.window, self._line)
        desk.charge(work)
        self.put(found, tick, final, desk)

    def snapshot(self) -> dict[str, Any]:
        """Return M_2 and what waits."""
        return {
            "mixed": self._mixed.snapshot(),
            "asked": self._asked.snapshot(),
            "line": self._line.snapshot(),
            "heard": self.heard,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._mixed.restore(state["mixed"])
        self._asked.restore(state["asked"])
        self._line.restore(state["line"])
        self.heard = state["heard"]


class SmS2Destination(ValuedDestination):
    """Tells of the changes of V_2 (lines 11 and 12); ships the tuples of the values asked for."""

    def _told(
        self, changes: ValueChanges, shipped: Batch, batch: Batch, tick: int, keep_from: int
    ) -> WindowUpdate:
        return window_update(self.step, tick, batch, keep_from, values=changes, tuples=shipped)

    def hear(self, payload: PartialTuples, desk: Desk) -> None:
        """Ship the tuples of values that have not been shipped (lines 5 and 6)."""
        if payload.rows:
            values = self._values
            place = values.find(payload.values)
            place = place[place >= 0]
            new = values.entry[place[~values.flag[place]]]
            values.flag[place] = True
            answer = FullTuples(
                step=self.step.number,
                tick=payload.tick,
                final=payload.final,
                batch=self.window.tuples.take(np.isin(self._entry, new, kind="table")),
            )
            self.ship(answer, desk)
        if payload.final:
            self.done = payload.tick
