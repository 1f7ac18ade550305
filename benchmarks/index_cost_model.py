"""PIM-Tree's analytical model against what the joins do: predicted over measured cost per tuple.

The workload of `benchmarks.pim_tree` at windows of 2^12 to 2^BITS tuples, joined over every index
by one core, for as long as every merge, archived tree or rebuilding takes to come round. The model
is given what a unit of work costs, the window and the match rate. Its figure is held against

counted cost
    that of virtual time: the work that the kernels counted, at the default profile's unit costs;
processor time
    of the core that did it, caches and all. Three constants an index are calibrated at windows of
    2^12, 2^16 and 2^20: what the model's nanosecond takes on this machine, what each doubling of
    the window adds as trees outgrow one cache after the other, and what it adds beyond 2^18, where
    they have outgrown the last. None of them is negative. The other windows are predicted.

Run: ``python -m benchmarks.index_cost_model [--most-bits 22] [--json]``
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass
from typing import get_args

import numpy as np

from benchmarks.measure import Result, report
from benchmarks.pim_tree import make_work
from joins.window_join.drivers import IndexName, Making
from joins.window_join.prediction import predict
from netsim.cost import load_profile

LEAST_BITS = 12
CALIBRATED_BITS = (12, 16, 20)
_CACHED_BITS = 18
"""Windows of so many tuples, and their indexes, just fit into the last cache."""
_TUPLES = 400_000
_PERIODS = {"pim_tree": 1.0, "im_tree": 1.0, "b_chain": 2.0, "ib_chain": 2.0, "bw_tree": 0.25}
"""Tuples, in windows, after which both sides have merged, archived or rebuilt once."""
_BATCH = 65_536
_SCANNED = 1e9
"""Pairs that a nested loop is given to compare at the most."""
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
    window, profile = 1 << bits, load_profile()
    tuples = max(_TUPLES, int(_PERIODS.get(index, 0) * window))
    if index == "nested_loop":
        tuples = min(tuples, int(_SCANNED / window))
    rows = make_work(tuples, window)
    # Those that fill the windows see nothing yet: a nested loop would take days over them.
    rows = rows._replace(stop=np.where(np.arange(len(rows.side)) < 2 * window, 0, rows.stop))
    join = Making(index=index).make(self_join=False, unit_ps=profile.unit_ps)
    counted_ns = matches = seconds = 0.0
    cuts = [*range(0, 2 * window, _BATCH), *range(2 * window, 2 * window + tuples, _BATCH)]
    for begin, end in itertools.pairwise([*cuts, 2 * window + tuples]):
        started = time.thread_time()
        found = join.join(rows.part(begin, end))
        if begin >= 2 * window:
            seconds += time.thread_time() - started
            counted_ns += profile.work_ns(found.work)
            matches += found.work.matches
    predicted = predict(
        Making(index=index), window=window, match_rate=matches / tuples, unit_ps=profile.unit_ps
    )
    return Point(
        bits=bits,
        predicted_ns=predicted.tuple_ns,
        counted_ns=counted_ns / tuples,
        processor_ns=seconds / tuples * 1e9,
    )


def calibrated(points: list[Point]) -> list[float]:
    """Return what the model says of processor time, ns a tuple, calibrated at some of *points*."""
    bits = np.array([point.bits for point in points])
    predicted_ns = [point.predicted_ns for point in points]
    terms = np.stack([predicted_ns, bits - LEAST_BITS, np.maximum(bits - _CACHED_BITS, 0)], axis=1)
    took_ns = np.array([[point.processor_ns] for point in points])
    known = np.isin(bits, CALIBRATED_BITS)
    # Relative errors, for the largest window must not outweigh the others.
    return (terms @ _not_negative(terms[known] / took_ns[known])).tolist()


def _not_negative(terms: np.ndarray) -> np.ndarray:
    """Return the factors, none negative, with which the columns of *terms* come closest to 1."""
    best, least = np.zeros(terms.shape[1]), np.inf
    for chosen in itertools.product((False, True), repeat=terms.shape[1]):
        factors = np.zeros(terms.shape[1])
        columns = terms[:, chosen]
        factors[list(chosen)] = np.linalg.lstsq(columns, np.ones(len(terms)), rcond=None)[0]
        off = float(np.square(terms @ factors - 1).sum())
        if factors.min() >= 0 and off < least:
            best, least = factors, off
    return best


def _off(name: str, ratio: float, note: str) -> Result:
    most = 1 + _WITHIN
    off = [max(ratio, 1 / ratio)]
    return Result.of(name, off, unit="times off", target=most, at_least=False, note=note)


if __name__ == "__main__":
    main()
