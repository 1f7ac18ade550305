"""A BI-Sort's counted ranges, and its records, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.index import make_ranges
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.subwindow import (
    Subwindow,
    SubwindowShape,
    probe_subwindows,
    read_records,
)
from tests.joins.indexes.panjoin.plain import assert_found, fits, insert_in_order

INT64 = np.iinfo(np.int64)
SPREADS = {"int32": 10_000, "int64": 1 << 40}
"""Least and greatest of values, by the type of key that they need."""


@pytest.mark.parametrize("keys", list(SPREADS))
@given(
    held=st.integers(1, 900),
    partitions=st.sampled_from([1, 4, 40]),
    reach=st.sampled_from([0, 1, 3, 100]),
    sealed=st.booleans(),
    seed=st.integers(0, 999),
)
def test_what_is_counted_is_what_numpy_finds(
    keys: str, held: int, partitions: int, reach: int, sealed: bool, seed: int
) -> None:
    rng, spread = np.random.default_rng(seed), SPREADS[keys]
    shape = SubwindowShape(
        predicates=1, capacity=held, partitions=min(partitions, held), sigma=1.25
    )
    subwindow = Subwindow(shape, "bi_sort", first=50)
    subwindow.structure = BiSort(held, shape.partitions, buffer=held // 3 + 1)
    values = rng.integers(-spread, spread, held) // rng.integers(1, 100)
    near = rng.choice(values, 80)
    if keys == "int64":
        values[rng.random(held) < 0.2] = INT64.max
    for batch in np.array_split(values, 5):
        insert_in_order(subwindow, [batch])
    if sealed:
        subwindow.seal()
    low = np.sort(near + rng.integers(-2, 2, len(near)))
    high = low + rng.integers(-1, 2, len(low)) + reach * (spread // max(held, 1))
    low[:3], high[-3:] = INT64.min, INT64.max
    start, stop = np.sort(rng.integers(0, held + 100, (2, len(low))), axis=0)
    probes = make_ranges([low], [high], negated=[False], start=start, stop=stop)
    found = probe_subwindows([subwindow], probes)
    positions = np.arange(50, 50 + held)
    expected = [
        positions[
            (low[i] <= values)
            & (values <= high[i])
            & (start[i] <= positions)
            & (positions < stop[i])
        ]
        for i in range(len(low))
    ]
    assert_found(found, expected)
    assert found.work.matches == sum(len(matches) for matches in expected)


SHAPE = SubwindowShape(predicates=2, capacity=80, partitions=3, sigma=1.25)
KEYS = st.integers(-9, 9)
END = np.iinfo(np.int64).max


def filled(batches: list[list[int]]) -> Subwindow:
    subwindow = Subwindow(SHAPE, "bi_sort", first=30)
    subwindow.structure = BiSort(SHAPE.capacity, SHAPE.partitions, buffer=15)
    for keys in batches:
        order = np.argsort(keys, kind="stable")
        positions = order + subwindow.stop
        subwindow.insert([np.array(keys, np.int64)[order], positions % 3], positions)
    return subwindow


@settings(max_examples=80)
@given(
    batches=st.lists(st.lists(KEYS, min_size=1, max_size=20), max_size=4),
    rows=st.lists(st.tuples(KEYS, KEYS), max_size=6),
    negated=st.booleans(),
    wanted=st.integers(0, 2),
    window=st.tuples(st.integers(25, 115), st.integers(25, 115)),
)
def test_a_mirror_reads_from_records_what_the_ranges_mean(
    batches: list[list[int]],
    rows: list[tuple[int, int]],
    negated: bool,
    wanted: int,
    window: tuple[int, int],
) -> None:
    worker, mirror = filled(batches), filled(batches)
    low, high = np.array(rows, np.int64).reshape(-1, 2).T
    other = np.full(len(rows), wanted)
    start, stop = (np.full(len(rows), position) for position in window)
    probes = make_ranges(
        [low, other],
        [high, other],
        negated=[negated, False],
        start=start,
        stop=stop,
    )
    records, _ = worker.bi_sort.find_records(probes)
    read = read_records([(mirror, records)], probes, enumerate=True)

    keys = np.array([key for batch in batches for key in batch], np.int64)
    positions = 30 + np.arange(len(keys))
    seen = (window[0] <= positions) & (positions < window[1]) & (positions % 3 == wanted)
    expected = [positions[fits(keys, *ends, negated=negated) & seen] for ends in rows]
    assert_found(read, expected)


def test_records_reach_the_greatest_integer() -> None:
    subwindow = filled([[1, 2, 3]])
    subwindow.insert([np.array([END, END]), np.array([0, 0])], np.array([33, 34]))
    subwindow.seal()
    any_value = np.array([0]), np.array([2])
    probes = make_ranges(
        [np.array([3]), any_value[0]],
        [np.array([END]), any_value[1]],
        negated=[False, False],
    )
    records, _ = subwindow.bi_sort.find_records(probes)
    assert records.places[:, 0].tolist() == [2, 5, 0, 0]
    assert records.lengths == 3


def test_their_size_and_their_cost_do_not_grow_with_the_matches() -> None:
    subwindow = Subwindow(
        SubwindowShape(predicates=1, capacity=4096, partitions=64, sigma=1.25),
        "bi_sort",
        first=0,
    )
    subwindow.insert([np.arange(4096)], np.arange(4096))
    low = np.arange(0, 2048, 8)
    sizes, costs = [], []
    for width in (1, 2000):
        probes = make_ranges([low], [low + width - 1])
        records, work = subwindow.bi_sort.find_records(probes)
        assert records.lengths == width * len(low)
        sizes.append(records.nbytes)
        costs.append(work.comparisons)
    assert sizes[0] == sizes[1]
    assert costs[1] < 2 * costs[0]
