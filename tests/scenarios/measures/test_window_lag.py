"""By how many tuples the counts of PO-Join PEs are behind, worked out by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from scenarios.measures import window_lag

ROLES = {
    "router": "router",
    "permutation.0": "permutation",
    "po_join.0": "po_join",
    "po_join.1": "po_join",
}


def trace(*rows: tuple[str, str, int, int]) -> pa.Table:
    columns = zip(*rows, strict=True)
    names = ("sender", "receiver", "last", "arrived_ns")
    return pa.table(dict(zip(names, map(list, columns), strict=True)))


def test_tuples_after_the_last_count_are_what_a_pe_is_behind():
    journal = trace(
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
    assert window_lag(journal, ROLES) == pytest.approx((10 + 20 + 0) / 3)


def test_a_count_from_a_pe_that_is_ahead_is_behind_by_nothing():
    journal = trace(("permutation.0", "po_join.1", 99, 1), ("router", "po_join.1", 9, 2))
    assert window_lag(journal, ROLES) == 0


def test_without_counts_there_is_no_lag():
    assert window_lag(trace(("router", "po_join.1", 9, 1)), ROLES) is None
