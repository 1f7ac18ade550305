"""The measures of a record, and the highest rate that a system sustains."""

from __future__ import annotations

from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import joinsim as js
from actors.hosting.inline import InlineHost
from scenarios.measures import (
    GROWTH,
    PACE_PARTS,
    PRECISION,
    Pace,
    fastest,
    growth,
    highest_sustained,
    record,
    window_lag,
)
from scenarios.plan import make_plan
from scenarios.run import execute
from scenarios.scenario_files import build
from tests.scenarios.study.smoke_claims import prepare
from tests.scenarios.toy_run import toy_config, toy_report

TUPLES = 4_000


def trace(names: tuple[str, ...], *rows: tuple[object, ...]) -> pa.Table:
    """Return a trace that has the columns *names* alone."""
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


PACE = ("receiver", "last", "done_ns")
PACE_ROLES = {"source": "source", "machine": "machine", "sink": "sink"}


def test_a_message_spreads_its_arrivals_evenly_over_the_time_that_it_took():
    journal = trace(PACE, ("machine", 9, 1_000), ("machine", 19, 6_000))
    pace = list(Pace(journal, PACE_ROLES).over_parts(20).values())
    assert len(pace) == PACE_PARTS  # one arrival each
    assert pace[:10] == pytest.approx([1e9 / 100] * 10)
    assert pace[10:] == pytest.approx([1e9 / 500] * 10)


def test_an_arrival_is_done_when_the_last_to_hear_of_it_or_of_one_before_is():
    journal = trace(
        PACE,
        ("source", 9, 9_000),  # what the source is up to says nothing
        ("machine", 9, 400),
        ("sink", 9, 1_000),
        ("machine", 14, 700),  # done before those before it: takes no time
        ("sink", -1, 8_000),  # is about no arrivals
        ("machine", 19, 2_000),
    )
    pace = Pace(journal, PACE_ROLES).over_parts(20)
    assert pace["10"] == pytest.approx(1e9 / 100)
    assert pace["11"] is None
    assert pace["15"] is None
    assert pace["16"] == pytest.approx(1e9 / 200)


def test_the_parts_add_up_to_the_whole():
    journal = trace(PACE, ("machine", 12, 500), ("machine", 40, 600), ("sink", 99, 3_000))
    pace = Pace(journal, PACE_ROLES).over_parts(100)
    seconds = sum(100 / PACE_PARTS / tps for tps in pace.values() if tps)
    assert seconds == pytest.approx(3e-6)


def test_the_fastest_part_is_one_that_is_measured_whole():
    journal = trace(PACE, ("machine", 9, 1_000), ("machine", 14, 6_000), ("machine", 19, 7_000))
    pace = Pace(journal, PACE_ROLES)
    assert fastest(pace.over_parts(20), 20, 0, 20) == pytest.approx(1e9 / 100)
    assert fastest(pace.over_parts(20), 20, 10, 20) == pytest.approx(1e9 / 200)
    assert fastest(pace.over_parts(20), 20, 10, 15) == pytest.approx(1e9 / 1_000)
    assert fastest(pace.over_parts(40), 40, 1, 3) is None, "parts of two, none in 1 to 3"


def test_a_run_without_arrivals_has_no_pace():
    journal = trace(PACE, ("source", -1, 5))
    assert set(Pace(journal, PACE_ROLES).over_parts(0).values()) == {None}


def test_throughput_of_some_arrivals_leaves_out_those_before_and_after():
    journal = trace(PACE, ("machine", 9, 1_000), ("machine", 19, 6_000), ("sink", 29, 6_500))
    pace = Pace(journal, PACE_ROLES)
    assert pace.tps(10, 20) == pytest.approx(10 / 5e-6)
    assert pace.tps(10, 30) == pytest.approx(20 / 5.5e-6)
    assert pace.tps(20, 1_000) == pytest.approx(10 / 0.5e-6)  # there are thirty
    assert Pace(trace(PACE, ("source", -1, 5)), PACE_ROLES).tps(0, 10) is None


def test_what_is_measured_ends_with_the_streams(tmp_path: Path) -> None:
    def capacity(stop: int) -> dict[str, float]:
        config = toy_config(measured=[300, stop])
        report = toy_report(tmp_path / str(stop), [range(900)], config=config)
        return record(report)["capacity_tps"]

    assert capacity(10**9) == capacity(900)


