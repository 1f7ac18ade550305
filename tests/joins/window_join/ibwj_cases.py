"""Random joins for the window join drivers, and their answer by comparing everything."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from benchmarks.pim_tree import make_work
from joins.codes import encode
from joins.hashing import mix, splitmix64
from joins.machine.dispatch import implements
from joins.machine.instructions import offer_core
from joins.machine.memory import own_lines
from joins.window_join.rows import make_rows
from joins.window_join.schedulers import FIRST_BLOCKED, IDLE, Threads, next_worker
from joins.window_join.shared_join import ThreadsJoin
from joins.work import COUNTERS
from scenarios.calibration.window_workload import expected_matches
from tests.joins.codes import draw_codes


class PausingThreads(Threads):
    """Threads that let others run between one step in eight and the next, drawn by their work."""


@implements(next_worker, PausingThreads)
def _pause_now_and_then(threads, index, batch):
    stage = threads.workers[threads.thread].stage
    if stage == IDLE:
        return -1
    drawn = splitmix64(threads.counters.sum() + stage + (threads.thread << 32))
    if stage >= FIRST_BLOCKED or drawn % 8 == 0:
        for _ in range(1 + (drawn >> 32 & 31)):
            offer_core()
    return threads.thread


class PausingThreadsJoin(ThreadsJoin):
    """A join whose threads pause between steps, so that a test sees many interleavings."""

    def _scheduler(self, workers, thread):
        return PausingThreads(workers, own_lines(len(COUNTERS)), thread)


@st.composite
def arrivals(draw, *, self_join=None, largest=120):
    """Draw columns of a join: sides at any ratio, windows by count or by time, ties everywhere."""
    self_join = draw(st.booleans()) if self_join is None else self_join
    n = draw(st.integers(0, largest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    side = np.zeros(n, np.int64) if self_join else (rng.random(n) < rng.random()).astype(np.int64)
    position = np.zeros(n, np.int64)
    for stream in (0, 1):
        position[side == stream] = np.arange((side == stream).sum())
    ts = np.cumsum(rng.integers(0, 3, n))
    floats = draw(st.booleans())
    spread = draw(st.sampled_from([1, 4, 30, 1000]))
    key = rng.integers(-spread, spread + 1, n)
    low, high = key - rng.integers(-1, 5, n), key + rng.integers(-1, 5, n)
    if floats:
        key, low, high = (encode(values / 8) for values in (key, low, high))
    for values in (key, low, high):
        extreme = rng.random(n) < 0.05
        values[extreme] = draw_codes(rng, extreme.sum())
    kind = draw(st.sampled_from(["count", "time", "precise"]))
    lengths = draw(st.tuples(st.integers(1, 60), st.integers(1, 60)))
    start, stop = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for row in range(n):
        probed = side[row] if self_join else 1 - side[row]
        before = np.flatnonzero(side[:row] == probed)
        length = lengths[probed]
        stop[row] = len(before)
        start[row] = max(0, len(before) - length)
        if kind != "count":
            seen = ts[before] >= ts[row] - length
            start[row] = len(before) - seen.sum()
            if kind == "precise":
                stop[row] -= (ts[before] == ts[row]).sum()
                start[row] = min(start[row], stop[row])
    columns = {"side": side, "position": position, "key": key, "low": low, "high": high}
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return self_join, columns | {"start": start, "stop": stop}, [0, *cuts, n]


def matches_of(self_join, columns):
    """Return for every row the positions it must find."""
    side, position, key = columns["side"], columns["position"], columns["key"]
    expected = []
    for row in range(len(side)):
        probed = side[row] if self_join else 1 - side[row]
        stored = np.flatnonzero(side == probed)
        seen = (position[stored] >= columns["start"][row]) & (
            position[stored] < columns["stop"][row]
        )
        fits = (key[stored] >= columns["low"][row]) & (key[stored] <= columns["high"][row])
        expected.append(position[stored[seen & fits]].tolist())
    return expected


def assert_join_is_exact(join, case, enumerate_ids=True):
    """Feed *case* to *join* batch by batch and compare row by row."""
    self_join, columns, cuts = case
    expected = matches_of(self_join, columns)
    for begin, end in pairwise(cuts):
        rows = make_rows(**{name: values[begin:end] for name, values in columns.items()})
        found = join.join(rows, enumerate=enumerate_ids)
        assert found.count.tolist() == [len(ids) for ids in expected[begin:end]]
        sums = [
            int(mix(np.array(ids, np.int64)).sum(dtype=np.uint64)) for ids in expected[begin:end]
        ]
        assert found.fingerprint.tolist() == sums
        assert found.work.matches == found.count.sum()
        if enumerate_ids:
            ends = np.cumsum(found.count)
            listed = np.split(found.match_id, ends[:-1]) if end > begin else []
            assert [sorted(ids.tolist()) for ids in listed] == expected[begin:end]
            assert len(found.match_id) == found.count.sum()
        else:
            assert found.match_id is None


def assert_threads_lose_repeat_and_misplace_nothing(join):
    """Join so many tuples over a small window that threads meet in every node, all the time."""
    rows = make_work(1 << 15, 1 << 9)
    found = join.join(rows, enumerate=True)
    count, fingerprint = expected_matches(rows)
    assert np.array_equal(found.count, count)
    assert np.array_equal(found.fingerprint, fingerprint)
    listed = np.zeros_like(fingerprint)
    np.add.at(listed, np.repeat(np.arange(len(count)), count), mix(found.match_id))
    assert np.array_equal(listed, fingerprint)
