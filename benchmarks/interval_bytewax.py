"""The same interval join in Bytewax: a stateful step written by hand, since it offers none."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import bytewax.operators as op
import numpy as np
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, TestingSource, run_main

from benchmarks.interval_work import IntervalWork

_BATCH = 4_096


class _Tuple(NamedTuple):
    stream: int
    ts: int
    id: int


class _Buffers:
    """A key's tuples of both streams, in the order of time."""

    def __init__(self, within_ns: int) -> None:
        self._within_ns = within_ns
        self._ts: tuple[list[int], list[int]] = ([], [])
        self._ids: tuple[list[int], list[int]] = ([], [])

    def join(self, one: _Tuple) -> list[tuple[int, int]]:
        """Return the pairs of *one* with those before it, and keep it."""
        ts, ids = self._ts[1 - one.stream], self._ids[1 - one.stream]
        begin = bisect_left(ts, one.ts - self._within_ns)
        end = bisect_right(ts, one.ts + self._within_ns)
        pairs = [(other, one.id) if one.stream else (one.id, other) for other in ids[begin:end]]
        if begin > _BATCH:  # Both streams come in the order of time: none will reach these.
            del ts[:begin], ids[:begin]
        self._ts[one.stream].append(one.ts)
        self._ids[one.stream].append(one.id)
        return pairs


def pairs_of(work: IntervalWork) -> tuple[np.ndarray, np.ndarray]:
    """Compute all pairs with one worker: base ids and probe ids."""

    def step(
        buffers: _Buffers | None, one: _Tuple
    ) -> tuple[_Buffers | None, Iterable[tuple[int, int]]]:
        buffers = buffers or _Buffers(work.within_ns)
        return buffers, buffers.join(one)

    found: list[tuple[str, tuple[int, int]]] = []
    flow = Dataflow("interval_join")
    tuples = op.input("tuples", flow, TestingSource(_in_turns(work), batch_size=_BATCH))
    pairs = op.stateful_flat_map("join", tuples, step)
    op.output("pairs", pairs, TestingSink(found))
    run_main(flow)
    base, probe = np.array([pair for _, pair in found], np.int64).reshape(-1, 2).T
    return base, probe


def _in_turns(work: IntervalWork) -> Iterator[tuple[str, _Tuple]]:
    """Give the tuples of both streams by event time, each with its key."""
    columns = [
        column.tolist() for stream in (0, 1) for column in (work.ts[stream], work.key[stream])
    ]
    for place, (base_ts, base_key, probe_ts, probe_key) in enumerate(zip(*columns, strict=True)):
        yield str(base_key), _Tuple(0, base_ts, place)
        yield str(probe_key), _Tuple(1, probe_ts, place)
