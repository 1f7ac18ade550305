"""HP-OIJ's change from one assignment to another at one emitter, step by step."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.hosting.inline import RecordingContext
from actors.interval_join.calibration import (
    AllReached,
    Assigned,
    CalibratingEmitter,
    KeyCounts,
    Reached,
)
from actors.interval_join.distribution import Homes
from actors.interval_join.emitter import Tuples
from actors.protocol import Message, Sent
from actors.stream_source import SourceShare
from joins.hashing import partition
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from tests.actors.test_interval_join import BASE, QUERY, SCHEMAS, rows

KEY = next(key for key in range(100) if partition(np.array([key]), 2)[0] == 0)
"""Its home is replica 0 of two."""


class OneEmitter:
    """A calibrating emitter that is handed turns of one tuple, and is restored before each."""

    def __init__(
        self, query: JoinQuery = QUERY, *, batch_rows: int = 1, linger_turns: int = 0
    ) -> None:
        self.settings: dict[str, Any] = {
            "query": query,
            "batch_rows": batch_rows,
            "linger_turns": linger_turns,
        }
        self.actor = self.build()
        self.context = RecordingContext("e", {"replicas": ("0", "1"), "master": ("master",)}, 0)
        self.turns = 0

    def build(self) -> CalibratingEmitter:
        return CalibratingEmitter(
            calibration_turns=1,
            recalibration_turns=None,
            homes=Homes(2),
            schemas=SCHEMAS,
            stream=BASE,
            channel=0,
            **self.settings,
        )

    def hear(self, payload: object) -> list[Sent]:
        restored = self.build()
        restored.restore(self.actor.snapshot())
        self.actor = restored
        self.actor.receive(Message("x", "in", payload), self.context)
        return self.context.take().sends

    def turn(self, ts: int, watermark: int) -> tuple[tuple[int, ...], tuple[int, ...], list[int]]:
        """Return where a tuple goes, where it may be stored, and what the master gets."""
        sends = self.hear(SourceShare(rows([self.turns], [ts], [KEY]), watermark, last=False))
        self.turns += 1
        tuples = [sent.handle for sent in sends if isinstance(sent.handle, Tuples)]
        targets, storing = next(((t.targets, t.storing) for t in tuples if len(t.data)), ((), 0))
        reached = [sent.handle.value for sent in sends if isinstance(sent.handle, Reached)]
        return targets, targets[:storing], reached

    def stored_until(self, latest: int) -> None:
        """Let a change come so far that tuples up to *latest* are stored at the old replica."""
        self.turn(90, 0)
        self.hear(Assigned({KEY: (1,)}))
        self.turn(91, 0)
        self.hear(AllReached(2))
        assert self.turn(92, 0)[2] == [91]
        self.hear(AllReached(latest))


def test_a_key_moves_without_a_moment_in_which_a_pair_could_be_missed() -> None:
    """From replica 0 to replica 1, while other emitters are two turns behind in every step."""
    one = OneEmitter()
    first = one.hear(SourceShare(rows([0], [90], [KEY]), 0, last=False))
    one.turns = 1
    assert any(isinstance(sent.handle, KeyCounts) for sent in first)
    assert one.hear(Assigned({KEY: (1,)})) == []
    assert one.turn(91, 0) == ((0,), (0,), [2])
    assert one.turn(92, 0) == ((0, 1), (0,), [])
    one.hear(AllReached(4))
    assert one.turn(93, 0) == ((0, 1), (0,), [])
    assert one.turn(94, 0) == ((1, 0), (1,), [93])
    one.hear(AllReached(100))
    # A tuple of 110 joins one of 100; only past that is what replica 0 holds out of reach.
    assert one.turn(120, 110) == ((1, 0), (1,), [])
    assert one.turn(121, 111) == ((1, 0), (1,), [7])
    one.hear(AllReached(8))
    assert one.turn(122, 112) == ((1, 0), (1,), [])
    assert one.turn(123, 113) == ((1,), (1,), [8])
    assert one.turn(124, 114) == ((1,), (1,), [])


def test_what_was_stored_last_need_not_be_latest() -> None:
    """Tuples come out of order: what the old replica holds reaches to the latest of all turns."""
    one = OneEmitter()
    one.turn(97, 0)
    one.hear(Assigned({KEY: (1,)}))
    one.turn(91, 0)
    one.hear(AllReached(2))
    assert one.turn(92, 0)[2] == [97]


def test_what_was_stored_may_have_partners_while_either_stream_does() -> None:
    """With B up to 10 after A, a stored A of 100 has partners up to 110, a stored B none."""
    one = OneEmitter(
        parse_query(
            "SELECT * FROM A, B WHERE A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL '10 ns'"
        )
    )
    one.stored_until(100)
    assert one.turn(120, 110)[2] == []
    assert one.turn(121, 111)[2] == [5]


def test_a_tuple_held_back_may_still_join_what_was_stored() -> None:
    """It holds the watermark back, which says how far the emitter has come."""
    one = OneEmitter(batch_rows=2, linger_turns=9)
    assert one.turn(90, 0)[0] == ()
    one.hear(Assigned({KEY: (1,)}))
    assert one.turn(91, 0) == ((0,), (0,), [2])
    one.hear(AllReached(2))
    assert one.turn(92, 0)[2] == [91]
    one.hear(AllReached(100))
    assert one.turn(93, 0)[2] == []
    assert one.turn(105, 130)[2] == []
    assert one.turn(131, 130)[2] == [6]
