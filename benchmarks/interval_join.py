"""Keyed interval joins: the kernel on one thread.

In the clock: its thread's processor time, from batches in memory to matches in memory. (Whole runs,
beside other engines: `benchmarks.engines`.)

Two streams of one tuple a millisecond each over 50 keys, pairs within 100 ms (*W1*), within one
second, and with one key that makes up 37.6 % of the tuples. The kernel counts, with a fingerprint
per base tuple, or lists the pairs: listed pairs are equal to the published ones, and what is
counted to what is listed.

With ``--windflow DIR``, the sources of WindFlow, and those of FastFlow beside them or in
``--fastflow DIR``, W1 is run there too, by a program of ours (``peers_cpp/interval_join.cpp``):
from sources that make their tuples to a sink that adds up the pairs.

Run: ``python -m benchmarks.interval_join [--rows 5000000] [--windflow DIR] [--json]``
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.cpp import compile_source
from benchmarks.interval_work import PUBLISHED, IntervalWork, Totals, totals_of_counts
from benchmarks.measure import Result, check_equal, command_line, report, seconds_of
from joins.batch import Batch, Schema
from joins.interval_join import IntervalJoin
from joins.matches import Matches
from joins.queries.parser import parse_query

REPEATS = 5
VARIANT_ROWS = 1_000_000
_KERNEL_BATCH = 16_384
_WINDFLOW = {"W1": 10.0e6, "one second": 1.46e6, "hot key": 1.52e6}
"""Tuples a second of WindFlow in C++ on this kind of machine: on W1 its best, with two replicas; on
the variants with one."""
_WINDFLOW_BATCH = 32
"""Tuples of its batches: at which it is fastest."""
_SCHEMAS = [Schema(stream=name, fields={"key": "int64"}) for name in "AB"]


class Kernel:
    """The join of a replica, fed batches of both streams in turn by one thread."""

    def __init__(self, work: IntervalWork, *, enumerate: bool) -> None:
        self._enumerate = enumerate
        ends = f"A.ts - INTERVAL '{work.within_ns} ns' AND A.ts + INTERVAL '{work.within_ns} ns'"
        self._query = parse_query(f"SELECT * FROM A, B WHERE A.key = B.key AND B.ts BETWEEN {ends}")
        rows = len(work.ts[0])
        self._rows = rows
        self._batches = [
            (stream, Batch(id=np.arange(begin, begin + len(ts)), ts=ts, key=key))
            for begin in range(0, rows, _KERNEL_BATCH)
            for stream in (0, 1)
            for ts, key in [
                (column[stream][begin : begin + _KERNEL_BATCH] for column in (work.ts, work.key))
            ]
        ]

    def run(self) -> Iterator[Matches]:
        """Give the matches of each batch."""
        join = IntervalJoin(self._query, _SCHEMAS)
        every = np.ones(_KERNEL_BATCH, np.bool_)
        for stream, batch in self._batches:
            watermark = int(batch.ts[0])
            joined = join.join(
                stream,
                batch,
                every[: len(batch)],
                watermark=watermark,
                low_watermark=watermark,
                enumerate=self._enumerate,
            )
            yield joined.matches

    def count(self) -> int:
        """Return the number of pairs, each batch's forgotten when the next is joined."""
        return sum(matches.total for matches in self.run())

    def counted(self, found: Iterable[Matches]) -> Totals:
        """Return the totals of counts and fingerprints."""
        count, fingerprint = np.zeros(self._rows, np.int64), np.zeros(self._rows, np.uint64)
        for matches in found:
            np.add.at(count, matches.probe_id, matches.count)
            np.add.at(fingerprint, matches.probe_id, matches.fingerprint)
        return totals_of_counts(count, fingerprint)


def kernel(work: IntervalWork, target: float | None) -> tuple[list[Result], Totals]:
    """Return the rates of counting and listing, and the totals of the pairs."""
    rows = len(work.ts[0])
    counting, listing = Kernel(work, enumerate=False), Kernel(work, enumerate=True)
    seconds, _ = seconds_of(counting.count, REPEATS, time.thread_time)
    slower, _ = seconds_of(listing.count, REPEATS, time.thread_time)
    listed = list(listing.run())
    check_equal(f"{work.name}: counted", counting.counted(counting.run()), listing.counted(listed))
    pairs = [np.concatenate(ids) for ids in zip(*(m.pairs() for m in listed), strict=True)]
    totals = Totals.of(*pairs)
    published = PUBLISHED.get((work.name, rows))
    if published:
        check_equal(f"{work.name}: listed", totals, published)
    return [
        Result.rate(f"{work}: kernel counts", 2 * rows, seconds, unit="tuples/s", target=target),
        Result.rate(f"{work}: kernel lists", 2 * rows, slower, unit="tuples/s"),
    ], totals


def windflow_rates(totals: Totals, rows: int, sources: Path, fastflow: Path) -> list[Result]:
    """Return the rates of WindFlow on W1, with one replica of the join and with two."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "interval_join"
        flags = [f"-I{sources / 'wf'}", f"-I{fastflow}", "-pthread"]
        failed = compile_source("interval_join.cpp", program, flags)
        if failed:
            print(f"{failed}: measured without WindFlow")
            return []
        for replicas in (1, 2):
            seconds = []
            for _ in range(REPEATS):
                options = map(str, (rows, replicas, _WINDFLOW_BATCH, 100_000))
                command = [str(program), *options]
                done = subprocess.run(
                    command, capture_output=True, text=True, check=True, timeout=600
                )
                took, pairs, checksum = done.stdout.split()[-3:]
                check_equal("WindFlow", Totals(int(pairs), int(checksum)), totals)
                seconds.append(float(took))
            name = f"W1, {rows:,} a stream: WindFlow, {replicas} replica(s), pairs to a sink"
            results.append(Result.rate(name, 2 * rows, seconds, unit="tuples/s"))
    return results


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="of W1 a stream (5000000)")
    parser.add_argument("--windflow", type=Path, metavar="DIR", help="WindFlow's sources")
    parser.add_argument("--fastflow", type=Path, metavar="DIR", help="FastFlow's (beside them)")
    options = parser.parse_args()
    if not options.windflow:
        print("no sources of WindFlow (--windflow DIR): measured without it")
    results, _ = kernel(IntervalWork.of("W1", options.rows), target=4 * _WINDFLOW["W1"])
    works = [
        IntervalWork.of("W1", VARIANT_ROWS),
        IntervalWork.of("one second", VARIANT_ROWS, within_ms=1_000),
        IntervalWork.of("hot key", VARIANT_ROWS, hot=True),
    ]
    for work in works:
        rates, totals = kernel(work, target=4 * _WINDFLOW[work.name])
        results += rates
        if options.windflow and work.name == "W1":
            fastflow = options.fastflow or options.windflow.parent / "fastflow"
            results += windflow_rates(totals, VARIANT_ROWS, options.windflow, fastflow)
    report("keyed interval join, equal pairs everywhere", results)


if __name__ == "__main__":
    main()
