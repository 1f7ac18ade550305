"""The measures of a record, and the highest rate that a system sustains."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim as js
from actors.hosting.inline import Cell, InlineHost, MeasuredMessages
from actors.protocol import NO_SPAN, Actor, ActorSpec, Context, Message, Payload
from scenarios.measures import (
    GROWTH,
    PACE_PARTS,
    PRECISION,
    Pace,
    fastest,
    growth,
    highest_sustained,
    look_up,
    merge_times_ms,
    messages_about,
    record,
    window_lag,
)
from scenarios.plan import make_plan
from scenarios.run import execute
from scenarios.scenario_files import build
from scenarios.study.study import WORDS
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


@dataclass(frozen=True)
class Spoken(Payload):
    span: tuple[int, int]


class Idle(Actor):
    state = ()

    def receive(self, message: Message, context: Context) -> None:
        pass


def test_the_latency_of_results_counts_each_pair_by_the_operator_that_found_it(
    tmp_path: Path,
) -> None:
    """The toy's joiner i reports ``id % 3`` pairs of each tuple whose ``id % 3`` is i."""
    parts = {"ones": ("joiner.1",), "twos": ("joiner.2",), "none": ("joiner.0",)}
    found = record(toy_report(tmp_path, [range(300)]), parts)["result_ms"]
    rows = pq.read_table(tmp_path / "probes-0.parquet")
    latency_ms = np.repeat(rows["latency_ns"].to_numpy() / 1e6, rows["count"].to_numpy())
    assert len(latency_ms) == 300
    assert found["total"]["mean"] == pytest.approx(latency_ms.mean())
    assert found["total"]["max"] == latency_ms.max()
    for percent in (5, 50, 75, 99):
        expected = np.percentile(latency_ms, percent, method="inverted_cdf")
        assert found["total"][f"p{percent}"] == pytest.approx(expected)
    # Two of three pairs are of joiner 2.
    mean = (found["ones"]["mean"] + 2 * found["twos"]["mean"]) / 3
    assert found["joiner"]["mean"] == pytest.approx(mean)
    assert found["joiner"] == found["total"]
    assert set(found["none"].values()) == set(found["router"].values()) == {None}


def test_latency_and_throughput_of_some_arrivals_are_theirs_alone(tmp_path: Path) -> None:
    """Fed at a rate that the toy cannot keep up with, it is later and later."""
    found = []
    for measured in ([0, 1000], [1000, 3000], None):
        settings = {"feeding.batch_rows": 100, "feeding.rate_tps": 10_000_000}
        config = toy_config(**settings, **({"measured": measured} if measured else {}))
        report = toy_report(tmp_path / str(measured), [range(3000)], config=config)
        found.append(record(report))
    early, late, whole = found
    assert early["result_ms"]["total"]["max"] < late["result_ms"]["total"]["p10"]
    assert late["result_ms"]["total"]["max"] == whole["result_ms"]["total"]["max"]
    seconds = 1000 / early["throughput_tps"] + 2000 / late["throughput_tps"]
    assert seconds == pytest.approx(whole["virtual_seconds"])


def test_a_part_takes_what_its_busiest_pe_takes(tmp_path: Path) -> None:
    report = toy_report(tmp_path, [range(3000)])
    found = record(report, {"both": ("router", "joiner")})
    assert found["busy_seconds"]["both"] == pytest.approx(
        found["busy_seconds"]["router"] + found["busy_seconds"]["joiner"]
    )
    assert found["busy_seconds"]["total"] == found["busy_seconds"]["both"]
    assert found["capacity_tps"]["both"] == found["capacity_tps"]["joiner"]
    # Joiner i is charged i + 1 parts of the work, so the last of three has about half of it.
    share = 3000 / found["capacity_tps"]["joiner"] / found["busy_seconds"]["joiner"]
    assert share == pytest.approx(0.5, abs=0.05)
    assert found["correctness"] == 1


def test_a_part_may_be_a_single_pe(tmp_path: Path) -> None:
    pes = {f"pe{i}": (f"joiner.{i}",) for i in range(3)}
    busy_s = record(toy_report(tmp_path, [range(300)]), pes)["busy_seconds"]
    assert 0 < busy_s["pe0"] < busy_s["pe1"] < busy_s["pe2"]
    assert busy_s["pe0"] + busy_s["pe1"] + busy_s["pe2"] == pytest.approx(busy_s["joiner"])


def test_pes_that_receive_alike_may_work_unevenly(tmp_path: Path) -> None:
    """The toy's joiners receive every tuple; joiner i is charged i + 1 parts of the work."""
    found = record(toy_report(tmp_path, [range(3000)]))
    assert found["row_balance"]["joiner"] == 1
    assert found["balance"]["joiner"] < 0.75


def test_a_run_measures_the_arrivals_it_is_asked_to(tmp_path: Path) -> None:
    batches: dict[str, Any] = {"feeding.batch_rows": 500}
    config = toy_config(**batches)
    whole = record(toy_report(tmp_path / "whole", [range(3000)], config=config))
    parts = []
    for measured in ([0, 1000], [1000, 3000]):
        config = toy_config(measured=measured, **batches)
        report = toy_report(tmp_path / str(measured[0]), [range(3000)], config=config)
        parts.append(record(report))
        busy_s = parts[-1]["busy_seconds"]["router"]
        assert parts[-1]["capacity_tps"]["router"] == (measured[1] - measured[0]) / busy_s
    together = sum(part["busy_seconds"]["joiner"] for part in parts)
    assert together == pytest.approx(whole["busy_seconds"]["joiner"])


