"""Records of a BI-Sort, read by another BI-Sort with the same tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.panjoin.answering import listing, new_output
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.probing import encode_probes
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape
from tests.joins.indexes.panjoin.plain import fits

SHAPE = SubwindowShape(dtypes=("int64", "int64"), capacity=80, partitions=3, sigma=1.25)
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
    rows=st.lists(st.lists(st.tuples(KEYS, KEYS), min_size=3, max_size=3), max_size=6),
    bands=st.integers(1, 3),
    negated=st.booleans(),
    wanted=st.integers(0, 2),
    window=st.tuples(st.integers(25, 115), st.integers(25, 115)),
)
def test_a_mirror_reads_from_records_what_the_bands_mean(
    batches: list[list[int]],
    rows: list[list[tuple[int, int]]],
    bands: int,
    negated: bool,
    wanted: int,
    window: tuple[int, int],
) -> None:
    worker, mirror = filled(batches), filled(batches)
    ends = np.array(rows, np.int64).reshape(len(rows), 3, 2)
    other = np.full(len(rows), wanted)
    start, stop = (np.full(len(rows), position) for position in window)
    probes = [
        encode_probes(
            SHAPE.dtypes,
            [ends[:, band, 0], other],
            [ends[:, band, 1], other],
            negated=[negated, False],
            start=start,
            stop=stop,
        )
        for band in range(bands)
    ]
    records, _ = worker.records(*probes)
    output = new_output(len(rows))
    mirror.read(records, probes[0], output)
    listed = listing(output)
    if len(listed.match_id):
        mirror.read(records, probes[0], listed)

    keys = np.array([key for batch in batches for key in batch], np.int64)
    positions = 30 + np.arange(len(keys))
    expected = []
    for row in ends:
        inside = np.zeros(len(keys), np.bool_)
        for low, high in row[:bands]:
            inside |= fits(keys, low, high, negated=False)
        seen = (window[0] <= positions) & (positions < window[1]) & (positions % 3 == wanted)
        expected.append(positions[(inside != negated) & seen])
    assert output.matches.tolist() == [len(matches) for matches in expected]
    cuts = np.cumsum(output.matches)[:-1]
    for found, matches in zip(np.split(listed.match_id, cuts), expected, strict=False):
        assert sorted(found.tolist()) == matches.tolist()


def test_records_reach_the_greatest_integer() -> None:
    subwindow = filled([[1, 2, 3]])
    subwindow.insert([np.array([END, END]), np.array([0, 0])], np.array([33, 34]))
    subwindow.seal()
    any_value = np.array([0]), np.array([2])
    probes = encode_probes(
        SHAPE.dtypes,
        [np.array([3]), any_value[0]],
        [np.array([END]), any_value[1]],
        negated=[False, False],
    )
    records, _ = subwindow.records(probes)
    assert records.ranges[0, :, 0].tolist() == [2, 5, 0, 0]
    assert records.lengths == 3


def test_their_size_and_their_cost_do_not_grow_with_the_matches() -> None:
    subwindow = Subwindow(
        SubwindowShape(dtypes=("int64",), capacity=4096, partitions=64, sigma=1.25),
        "bi_sort",
        first=0,
    )
    subwindow.insert([np.arange(4096)], np.arange(4096))
    low = np.arange(0, 2048, 8)
    sizes, costs = [], []
    for width in (1, 2000):
        probes = encode_probes(("int64",), [low], [low + width - 1], negated=[False])
        records, work = subwindow.records(probes)
        assert records.lengths == width * len(low)
        sizes.append(records.nbytes)
        costs.append(work.comparisons)
    assert sizes[0] == sizes[1]
    assert costs[1] < 2 * costs[0]
