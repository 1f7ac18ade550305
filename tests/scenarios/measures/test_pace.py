"""Throughput part by part, worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from scenarios.measures import PARTS, Pace

ROLES = {"source": "source", "machine": "machine", "sink": "sink"}


def trace(*rows: tuple[str, int, int]) -> pa.Table:
    columns = zip(*rows, strict=True)
    names = ("receiver", "last", "done_ns")
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


def test_a_message_spreads_its_arrivals_evenly_over_the_time_that_it_took():
    journal = trace(("machine", 9, 1_000), ("machine", 19, 6_000))
    pace = list(Pace(journal, ROLES).over_parts(20).values())
    assert len(pace) == PARTS  # one arrival each
    assert pace[:10] == pytest.approx([1e9 / 100] * 10)
    assert pace[10:] == pytest.approx([1e9 / 500] * 10)


def test_an_arrival_is_done_when_the_last_to_hear_of_it_or_of_one_before_is():
    journal = trace(
        ("source", 9, 9_000),  # what the source is up to says nothing
        ("machine", 9, 400),
        ("sink", 9, 1_000),
        ("machine", 14, 700),  # done before those before it: takes no time
        ("sink", -1, 8_000),  # is about no arrivals
        ("machine", 19, 2_000),
    )
    pace = Pace(journal, ROLES).over_parts(20)
    assert pace["10"] == pytest.approx(1e9 / 100)
    assert pace["11"] is None
    assert pace["15"] is None
    assert pace["16"] == pytest.approx(1e9 / 200)


def test_the_parts_add_up_to_the_whole():
    journal = trace(("machine", 12, 500), ("machine", 40, 600), ("sink", 99, 3_000))
    pace = Pace(journal, ROLES).over_parts(100)
    seconds = sum(100 / PARTS / tps for tps in pace.values() if tps)
    assert seconds == pytest.approx(3e-6)


def test_the_fastest_part_is_one_that_is_measured_whole():
    journal = trace(("machine", 9, 1_000), ("machine", 14, 6_000), ("machine", 19, 7_000))
    pace = Pace(journal, ROLES)
    assert pace.fastest(20, 0, 20) == pytest.approx(1e9 / 100)
    assert pace.fastest(20, 10, 20) == pytest.approx(1e9 / 200)
    assert pace.fastest(20, 10, 15) == pytest.approx(1e9 / 1_000)
    assert pace.fastest(40, 1, 3) is None, "parts of two arrivals, none of them in 1 to 3"


def test_a_run_without_arrivals_has_no_pace():
    journal = trace(("source", -1, 5))
    assert set(Pace(journal, ROLES).over_parts(0).values()) == {None}


def test_throughput_of_some_arrivals_leaves_out_those_before_and_after():
    journal = trace(("machine", 9, 1_000), ("machine", 19, 6_000), ("sink", 29, 6_500))
    pace = Pace(journal, ROLES)
    assert pace.tps(10, 20) == pytest.approx(10 / 5e-6)
    assert pace.tps(10, 30) == pytest.approx(20 / 5.5e-6)
    assert pace.tps(20, 1_000) == pytest.approx(10 / 0.5e-6)  # there are thirty
    assert Pace(trace(("source", -1, 5)), ROLES).tps(0, 10) is None
