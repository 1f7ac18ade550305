"""Immutable structures on equal work: one sealed segment, 2,000 probes, one thread.

In the clock: probing a segment that is there already, or sealing one from sorted runs, each by
itself (with sorting and sealing, and beside other engines: `benchmarks.inequality_join`).

Two works: 100,000 yellow-taxi trips and the next 2,000, and 50,000 uniform tuples with 24,505,143
pairs. Counting means count and fingerprint of every probe; listing gives the ids of all its matches
too. Probes that list come a hundred at a time, as a PE gets them, and a batch's list is let go
before the next one.

Structures take turns, and a ratio is that of one turn; probes find in the caches what the same
probes left there. Counts and fingerprints of all must be equal. Times are processor times, which
other programs on the machine disturb less; but threads are measured by the clock on the wall.

Run: ``python -m benchmarks.immutable_probe [--json]``
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from actors.hosting.process_memory import keep_freed_memory
from benchmarks.inequality_work import (
    PROBES,
    InequalityWork,
    NumpyScan,
    counted,
    listed,
    taxi_work,
    uniform_work,
)
from benchmarks.measure import Result, check_equal, report
from joins.indexes.immutable.segment import ImmutableSegment, probe_all
from joins.indexes.structures import SEGMENTS
from joins.matches import ProbeResult
from spark_bridge.engines import Totals

_TURNS = 9
_SLOW_TURNS = 3  # Of what takes seconds.
_BATCH = 100
_THREAD_SEGMENTS = 8

# What a PO-Join probe may take: a fill, and two nanoseconds for each of its 4,072 matches.
_PO_JOIN_LIST_US = 28
_GRID_COUNT_TIMES, _GRID_LIST_TIMES = 25, 8
_GRID_SEAL_TIMES, _GRID_MEMORY_TIMES = 3, 4
_GRID_COUNT_RATE = 1e6


def count_all(segment: ImmutableSegment, work: InequalityWork) -> ProbeResult:
    """Count all probes in one call."""
    return segment.probe(work.ranges)


def list_batches(segment: ImmutableSegment, work: InequalityWork) -> None:
    """List the matches of `_BATCH` probes after `_BATCH` probes."""
    for ranges in work.batches(_BATCH):
        segment.probe(ranges, enumerate=True)


def time_by_turns(
    runs: Mapping[str, Callable[[], Any]],
    turns: int,
    clock: Callable[[], float] = time.process_time,
    *,
    warm: bool = True,
) -> dict[str, np.ndarray]:
    """Return the seconds of every run in every turn, after a first one that does not count.

    *warm*: a turn is two runs, of which the second counts. The first brings back into the caches
    what the others' turns have driven out, as it is at a PE that has been probing all along.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(turns + 1):
        for name, run in runs.items():
            if warm:
                run()
            started = clock()
            run()
            if turn:
                seconds[name].append(clock() - started)
    return {name: np.array(values) for name, values in seconds.items()}


def checked_segments(work: InequalityWork, expected: Totals) -> dict[str, ImmutableSegment]:
    """Return a segment of every structure, once they are known to find what is expected."""
    segments: dict[str, ImmutableSegment] = {}
    for name, segment_type in SEGMENTS.items():
        segments[name] = segment = segment_type.from_columns(work.stored)
        found = segment.probe(work.ranges, enumerate=True)
        check_equal(f"{name}, {work.name}, counts", counted(found), expected)
        check_equal(f"{name}, {work.name}, list", listed(found), expected)
    return segments


def seal(segment: ImmutableSegment) -> Callable[[], Any]:
    """Return how to build *segment* again from its sorted runs."""
    return lambda: type(segment)(
        segment.keys, segment.lead, list(segment.to_lead), first=segment.first
    )


