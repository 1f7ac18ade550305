"""SM-S1: one-step semijoin at the source (Algorithm 3).

N_1 asks with K_1, the join attribute values of its new tuples; N_2 ships the tuples of W_2 that
match and were not shipped before (Algorithm 7); N_1 keeps them as W'_2 and joins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.semijoins.asked import Asked
from actors.semijoins.one_way.asking_source import AskingSource
from actors.semijoins.part import Desk, DestinationPart, OneWayStep
from actors.semijoins.payloads import FullTuples, PartialTuples, Shipment, WindowUpdate
from actors.semijoins.updates import follow, window_update
from joins.batch import Batch
from joins.semijoins.horizon import Timeline
from joins.semijoins.joined import Joined


class SmS1Source(AskingSource):
    """Asks, keeps W'_2 and joins."""

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._window = step.held()
        self._line = Timeline()

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Project the tuples on the join attributes and ship the distinct values (line 3)."""
        values = self.distinct_values(joined)
        if len(joined) or desk.execution.ships_nothing:
            self.ship(self.question(values, tick, final), desk)
        asked = Asked(tick, final, joined, values, answered=not len(joined))
        self._join(self._asked.add(asked), desk)

    def question(self, values: tuple[np.ndarray, ...], tick: int, final: bool) -> Shipment:
        """Return the message that asks for matches of some values."""
        return PartialTuples(step=self.step.number, tick=tick, final=final, values=values)

    def hear(self, payload: FullTuples | WindowUpdate, desk: Desk) -> None:
        """Take ΔW'_2 and join (line 6), or remove what expired (line 11, Algorithm 8)."""
        if isinstance(payload, WindowUpdate):
            desk.charge(self._window.expire_first(payload.expired))
            follow(self._line, payload)
            return
        desk.charge(self._window.insert(payload.batch))
        self._join(self._asked.answered(), desk)

    def _join(self, ready: list[Asked], desk: Desk) -> None:
        for asked in ready:
            found, work = self._window.join(asked.joined, self.step.window, self._line)
            desk.charge(work)
            self.put(found, asked.tick, asked.final, desk)

    def snapshot(self) -> dict[str, Any]:
        """Return W'_2 and what waits."""
        return {
            "window": self._window.snapshot(),
            "asked": self._asked.snapshot(),
            "line": self._line.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._window.restore(state["window"])
        self._asked.restore(state["asked"])
        self._line.restore(state["line"])


class SmS1Destination(DestinationPart):
    """Ships what matches and has not been shipped: the non-redundant semijoin."""

    def __init__(self, step: OneWayStep) -> None:
        super().__init__(step)
        self._shipped = np.empty(0, np.bool_)

    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Update W_2, and tell how many shipped tuples are gone (lines 9 and 10, Algorithm 8)."""
        gone = len(self.update(batch, keep_from, desk))
        shipped = np.concatenate([self._shipped, np.zeros(len(batch), np.bool_)])
        expired, self._shipped = int(shipped[:gone].sum()), shipped[gone:]
        update = window_update(self.step, tick, batch, keep_from, expired=expired)
        if expired or len(update.ts):
            self.ship(update, desk)

    def hear(self, payload: Any, desk: Desk) -> None:
        """Find the matches that have not been shipped, and ship them (lines 4 and 5)."""
        if payload.rows:
            rows = self.matches(payload, desk)
            new = rows[~self._shipped[rows]]
            self._shipped[new] = True
            self.ship(
                FullTuples(
                    step=self.step.number,
                    tick=payload.tick,
                    final=payload.final,
                    batch=self.window.tuples.take(new),
                ),
                desk,
            )
        if payload.final:
            self.done = payload.tick

    def matches(self, payload: Any, desk: Desk) -> np.ndarray:
        """Return the rows of W_2 that match what N_1 asks with."""
        rows, work = self.window.match(payload.values)
        desk.charge(work)
        return rows

    def snapshot(self) -> dict[str, Any]:
        """Return the window and the bit map of what was shipped."""
        return {**super().snapshot(), "shipped": self._shipped.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._shipped = state["shipped"].copy()
