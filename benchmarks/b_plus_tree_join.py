"""Index-based window join, tuple by tuple, one thread: the B+-tree under a sliding window.

In the clock: probing, inserting and deleting, one thread's processor time, from tuples in memory to
matches counted.

Two streams arrive alternately with uniform 30-bit keys. Each tuple probes the other stream's tree
for keys within a band that gives about two matches, is inserted into its own stream's tree, and the
oldest of the other's window is deleted. Windows are count windows, exact to the tuple. The rate is
that of full windows; filling them is reported apart. Every tuple's count and fingerprint are
compared with a join computed by numpy, which shares no code with the tree.

Run: ``python benchmarks/b_plus_tree_join.py [--window-bits 20] [--sweep] [--json]``
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

import numpy as np

from joins.hashing import mix
from joins.window_join.b_plus_join import FANOUT, LEAF_ENTRIES, BPlusTreeJoin
from joins.window_join.rows import KernelRows
from scenarios.calibration.window_workload import band_join, expected_matches

KEY_BITS = 30
MATCHES_PER_TUPLE = 2
SWEEP = ((16, 32), (32, 16), (32, 32), (32, 64), (48, 48), (64, 32), (64, 64), (128, 128))
_BATCH = 8_192


def make_keys(tuples: int) -> np.ndarray:
    """Return the keys of both streams in arrival order: stream 0 at even rows, 1 at odd ones."""
    row = np.arange(tuples, dtype=np.uint64)
    stream = (row & np.uint64(1)) + np.uint64(1)
    mixed = mix((stream << np.uint64(48)) ^ (row >> np.uint64(1)))
    return (mixed >> np.uint64(64 - KEY_BITS)).astype(np.int64)


def band_of(window: int) -> int:
    """Return the largest distance of two matching keys."""
    return MATCHES_PER_TUPLE * (1 << KEY_BITS) // (2 * window)


def measure(
    rows: KernelRows, window: int, repeats: int, leaf_entries: int, fanout: int
) -> dict[str, float | int]:
    """Fill both windows, then time the rest of *rows* in *repeats* equal parts."""
    join = BPlusTreeJoin(leaf_entries=leaf_entries, fanout=fanout)
    count, fingerprint = expected_matches(rows)

    def run(begin: int, end: int) -> float:
        seconds = 0.0
        for at in range(begin, end, _BATCH):
            part = slice(at, min(at + _BATCH, end))
            started = time.thread_time()
            found = join.join(rows.part(part.start, part.stop))
            seconds += time.thread_time() - started
            if not (
                np.array_equal(found.count, count[part])
                and np.array_equal(found.fingerprint, fingerprint[part])
            ):
                raise SystemExit(f"wrong matches in rows {part.start} to {part.stop - 1}")
        return seconds

    fill_s = run(0, 2 * window)
    cuts = np.linspace(2 * window, len(rows.side), repeats + 1).astype(np.int64).tolist()
    rates = [(end - begin) / run(begin, end) for begin, end in itertools.pairwise(cuts)]
    return {
        "leaf_entries": leaf_entries,
        "fanout": fanout,
        "window": window,
        "tuples": len(rows.side),
        "fill_tuples_per_s": 2 * window / fill_s,
        "tuples_per_s_min": min(rates),
        "tuples_per_s_median": float(np.median(rates)),
        "tuples_per_s_max": max(rates),
        "bytes": join.nbytes,
        "pairs": int(count.sum()),
    }


def main() -> None:
    """Measure, verify and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--window-bits", type=int, default=20, help="window length 2^BITS (20)")
    parser.add_argument("--tuples", type=int, default=1_500_000, help="tuples timed (1500000)")
    parser.add_argument("--repeats", type=int, default=5, help="parts they are timed in (5)")
    parser.add_argument("--sweep", action="store_true", help="try node sizes")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()

    window = 1 << options.window_bits
    rows = band_join(make_keys(2 * window + options.tuples), band_of(window), window)
    sizes = SWEEP if options.sweep else ((LEAF_ENTRIES, FANOUT),)
    measure(band_join(make_keys(200), 5, 20), 20, 1, 8, 8)  # compile
    results = [measure(rows, window, options.repeats, *size) for size in sizes]
    if options.json:
        print(json.dumps({"verified": True, "results": results}))
        return
    print(f"window 2^{options.window_bits}, {len(rows.side):,} tuples, one thread; M tuples/s")
    print("leaf  fanout   fill    min  median    max    MiB       pairs")
    for r in results:
        print(
            f"{r['leaf_entries']:4}  {r['fanout']:6}  {r['fill_tuples_per_s'] / 1e6:5.2f}  "
            f"{r['tuples_per_s_min'] / 1e6:5.2f}  {r['tuples_per_s_median'] / 1e6:6.2f}  "
            f"{r['tuples_per_s_max'] / 1e6:5.2f}  {r['bytes'] / 2**20:5.1f}  {r['pairs']:10,}"
        )
    print("counts and fingerprints equal those of a join in numpy")


if __name__ == "__main__":
    main()