def test_messages_about_no_arrivals_count_with_what_their_receiver_served_before() -> None:
    """Receivers a and b by turns; each serves timers before, within and after the range."""
    served = [
        ("a", -1, -1, False),
        ("b", 0, 9, False),
        ("a", 5, 12, True),  # in part
        ("b", -1, -1, False),
        ("a", -1, -1, True),
        ("b", 10, 19, True),
        ("b", -1, -1, True),
        ("b", -1, -1, True),
        ("a", 20, 25, False),
        ("a", -1, -1, False),
        ("c", -1, -1, False),
    ]
    receivers, firsts, lasts, counted = zip(*served, strict=True)
    trace = pa.table({"receiver": receivers, "first": firsts, "last": lasts})
    assert messages_about(trace, 10, 20).tolist() == list(counted)


def test_messages_of_a_trace_count_as_each_receiver_counts_them() -> None:
    rng = np.random.default_rng(1)
    receivers = rng.choice(["a", "b", "c"], 500)
    firsts = np.where(rng.random(500) < 0.5, -1, rng.integers(0, 40, 500))
    lasts = np.where(firsts < 0, -1, firsts + rng.integers(0, 5, 500))
    rows = list(zip(receivers.tolist(), firsts.tolist(), lasts.tolist(), strict=True))
    for first, stop in ((10, 20), (0, 40), (50, 60)):
        each = {name: MeasuredMessages(first, stop) for name in "abc"}
        counted = [each[name].counts((low, high)) for name, low, high in rows]
        trace = pa.table({"receiver": receivers, "first": firsts, "last": lasts})
        assert messages_about(trace, first, stop).tolist() == counted


def test_time_of_messages_about_no_arrivals_counts_with_what_came_before() -> None:
    """The clock ticks once at each reading, so that times are numbers of messages."""
    seconds = []
    for measured in (None, (0, 1000), (1000, 3000)):
        ticks = map(float, itertools.count())
        cell = Cell("idle", ActorSpec(actor=Idle), {}, 1, ticks.__next__, measured)
        for span in (NO_SPAN, (0, 999), NO_SPAN, NO_SPAN, (1000, 2999), NO_SPAN):
            cell.deliver("source", "in", Spoken(span), 0)
        cell.deliver("idle", "timer:", None, 0)
        seconds.append(cell.seconds)
    assert seconds == [7, 3, 3]  # all but the first, which no range can claim


def test_transmission_is_the_share_of_time_that_messages_are_under_way(tmp_path: Path) -> None:
    """Messages of the router alone cross a network; one more second each way adds up."""
    shares, seconds = [], []
    for latency in ("1 us", "1 s"):
        config = toy_config(**{"network.latency": latency, "network.jitter": 0})
        report = toy_report(tmp_path / latency, [range(300)], config=config)
        found = record(report)
        share, busy_s = found["transmission"]["router"], found["busy_seconds"]["router"]
        shares.append(share)
        seconds.append(share * busy_s / (1 - share))
    assert 0 < shares[0] < shares[1] < 1
    messages = (seconds[1] - seconds[0]) / (1 - 1e-6)
    assert messages == pytest.approx(round(messages), abs=1e-3)
    assert messages >= 3


def test_a_measure_there_is_not_is_named_with_those_there_are() -> None:
    values = {
        "latency_ms": {"p50": 1.0, "p95": None},
        "query": "SELECT",
        "streams": [{"name": "A"}],
    }
    assert look_up(values, "latency_ms.p50") == 1.0
    assert look_up(values, "latency_ms.p95") is None
    with pytest.raises(KeyError, match="there is no 'p99'; choose from p50, p95"):
        look_up(values, "latency_ms.p99")
    with pytest.raises(KeyError, match="latency_ms: it is a group; name one of its p50, p95"):
        look_up(values, "latency_ms")
    for words in ("query", "streams"):
        with pytest.raises(KeyError, match=f"measure {words}: it is not a number'"):
            look_up(values, words)


def test_the_keys_without_a_number_are_known(tmp_path: Path) -> None:
    found = record(toy_report(tmp_path, [range(30)]))
    assert {key for key, value in found.items() if isinstance(value, (str, list))} == set(WORDS)


def test_a_merge_lasts_from_the_message_that_fills_the_epoch_to_the_last_array_taken() -> None:
    roles = {"router": "router", "p": "predicate", "q": "permutation", "j": "po_join"}
    rows = [  # sender, receiver, sent, started, done
        ("router", "p", 0, 10, 30),
        ("p", "q", 30, 40, 60),
        ("p", "j", 30, 45, 50),
        ("q", "j", 60, 70, 95),
        ("router", "j", 20, 100, 400),
        ("router", "p", 100, 200, 250),
        ("p", "j", 250, 300, 310),
        ("q", "j", 240, 260, 290),
    ]
    names = ("sender", "receiver", "sent_ns", "started_ns", "done_ns")
    trace = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    assert merge_times_ms(trace, roles).tolist() == [85 / 1e6, 110 / 1e6]
    assert merge_times_ms(trace.slice(0, 1), roles).tolist() == []
    assert np.array_equal(merge_times_ms(trace, {**roles, "j": "joiner"}), [])
