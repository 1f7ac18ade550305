"""Index-based window joins on one core and on two: PIM-Tree and what it is compared with.

In the clock: probing, inserting, expiring and merging, from tuples in memory to matches counted.

Two streams arrive in turn, with uniform 30-bit keys. Each tuple probes the other stream's window
for keys within a band that gives about two matches, is inserted into its own stream's, and lets the
oldest of the other's expire. Windows are count windows, exact to the tuple. What a tuple costs
comes and goes with the trees that fill up and are merged or archived, at the slowest once a window:
a rate is that of as many arrivals as replace both windows. Each join fills its windows and replaces
them once first, so that its memory is not new. Then the arrivals are cut into parts, and each part
is timed with every join before the next part, so that a noisy neighbour hits all of them: processor
time where one thread works, wall time where two do. Every tuple's count and fingerprint are
compared with a join computed by numpy.

Beside them are the ordered sets of C++ libraries, in the same minutes: Abseil's ``btree_set`` and
tlx's, each as it comes and with nodes or entries that suit it better, on huge pages or on malloc's.
It takes a C++ compiler and the headers (Debian: libabsl-dev; tlx: its sources, ``--include DIR``).
What is missing is said, and the rest is measured.

Run: ``python -m benchmarks.pim_tree [--window-bits 16 20] [--rounds 5] [--only WORDS] [--sweep]
[--include DIR] [--json]``
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from actors.hosting.inline import Clock
from actors.hosting.process_memory import keep_freed_memory
from benchmarks.cpp import PeerJoin, build_tree_peers
from benchmarks.measure import Result, command_line, report
from joins.hashing import mix
from joins.indexes.pim_tree.b_chain import TreeChain
from joins.indexes.pim_tree.pim_tree import THREADS_MERGE_RATIO, PimTree
from joins.window_join.b_plus_join import BPlusTreeJoin
from joins.window_join.forest_join import ForestJoin
from joins.window_join.rows import KernelRows
from joins.window_join.shared_bw_tree import BwTreeWindows
from joins.window_join.shared_join import ThreadsJoin
from joins.window_join.shared_pim_tree import PimTreeWindows
from joins.window_join.sorted_runs.join import SortedRunsJoin
from scenarios.calibration.window_workload import (
    MatchSums,
    band_join,
    expected_matches,
    timed_batches,
)

KEY_BITS = 30
MATCHES_PER_TUPLE = 2

PARTS = 8
"""Of the arrivals that replace both windows."""
_YARDSTICK = "absl::btree_set, packed, huge pages"
_RATIOS = {
    16: (("PIM-Tree", _YARDSTICK, 2.0),),
    20: (
        ("PIM-Tree", _YARDSTICK, 3.0),
        ("PIM-Tree", "B+-tree", 1.6),
        ("IM-Tree", "B+-tree", 1.5),
        ("IB-chain, length 2", "B-chain, length 2", 1.3),
    ),
}
_EVERYWHERE = (
    ("B+-tree", _YARDSTICK, 1.0),
    ("live PIM-Tree, 2 threads", "live PIM-Tree, 1 thread", 1.7),
)
"""How many times as fast as another a join is to be, by the logarithm of the window or anyway."""
_TUNED_CPP = 1.7e6
"""Tuples a second of a tuned B+-tree in C++ on this kind of machine, windows of 2^20."""
_RATES = {
    20: {
        "PIM-Tree": 1.5 * _TUNED_CPP,
        "sorted runs, batch 1,024": 5e6,
        "sorted runs, batch 65,536": 15e6,
    }
}
"""Tuples a second that a join is to take, by the logarithm of the window."""
_NODES = ((16, 32), (32, 16), (32, 32), (32, 64), (48, 48), (64, 32), (64, 64), (128, 128))
"""Sizes of a B+-tree's nodes to try: entries of a leaf, children of an inner node."""
_FILL_BATCH = 65_536
_BATCH = 8_192
"""Arrivals per call of the joins that work tuple by tuple; their rates do not depend on it."""

