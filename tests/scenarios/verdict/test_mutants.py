"""Broken operators are found by the verdict on an ordinary run, each by the finding that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import joinsim as js
from actors.feed import Disorder
from actors.handshake import Segment
from actors.interval_join.replica import Replica, Watermarks
from actors.panjoin.chain import Chain
from actors.spo_join.po_join_pe import PoJoinPE
from actors.window_join import GridRouting, HashRouting, ReplicatedRouting, RoundRobinRouting
from joins.indexes.windows.chain_index import ChainIndex
from joins.queries import conditions, parser
from joins.queries.conditions import OPERATORS, Band, ComparisonOperator
from joins.queries.interval import Interval
from joins.queries.query import JoinQuery
from joins.queries.windows import Window, WindowBounds
from joins.semijoins.operand_windows import Horizon
from scenarios.verdict import second_reading
from tests.scenarios.verdict.broken import (
    Break,
    also,
    first_of_all,
    miscounted,
    neighbours,
    of_no_tuple,
    of_other_stream,
    on_late,
    on_matches,
    reversed_ids,
    rotated,
    uncounted,
    wrapped,
)
from topologies import TOPOLOGIES

ROWS = 240
SELF = "SELECT * FROM T WHERE T.x1 > T.x2 AND T.y1 <= T.y2 WINDOW AS (SLIDE INTERVAL '10' ON '60')"
TWO = "SELECT * FROM R, S WHERE R.k = S.k AND R.x <= S.x WINDOW AS (SLIDE INTERVAL '1' ON '50')"
BAND = "SELECT * FROM R, S WHERE ABS(R.x - S.x) <= 1 WINDOW AS (SLIDE INTERVAL '1' ON '50')"
THREE = (
    "SELECT * FROM A, B, C WHERE A.k = B.k AND B.x = C.x "
    "WINDOW AS (SLIDE INTERVAL '100 ns' ON '400 ns')"
)
INTERVAL = (
    "SELECT * FROM R, S WHERE R.k = S.k AND R.x <= S.x "
    "AND S.ts BETWEEN R.ts - INTERVAL '150 ns' AND R.ts + INTERVAL '150 ns'"
)
UNEVEN = INTERVAL.replace("R.ts + INTERVAL '150 ns'", "R.ts + INTERVAL '50 ns'")
LATE = {"disorder": "400 ns", "watermark_lag": "100 ns", "batch_rows": 10}
SMALL = {"batch_rows": 20}


@dataclass(frozen=True)
class Ordinary:
    """A run that the verdict passes.

    Attributes
    ----------
    topology, query, feeding, parameters
        Those of `joinsim.run`.
    """

    topology: str
    query: str = TWO
    feeding: dict[str, Any] = field(default_factory=lambda: SMALL)
    parameters: dict[str, Any] = field(default_factory=dict)

    def run(self, *, pairs: bool = True) -> js.Run:
        return js.run(
            self.query,
            _tuples(self.query),
            topology=self.topology,
            feeding=self.feeding,
            pairs=pairs,
            **{"network": "same-host", **self.parameters},
        )


@cache
def _tuples(query: str) -> dict[str, dict[str, np.ndarray]]:
    names = query.split("FROM")[1].split("WHERE")[0].replace(" ", "").split(",")
    rng = np.random.default_rng(5)
    return {
        name: {
            "ts": np.arange(ROWS) * 10 + shift,
            "k": rng.integers(0, 6, ROWS),
            "x": rng.integers(0, 12, ROWS),
            "y": rng.integers(0, 12, ROWS) / 4,
        }
        for shift, name in enumerate(names)
    }


RUNS = {
    **{
        name: Ordinary(name, INTERVAL, LATE) if topology.within_interval else Ordinary(name)
        for name, topology in TOPOLOGIES.items()
    },
    "spo_join": Ordinary("spo_join", SELF, {"batch_rows": 5, "rate_tps": 50_000}),
    "spo_join at once": Ordinary("spo_join", SELF),
    "panjoin": Ordinary("panjoin", parameters={"subwindow": 16}),
    "ibwj": Ordinary("ibwj", BAND),
    "semijoin": Ordinary("semijoin", THREE),
    "uneven interval": Ordinary("kp_oij", UNEVEN, LATE),
}
"""Every system, those with a query of their own where the ordinary one is not for them."""


class Mutant(NamedTuple):
    """An operator broken in one way.

    Attributes
    ----------
    run
        What to run.
    breaks
        How it is broken.
    finding
        What the verdict counts, or the check that fails.
    pairs
        Whether the run lists its pairs.
    """

    run: str
    breaks: Break
    finding: str
    pairs: bool = True


def _moved(by: int, end: int) -> Any:
    """Return a change to windows: end 0 or 1 (the first and past the last) moves by so many."""

    def broken(original: Any, self: Any, *args: Any) -> Any:
        return [
            tuple(np.maximum(0, edge + by * (place == end)) for place, edge in enumerate(seen))
            for seen in original(self, *args)
        ]

    return broken


def _at_every_pe(original: Any, self: Any, *args: Any) -> Any:
    places = original(self, *args)
    return replace(places, group=places.group * 0, group_of=places.group_of * 0)


def _at_next_pe(original: Any, self: Any, *args: Any) -> Any:
    places = original(self, *args)
    return replace(places, group_of=np.roll(places.group_of, 1))


def _early(by: int) -> Any:
    return lambda original, self, before, *more: original(self, before + by, *more)


def _loose(original: Any, self: Any, right: np.ndarray) -> Any:
    """Read ``<=`` where ``<`` is written, and the other way round."""
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    spelt = other.get(self.symbol, self.symbol)
    return original(OPERATORS[spelt], right)


def _wider(by: int) -> Any:
    """Return a change to an interval: either end is so many ns further away."""

    def broken(original: Any, self: Any, stream: int) -> tuple[int, int]:
        lower, upper = original(self, stream)
        return lower - by, upper + by

    return broken


def _delayed(*, times: int) -> Any:
    """Return a change to disorder: every delay is so many times as long."""

    def broken(original: Any, self: Any, stream: int, batch: Any) -> Any:
        return batch.ts + times * (original(self, stream, batch) - batch.ts)

    return broken


def _of_second_stream(change: Callable[[Window], dict[str, int]]) -> Break:
    """Have the window of the second stream read otherwise than the first one's."""

    def broken(original: Any, self: Any) -> tuple[Window, ...]:
        first, second, *others = original(self)
        return first, replace(second, **change(second)), *others

    return wrapped(JoinQuery, "windows", broken)


