"""Peak memory of a run over ten times the rows: it should depend on the window, not the stream.

In the clock: nothing; what is measured is memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import Result, report

_JOINSIM = Path(sys.executable).parent / "joinsim"
_SMALL_WINDOW = ("--set", "bind.W=2000", "--set", "bind.D=200")
# Fed below what the system sustains: at full speed inboxes take a while to fill up.
_PACED = ("--set", "feeding.rate_tps=100000")
_CASES = {
    "self join, window of 10,000": ("spo-q3", 13_000, _PACED),
    "the same, writing every pair, window of 2,000": (
        "spo-q3",
        13_000,
        (*_PACED, *_SMALL_WINDOW, "--pairs"),
    ),
    "two streams, window of 2,000": ("spo-q1", 8_000, (*_PACED, *_SMALL_WINDOW)),
}
_REPEATS = 3
_MORE = 10


def peak_bytes(scenario: str, rows: int, options: tuple[str, ...]) -> int:
    """Run a scenario in a process of its own and return its peak resident memory."""
    with tempfile.TemporaryDirectory() as out:
        command = [str(_JOINSIM), "run", scenario, "--rows", str(rows), "--json"]
        done = subprocess.run(
            [*command, "--out", out, *options], capture_output=True, text=True, check=True
        )
    record = json.loads(done.stdout)
    if not record["verdict"]["exact"]:
        raise SystemExit(f"{scenario} at {rows} rows is not exact")
    return int(record["memory_bytes"])


def measure() -> list[Result]:
    """Return for every case the ratio of the peaks, ten times the rows over once."""
    results = []
    for name, (scenario, rows, options) in _CASES.items():
        peaks = [
            (peak_bytes(scenario, rows, options), peak_bytes(scenario, _MORE * rows, options))
            for _ in range(_REPEATS)
        ]
        note = f"{peaks[0][0] / 1e6:.0f} MB and {peaks[0][1] / 1e6:.0f} MB"
        ratios = [more / once for once, more in peaks]
        results.append(
            Result.of(
                f"peak memory at {_MORE} x {rows:,} rows: {name}",
                ratios,
                unit="x",
                target=1.1,
                at_least=False,
                note=note,
            )
        )
    return results


if __name__ == "__main__":
    report("memory", measure())
