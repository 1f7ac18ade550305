"""What the steps of an index-based window join cost (PIM-Tree, Figures 9b, 11d and 14).

Figure 9b
    Inserting, deleting, searching (the way to where a range begins), scanning (its two matches) and
    merging, processor time a tuple, in a B+-tree, an IM-Tree and a PIM-Tree of one full window.
Figure 14
    Merging a PIM-Tree, processor time per element of its two components: the same at every window
    if the cost is linear.
Figure 11d
    What threads write of all the entries that they touch, as the simulated cores count it: they
    scan more of the window, so that the share falls with their number.

Run: ``python -m benchmarks.pim_steps [--window-bits 20] [--json]``
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.b_plus_tree_join import band_of, make_keys
from benchmarks.measure import Result, report
from benchmarks.pim_tree import make_work
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.pim_tree.pim_tree import ImTree, PimTree
from joins.window_join.cores.pim_tree import CoresJoin
from joins.work import Work
from netsim.cost import load_profile

_BATCH = 4096
_WINDOWS = 4
"""What is inserted: memory is new until the third window has been merged; the last one is timed."""
_SMALL_BITS = 16
"""The smaller window of Figure 9b; the larger one is --window-bits."""
_MERGE_BITS = (14, 16, 18, 20)
_THREADS = (1, 2, 4, 8, 16)
_THREADS_BITS = 14


class Stopwatch:
    """Adds up the processor time of steps, by name; of one inside another it counts to the inner.

    Attributes
    ----------
    seconds
        Per step.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def time(self, step: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call *function* as part of a step and return what it returns."""
        others = sum(self.seconds.values())
        started = time.thread_time()
        result = function(*args, **options)
        took = time.thread_time() - started
        self.seconds[step] += took - (sum(self.seconds.values()) - others)
        return result


def steps(name: str, window: int) -> tuple[dict[str, float], int]:
    """Return what each step takes, ns a tuple, over a window's length; and elements merged."""
    index: Any = {"B+-tree": BPlusTree, "IM-Tree": ImTree, "PIM-Tree": PimTree}[name]()
    forest = name != "B+-tree"
    watch, merged = Stopwatch(), 0
    if forest:
        merge = index.maintain

        def maintain(side: int) -> Work:
            nonlocal merged
            merged += index.entries(side)
            return watch.time("merge", merge, side)

        index.maintain = maintain
    keys, band = make_keys(_WINDOWS * window), band_of(window)
    for begin in range(0, _WINDOWS * window, _BATCH):
        positions = np.arange(begin, begin + _BATCH)
        batch = keys[begin : begin + _BATCH]
        if begin == (_WINDOWS - 1) * window:
            watch.seconds.clear()
            merged = 0
        watch.time("insert", index.insert, batch, positions)
        if begin < window:
            continue
        gone = positions - window
        if forest:
            index.expire(begin + _BATCH - window)
        else:
            watch.time("delete", index.delete, keys[gone], gone)
        # Searched apart and scanned with the search: a range of two matches, and an empty one.
        watch.time("search", index.probe, batch + 1, batch + 1, start=gone, stop=gone)
        watch.time("search and scan", index.probe, batch - band, batch + band)
    took_ns = {step: seconds / window * 1e9 for step, seconds in watch.seconds.items()}
    took_ns["scan"] = max(0.0, took_ns.pop("search and scan") - took_ns["search"])
    return took_ns, merged


def figure_9b(bits: int) -> list[Result]:
    """Return the steps of every index at one window."""
    results = []
    for name in ("B+-tree", "IM-Tree", "PIM-Tree"):
        took_ns, _ = steps(name, 1 << bits)
        whole = sum(took_ns.values())
        for step, ns in sorted(took_ns.items()):
            note = f"{ns / whole:.0%} of {whole:,.0f} ns"
            if step == "merge":
                note += "; paper: 7 to 11 %"
            results.append(Result.of(f"{name}, 2^{bits}: {step}", [ns], unit="ns", note=note))
    return results


def figure_14() -> list[Result]:
    """Return what merging costs an element, by window."""
    results = []
    for bits in _MERGE_BITS:
        took_ns, merged = steps("PIM-Tree", 1 << bits)
        element_ns = took_ns["merge"] * (1 << bits) / merged
        results.append(Result.of(f"merge, 2^{bits}", [element_ns], unit="ns an element"))
    return results


def figure_11d() -> list[Result]:
    """Return the share of entries touched that are written, by threads."""
    window = 1 << _THREADS_BITS
    rows = make_work(2 * window, window)
    results = []
    for threads in _THREADS:
        join = CoresJoin(
            PimTree(sides=2, merge_ratio=1.0), unit_ps=load_profile().unit_ps, threads=threads
        )
        join.join(rows.part(0, 2 * window))
        work = join.join(rows.part(2 * window, 4 * window)).work
        written = work.inserts + work.moves
        share = 100 * written / (written + work.comparisons)
        paper = {1: "paper: 22 %", 16: "paper: 16 %"}.get(threads, "")
        name = f"{threads} threads: written"
        results.append(Result.of(name, [share], unit="% of entries touched", note=paper))
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--window-bits", type=int, default=20, help="larger window 2^BITS (20)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    bits = parser.parse_args().window_bits
    steps("PIM-Tree", 2 * _BATCH)  # the first one compiles
    steps("B+-tree", 2 * _BATCH)
    results = [*figure_9b(_SMALL_BITS), *figure_9b(bits), *figure_14(), *figure_11d()]
    report("steps of the index-based window join", results)


if __name__ == "__main__":
    main()
