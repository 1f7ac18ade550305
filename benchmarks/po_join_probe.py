"""Immutable probe on real data: one PO-Join segment, one thread.

Stored: the first 100,000 valid yellow-taxi trips, in file order; probes: the next 2,000. Query Q3:
stored.distance < probe.distance and stored.fare > probe.fare. Measured are counting and listing all
matches, with the prefix bitmaps a segment has by default, and without, which is the plain fill of
the paper's Figure 5. Counts, fingerprints and lists are compared with brute force.

The trips are read from taxi_nyc_yellow_monthly_sample.parquet in the folder that JOINSIM_DATA
names, or in shared/data beside the repository, else from the first file in data/ with such trips.

Run: ``python benchmarks/po_join_probe.py [--repeats 9] [--json]``
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from joins.found import Found
from joins.hashing import mix
from joins.indexes.po_join import PoJoinSegment, bitmap_spacing

FILE = "taxi_nyc_yellow_monthly_sample.parquet"
COLUMNS = ["trip_distance", "fare_amount"]
STORED_MAX = 100_000
PROBES = 2_000


def find_trips() -> Path:
    """Return the first file that holds trips; exit when there is none."""
    root = Path(__file__).resolve().parent.parent
    folders = [root.parent / "shared" / "data"]
    if "JOINSIM_DATA" in os.environ:
        folders.insert(0, Path(os.environ["JOINSIM_DATA"]))
    candidates = [folder / FILE for folder in folders] + sorted((root / "data").glob("*.parquet"))
    for path in candidates:
        if path.is_file() and set(COLUMNS) <= set(pq.read_schema(path).names):
            return path
    raise SystemExit(f"no trips found: set JOINSIM_DATA to the folder that holds {FILE}")


def read_trips(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return distance and fare of the trips where both are finite."""
    table = pq.read_table(path, columns=COLUMNS)
    distance, fare = (table[name].to_numpy().astype(np.float64) for name in COLUMNS)
    valid = np.isfinite(distance) & np.isfinite(fare)
    return distance[valid], fare[valid]


def brute_force(
    stored: tuple[np.ndarray, np.ndarray], probes: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return each probe's count and fingerprint, and the checksum of all pairs."""
    mixed = mix(np.arange(len(stored[0])))
    count = np.empty(len(probes[0]), np.int64)
    fingerprint = np.empty(len(probes[0]), np.uint64)
    checksum = 0
    for i, (distance, fare) in enumerate(zip(*probes, strict=True)):
        match = np.flatnonzero((stored[0] < distance) & (stored[1] > fare))
        count[i] = len(match)
        fingerprint[i] = mixed[match].sum(dtype=np.uint64)
        checksum += int(mix((np.int64(i) << np.int64(32)) ^ match).sum(dtype=np.uint64))
    return count, fingerprint, checksum % (1 << 64)


def verify(found: Found, expected: tuple[np.ndarray, np.ndarray, int], what: str) -> None:
    """Exit when *found* is not what brute force found."""
    count, fingerprint, checksum = expected
    right = np.array_equal(found.count, count) and np.array_equal(found.fingerprint, fingerprint)
    if right and found.match_id is not None:
        probe = np.repeat(np.arange(len(count)), count)
        pairs = mix((probe << 32) ^ found.match_id)
        right = len(found.match_id) == count.sum() and int(pairs.sum(dtype=np.uint64)) == checksum
    if not right:
        raise SystemExit(f"{what}: not what brute force finds")


def main() -> None:
    """Measure, verify and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=9, help="timed runs of each kind (9)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()

    distance, fare = read_trips(find_trips())
    n = min(STORED_MAX, len(distance) - PROBES)
    if n <= 0:
        raise SystemExit(f"{len(distance):,} valid trips are too few for {PROBES:,} probes")
    stored = distance[:n], fare[:n]
    probes = distance[n : n + PROBES], fare[n : n + PROBES]
    below, above = np.full(PROBES, -np.inf), np.full(PROBES, np.inf)
    lo = [below, np.nextafter(probes[1], np.inf)]
    hi = [np.nextafter(probes[0], -np.inf), above]
    expected = brute_force(stored, probes)

    results: list[dict[str, Any]] = []
    for variant, every in (("plain fill", None), ("prefix bitmaps", bitmap_spacing(n))):
        PoJoinSegment.from_columns(stored, bitmap_every=every)  # compile
        started = time.perf_counter()
        segment = PoJoinSegment.from_columns(stored, bitmap_every=every)
        seal_ms = (time.perf_counter() - started) * 1e3
        for enumerate_ in (False, True):
            what = f"{variant}, {'list' if enumerate_ else 'count'}"
            verify(segment.probe(lo, hi, enumerate=enumerate_), expected, what)
            times = []
            for _ in range(options.repeats):
                started = time.perf_counter()
                segment.probe(lo, hi, enumerate=enumerate_)
                times.append((time.perf_counter() - started) / PROBES * 1e6)
            results.append(
                {
                    "what": what,
                    "us_per_probe_min": min(times),
                    "us_per_probe_median": float(np.median(times)),
                    "ns_per_match": min(times) * 1e3 * PROBES / int(expected[0].sum()),
                    "sort_and_seal_ms": seal_ms,
                    "bytes": segment.nbytes,
                }
            )
    summary = {
        "stored": n,
        "probes": PROBES,
        "pairs": int(expected[0].sum()),
        "checksum": expected[2],
        "verified": True,
    }
    if options.json:
        print(json.dumps(summary | {"results": results}))
        return
    print(f"{n:,} stored, {PROBES:,} probes, {summary['pairs']:,} pairs, one thread")
    print("                         µs/probe   median  ns/match   seal ms      MB")
    for r in results:
        print(
            f"{r['what']:22}  {r['us_per_probe_min']:9.2f}  {r['us_per_probe_median']:7.2f}  "
            f"{r['ns_per_match']:8.2f}  {r['sort_and_seal_ms']:8.1f}  {r['bytes'] / 1e6:6.2f}"
        )
    print(f"checksum {summary['checksum']}; all equal to brute force")


if __name__ == "__main__":
    main()