def _reads_strictly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPERATORS, "<=", OPERATORS["<"])


def _reads_another_column(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(column: str) -> str:
        return "k" if column == "x" else column

    for module in (conditions, parser, second_reading):
        monkeypatch.setattr(module, "prepared_name", wrong, raising=False)


def _all_late(original: Any, self: Any) -> Any:
    return original(self) + 150 if original(self) > -(10**18) else original(self)


MUTANTS = {
    # The four that used to pass.
    "lists matches the wrong way round": Mutant("split_join", on_matches(reversed_ids), "pairs"),
    "answers for tuples that do not exist": Mutant("hash_join", also(of_no_tuple), "invented"),
    "answers for the other stream": Mutant("kp_oij", also(of_other_stream), "invented"),
    "reads <= as <": Mutant("hash_join", _reads_strictly, "query"),
    # What the joins and the oracle take from the query alike.
    "a longer window of the second stream": Mutant(
        "nested_loop", _of_second_stream(lambda window: {"length": 2 * window.length}), "query"
    ),
    "a longer slide of the second stream": Mutant(
        "split_join", _of_second_stream(lambda window: {"slide": window.length}), "query"
    ),
    "a shorter window of one of three streams": Mutant(
        "semijoin", _of_second_stream(lambda window: {"length": window.slide}), "query"
    ),
    "another base of the interval": Mutant(
        "uneven interval",
        wrapped(
            JoinQuery,
            "bound_interval",
            lambda original, self: replace(original(self), base=1 - original(self).base),
        ),
        "query",
    ),
    "an order taken for the key of an interval join": Mutant(
        "uneven interval", wrapped(JoinQuery, "key", lambda original, self: 1), "missing"
    ),
    "reads another column's name": Mutant("hash_join", _reads_another_column, "query"),
    # What is sent on, without lists.
    "counts for tuples that do not exist": Mutant("panjoin", also(of_no_tuple), "rows", False),
    "counts for the other stream": Mutant("dp_oij", also(of_other_stream), "rows", False),
    "counts a window too long": Mutant(
        "nested_loop", wrapped(WindowBounds, "advance", _moved(-1, 0)), "expired", False
    ),
    "counts strictly": Mutant(
        "spo_join", wrapped(ComparisonOperator, "bounds", _loose), "wrong", False
    ),
    # Windows.
    "sees a tuple too many": Mutant(
        "split_join", wrapped(WindowBounds, "advance", _moved(-1, 0)), "expired"
    ),
    "sees a tuple too few": Mutant(
        "hash_join", wrapped(WindowBounds, "advance", _moved(1, 0)), "missing"
    ),
    "sees its successor": Mutant(
        "nested_loop", wrapped(WindowBounds, "advance", _moved(1, 1)), "expired"
    ),
    "misses its predecessor": Mutant(
        "b_plus_tree", wrapped(WindowBounds, "advance", _moved(-1, 1)), "missing"
    ),
    "stores at every PE": Mutant(
        "split_join", wrapped(RoundRobinRouting, "stored_at", _at_every_pe), "duplicate"
    ),
    "probes at the next PE": Mutant(
        "hash_join", wrapped(HashRouting, "probes_at", _at_next_pe), "missing"
    ),
    "probes at every PE of a grid": Mutant(
        "join_matrix", wrapped(GridRouting, "probes_at", _at_every_pe), "duplicate"
    ),
    "probes at every replica": Mutant(
        "bchj", wrapped(ReplicatedRouting, "probes_at", _at_every_pe), "duplicate"
    ),
    "a core drops early": Mutant("handshake_join", wrapped(Segment, "drop", _early(3)), "missing"),
    "a core drops early, at low latency": Mutant(
        "low_latency_handshake_join",
        wrapped(Segment, "drop", _early(60)),
        "missing",
    ),
    "a chain drops early": Mutant(
        "chain_index",
        wrapped(ChainIndex, "expire", _early(40)),
        "missing",
    ),
    # SPO-Join.
    "spo reads < as <=": Mutant("spo_join", wrapped(ComparisonOperator, "bounds", _loose), "wrong"),
    "spo sees a tuple too many": Mutant(
        "spo_join", wrapped(WindowBounds, "advance", _moved(-1, 0)), "expired"
    ),
    "spo forgets a sealed epoch": Mutant(
        "spo_join",
        wrapped(
            PoJoinPE,
            "_alive",
            lambda original, self: [sealed[:-1] for sealed in original(self)],
        ),
        "missing",
    ),
    "spo seals without its queue": Mutant(
        "spo_join at once",
        wrapped(
            PoJoinPE,
            "_seal_if_complete",
            lambda original, self, epoch, context: (
                [queue.clear() for queue in self._queues.values()],
                original(self, epoch, context),
            )[1],
        ),
        "missing",
    ),
    # PanJoin.
    "panjoin sees a tuple too few": Mutant(
        "panjoin", wrapped(WindowBounds, "advance", _moved(1, 0)), "missing"
    ),
    "panjoin drops subwindows early": Mutant(
        "panjoin", wrapped(Chain, "expire", _early(60)), "missing"
    ),
    "panjoin reads <= as <": Mutant(
        "panjoin", wrapped(ComparisonOperator, "bounds", _loose), "missing"
    ),
    # PIM-Tree.
    "ibwj sees a tuple too many": Mutant(
        "ibwj", wrapped(WindowBounds, "advance", _moved(-1, 0)), "expired"
    ),
    "ibwj misses its predecessor": Mutant(
        "ibwj", wrapped(WindowBounds, "advance", _moved(-1, 1)), "missing"
    ),
    "ibwj widens the band": Mutant(
        "ibwj",
        wrapped(
            Band,
            "bounds",
            lambda original, self, right: (original(self, right)[0] - 1, original(self, right)[1]),
        ),
        "wrong",
    ),
    # Interval joins.
    "a replica stores what is another's": Mutant(
        "dp_oij",
        wrapped(
            Replica,
            "_own",
            lambda original, self, tuples: np.ones_like(original(self, tuples)),
        ),
        "duplicate",
    ),
    "a replica stores nothing": Mutant(
        "hp_oij",
        wrapped(
            Replica,
            "_own",
            lambda original, self, tuples: np.zeros_like(original(self, tuples)),
        ),
        "missing",
    ),
    "an interval too short": Mutant("kp_oij", wrapped(Interval, "offsets", _wider(-10)), "missing"),
    "an interval too long": Mutant(
        "split_oij", wrapped(Interval, "offsets", _wider(10)), "expired"
    ),
    "buffers expire early": Mutant(
        "scale_oij",
        wrapped(
            Interval,
            "horizon",
            lambda original, self, stream, watermark: original(self, stream, watermark) + 100,
        ),
        "missing",
    ),
    "losses claimed as late": Mutant(
        "flink_oij",
        wrapped(Watermarks, "low", _all_late),
        "watermarks",
    ),
    "losses claimed as late are missing": Mutant(
        "flink_oij",
        wrapped(Watermarks, "low", _all_late),
        "missing",
    ),
    "late tuples dropped in silence": Mutant("kp_oij", on_late(lambda late: []), "missing"),
    "late tuples claimed twice": Mutant("dp_oij", on_late(lambda late: [late, late]), "watermarks"),
    "late tuples that do not exist": Mutant(
        "hp_oij", on_late(lambda late: [replace(late, ids=late.ids + 10**6)]), "watermarks"
    ),
    "late tuples of no stream": Mutant(
        "split_oij", on_late(lambda late: [late, replace(late, stream=5)]), "watermarks"
    ),
    "late tuples of another time": Mutant(
        "scale_oij", on_late(lambda late: [replace(late, ts=late.ts - 1)]), "watermarks"
    ),
    "tuples delayed by more than was asked for": Mutant(
        "kp_oij", wrapped(Disorder, "due", _delayed(times=10)), "watermarks"
    ),
    "tuples not delayed at all": Mutant(
        "kp_oij", wrapped(Disorder, "due", _delayed(times=0)), "watermarks"
    ),
    "late by a watermark that nobody sent": Mutant(
        "scale_oij",
        on_late(lambda late: [replace(late, watermark=late.watermark + 10**6)]),
        "watermarks",
    ),
    # Semijoins.
    "a site sees too much": Mutant(
        "semijoin",
        wrapped(
            Window,
            "bound",
            lambda original, self, at: original(self, at) - 100,
        ),
        "expired",
    ),
    "a site sees too little": Mutant(
        "semijoin",
        wrapped(
            Window,
            "bound",
            lambda original, self, at: original(self, at) + 100,
        ),
        "missing",
    ),
    "a site removes early": Mutant(
        "semijoin",
        wrapped(
            Horizon,
            "passed",
            lambda original, self, tick: original(self, tick) + 30,
        ),
        "missing",
    ),
}
# Each system, whatever it is made of inside, losing a match, reporting one twice, and so on.
for _name in RUNS:
    MUTANTS |= {
        f"{_name} loses a match": Mutant(_name, on_matches(first_of_all(0)), "missing"),
        f"{_name} reports a match twice": Mutant(_name, on_matches(first_of_all(2)), "duplicate"),
        f"{_name} reports the neighbours": Mutant(_name, on_matches(neighbours), "spurious"),
    }
for _name, _change, _finding in (
    ("hash_join", rotated, "spurious"),
    ("spo_join", rotated, "spurious"),
    ("panjoin", reversed_ids, "pairs"),
    ("ibwj", reversed_ids, "pairs"),
    ("semijoin", reversed_ids, "pairs"),
    ("semijoin", miscounted, "pairs"),
    ("ibwj", uncounted, "pairs"),
):
    MUTANTS[f"{_name}: {_change.__name__}"] = Mutant(_name, on_matches(_change), _finding)


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= 40
    for name in RUNS:
        assert sum(mutant.run == name for mutant in MUTANTS.values()) >= 3


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("name", RUNS)
def test_operators_that_are_not_broken_pass(name: str, pairs: bool) -> None:
    verdict = RUNS[name].run(pairs=pairs).verdict
    assert verdict.passed is True, verdict.checks
    assert verdict.expected > 100
    assert (RUNS[name].feeding is LATE) == (verdict.late > 0)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_operator_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = MUTANTS[name]
    mutant.breaks(monkeypatch)
    verdict = RUNS[mutant.run].run(pairs=mutant.pairs).verdict
    assert verdict.passed is False, verdict.checks
    failed = [check.name for check in verdict.checks if check.passed is False]
    found = getattr(verdict, mutant.finding, 0) or mutant.finding in failed
    assert found, (verdict, failed)
