"""What bounds the other figures on this machine: reads from memory, and a merge.

In the clock: the reads, or the merge, alone, in nanoseconds of a thread's processor time.

A read that waits for the one before it, as in a search down a tree; four chains of such reads side
by side, alone and while all cores read (`joinsim calibrate` stores these in a profile); reads that
do not wait for each other, as many at a time as the processor keeps track of; and merging two
sorted columns of keys, chosen between without a branch.

Run: ``python -m benchmarks.bounds [--mebibytes 128] [--json]``
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.measure import Result, command_line, report, seconds_of
from joins.machine.compiling import kernel
from joins.machine.memory import aligned
from scenarios.calibration.memory_speed import measure_memory

READS = 1_000_000
REPEATS = 5


@kernel
def gather(values: np.ndarray, places: np.ndarray) -> int:
    """Add up what lies at *places*."""
    total = 0
    for i in range(len(places)):
        total += values[places[i]]
    return total


@kernel
def merge(left: np.ndarray, right: np.ndarray, merged: np.ndarray) -> None:
    """Merge two sorted columns, as far as neither is used up."""
    i = j = 0
    while i < len(left) and j < len(right):
        first = left[i] <= right[j]
        merged[i + j] = left[i] if first else right[j]
        i += first
        j += not first


def main() -> None:
    """Measure and print."""
    parser = command_line(__doc__)
    parser.add_argument("--mebibytes", type=int, default=128, help="memory read from (128)")
    options = parser.parse_args()
    words = options.mebibytes << 17
    rng = np.random.default_rng(1)
    memory = measure_memory()
    places = rng.integers(0, words, READS)
    values = aligned((words,), fill=1)  # pages that nobody has written are all the same one
    columns = [np.sort(rng.integers(0, 1 << 60, READS // 2)) for _ in range(2)]
    merged = aligned((READS,))
    figures = {
        "a read that does not wait": lambda: gather(values, places),
        "a merge, per key": lambda: merge(columns[0], columns[1], merged),
    }
    levels = [
        Result.of(
            f"a read that waits, {size >> 10:,} KiB",
            [wait / 1000],
            unit="ns",
            note=f"{read / 1000:.1f} in four chains; {apart} % of that while {memory.cores} cores "
            f"read their own, {same} % while they read the same",
        )
        for size, wait, read, apart, same in zip(
            memory.sizes,
            memory.wait_ps,
            memory.read_ps,
            memory.apart_percents,
            memory.same_percents,
            strict=True,
        )
    ]
    others = []
    for name, work in figures.items():
        seconds, _ = seconds_of(work, REPEATS, time.thread_time)
        others.append(Result.of(name, [one / READS * 1e9 for one in seconds], unit="ns"))
    report(f"memory; the last two of {options.mebibytes} MiB", [*levels, *others])


if __name__ == "__main__":
    main()
