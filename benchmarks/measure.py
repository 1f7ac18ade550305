"""What benchmarks share: a figure with its spread, how it is timed, and how it is printed."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from scenarios.formatting import format_value
from scenarios.machine import describe_machine, versions

_WIDTH = 160
"""Columns of a table that goes into a file."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """One measured figure: the median of several runs, with the least and the most.

    *target* is what it was built to reach; *at_least* says on which side of it the good lies. Of an
    engine, *start_seconds* is the median of what its own start took; the figure is without it.
    """

    name: str
    median: float
    least: float
    most: float
    unit: str
    target: float | None = None
    at_least: bool = True
    start_seconds: float | None = None
    note: str = ""

    @classmethod
    def of(
        cls,
        name: str,
        values: Sequence[float],
        *,
        unit: str,
        target: float | None = None,
        at_least: bool = True,
        note: str = "",
    ) -> Result:
        """Return the figure for *values*, one per run."""
        return cls(
            name=name,
            median=statistics.median(values),
            least=min(values),
            most=max(values),
            unit=unit,
            target=target,
            at_least=at_least,
            note=note,
        )

    @classmethod
    def rate(
        cls,
        name: str,
        count: int,
        seconds: Sequence[float],
        *,
        unit: str,
        target: float | None = None,
        start_seconds: Sequence[float] = (),
        note: str = "",
    ) -> Result:
        """Return *count* things per second, for the seconds of each run."""
        result = cls.of(name, [count / s for s in seconds], unit=unit, target=target, note=note)
        if not start_seconds:
            return result
        return replace(result, start_seconds=statistics.median(start_seconds))

    @property
    def reached(self) -> bool | None:
        """Whether the median reaches the target; None without one."""
        if self.target is None:
            return None
        return self.median >= self.target if self.at_least else self.median <= self.target


def check_equal(what: str, found: object, right: object) -> None:
    """Stop the script unless *what* was *found* is *right*."""
    if found != right:
        raise SystemExit(f"{what}: {found}, expected {right}")


def seconds_of(
    run: Callable[[], Any], repeats: int, clock: Callable[[], float]
) -> tuple[list[float], Any]:
    """Return the seconds of each run, after one that is not counted, and the last result."""
    seconds, found = [], run()
    for _ in range(repeats):
        start = clock()
        found = run()
        seconds.append(clock() - start)
    return seconds, found


def command_line(about: str | None) -> argparse.ArgumentParser:
    """Return the parser of a benchmark's options, with ``--json``; *about* is its docstring."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def report(title: str, results: Sequence[Result]) -> None:
    """Print *results* as a table, or with ``--json`` on the command line as one JSON object."""
    date = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    if "--json" in sys.argv:
        record = {"benchmark": title, "date": date, "machine": describe_machine()}
        print(json.dumps(record | {"results": [asdict(r) for r in results]}, indent=2))
        return
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    starts = any(result.start_seconds is not None for result in results)
    columns = ["figure", "median", "least - most", *["start"] * starts, "target", ""]
    table = Table(*columns, title=title)
    for result in results:
        sign = "at least" if result.at_least else "at most"
        table.add_row(
            result.name,
            f"{format_value(result.median)} {result.unit}",
            f"{format_value(result.least)} - {format_value(result.most)}",
            *[
                "" if start is None else f"{start:.2f} s"
                for start in [result.start_seconds] * starts
            ],
            "" if result.target is None else f"{sign} {format_value(result.target)}",
            {True: "reached", False: "MISSED", None: ""}[result.reached] + f" {result.note}",
        )
    console.print(table)
    libraries = [f"{name} {version}" for name, version in versions().items()]
    console.print("  ".join([date, *map(str, describe_machine().values()), *libraries]))
