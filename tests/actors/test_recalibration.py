"""HP-OIJ's emitters, master and replicas while keys are split anew, in any order of arrival."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.results import Answers, Late
from actors.stream_source import END, Rows, SourceShare
from joins.batch import Batch
from joins.queries.parser import parse_query
from tests.actors.any_order import AnyOrder
from topologies import TOPOLOGIES
from topologies.interval_join import HpOijParameters

TURNS, PHASES = 60, 5
Pair = tuple[int, int]


@dataclass(frozen=True)
class Tape:
    """What the sources of one stream send, turn by turn: a row per tuple.

    Time goes on by one nanosecond a turn, so that much happens at the very ends of intervals.
    """

    turn: np.ndarray
    source: np.ndarray
    ts: np.ndarray
    key: np.ndarray

    @classmethod
    def of(cls, rng: np.random.Generator, sources: int, disorder: int) -> Tape:
        """Return some tuples a turn, most of one key, another one in each phase."""
        turn = np.sort(rng.integers(0, TURNS, 8 * TURNS))
        ts = turn - rng.integers(0, disorder + 1, len(turn)) * (rng.random(len(turn)) < 0.4)
        hot = turn * PHASES // TURNS
        key = np.where(rng.random(len(turn)) < 0.6, hot, rng.integers(PHASES, PHASES + 3, len(ts)))
        return cls(turn, rng.integers(0, sources, len(turn)), ts, key)

    def share(self, turn: int, source: int, lag: int) -> SourceShare:
        """Return what a source sends in its turn, under a watermark that is *lag* behind."""
        ids = np.flatnonzero((self.turn == turn) & (self.source == source))
        key = self.key[ids]
        batch = Batch(id=ids, ts=self.ts[ids], key=key, fields={"key": key})
        last = turn == TURNS - 1
        watermark = END if last else turn + 1 - lag
        return SourceShare(Rows(batch, np.zeros_like(ids), ids), watermark, last)


def pairs_within(tapes: list[Tape], late: list[set[int]], lower: int, upper: int) -> list[Pair]:
    """Return the pairs of tuples that are not late."""
    base, probe = tapes
    apart = probe.ts[None, :] - base.ts[:, None]
    near = (lower <= apart) & (apart <= upper) & (base.key[:, None] == probe.key[None, :])
    return [(i, j) for i, j in np.argwhere(near).tolist() if i not in late[0] and j not in late[1]]


class Found:
    """What reached the sink."""

    def __init__(self, payloads: list[object]) -> None:
        self.pairs: list[Pair] = []
        self.late: list[list[int]] = [[], []]
        for payload in payloads:
            if isinstance(payload, Answers):
                for matches in payload.matches:
                    self.pairs += zip(*(ids.tolist() for ids in matches.pairs()), strict=True)
            elif isinstance(payload, Late):
                self.late[payload.stream] += payload.ids.tolist()
        self.pairs.sort()


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    replicas=st.integers(2, 4),
    emitters=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    batch_rows=st.integers(1, 8),
    linger=st.integers(0, 3),
    measured=st.tuples(st.integers(1, 3), st.integers(1, 4)),
    threshold=st.sampled_from([1.0, 1.3]),
    reach=st.tuples(st.integers(-3, 1), st.integers(0, 3)),
    disorder=st.integers(0, 4),
    lag=st.integers(0, 3),
)
def test_no_pair_is_lost_or_repeated_in_any_order_of_arrival(
    seed: int,
    replicas: int,
    emitters: tuple[int, int],
    batch_rows: int,
    linger: int,
    measured: tuple[int, int],
    threshold: float,
    reach: tuple[int, int],
    disorder: int,
    lag: int,
) -> None:
    """Emitters run ahead of one another, promise more or less, and hear of steps when they will."""
    rng = np.random.default_rng(seed)
    lower, upper = reach[0], reach[0] + reach[1]
    ends = [f"A.ts {'-' if by < 0 else '+'} INTERVAL '{abs(by)} ns'" for by in (lower, upper)]
    text = f"SELECT * FROM A, B WHERE A.key = B.key AND B.ts BETWEEN {ends[0]} AND {ends[1]}"
    parameters = HpOijParameters(
        replicas=replicas,
        base_emitters=emitters[0],
        probe_emitters=emitters[1],
        batch_rows=batch_rows,
        linger_turns=linger,
        calibration_turns=measured[0],
        recalibration_turns=measured[1],
        threshold=threshold,
    )
    topology = TOPOLOGIES["hp_oij"]
    graph = topology.build(replace(topology.sketch(parse_query(text)), pairs=True), parameters)
    network = AnyOrder(graph, ("source", "sink"), rng, restored=0.05)
    tapes = [Tape.of(rng, count, disorder) for count in emitters]
    for tape, name, count in zip(tapes, "AB", emitters, strict=True):
        for source in range(count):
            behind = int(rng.integers(0, lag + 1))
            for turn in range(TURNS):
                share = tape.share(turn, source, behind)
                network.post(f"source.{name}.{source}", "in", f"emitter.{name}.{source}", share)
    network.run()
    found = Found(network.left)
    late = [set(ids) for ids in found.late]
    assert [len(ids) for ids in found.late] == [len(ids) for ids in late]
    assert found.pairs == pairs_within(tapes, late, lower, upper)
