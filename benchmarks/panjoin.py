"""PanJoin's subwindows: the join of two windows, threads, memory.

In the clock: sorting a batch, inserting and probing, from batches in memory to matches counted.
(Insertion and probing by themselves are in the figures `panjoin-fig10` to `panjoin-fig13`.)

The join is that of `benchmarks.pim_tree`: two streams by turns, uniform 30-bit keys, a band
that gives about two matches a tuple, count windows exact to the tuple; here batch by batch. A batch
of n is n tuples of each stream, and sorting it is part of the time. Counts and fingerprints are
compared with those of a join of sorted columns by numpy, which shares no code with the subwindows.
Rates of one thread are tuples per second of processor time; two threads are compared by the clock.

Run: ``python -m benchmarks.panjoin [--window-bits 20] [--repeats 3] [--json]``
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from actors.hosting.process_memory import keep_freed_memory
from benchmarks.measure import Result, check_equal, command_line, report
from benchmarks.pim_tree import band_of, make_keys
from joins.indexes.index import Ranges, make_ranges
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.lookup import StructureName
from joins.indexes.panjoin.subwindow import STRUCTURES, Subwindow, SubwindowShape, probe_subwindows
from joins.machine.compiling import kernel
from joins.radix_sort import sort_codes
from joins.threads import side_by_side, threads_for
from scenarios.calibration.window_workload import band_join, expected_matches

TARGETS = {("bi_sort", 1_024): 5e6, ("bi_sort", 65_536): 15e6}


@dataclass
class Side:
    """One stream's chain of subwindows."""

    kind: StructureName
    shape: SubwindowShape
    chain: list[Subwindow] = field(default_factory=list)

    def take(self, values: np.ndarray, first: int) -> tuple[np.ndarray, np.ndarray]:
        """Sort and insert a batch; return its values and positions in ascending order of values."""
        keys, order, _ = sort_codes(values)
        positions = order + first
        self.store(keys, positions, first)
        return keys, positions

    def store(self, keys: np.ndarray, positions: np.ndarray, first: int) -> None:
        """Insert a sorted batch that begins at position *first*."""
        at, end = first, first + len(keys)
        while at < end:
            if not self.chain or len(self.chain[-1]) == self.shape.capacity:
                splitters = self.chain[-1].sampled if self.chain else None
                if self.chain:
                    self.chain[-1].seal()
                self.chain.append(Subwindow(self.shape, self.kind, first=at, splitters=splitters))
            stop = min(end, self.chain[-1].first + self.shape.capacity)
            part = (positions >= at) & (positions < stop) if (at, stop) != (first, end) else ...
            self.chain[-1].insert([keys[part]], positions[part])
            at = stop

    def expire(self, before: int) -> None:
        """Let go of the subwindows that end before a position."""
        while self.chain and self.chain[0].stop <= before:
            del self.chain[0]