Contender = tuple[Any, int]
"""A join, and the size of the batches that it is given."""


def make_keys(tuples: int) -> np.ndarray:
    """Return the keys of both streams in arrival order: stream 0 at even rows, 1 at odd ones."""
    row = np.arange(tuples, dtype=np.uint64)
    stream = (row & np.uint64(1)) + np.uint64(1)
    mixed = mix((stream << np.uint64(48)) ^ (row >> np.uint64(1)))
    return (mixed >> np.uint64(64 - KEY_BITS)).astype(np.int64)


def band_of(window: int) -> int:
    """Return the largest distance of two matching keys."""
    return MATCHES_PER_TUPLE * (1 << KEY_BITS) // (2 * window)


def checked_seconds(
    name: str,
    join: Any,
    rows: KernelRows,
    right: MatchSums,
    part: tuple[int, int],
    *,
    batch_rows: int,
    clock: Clock,
) -> float:
    """Join a *part* of *rows*, from one row to before another; return the seconds that it took.

    Stop when the matches of a batch are not the *right* ones, which are those of all rows.
    """
    seconds, at = 0.0, part[0]
    for found, took_s in timed_batches(join, rows.part(*part), batch_rows, clock):
        until = at + len(found.count)
        if not (
            np.array_equal(found.count, right[0][at:until])
            and np.array_equal(found.fingerprint, right[1][at:until])
        ):
            raise SystemExit(f"{name}: wrong matches in rows {at} to {until - 1}")
        seconds, at = seconds + took_s, until
    return seconds


def make_work(tuples: int, window: int) -> KernelRows:
    """Return the arrivals: windows of *window* tuples, and *tuples* more."""
    return band_join(make_keys(2 * window + tuples), band_of(window), window)


def measure(
    rows: KernelRows, window: int, joins: Mapping[str, Contender]
) -> dict[str, list[float]]:
    """Return the rates of each join (with the size of its batches), one a round.

    Stop when one of them finds something else than numpy does.
    """
    n = len(rows.side)
    right = expected_matches(rows)
    rates: dict[str, list[float]] = {name: [] for name in joins}

    def run(name: str, part: tuple[int, int], batch: int) -> float:
        clock = time.perf_counter if name.startswith("live") else time.thread_time
        join = joins[name][0]
        return checked_seconds(name, join, rows, right, part, batch_rows=batch, clock=clock)

    for name in joins:
        run(name, (0, 4 * window), _FILL_BATCH)
    for begin in range(4 * window, n, 2 * window):
        seconds = dict.fromkeys(joins, 0.0)
        cuts = np.linspace(begin, begin + 2 * window, PARTS + 1).astype(int).tolist()
        for part in itertools.pairwise(cuts):
            for name, (_, batch) in joins.items():
                seconds[name] += run(name, part, batch)
        for name in joins:
            rates[name].append(2 * window / seconds[name])
    return rates


def share_pim_tree(threads: int, merge_ratio: float = THREADS_MERGE_RATIO) -> ThreadsJoin:
    """Return a join whose PIM-Tree several threads share."""
    index = PimTree(sides=2, merge_ratio=merge_ratio)
    return ThreadsJoin(PimTreeWindows(index), threads=threads)


