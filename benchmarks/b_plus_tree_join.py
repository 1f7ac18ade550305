"""Index-based window join, tuple by tuple, one thread: the B+-tree under a sliding window.

In the clock: probing, inserting and deleting, one thread's processor time, from tuples in memory to
matches counted.

Two streams arrive alternately with uniform 30-bit keys. Each tuple probes the other stream's tree
for keys within a band that gives about two matches, is inserted into its own stream's tree, and the
oldest of its own window is deleted. Windows are count windows, exact to the tuple. The rate is that
of full windows; filling them is reported apart. Pairs and checksum are compared with a join
computed from sorted runs by numpy, which shares no code with the tree.

Run: ``python benchmarks/b_plus_tree_join.py [--window-bits 20] [--sweep] [--json]``
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

import numpy as np

from joins.hashing import mix, splitmix64
from joins.indexes.b_plus.b_plus_tree import NODE_ENTRIES, BPlusTree
from joins.indexes.b_plus.nodes import (
    NONE,
    Nodes,
    delete_entry,
    find_first,
    insert_entry,
    prefetch_leaf,
)
from joins.machine.compiling import kernel
from joins.work import COUNTERS

KEY_BITS = 30
MATCHES_PER_TUPLE = 2
SWEEP = ((32, 64), (64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128))


def make_keys(tuples: int) -> np.ndarray:
    """Return the keys of both streams in arrival order: stream 0 at even rows, 1 at odd ones."""
    row = np.arange(tuples, dtype=np.uint64)
    stream = (row & np.uint64(1)) + np.uint64(1)
    mixed = mix((stream << np.uint64(48)) ^ (row >> np.uint64(1)))
    return (mixed >> np.uint64(64 - KEY_BITS)).astype(np.int64)


def band_of(window: int) -> int:
    """Return the largest distance of two matching keys."""
    return MATCHES_PER_TUPLE * (1 << KEY_BITS) // (2 * window)


@kernel
def step(
    own: Nodes,
    other: Nodes,
    keys: np.ndarray,
    row: int,
    window: int,
    band: int,
    counters: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Join one tuple: probe, insert, expire."""
    key = keys[row]
    position = row >> 1
    expired = row - 2 * window
    # Three descents meet three leaves that are in no cache: they are waited for together.
    prefetch_leaf(other, key - band)
    prefetch_leaf(own, key)
    if expired >= 0:
        prefetch_leaf(own, keys[expired])

    leaf, i = find_first(other, key - band, counters)
    while leaf != NONE:
        size = other.leaves.size[leaf]
        while i < size and other.leaves.keys[leaf, i] <= key + band:
            match = other.leaves.positions[leaf, i]
            left, right = (match, position) if row & 1 else (position, match)
            totals[0] += np.uint64(1)
            totals[1] += splitmix64((left << 32) ^ right)
            i += 1
        if i < size:
            break
        leaf, i = other.leaves.next[leaf], 0

    insert_entry(own, key, position, counters)
    if expired >= 0:
        delete_entry(own, keys[expired], expired >> 1, counters)


@kernel
def join(
    tree_0: Nodes,
    tree_1: Nodes,
    keys: np.ndarray,
    begin: int,
    end: int,
    window: int,
    band: int,
    counters: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Join the tuples from row *begin* to *end* - 1, one after the other."""
    for row in range(begin, end):
        if row & 1:
            step(tree_1, tree_0, keys, row, window, band, counters, totals)
        else:
            step(tree_0, tree_1, keys, row, window, band, counters, totals)


def expected_totals(keys: np.ndarray, window: int, band: int) -> tuple[int, int]:
    """Return pairs and checksum by numpy: every pair once, where its later tuple probes."""
    pairs, checksum = 0, 0
    streams = keys[0::2], keys[1::2]
    for probing in (0, 1):
        stored = streams[1 - probing]
        order = np.argsort(stored, kind="stable")
        ordered = stored[order]
        for at in range(0, len(streams[probing]), 1 << 17):
            probe = streams[probing][at : at + (1 << 17)]
            begin = np.searchsorted(ordered, probe - band, "left")
            count = np.searchsorted(ordered, probe + band, "right") - begin
            row = np.repeat(np.arange(at, at + len(probe)), count)
            first = np.cumsum(count) - count
            place = np.arange(count.sum()) + np.repeat(begin - first, count)
            match = order[place]
            preceding = row + probing  # stored tuples that arrived before the probing one
            seen = (match < preceding) & (match >= preceding - window)
            row, match = row[seen], match[seen]
            left, right = (row, match) if probing == 0 else (match, row)
            pairs += len(row)
            checksum += int(mix((left << 32) ^ right).sum(dtype=np.uint64))
    return pairs, checksum % (1 << 64)


def measure(
    keys: np.ndarray, window: int, repeats: int, leaf_entries: int, fanout: int
) -> dict[str, float | int]:
    """Fill both windows, then time the rest of *keys* in *repeats* equal parts."""
    trees = [BPlusTree(leaf_entries=leaf_entries, fanout=fanout) for _ in (0, 1)]
    for tree in trees:
        tree.reserve(max(window + 1, 64) * 5 // 4)
    counters = np.zeros(len(COUNTERS), np.int64)
    totals = np.zeros(2, np.uint64)
    band = band_of(window)

    def run(begin: int, end: int) -> float:
        started = time.perf_counter()
        nodes_0, nodes_1 = trees[0].nodes, trees[1].nodes
        join(nodes_0, nodes_1, keys, begin, end, window, band, counters, totals)
        return time.perf_counter() - started

    run(0, 0)  # compile
    fill_s = run(0, 2 * window)
    cuts = np.linspace(2 * window, len(keys), repeats + 1).astype(np.int64).tolist()
    rates = [(end - begin) / run(begin, end) for begin, end in itertools.pairwise(cuts)]
    return {
        "leaf_entries": leaf_entries,
        "fanout": fanout,
        "window": window,
        "tuples": len(keys),
        "fill_tuples_per_s": 2 * window / fill_s,
        "tuples_per_s_min": min(rates),
        "tuples_per_s_median": float(np.median(rates)),
        "tuples_per_s_max": max(rates),
        "bytes": sum(tree.nbytes for tree in trees),
        "pairs": int(totals[0]),
        "checksum": int(totals[1]),
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
    keys = make_keys(2 * window + options.tuples)
    sizes = SWEEP if options.sweep else ((NODE_ENTRIES, NODE_ENTRIES),)
    results = [measure(keys, window, options.repeats, *size) for size in sizes]
    expected = expected_totals(keys, window, band_of(window))
    for result in results:
        if (result["pairs"], result["checksum"]) != expected:
            raise SystemExit(f"wrong result: {result} against {expected}")
    if options.json:
        print(json.dumps({"verified": True, "results": results}))
        return
    print(f"window 2^{options.window_bits}, {len(keys):,} tuples, one thread; M tuples/s")
    print("leaf  fanout   fill    min  median    max    MiB       pairs              checksum")
    for r in results:
        print(
            f"{r['leaf_entries']:4}  {r['fanout']:6}  {r['fill_tuples_per_s'] / 1e6:5.2f}  "
            f"{r['tuples_per_s_min'] / 1e6:5.2f}  {r['tuples_per_s_median'] / 1e6:6.2f}  "
            f"{r['tuples_per_s_max'] / 1e6:5.2f}  {r['bytes'] / 2**20:5.1f}  {r['pairs']:10,}  "
            f"{r['checksum']:20}"
        )
    print("pairs and checksum equal those of a sorted-run join in numpy")


if __name__ == "__main__":
    main()
