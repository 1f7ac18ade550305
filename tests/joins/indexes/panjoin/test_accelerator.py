"""What the board takes, by the paper's figures for its parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joins.indexes.index import make_ranges
from joins.indexes.panjoin.accelerator import Accelerator
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape
from joins.work import Work

BOARD = Accelerator()
TUPLES = 65_536
SHAPE = SubwindowShape(predicates=1, capacity=TUPLES, partitions=512, sigma=1.25)
MERGED = 65_536, Work(moves=8 << 20, comparisons=8 << 20)


def probing_ns(values: np.ndarray, reach: int = 0, board: Accelerator = BOARD) -> int:
    """Return what probing a full subwindow of the values 0 to 65,535 takes."""
    subwindow = Subwindow(SHAPE, "bi_sort", first=0)
    subwindow.insert([np.arange(TUPLES)], np.arange(TUPLES))
    subwindow.seal()
    probes = make_ranges([values - reach], [values + reach])
    return board.probing_time(
        subwindow.bi_sort, subwindow.bi_sort.find_records(probes)[0]
    ).elapsed_ns


def test_memory_bounds_insertion_so_that_more_mergers_are_of_no_use() -> None:
    spent_ns = BOARD.insertion_time(*MERGED).elapsed_ns
    assert spent_ns == pytest.approx((8 << 20) * 16 / 17.056, rel=1e-6)  # 17.056 GB/s
    assert replace(BOARD, mergers=16).insertion_time(*MERGED).elapsed_ns == spent_ns
    assert replace(BOARD, mergers=2).insertion_time(*MERGED).elapsed_ns > 2 * spent_ns


def test_a_faster_memory_leaves_the_mergers_to_bound_insertion() -> None:
    spent_ns = replace(BOARD, memory_bytes_per_s=10**12).insertion_time(*MERGED).elapsed_ns
    assert spent_ns == pytest.approx((8 << 20) / (8 * 0.2527), rel=1e-6)


def test_a_partition_is_read_once_however_many_probes_fall_into_it() -> None:
    one_partition = probing_ns(np.sort(np.arange(2_000) % 100))
    all_partitions = probing_ns(np.arange(0, TUPLES, TUPLES // 2_000)[:2_000])
    assert all_partitions > 3 * one_partition


def test_what_lies_between_the_ends_of_a_range_is_not_read() -> None:
    value = np.array([32_768])
    reading_a_partition_ns = probing_ns(value)
    # A partition at each end, of the 470 that the range takes.
    assert probing_ns(value, reach=30_000) <= 2 * reading_a_partition_ns


def test_probing_a_subwindow_without_a_main_array_reads_the_buffer() -> None:
    subwindow = Subwindow(SHAPE, "bi_sort", first=0)
    subwindow.insert([np.arange(1_000)], np.arange(1_000))
    assert subwindow.bi_sort.sizes == (0, 1_000)
    probes = make_ranges([np.array([5])], [np.array([7])])
    records, _ = subwindow.bi_sort.find_records(probes)
    assert records.lengths == 3
    # 1,000 tuples and two ends, by eight probers.
    spent_ns = BOARD.probing_time(subwindow.bi_sort, records).elapsed_ns
    assert spent_ns == int(1_002 / (8 * 0.2527))
