"""Index-based window join, tuple by tuple, one thread: the B+-tree under a sliding window.

In the clock: probing, inserting and deleting, one thread's processor time, from tuples in memory to
matches counted.

Two streams arrive alternately with uniform 30-bit keys. Each tuple probes the other stream's tree
for keys within a band that gives about two matches, is inserted into its own stream's tree, and the
oldest of the other's window is deleted. Windows are count windows, exact to the tuple. The rate is
that of full windows; filling them is reported apart. Every tuple's count and fingerprint are
compared with a join computed by numpy, which shares no code with the tree.

Run: ``python -m benchmarks.b_plus_tree_join [--window-bits 20] [--sweep] [--json]``
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from actors.hosting.inline import Clock
from benchmarks.measure import Result, command_line, report
from joins.hashing import mix
from joins.window_join.b_plus_join import FANOUT, LEAF_ENTRIES, BPlusTreeJoin
from joins.window_join.rows import KernelRows
from scenarios.calibration.window_workload import (
    BATCH_ROWS,
    MatchSums,
    band_join,
    expected_matches,
    timed_batches,
)

KEY_BITS = 30
MATCHES_PER_TUPLE = 2
SWEEP = ((16, 32), (32, 16), (32, 32), (32, 64), (48, 48), (64, 32), (64, 64), (128, 128))
_TARGET_TPS = 0.85e6


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
    batch_rows: int = BATCH_ROWS,
    clock: Clock = time.thread_time,
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


def measure(
    rows: KernelRows, right: MatchSums, window: int, repeats: int, size: tuple[int, int]
) -> Result:
    """Fill both windows, then time the rest of *rows* in *repeats* equal parts.

    *size* is that of the nodes: the entries of a leaf, and the children of an inner node.
    """
    leaf_entries, fanout = size
    name = f"leaves of {leaf_entries}, fanout {fanout}"
    join = BPlusTreeJoin(leaf_entries=leaf_entries, fanout=fanout)
    fill_s = checked_seconds(name, join, rows, right, (0, 2 * window))
    cuts = np.linspace(2 * window, len(rows.side), repeats + 1).astype(np.int64).tolist()
    rates = [
        (part[1] - part[0]) / checked_seconds(name, join, rows, right, part)
        for part in itertools.pairwise(cuts)
    ]
    note = f"{2 * window / fill_s / 1e6:.2f} M while windows fill, {join.nbytes / 2**20:.1f} MiB"
    return Result.of(name, rates, unit="tuples/s", target=_TARGET_TPS, note=note)


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--window-bits", type=int, default=20, help="window length 2^BITS (20)")
    parser.add_argument("--tuples", type=int, default=1_500_000, help="tuples timed (1500000)")
    parser.add_argument("--repeats", type=int, default=5, help="parts they are timed in (5)")
    parser.add_argument("--sweep", action="store_true", help="try node sizes")
    options = parser.parse_args()

    window = 1 << options.window_bits
    rows = band_join(make_keys(2 * window + options.tuples), band_of(window), window)
    right = expected_matches(rows)
    sizes = SWEEP if options.sweep else ((LEAF_ENTRIES, FANOUT),)
    warm = band_join(make_keys(200), 5, 20)
    measure(warm, expected_matches(warm), 20, 1, (8, 8))  # compile
    results = [measure(rows, right, window, options.repeats, size) for size in sizes]
    pairs = int(right[0].sum())
    report(
        f"B+-tree join, windows of 2^{options.window_bits}, {pairs:,} pairs equal numpy's", results
    )


if __name__ == "__main__":
    main()