def test_kernels_are_timed_on_the_arrivals_that_are_measured(tmp_path: Path) -> None:
    """By a clock that goes on by a second whenever it is read: a message takes one."""

    def kernel(**settings: Any) -> tuple[float, float]:
        stream = {"rows": 900, "fields": {"x": "uniform(0, 9)"}}
        config = {
            "query": "SELECT * FROM T WHERE T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
            "streams": [{"name": "T", "synthetic": stream}],
            "topology": "nested_loop",
            "feeding": {"batch_rows": 10},
        }
        plan = make_plan(build(config | settings, where="test"), prepare=prepare)
        host = partial(InlineHost, clock=count().__next__)
        found = record(execute(plan, tmp_path, rehearsal=False, inline_host=host))
        return found["kernel_seconds"]["router"], found["kernel_tps"]["router"]

    seconds, _ = kernel()
    assert seconds >= 90
    assert kernel(measured=[300, 500]) == (20, 10)
    assert kernel(measured=[305, 500]) == (20, 195 / 20)  # as one message is of both
    assert kernel(measured=[850, 10**9]) == (5, 10)


# By how many tuples the counts of PO-Join PEs are behind.

LAG = ("sender", "receiver", "last", "arrived_ns")
LAG_ROLES = {
    "router": "router",
    "permutation.0": "permutation",
    "po_join.0": "po_join",
    "po_join.1": "po_join",
}


def test_tuples_after_the_last_count_are_what_a_pe_is_behind():
    journal = trace(
        LAG,
        ("router", "po_join.1", 9, 10),  # before any count: says nothing
        ("permutation.0", "po_join.1", 9, 20),
        ("router", "po_join.1", 19, 30),  # 10 behind
        ("permutation.0", "po_join.0", 29, 35),  # sent to another PE
        ("router", "po_join.1", 29, 40),  # 20 behind
        ("permutation.0", "po_join.1", 29, 45),
        ("permutation.0", "po_join.1", -1, 46),  # speaks of no tuples
        ("router", "po_join.1", 29, 50),  # level
        ("router", "po_join.0", 500, 50),  # the first PE is left out
    )
    assert window_lag(journal, LAG_ROLES) == pytest.approx((10 + 20 + 0) / 3)


def test_a_count_from_a_pe_that_is_ahead_is_behind_by_nothing():
    journal = trace(LAG, ("permutation.0", "po_join.1", 99, 1), ("router", "po_join.1", 9, 2))
    assert window_lag(journal, LAG_ROLES) == 0


def test_without_counts_there_is_no_lag():
    assert window_lag(trace(LAG, ("router", "po_join.1", 9, 1)), LAG_ROLES) is None


def served(rate_tps: int, service_ns: float, batch: int = 1, extra_ns: int = 0) -> Pace:
    """Return the pace of one server that takes *service_ns* a tuple, fed at a rate."""
    last = np.arange(batch - 1, TUPLES, batch)
    ready = (last + 1) * (1e9 / rate_tps)
    work = batch * service_ns * np.arange(1, len(last) + 1)
    done = work + np.maximum.accumulate(ready - (work - batch * service_ns))
    trace = pa.table(
        {
            "receiver": ["server"] * len(last),
            "last": last,
            "done_ns": (done + extra_ns).astype(np.int64),
        }
    )
    return Pace(trace, {"source": "source", "server": "joiner"})


@pytest.mark.parametrize(("batch", "extra_ns"), [(1, 0), (50, 0), (1, 25_000_000)])
@pytest.mark.parametrize("guess", [3, 900, 10**7])
def test_the_capacity_of_a_server_is_found(batch: int, extra_ns: int, guess: int) -> None:
    def sustains(rate: int) -> bool:
        return growth(served(rate, 200_000, batch, extra_ns), TUPLES, rate) <= GROWTH

    found = highest_sustained(sustains, guess)
    assert 5_000 * (1 - PRECISION) <= found <= 5_000 * (1 + GROWTH) * 1.002


def test_a_system_that_sustains_nothing_has_the_rate_0() -> None:
    assert highest_sustained(lambda rate: False, 1_000) == 0


def test_a_link_sustains_its_bandwidth() -> None:
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    data = {"T": {"x": np.arange(1_000) * 7919 % 1_000}}
    how: Any = {"topology": "nested_loop", "feeding.batch_rows": 10, "network.bandwidth": "1 Mbps"}
    plain = js.run(query, data, topology="nested_loop", feeding={"batch_rows": 10}, pairs=False)
    sent = {row["receiver"]: row["bytes"] for row in plain.network.to_pylist()}
    capacity_tps = 1e6 / 8 / (max(sent["router"], sent["joiner.0"]) / 1_000)
    (point,) = js.sweep(query, data, over={}, find="sustainable", processes=1, **how).summary[
        "points"
    ]
    assert point["sustainable_tps"] == pytest.approx(capacity_tps, rel=PRECISION)
    rates = {int(rate): kept for rate, kept in point["rates"].items()}
    assert rates[point["sustainable_tps"]]
    assert min(rate for rate, kept in rates.items() if not kept) <= 1.03 * capacity_tps
