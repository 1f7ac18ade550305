"""Scale-OIJ in virtual time: threads that share memory, each with a queue of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import joinsim as js
from joins.hashing import partition

QUERY = (
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '200 ns' AND A.ts + INTERVAL '200 ns'"
)
ROWS, BLOCK = 1024, 64
"""Tuples of a stream, and of a message: each message has one key."""


def run(threads: int, keys: list[int], **parameters: Any) -> js.Run:
    key = np.repeat(np.resize(keys, 2 * ROWS // BLOCK), BLOCK // 2)
    ts = np.arange(ROWS) * 2
    return js.run(
        QUERY,
        {"A": {"ts": ts, "key": key[:ROWS]}, "B": {"ts": ts + 1, "key": key[:ROWS]}},
        topology="scale_oij",
        network="same-host",
        profile="multicore",
        feeding={"batch_rows": BLOCK},
        replicas=threads,
        **parameters,
    )


def seconds(of: js.Run) -> float:
    return float(of.summary["virtual_seconds"])


def keys_of_different_threads() -> list[int]:
    """Return two keys that two threads share between them."""
    thread = partition(np.arange(100), 2)
    return [int(np.flatnonzero(thread == number)[0]) for number in (0, 1)]


def test_a_thread_does_not_wait_until_others_are_done_with_a_message() -> None:
    """Message by message one of two threads has all the work, and over time each has half."""
    keys = keys_of_different_threads()
    one, two = (run(threads, keys, schedule_messages=None) for threads in (1, 2))
    assert one.verdict.exact
    assert two.verdict.exact
    assert seconds(two) < 0.65 * seconds(one)


def test_threads_do_not_help_with_a_key_that_no_schedule_splits() -> None:
    one, two = (run(threads, [1], schedule_messages=None) for threads in (1, 2))
    assert seconds(two) == pytest.approx(seconds(one), rel=0.05)


def test_dynamic_scheduling_splits_a_key_whose_thread_has_too_much_to_do() -> None:
    alone, shared = (run(4, [1], schedule_messages=n, contention=0) for n in (None, 2))
    assert shared.verdict.exact
    assert seconds(shared) < 0.65 * seconds(alone)


def test_looking_into_the_parts_of_other_threads_costs_what_contention_says() -> None:
    free, dear = (run(4, [1], schedule_messages=2, contention=n) for n in (0, 20))
    assert free.pairs.num_rows == dear.pairs.num_rows
    assert seconds(dear) > 1.2 * seconds(free)