def contenders(library: ctypes.CDLL | None) -> dict[str, Contender]:
    """Return the joins that are compared, those of the *library* of C++ peers included."""

    def share_bw_trees(threads: int) -> ThreadsJoin:
        return ThreadsJoin(BwTreeWindows(2, workers=threads), threads=threads)

    ours: dict[str, Contender] = {
        "B+-tree": (BPlusTreeJoin(), _BATCH),
        "B-chain, length 2": (ForestJoin(TreeChain(sides=2, immutable=False)), _BATCH),
        "IB-chain, length 2": (ForestJoin(TreeChain(sides=2)), _BATCH),
        "IM-Tree": (ForestJoin(PimTree(sides=2, insertion_depth=0)), _BATCH),
        "PIM-Tree": (ForestJoin(PimTree(sides=2)), _BATCH),
        "sorted runs, batch 1,024": (SortedRunsJoin(), 1024),
        "sorted runs, batch 16,384": (SortedRunsJoin(), 16_384),
        "sorted runs, batch 65,536": (SortedRunsJoin(), 65_536),
        "live Bw-Tree, 1 thread": (share_bw_trees(1), _FILL_BATCH),
        "live Bw-Tree, 2 threads": (share_bw_trees(2), _FILL_BATCH),
        "live PIM-Tree, 1 thread": (share_pim_tree(1), _FILL_BATCH),
        "live PIM-Tree, 2 threads": (share_pim_tree(2), _FILL_BATCH),
    }
    if library is None:
        return ours
    return ours | {
        f"{name}, {pages}": (PeerJoin(library, name, huge_pages=pages == "huge pages"), _BATCH)
        for name in library.peer_names().decode().split("\n")[:-1]
        for pages in ("huge pages", "malloc")
    }


def sweep() -> dict[str, Contender]:
    """Return trees of other node sizes, merge ratios and depths, and live ones of merge ratios."""
    plain: dict[str, Contender] = {
        f"B+-tree, leaves of {leaf}, fanout {fanout}": (
            BPlusTreeJoin(leaf_entries=leaf, fanout=fanout),
            _BATCH,
        )
        for leaf, fanout in _NODES
    }
    live: dict[str, Contender] = {
        f"live, threads {threads}, m {ratio}": (share_pim_tree(threads, ratio), _FILL_BATCH)
        for ratio in (1 / 8, 1 / 4, 1 / 2, 1.0)
        for threads in (1, 2)
    }
    pim_trees: dict[str, Contender] = {
        f"m {ratio}, D_I {depth}, nodes of {run} and {tree}": (
            ForestJoin(
                PimTree(
                    sides=2,
                    merge_ratio=ratio,
                    insertion_depth=depth,
                    run_width=run,
                    tree_width=tree,
                )
            ),
            _BATCH,
        )
        for ratio in (1 / 16, 1 / 8, 1 / 4, 1 / 2)
        for depth in (1, 2)
        for run, tree in ((32, 16), (32, 32), (16, 16))
    }
    return plain | live | pim_trees


def judged(rates: Mapping[str, list[float]], bits: int) -> list[Result]:
    """Return the rates with their targets, and each over another in the same round."""
    wanted = _RATES.get(bits, {})
    results = [
        Result.of(f"2^{bits}: {name}", values, unit="tuples/s", target=wanted.get(name))
        for name, values in rates.items()
    ]
    return results + [
        Result.of(
            f"2^{bits}: {name} over {over}",
            [a / b for a, b in zip(rates[name], rates[over], strict=True)],
            unit="times",
            target=target,
        )
        for name, over, target in (*_RATIOS.get(bits, ()), *_EVERYWHERE)
        if name in rates and over in rates
    ]


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--window-bits", type=int, nargs="+", default=[16, 20], metavar="BITS")
    parser.add_argument("--rounds", type=int, default=5, help="times windows are replaced (5)")
    parser.add_argument("--only", action="append", default=[], help="joins whose name has this")
    parser.add_argument("--sweep", action="store_true", help="try parameters of the trees")
    parser.add_argument("--include", action="append", default=[], metavar="DIR")
    options = parser.parse_args()
    keep_freed_memory()
    results: list[Result] = []
    with tempfile.TemporaryDirectory() as folder:
        library, missing = build_tree_peers(Path(folder), options.include)
        for what in missing:
            print(f"{what}: measured without it", file=sys.stderr)
        for bits in options.window_bits:
            window = 1 << bits
            joins = {
                name: join
                for name, join in (sweep() if options.sweep else contenders(library)).items()
                if any(part in name for part in options.only or [""])
            }
            rounds = options.rounds * max(1, min(4, (1 << 18) >> bits))
            rows = make_work((1 + rounds) * 2 * window, window)
            results += judged(measure(rows, window, joins), bits)
    report("window joins, counts and fingerprints equal numpy's", results)


if __name__ == "__main__":
    main()
