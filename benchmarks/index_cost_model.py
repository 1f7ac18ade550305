"""PIM-Tree's analytical model against what the joins do: predicted over counted cost per tuple.

The workload of `benchmarks.pim_tree` at windows of 2^12 to 2^BITS tuples, joined over every index
by one core. The counted cost is that of virtual time: the work that the kernels counted, at the
default profile's cost per unit; the model is given no more than those unit costs, the window and
the match rate. Beside it stands the time of the core that did it, caches and all.

Run: ``python -m benchmarks.index_cost_model [--most-bits 22] [--json]``
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import get_args

from benchmarks.measure import Result, report
from benchmarks.pim_tree import make_work
from joins.window_join.drivers import IndexName, Making
from joins.window_join.prediction import predict
from netsim.cost import load_profile

LEAST_BITS = 12
_TUPLES = 400_000
_BATCH = 65_536
_SCANNED = 1e9
"""Pairs that a nested loop is given to compare at the most, fill and all."""
_WITHIN = 0.3


def main() -> None:
    """Predict, count and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--most-bits", type=int, default=22, help="largest window 2^BITS (22)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    results = [
        result
        for bits in range(LEAST_BITS, options.most_bits + 1, 2)
        for result in compare(1 << bits, bits)
    ]
    report("predicted over counted cost per tuple, 1 is right", results)


def compare(window: int, bits: int) -> list[Result]:
    """Return each index's predicted cost over the counted one, at one window."""
    unit_ps = load_profile().unit_ps
    results = []
    for index in get_args(IndexName):
        tuples = min(_TUPLES, max(_BATCH, 2 * window))
        if index == "nested_loop":
            tuples = min(tuples, int(_SCANNED / window) - 2 * window)
        if tuples <= 0:
            continue
        rows = make_work(tuples, window)
        join = Making(index=index).make(self_join=False, unit_ps=unit_ps)
        counted_ns = matches = 0.0
        seconds = 0.0
        n = len(rows.side)
        cuts = [*range(0, 2 * window, _BATCH), *range(2 * window, n, _BATCH), n]
        for begin, end in itertools.pairwise(cuts):
            started = time.thread_time()
            found = join.join(rows.part(begin, end))
            if begin >= 2 * window:
                seconds += time.thread_time() - started
                counted_ns += load_profile().work_ns(found.work)
                matches += found.work.matches
        predicted = predict(
            Making(index=index), window=window, match_rate=matches / tuples, unit_ps=unit_ps
        ).tuple_ns
        ratio = predicted / (counted_ns / tuples)
        results.append(
            Result.of(
                f"{index}, window 2^{bits}",
                [max(ratio, 1 / ratio)],
                unit="times off",
                target=1 + _WITHIN,
                at_least=False,
                note=f"predicted {predicted:,.0f} ns, counted {counted_ns / tuples:,.0f} ns, "
                f"took {seconds / tuples * 1e9:,.0f} ns",
            )
        )
    return results


if __name__ == "__main__":
    main()
