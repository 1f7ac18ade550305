"""Data with an order of arrival of their own are fed in it, whatever their event times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import joinsim as js
from actors.feed import Recorded, open_feed
from scenarios.plan import Plan

QUERY = "SELECT * FROM A, B WHERE A.k = B.k AND B.ts BETWEEN A.ts - INTERVAL '40 ns' AND A.ts"
ROWS = 300


def streams(seed: int = 5) -> dict[str, dict[str, np.ndarray]]:
    """Return two streams whose rows are up to 60 ns late; each says when it came."""
    rng = np.random.default_rng(seed)
    made = {}
    for name in ("A", "B"):
        ts = np.sort(rng.integers(0, 3_000, ROWS))
        came = ts + rng.integers(0, 60, ROWS)
        order = np.argsort(came, kind="stable")
        made[name] = {"ts": ts[order], "came": came[order], "k": rng.integers(0, 4, ROWS)}
    return made


def fed(plan: Plan, batch: int) -> list[tuple[str, int]]:
    """Return the stream and the row of every tuple, in the order in which they are fed."""
    feed = open_feed(plan.files, plan.feeding.disorder)
    rows = [stream.table["row"].to_numpy() for stream in plan.streams]  # type: ignore[attr-defined]
    order = []
    while (arrivals := feed.take(batch)) is not None:
        both = [
            (number, name, int(rows[place][one]))
            for place, name in enumerate(plan.query.streams)
            for number, one in zip(arrivals.seq[place], arrivals.parts[place].id, strict=True)
        ]
        order += [(name, row) for _, name, row in sorted(both)]
    return order


def run(**arguments: Any) -> js.Run:
    return js.run(QUERY, streams(), topology="kp_oij", **arguments)


@pytest.mark.parametrize("arrival", ["rows", "came", {"A": "rows", "B": "came"}])
def test_the_answer_is_that_of_the_same_data_in_order(arrival: str | dict[str, str]) -> None:
    disordered, ordered = run(arrival=arrival), run()
    assert disordered.verdict.exact
    assert disordered.verdict.late == 0
    assert disordered.verdict.produced == ordered.verdict.produced > 100
    assert disordered.digest != ordered.digest


def test_engines_are_not_compared_in_an_order_of_arrival() -> None:
    with pytest.raises(js.ConfigError, match="engines are compared on ordered streams"):
        js.compare_engines(QUERY, streams(), engines="duckdb", topology="kp_oij", arrival="came")


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_rows_are_fed_in_their_own_order(batch: int) -> None:
    plan = run(arrival="rows").finished.plan
    order = fed(plan, batch)
    for name in ("A", "B"):
        assert [row for stream, row in order if stream == name] == list(range(ROWS))
    assert isinstance(plan.feeding.disorder, Recorded)


@pytest.mark.parametrize("shift", [0, 10_000, -10_000])
def test_streams_are_merged_by_when_their_tuples_came(shift: int) -> None:
    """The clock that wrote when they came may be another than that of the event times."""
    made = streams()
    for columns in made.values():
        columns["came"] += shift
    plan = js.run(QUERY, made, topology="kp_oij", arrival="came").finished.plan
    came = [made[name]["came"][row] for name, row in fed(plan, 10)]
    assert came == sorted(came)
    assert len(came) == 2 * ROWS
    assert plan.feeding.lag_ns < 60


def test_watermarks_that_are_too_early_leave_late_tuples() -> None:
    hasty = run(arrival="rows", feeding={"watermark_lag": "1 ns", "batch_rows": 10})
    assert hasty.verdict.late > 0
    assert hasty.verdict.passed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arrival": "cme"}, "no column 'cme'; did you mean 'came'"),
        ({"arrival": {"C": "came"}}, "arrival: the query knows no stream 'C', only A, B"),
        ({"arrival": "rows", "feeding": {"disorder": "5 ns"}}, "an order of arrival of their own"),
    ],
)
def test_an_arrival_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(js.JoinsimError, match=message):
        run(**arguments)


def test_a_window_of_tuples_has_no_answer_for_another_order() -> None:
    query = "SELECT * FROM A, B WHERE A.k = B.k WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    said = "^arrival or feeding.disorder: .* each disorder would have an answer of its own"
    with pytest.raises(js.JoinsimError, match=said):
        js.run(query, streams(), topology="hash_join", arrival="rows")


@pytest.mark.parametrize("arrival", ["rows", "came"])
def test_a_prepared_stream_keeps_its_order_of_arrival_beside_a_table(arrival: str) -> None:
    whole, tables = run(arrival=arrival), streams()
    prepared = whole.finished.plan.streams[0]
    mixed = js.run(
        QUERY, {"A": prepared, "B": tables["B"]}, topology="kp_oij", arrival={"B": arrival}
    )
    assert mixed.digest == whole.digest
    assert mixed.finished.plan.streams[0].columns == ["ts", "came", "k", "id"]
