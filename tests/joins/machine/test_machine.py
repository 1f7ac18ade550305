"""Vector comparisons and aligned arrays, as kernels use them, and a process's peak memory."""

from __future__ import annotations

import resource
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from actors.hosting.process_memory import peak_bytes
from joins.machine.compiling import kernel
from joins.machine.instructions import copy_entries, leading_zeros
from joins.machine.lanes import (
    LANES,
    LOOKAHEAD,
    NODE_SLOTS,
    insert_in_node,
    lanes_greater,
    lanes_less,
    leading_less,
    move_lanes,
    widen_lanes,
)
from joins.machine.memory import aligned, own_lines


@kernel
def compare_from_each(rows, target, less, greater):
    for begin in range(len(less)):
        less[begin] = lanes_less(rows, 0, begin, target)
        greater[begin] = lanes_greater(rows, 0, begin, target)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lanes_are_compared_as_signed_numbers_from_any_place(dtype):
    limits = np.iinfo(dtype)
    values = np.arange(-30, 30).astype(dtype)
    values[5], values[40] = limits.max, limits.min
    rows = values.reshape(1, -1)
    for target in (limits.min, -7, 0, 29, limits.max):
        less, greater = np.zeros((2, len(values) - LANES + 1), np.int64)
        compare_from_each(rows, np.dtype(dtype).type(target), less, greater)
        windows = np.lib.stride_tricks.sliding_window_view(values, LANES)
        assert less.tolist() == (windows < target).sum(axis=1).tolist()
        assert greater.tolist() == (windows > target).sum(axis=1).tolist()


@kernel
def move(rows, begin, to):
    move_lanes(rows, 1, begin, to)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize(("begin", "to"), [(3, 4), (4, 3), (0, 24), (7, 7)])
def test_lanes_move_to_places_that_they_overlap(dtype, begin, to):
    rows = np.arange(80).reshape(2, 40).astype(dtype)
    expected = rows.copy()
    expected[1, to : to + LANES] = rows[1, begin : begin + LANES]
    move(rows, begin, to)
    assert (rows == expected).all()


@kernel
def insert(rows, place, entry):
    insert_in_node(rows, 1, 3, place, entry)


@pytest.mark.parametrize("place", [0, 1, LANES - 1, LANES, LANES + 1, NODE_SLOTS - 1])
def test_an_entry_is_inserted_in_a_node_and_nothing_around_it_moves(place):
    rows = np.arange(3 * (NODE_SLOTS + 5)).reshape(3, -1)
    expected = rows.copy()
    node = np.insert(rows[1, 3 : 3 + NODE_SLOTS], place, -7)[:NODE_SLOTS]
    expected[1, 3 : 3 + NODE_SLOTS] = node
    insert(rows, place, -7)
    assert (rows == expected).all()


@kernel
def leading_from_each(column, target, counts):
    for begin in range(len(counts)):
        counts[begin] = leading_less(column, begin, target)


def test_what_leads_is_counted_up_to_the_first_that_is_not_less():
    limits = np.iinfo(np.int64)
    column = np.array([3, 1, 4, 1, limits.min, 5, 9, 2, 6, 5, limits.max, 3, 5, 8, 9, 7, 9])
    for target in (limits.min, 1, 5, 10, limits.max):
        counts = np.zeros(len(column) - LOOKAHEAD + 1, np.int64)
        leading_from_each(column, target, counts)
        windows = np.lib.stride_tricks.sliding_window_view(column, LOOKAHEAD)
        leading = np.minimum.accumulate(windows < target, axis=1)
        assert counts.tolist() == leading.sum(axis=1).tolist()


@kernel
def widen(rows, row, begin, target, to, more):
    widen_lanes(rows, row, begin, target, to, more)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lanes_are_widened_with_their_sign_and_added_to(dtype):
    rows = np.arange(-30, 30).astype(dtype).reshape(2, 30)
    target = np.zeros(40, np.int64)
    widen(rows, 1, 3, target, 11, 1 << 40)
    expected = np.zeros(40, np.int64)
    expected[11 : 11 + LANES] = (1 << 40) + np.arange(3, 3 + LANES)
    assert target.tolist() == expected.tolist()
    widen(rows, 0, 3, target, 11, 5)
    assert target[11] == -22


@kernel
def shift(column, begin, to, count):
    copy_entries(column, begin, column, to, count)


@pytest.mark.parametrize(("begin", "to", "count"), [(0, 3, 5), (3, 0, 5), (2, 9, 3), (4, 4, 0)])
def test_entries_are_copied_to_a_place_that_may_overlap(begin, to, count):
    column = np.arange(12)
    shift(column, begin, to, count)
    expected = np.arange(12)
    expected[to : to + count] = np.arange(begin, begin + count)
    assert column.tolist() == expected.tolist()


@kernel
def count_leading_zeros(words, zeros):
    for i in range(len(words)):
        zeros[i] = leading_zeros(words[i])


def test_bits_above_the_highest_that_is_set_are_counted():
    words = np.array([0, 1, 2, 3, 2**62, 2**63 - 1, -(2**63), -1])
    zeros = np.zeros_like(words)
    count_leading_zeros(words, zeros)
    assert zeros.tolist() == [64, 63, 62, 62, 1, 1, 0, 0]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_aligned_arrays_begin_at_a_cache_line(dtype):
    for length in (0, 1, 7, 1000):
        array = aligned((2, length), dtype, 3)
        assert not length or array.ctypes.data % 64 == 0
        assert array.shape == (2, length)
        assert array.dtype == dtype
        assert (array == 3).all()


def test_an_array_that_fills_huge_pages_begins_at_one():
    for fill in (5, 0):
        array = aligned((3, 1 << 18), fill=fill)
        assert array.ctypes.data % (2 << 20) == 0
        assert (array == fill).all()


def test_own_lines_hold_nothing_else():
    kept = [own_lines(words) for words in range(1, 40)]
    for words, array in enumerate(kept, start=1):
        assert array.tolist() == [0] * words
        memory = array
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        begin, end = memory.ctypes.data, memory.ctypes.data + memory.nbytes
        assert array.ctypes.data % 64 == 0
        assert begin <= array.ctypes.data
        assert array.ctypes.data + -(-array.nbytes // 64) * 64 <= end


@pytest.mark.parametrize(("platform", "unit_bytes"), [("linux", 1024), ("darwin", 1)])
def test_the_peak_is_in_bytes_on_every_system(platform, unit_bytes, monkeypatch):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=3_000))
    assert peak_bytes() == 3_000 * unit_bytes