def join(
    kind: StructureName, keys: np.ndarray, window: int, batch: int, subwindows: int, threads: int
) -> tuple[np.ndarray, int, int]:
    """Join both streams; return the time that what follows the first window took, and the answer.

    The time is in seconds by the clock and of the processor; the answer is the number of pairs and
    the sum of fingerprints.
    """
    band = band_of(window)
    capacity = window // subwindows
    shape = SubwindowShape(
        predicates=1, capacity=capacity, partitions=max(1, capacity // 32), sigma=1.25
    )
    sides = [Side(kind, shape), Side(kind, shape)]
    streams = [keys[0::2], keys[1::2]]
    pairs, fingerprint = 0, 0

    def take(first: int, stream: int) -> Ranges:
        values, positions = sides[stream].take(streams[stream][first : first + batch], first)
        low, high, start, stop = asked = np.empty((4, len(values)), np.int64)
        _ask(values, positions, stream, band, window, asked)
        return make_ranges([low], [high], start=start, stop=stop)

    started = _now()
    for first in range(0, len(streams[0]), batch):
        if first == window // batch * batch:
            started = _now()
        # Threads share the streams, and then the probes of one and of the other.
        takers = threads_for(2 * batch, threads)
        for stream, probes in enumerate(side_by_side(partial(take, first), (0, 1), takers)):
            found = probe_subwindows(sides[1 - stream].chain, probes, threads=threads)
            counted, mixed = _add_up(found.count, found.fingerprint)
            pairs, fingerprint = pairs + counted, fingerprint + int(mixed)
        for side in sides:
            side.expire(first + batch - window)
    return _now() - started, pairs, fingerprint % (1 << 64)


@kernel
def _ask(
    values: np.ndarray,
    positions: np.ndarray,
    stream: int,
    band: int,
    window: int,
    asked: np.ndarray,
) -> None:
    """Fill in ranges and windows: the ends of both, a row each."""
    for i in range(len(values)):
        before = positions[i] + stream  # of the other stream's tuples, so many came before
        asked[0, i], asked[1, i] = values[i] - band, values[i] + band
        asked[2, i], asked[3, i] = max(before - window, 0), before


@kernel
def _add_up(count: np.ndarray, fingerprint: np.ndarray) -> tuple[int, np.uint64]:
    """Return the sum of each; two sums by numpy take longer than a small batch deserves."""
    pairs, total = 0, np.uint64(0)
    for i in range(len(count)):
        pairs += count[i]
        total += fingerprint[i]
    return pairs, total


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def measure_joins(window: int, tuples: int, repeats: int) -> list[Result]:
    """Return the rates of the join, by structure, batch and threads."""
    keys = make_keys(2 * window + tuples)
    matches = expected_matches(band_join(keys, band_of(window), window))
    right = tuple(int(column.sum(dtype=np.uint64)) for column in matches)
    results: list[Result] = []
    for kind in STRUCTURES:
        for batch, subwindows in ((1_024, 1), (65_536, 1)):
            seconds: dict[int, list[np.ndarray]] = {1: [], 2: []}
            for threads in [1, 2] * repeats:
                took, *answer = join(kind, keys, window, batch, subwindows, threads)
                seconds[threads].append(took)
                check_equal(f"{kind}, batch {batch}", tuple(answer), right)
            done = len(keys) - 2 * (window // batch * batch)
            name = f"{kind}, batch {batch:,}"
            target = TARGETS.get((kind, batch))
            results.append(
                Result.rate(name, done, [s[1] for s in seconds[1]], unit="tuples/s", target=target)
            )
            ratios = [a[0] / b[0] for a, b in zip(seconds[1], seconds[2], strict=True)]
            # A small batch is no work for two, and is left to one.
            target = 1.6 if batch > 1_024 else 0.98
            results.append(
                Result.of(f"{name}, speed-up of two threads", ratios, unit="x", target=target)
            )
    return results


def measure_memory(tuples: int) -> list[Result]:
    """Return the room of each structure beyond its tuples, beside the paper's formulas."""
    shape = SubwindowShape(predicates=1, capacity=tuples, partitions=tuples // 128, sigma=1.25)
    results = []
    for kind in ("rap_table", "wib_tree"):
        llat = Subwindow(shape, kind, first=0).structure.llat  # type: ignore[attr-defined]
        overhead = llat.keys.size / tuples - 1
        name = f"{kind}, LLAT overhead at sigma = 1.25"
        results.append(Result.of(name, [100 * overhead], unit="%", target=150.5, at_least=False))
    index = BiSort(1 << 23, 1 << 16)._sampled.nbytes
    name = "bi_sort, index array at P = 64K, of 32-bit values"
    results.append(Result.of(name, [index / 1024], unit="KiB", target=256, at_least=False))
    for kind in STRUCTURES:
        nbytes = Subwindow(shape, kind, first=0).nbytes / tuples
        results.append(Result.of(f"{kind}, all arrays", [nbytes], unit="bytes/tuple"))
    return results


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--window-bits", type=int, default=20, help="window length 2^BITS (20)")
    parser.add_argument("--tuples", type=int, default=2_000_000, help="tuples timed (2000000)")
    parser.add_argument("--repeats", type=int, default=3, help="timed runs of each (3)")
    options = parser.parse_args()
    keep_freed_memory()
    window = 1 << options.window_bits
    join("bi_sort", make_keys(4_096), 1_024, 512, 1, 1)  # compile
    results = measure_joins(window, options.tuples, options.repeats)
    results += measure_memory(window)
    report("panjoin", results)


if __name__ == "__main__":
    main()
