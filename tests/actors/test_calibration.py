"""HP-OIJ's change from one assignment to another at one emitter, step by step."""

from __future__ import annotations

import numpy as np

from actors.context import RecordingContext
from actors.interval_join.calibration import CalibratingEmitter
from actors.interval_join.calibration_messages import AllReached, Assigned, KeyCounts, Reached
from actors.interval_join.payloads import Share, Tuples
from actors.protocol import Message, Sent
from joins.hashing import partition
from tests.actors.test_interval_join import BASE, QUERY, SCHEMAS, rows

KEY = next(key for key in range(100) if partition(np.array([key]), 2)[0] == 0)
"""Its home is replica 0 of two."""


class OneEmitter:
    """A calibrating emitter that is handed turns of one tuple, and is restored before each."""

    def __init__(self) -> None:
        self.actor = self.build()
        self.context = RecordingContext("e", {"replicas": ("0", "1"), "master": ("master",)}, 0)
        self.turns = 0

    @staticmethod
    def build() -> CalibratingEmitter:
        return CalibratingEmitter(
            calibration_turns=1,
            recalibration_turns=None,
            replicas=2,
            query=QUERY,
            schemas=SCHEMAS,
            stream=BASE,
            channel=0,
            batch_rows=1,
            linger_turns=0,
        )

    def hear(self, payload: object) -> list[Sent]:
        restored = self.build()
        restored.restore(self.actor.snapshot())
        self.actor = restored
        self.actor.receive(Message("x", "in", payload), self.context)
        return self.context.take().sends

    def turn(self, ts: int, watermark: int) -> tuple[tuple[int, ...], tuple[int, ...], list[int]]:
        """Return where a tuple goes, where it may be stored, and what the master is told."""
        sends = self.hear(Share(rows([self.turns], [ts], [KEY]), watermark, last=False))
        self.turns += 1
        tuples = [sent.handle for sent in sends if isinstance(sent.handle, Tuples)]
        targets, keepers = next((t.targets, t.keepers) for t in tuples if len(t.data))
        told = [sent.handle.value for sent in sends if isinstance(sent.handle, Reached)]
        return targets, targets[:keepers], told


def test_a_key_moves_without_a_moment_in_which_a_pair_could_be_missed() -> None:
    """From replica 0 to replica 1, while other emitters are two turns behind in every step."""
    one = OneEmitter()
    first = one.hear(Share(rows([0], [90], [KEY]), 0, last=False))
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
