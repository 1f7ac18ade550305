"""SM-D2: two-step semijoin at the destination (Algorithm 6).

N_1 asks with K_1, N_2 answers K'_1, the values that have matches in W_2, and N_1 ships the tuples
of these. The paper keeps the matches meanwhile in Temp, to scan W_2 once; here W_2 is hashed.
"""

from __future__ import annotations

from typing import Any

from actors.semijoins.asked import Asked
from actors.semijoins.one_way.asking_source import AskingSource
from actors.semijoins.part import Desk, DestinationPart
from actors.semijoins.payloads import Combinations, PartialTuples
from joins.batch import Batch
from joins.semijoins.distinct import contained
from joins.semijoins.joined import Joined


class SmD2Source(AskingSource):
    """Asks which values match, and ships the tuples of those."""

    def start(self, joined: Joined, tick: int, final: bool, desk: Desk) -> None:
        """Project the tuples on the join attributes and ship the distinct values (line 3)."""
        values = self.distinct_values(joined)
        if len(joined):
            # This is not the end of the interval for N_2: the tuples themselves will be.
            question = PartialTuples(step=self.step.number, tick=tick, final=False, values=values)
            self.ship(question, desk)
        asked = Asked(tick, final, joined, values, answered=not len(joined))
        for ready in self._asked.add(asked):
            self._ship(ready, ready.joined, desk)

    def hear(self, payload: PartialTuples, desk: Desk) -> None:
        """Reduce B_1 by K'_1 and ship it (lines 6 and 7)."""
        asked, *ready = self._asked.answered()
        columns = self.step.attributes.of_joined(asked.joined)
        matching = contained(columns, payload.values) >= 0
        self._ship(asked, asked.joined.take(matching), desk)
        for asked in ready:
            self._ship(asked, asked.joined, desk)

    def _ship(self, asked: Asked, reduced: Joined, desk: Desk) -> None:
        if len(reduced) or desk.execution.ships_nothing:
            self.ship(
                Combinations(
                    step=self.step.number, tick=asked.tick, final=asked.final, joined=reduced
                ),
                desk,
            )

    def snapshot(self) -> dict[str, Any]:
        """Return what waits."""
        return {"asked": self._asked.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._asked.restore(state["asked"])


class SmD2Destination(DestinationPart):
    """Answers which values match, and joins what then comes."""

    def insert(self, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Update W_2 (line 11)."""
        self.update(batch, keep_from, desk)

    def hear(self, payload: PartialTuples | Combinations, desk: Desk) -> None:
        """Ship K'_1 (lines 4 and 5), or join (line 8)."""
        if isinstance(payload, Combinations):
            self.join(payload, desk)
            return
        matched, work = self.window.matched(payload.values)
        desk.charge(work)
        answer = PartialTuples(
            step=self.step.number,
            tick=payload.tick,
            values=tuple(column[matched] for column in payload.values),
        )
        self.ship(answer, desk)