def probe_costs(work: InequalityWork) -> list[Result]:
    """Measure counting, listing, sealing and memory of every structure."""
    segments = checked_segments(work, NumpyScan(work).count())
    counting = measure_structures(segments, lambda segment: count_all(segment, work))
    listing = measure_structures(segments, lambda segment: list_batches(segment, work))
    builds = {name: seal(segment) for name, segment in segments.items()}
    sealing = time_by_turns(builds, _TURNS, warm=False)  # A segment is sealed once.
    results = []
    for kind, measured in (("count", counting), ("list", listing)):
        for name, seconds in measured.items():
            results.append(
                Result.of(
                    f"{work.name}: {name}, {kind} a probe",
                    (seconds / PROBES * 1e6).tolist(),
                    unit="µs",
                    target=_PO_JOIN_LIST_US if (kind, name) == ("list", "po_join") else None,
                    at_least=False,
                )
            )
    for name, segment in segments.items():
        note = f"{segment.nbytes / 1e6:.1f} MB"
        results.append(
            Result.of(
                f"{work.name}: {name}, seal", (sealing[name] * 1e3).tolist(), unit="ms", note=note
            )
        )
    memory = segments["prefix_grid"].nbytes / segments["po_join"].nbytes
    for what, ratio, target, at_least in (
        ("counts faster", counting["po_join"] / counting["prefix_grid"], _GRID_COUNT_TIMES, True),
        ("lists faster", listing["po_join"] / listing["prefix_grid"], _GRID_LIST_TIMES, True),
        ("seals slower", sealing["prefix_grid"] / sealing["po_join"], _GRID_SEAL_TIMES, False),
        ("takes more memory", np.array([memory]), _GRID_MEMORY_TIMES, False),
    ):
        results.append(
            Result.of(
                f"{work.name}: prefix_grid {what} than po_join",
                ratio.tolist(),
                unit="times",
                target=target,
                at_least=at_least,
            )
        )
    return results


def measure_structures(
    segments: dict[str, ImmutableSegment], run: Callable[[ImmutableSegment], Any]
) -> dict[str, np.ndarray]:
    """Return the seconds that *run* takes on each structure; the slow one has turns of its own."""
    runs = {name: partial(run, segment) for name, segment in segments.items()}
    slow = {"css_hash": runs.pop("css_hash")}
    return time_by_turns(runs, _TURNS) | time_by_turns(slow, _SLOW_TURNS)


def counting_rates(work: InequalityWork) -> list[Result]:
    """Measure probes a second, counted, beside a scan of what numpy has sorted."""
    scan = NumpyScan(work)
    segments = checked_segments(work, scan.count())
    counting = measure_structures(segments, lambda segment: count_all(segment, work))
    counting |= time_by_turns({"numpy scan": scan.count}, _SLOW_TURNS)
    return [
        Result.rate(
            f"{work.name}: {name}, count",
            PROBES,
            times.tolist(),
            unit="probes/s",
            target=_GRID_COUNT_RATE if name == "prefix_grid" else None,
        )
        for name, times in counting.items()
    ]


def threads_over_a_list(work: InequalityWork) -> list[Result]:
    """Measure one and two threads over a list of segments, as a PE of the paper has it."""
    expected = NumpyScan(work).count()
    epochs = np.array_split(np.arange(len(work.stored[0])), _THREAD_SEGMENTS)
    results = []
    for name in ("po_join", "prefix_grid"):
        segments = [
            SEGMENTS[name].from_columns([c[rows] for c in work.stored], first=int(rows[0]))
            for rows in epochs
        ]
        runs = {
            str(threads): partial(probe_all, segments, work.ranges, threads=threads)
            for threads in (1, 2)
        }
        for threads, run in runs.items():
            found = counted(ProbeResult.sum(run()))
            check_equal(f"{name}, {threads} threads", found, expected)
        times = time_by_turns(runs, _TURNS, time.perf_counter)
        results += [
            Result.rate(
                f"{work.name}: {name}, {_THREAD_SEGMENTS} segments, {threads} thread(s)",
                PROBES,
                measured.tolist(),
                unit="probes/s",
            )
            for threads, measured in times.items()
        ]
    return results


def main() -> None:
    """Measure and print."""
    keep_freed_memory()
    taxi, uniform = taxi_work(), uniform_work()
    results = probe_costs(taxi) + threads_over_a_list(taxi) + counting_rates(uniform)
    report("immutable probe", results)


if __name__ == "__main__":
    main()
