"""PIM-Tree's analytical model against what the joins do: predicted over measured cost per tuple.

In the clock: probing, inserting, expiring and merging, from tuples in memory to matches counted.

The workload of `benchmarks.pim_tree` at every window of 2^12 to 2^BITS tuples, joined over every
index by one core, for as long as every merge, archived tree or rebuilding takes to come round. The
model is given what a unit of work costs, the window and the match rate. Its figure is held against

counted cost
    that of virtual time: the work that the kernels counted, at the default profile's unit costs;
processor time
    of the core that did it, caches and all. The model is calibrated as by ``joinsim calibrate``, at
    the windows of `joins.window_join.cost_model`; only the others, which are predicted,
    count.

Run: ``python -m benchmarks.index_cost_model [--most-bits 22] [--json]``
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.measure import Result, report
from joins.machine.memory import keep_freed_memory
from joins.window_join.cost_model import CALIBRATED_WINDOWS
from scenarios.calibration.window_joins import Point, calibrated, time_indexes

LEAST_BITS = 12
_WITHIN = 0.3
_PASSES = 2


def main() -> None:
    """Predict, count, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most-bits", type=int, default=22, help="largest window 2^BITS (22)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    keep_freed_memory()
    windows = [1 << bits for bits in range(LEAST_BITS, options.most_bits + 1)]
    timed = time_indexes(windows, passes=_PASSES)
    results = [result for points in timed.values() for result in judged(points)]
    report("predicted over measured cost per tuple, 1 is right", results)


def judged(points: list[Point]) -> Iterator[Result]:
    """Yield how far the model is off at the windows of one index."""
    times = calibrated(points)
    for point in points:
        name = f"{point.index}, 2^{point.window.bit_length() - 1}"
        predicted_ns = point.predicted_ns
        against = f"predicted {predicted_ns:,.0f} ns, counted {point.counted_ns:,.0f} ns"
        yield _off(f"{name}: counted", predicted_ns / point.counted_ns, against)
        if point.window not in CALIBRATED_WINDOWS:
            processor_ns = times.tuple_ns(predicted_ns, point.window)
            against = f"predicted {processor_ns:,.0f} ns, took {point.took_ns:,.0f} ns"
            yield _off(f"{name}: processor", processor_ns / point.took_ns, against)


def _off(name: str, ratio: float, note: str) -> Result:
    most = 1 + _WITHIN
    off = [max(ratio, 1 / ratio)]
    return Result.of(name, off, unit="times off", target=most, at_least=False, note=note)


if __name__ == "__main__":
    main()
