"""PIM-Tree's analytical model against what the joins do: predicted over measured cost per tuple.

The workload of `benchmarks.pim_tree` at windows of 2^12 to 2^BITS tuples, joined over every index
by one core, for as long as every merge, archived tree or rebuilding takes to come round. The model
is given what a unit of work costs, the window and the match rate. Its figure is held against

counted cost
    that of virtual time: the work that the kernels counted, at the default profile's unit costs;
processor time
    of the core that did it, caches and all. The machine's constants (`joins.window_join
    .machine_times`) are calibrated at windows of 2^12, 2^16 and 2^20; the others are predicted.

Run: ``python -m benchmarks.index_cost_model [--most-bits 22] [--json]``
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import get_args

from benchmarks.measure import Result, report
from benchmarks.pim_tree import make_work
from joins.window_join.drivers import IndexName, Making
from joins.window_join.machine_times import CALIBRATED_BITS, fit_times
from joins.window_join.prediction import predict
from netsim.cost import load_profile
from scenarios.calibration.window_joins import time_join, tuples_to_time

LEAST_BITS = 12
_WITHIN = 0.3


@dataclass(frozen=True, kw_only=True)
class Point:
    """One index at one window of 2^bits tuples, ns a tuple."""

    bits: int
    predicted_ns: float
    counted_ns: float
    processor_ns: float


def main() -> None:
    """Predict, count, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most-bits", type=int, default=22, help="largest window 2^BITS (22)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    results = []
    for index in get_args(IndexName):
        points = [measure(index, bits) for bits in range(LEAST_BITS, options.most_bits + 1, 2)]
        for point in points:
            against = f"predicted {point.predicted_ns:,.0f} ns, counted {point.counted_ns:,.0f} ns"
            name = f"{index}, 2^{point.bits}: counted"
            results.append(_off(name, point.predicted_ns / point.counted_ns, against))
        for point, processor_ns in zip(points, calibrated(points), strict=True):
            known = "calibrated" if point.bits in CALIBRATED_BITS else "predicted"
            against = f"{known} {processor_ns:,.0f} ns, took {point.processor_ns:,.0f} ns"
            name = f"{index}, 2^{point.bits}: processor"
            results.append(_off(name, processor_ns / point.processor_ns, against))
    report("predicted over measured cost per tuple, 1 is right", results)


def measure(index: IndexName, bits: int) -> Point:
    """Return what an index costs at one window, as the model, the counters and the clock say."""
    window, profile, making = 1 << bits, load_profile(), Making(index=index)
    rows = make_work(tuples_to_time(index, window), window)
    join = making.make(self_join=False, unit_ps=profile.unit_ps)
    timed = time_join(join, rows, 2 * window)
    predicted = predict(
        making,
        window=window,
        match_rate=timed.work.matches / timed.tuples,
        unit_ps=profile.unit_ps,
    )
    return Point(
        bits=bits,
        predicted_ns=predicted.tuple_ns,
        counted_ns=profile.work_ns(timed.work) / timed.tuples,
        processor_ns=timed.tuple_ns,
    )


def calibrated(points: list[Point]) -> list[float]:
    """Return what the model says of processor time, ns a tuple, calibrated at some of *points*."""
    known = [point for point in points if point.bits in CALIBRATED_BITS]
    times = fit_times(
        [1 << point.bits for point in known],
        [point.predicted_ns for point in known],
        [point.processor_ns for point in known],
    )
    return [times.tuple_ns(point.predicted_ns, 1 << point.bits) for point in points]


def _off(name: str, ratio: float, note: str) -> Result:
    most = 1 + _WITHIN
    off = [max(ratio, 1 / ratio)]
    return Result.of(name, off, unit="times off", target=most, at_least=False, note=note)


if __name__ == "__main__":
    main()
