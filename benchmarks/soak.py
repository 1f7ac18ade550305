"""Long runs: memory should be flat after warm-up, and the answer right to the last tuple.

    python -m benchmarks.soak [--tuples 50000000]

Each case runs in a process of its own, whose memory is read while it joins; what the process has
before (its input, as columns in memory, and compiled kernels) is in the figure. In the clock:
nothing; what is measured is memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import psutil

import joinsim as js
from benchmarks.measure import Result, command_line, report

_INTERVAL = (
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '{0} ms' AND A.ts + INTERVAL '{0} ms'"
)
_INEQUALITY = (
    "SELECT * FROM A, B WHERE ABS(A.key - B.key) <= 5 AND A.other > B.other "
    "WINDOW AS (SLIDE INTERVAL '1000' ON '10000')"
)
_LARGE = {"feeding": {"batch_rows": 16_000}, "batch_rows": 8_000}
"""Messages of keyed interval joins that are large, for tuples to pass quickly."""
_READ_EVERY_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Case:
    """A long run: its *share* of ``--tuples``, and what `joinsim.run` takes."""

    share: float
    query: str
    fields: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)


CASES = {
    "an interval join": Case(
        share=1,
        query=_INTERVAL.format(100),
        fields={"key": "uniform(0, 49)"},
        settings={"topology": "kp_oij"} | _LARGE,
    ),
    "an inequality join": Case(
        share=1,
        query=_INEQUALITY,
        fields={"key": "uniform(0, 1000000)", "other": "uniform(0, 1000000)"},
        settings={
            "topology": "spo_join",
            "immutable": "prefix_grid",
            "feeding": {"batch_rows": 1_000},
        },
    ),
    "an interval join that lists two pairs a tuple": Case(
        share=1,
        query=_INTERVAL.format(100),
        fields={"key": "uniform(0, 49)"},
        settings={"topology": "kp_oij", "pairs": True} | _LARGE,
    ),
    "an interval join, nine of ten tuples with one key": Case(
        share=0.1,
        query=_INTERVAL.format(5),
        fields={"key": "zipf(4, 50)"},
        settings={"topology": "hp_oij"} | _LARGE,
    ),
    "an interval join on 16 Ray processes": Case(
        share=0.02,
        query=_INTERVAL.format(100),
        fields={"key": "uniform(0, 49)"},
        settings={
            "topology": "kp_oij",
            "backend": "ray",
            "processes": 16,
            "replicas": 16,
            "feeding": {"batch_rows": 16_000},
        },
    ),
}


def run(name: str, tuples: int) -> None:
    """Run a case in this process, and print when it joined, how many pairs there were."""
    case = CASES[name]
    rows = int(tuples * case.share / 2)
    streams = {
        stream: js.synthetic(rows, case.fields, seed=seed, start=start)
        for stream, seed, start in (("A", 1, 0), ("B", 11, 501_000))
    }
    finished = js.run(case.query, streams, **({"pairs": False} | case.settings))
    summary = finished.summary
    if not finished.verdict.exact:
        raise SystemExit(f"{name} is not exact: {summary['verdict']}")
    parts = summary["wall_parts"]
    after = sum(parts.get(part, 0.0) for part in ("write", "oracle", "report"))
    ended = time.time() - after
    print(
        json.dumps(
            {
                "from": ended - parts["run"],
                "to": ended,
                "pairs": summary["verdict"]["produced"],
                "tuples": 2 * rows,
                "seconds": parts["run"],
            }
        )
    )


def watch(name: str, tuples: int) -> tuple[dict[str, Any], list[tuple[float, int]]]:
    """Run a case in a process of its own; return what it prints, and its memory over time."""
    command = [sys.executable, "-m", "benchmarks.soak", "--case", name, "--tuples", str(tuples)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    child, memory = psutil.Process(process.pid), []
    while process.poll() is None:
        try:
            family = [child, *child.children(recursive=True)]
            memory.append((time.time(), sum(one.memory_info().rss for one in family)))
        except psutil.NoSuchProcess:
            pass  # one of them has just ended
        time.sleep(_READ_EVERY_S)
    assert process.stdout is not None
    if process.returncode:
        raise SystemExit(f"{name} failed")
    record: dict[str, Any] = json.loads(process.stdout.read().splitlines()[-1])
    return record, memory


def measure(tuples: int) -> list[Result]:
    """Return for every case the peak of its last half over that of the quarter before."""
    results = []
    for name in CASES:
        record, memory = watch(name, tuples)
        early, late = (peak(record, memory, *part) for part in ((0.25, 0.5), (0.5, 1)))
        results.append(
            Result.of(
                f"peak memory of the last half over that of the second quarter: {name}",
                [late / early],
                unit="x",
                target=1.1,
                at_least=False,
                note=f"{record['tuples'] / 1e6:,.1f} M tuples, {record['pairs'] / 1e6:,.1f} M "
                f"pairs, {record['seconds']:,.0f} s, {late / 2**20:,.0f} MiB",
            )
        )
    return results


def peak(record: dict[str, Any], memory: list[tuple[float, int]], start: float, end: float) -> int:
    """Return the most memory between two shares of the time that a case took to join."""
    length = record["to"] - record["from"]
    span = record["from"] + start * length, record["from"] + end * length
    found = [size for at, size in memory if span[0] <= at <= span[1]]
    if not found:
        raise SystemExit(f"{record['seconds']:.2f} s are too few to see memory grow: more --tuples")
    return max(found)


if __name__ == "__main__":
    parser = command_line(__doc__)
    parser.add_argument("--tuples", type=int, default=50_000_000)
    parser.add_argument("--case", choices=CASES)
    chosen = parser.parse_args()
    if chosen.case:
        run(chosen.case, chosen.tuples)
    else:
        report("soak", measure(chosen.tuples))
