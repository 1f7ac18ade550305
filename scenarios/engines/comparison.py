"""One query on several engines, each against the oracle."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from actors.whole_files import write_text
from joins.errors import DataError, OutputError, suggest
from scenarios.engines import Engine, with_own_streams
from scenarios.engines.embedded_engines import DuckDB, Polars
from scenarios.engines.flink_engine import Flink
from scenarios.engines.host_engines import Inline, Ray, SparkHosted, SparkNative, SparkShipping
from scenarios.machine import versions
from scenarios.plan import Plan
from scenarios.run_directory import POINTS, WrittenResult, remove
from scenarios.scenario_files import ConfigError
from scenarios.verdict.expectation import expected_sums
from spark_bridge.engines import EngineFailed, EngineResult, Totals, plain_name

ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Inline(),
        Ray(),
        SparkHosted(),
        SparkNative(),
        SparkShipping("full"),
        SparkShipping("semijoin"),
        SparkShipping("bloom"),
        Flink(),
        DuckDB(),
        Polars(),
    )
}
"""The engines there are, by name."""

_STREAMS = "streams"
_MEASURED = (
    "start_seconds",
    "wall_seconds",
    "steady_tps",
    "latency_ms",
    "shuffled_bytes",
    "memory_bytes",
    "note",
)
"""What a comparison's JSON has of each engine's result."""
IN_THE_CLOCK = (
    "Wall time is from the prepared files to results that are counted, or on disk where pairs are "
    "written, all in between and the first trigger included. An engine's own start is a column of "
    "its own, and its answer is checked when the clock has stopped. Each engine runs once, in a "
    "process of its own, on all cores; steady leaves out the first trigger, and needs a second one."
)
"""What the figures of engines mean, for readers of them."""


def find_engines(names: str | Iterable[str]) -> list[Engine]:
    """Return the engines of a list, which may be one text with commas; ``all`` is all of them.

    Raise :exc:`ConfigError` for an unknown name, with the nearest known one and all others.
    """
    listed = names.split(",") if isinstance(names, str) else names
    wanted = dict.fromkeys(name.strip() for name in listed if name.strip())
    if list(wanted) == ["all"]:
        return list(ENGINES.values())
    if not wanted:
        raise ConfigError(f"engines: name some of {', '.join(ENGINES)}, or all")
    for name in wanted:
        if name not in ENGINES:
            raise ConfigError(f"engines: no engine is called {name!r}: {suggest(name, ENGINES)}")
    return [ENGINES[name] for name in wanted]


@dataclass(kw_only=True)
class EngineRanking(WrittenResult):
    """Engines ranked by wall time, the fastest first, as far as the comparison has got."""

    file = "compare.json"

    plan: Plan
    """What all engines evaluated."""
    rows: int
    """Tuples that went in."""
    expected: Totals
    """What the oracle found."""
    waiting: list[str]
    """Engines whose turn has not come."""
    measured: dict[str, EngineResult] = field(default_factory=dict)
    """Engine to its measurement, the fastest first."""
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Engine to the reason why it cannot evaluate the query, or why its run failed."""
    versions: dict[str, str] = field(default_factory=dict)
    """Engine to version."""

    def equals(self, engine: str) -> bool:
        """Return whether an engine found exactly the expected pairs, and nothing else is wrong."""
        measured = self.measured[engine]
        return measured.totals == self.expected and not measured.failed

    @property
    def passed(self) -> bool | None:
        """Whether all engines that ran agree with the oracle; None where nothing was tested."""
        produced = any(one.totals.pairs for one in self.measured.values())
        if not self.measured or not (self.expected.pairs or produced):
            return None
        return all(map(self.equals, self.measured))

    def add(self, engine: str, measured: EngineResult) -> None:
        """Add an engine's measurement, in the order of wall time."""
        every = self.measured | {engine: measured}
        self.measured = dict(sorted(every.items(), key=lambda item: item[1].wall_seconds))

    def throughput_tps(self, engine: str) -> float:
        """Return tuples a second of wall time."""
        return self.rows / self.measured[engine].wall_seconds

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "comparison": self.plan.config.name,
            "query": self.plan.query_line,
            "topology": self.plan.topology.name,
            "tuples": self.rows,
            "expected": asdict(self.expected),
            "passed": self.passed,
            "engines": [
                {
                    "engine": name,
                    "version": self.versions[name],
                    "equal": self.equals(name),
                    **asdict(one.totals),
                    "throughput_tps": self.throughput_tps(name),
                    **{key: getattr(one, key) for key in _MEASURED},
                }
                for name, one in self.measured.items()
            ],
            "refused": self._without_figures(self.refused),
            "failed": self._without_figures(self.failed),
            "not_run": self.waiting,
            "versions": versions(),
            "replay": replay,
        }

    def _without_figures(self, reasons: dict[str, str]) -> list[dict[str, str | None]]:
        return [
            {"engine": name, "version": self.versions.get(name), "reason": why}
            for name, why in reasons.items()
        ]


def check_ordered(disorder: object) -> None:
    """Raise :exc:`ConfigError` where tuples may come late, by a *disorder* that is set."""
    if disorder:
        raise ConfigError(
            "feeding.disorder, or an order of arrival: each engine has its own idea of what is "
            "late, so engines are compared on ordered streams; leave it out"
        )


def check_limit(limit_s: float | None) -> None:
    """Raise :exc:`ConfigError` where there is a limit, and this thread cannot be interrupted."""
    if limit_s is not None and threading.current_thread() is not threading.main_thread():
        raise ConfigError(
            f"limit_s = {limit_s:g}: only in the main thread can an engine be stopped; leave it out"
        )


def compare_engines(
    plan: Plan,
    engines: Sequence[Engine],
    directory: Path,
    *,
    limit_s: float | None = None,
    on_engine: Callable[[int, str], None] = lambda place, name: None,
) -> Iterator[EngineRanking]:
    """Run *plan* on every engine that can, each in a folder of its own below *directory*.

    What the engines write is deleted unless the plan asks for pairs. An engine that fails, or has
    not ended after *limit_s* seconds, does not affect the others.

    Yields
    ------
    EngineRanking
        The comparison before the first engine, and after each: one object, which grows.

    Raise :exc:`ConfigError` if the plan's tuples may come late: engines differ in what is late; and
    if another parser reads another query: all engines, and the oracle, have the same reading.
    """
    check_ordered(plan.feeding.disorder)
    _check_reading(plan)
    folder = directory / POINTS
    folder.mkdir(exist_ok=True)
    with plain_name(folder) as plain, _removing(folder / _STREAMS if plan.config.pairs else folder):
        plan = with_own_streams(plan, plain / _STREAMS)
        rows, wanted = oracle_totals(plan)
        waiting = [engine.name for engine in engines]
        comparison = EngineRanking(plan=plan, rows=rows, expected=wanted, waiting=waiting)
        yield comparison
        for place, engine in enumerate(engines):
            on_engine(place, engine.name)
            version = engine.version()
            why = (
                f"it is not installed: {engine.install}" if version is None else engine.cannot(plan)
            )
            if version is not None:
                comparison.versions[engine.name] = version
            if why is not None:
                comparison.refused[engine.name] = why
            else:
                try:
                    comparison.add(engine.name, _run(engine, plan, plain / engine.name, limit_s))
                except (EngineFailed, DataError) as error:
                    comparison.failed[engine.name] = str(error)
                except OutputError:
                    raise
                except Exception as error:  # a fault of one engine does not affect the others
                    write_text(directory / f"failure-{engine.name}.txt", traceback.format_exc())
                    comparison.failed[engine.name] = f"{type(error).__name__}: {error}"
            comparison.waiting.remove(engine.name)
            yield comparison


def _check_reading(plan: Plan) -> None:
    from scenarios.verdict.second_reading import check_reading  # sqlglot takes a while

    bound = {name: str(value) for name, value in plan.config.bind.items()}
    reading = check_reading(plan.config.query, bound, plan.query)
    if reading.passed is False:
        raise ConfigError(f"query: {reading.detail}; no engine would be judged by what it says")


@contextmanager
def _removing(folder: Path) -> Iterator[None]:
    """Remove *folder* and all in it at the end of the block."""
    try:
        yield
    finally:
        remove(folder)


def _run(engine: Engine, plan: Plan, folder: Path, limit_s: float | None) -> EngineResult:
    folder.mkdir()
    with nullcontext() if plan.config.pairs else _removing(folder), _limit_time(limit_s):
        return engine.run(plan, folder)


@contextmanager
def _limit_time(seconds: float | None) -> Iterator[None]:
    """Interrupt the body of the ``with`` after *seconds* of wall time; None is no limit.

    The interrupt is that of Ctrl-C, on which every engine ends its processes. It works in the main
    thread only.

    Raise :exc:`EngineFailed` in place of whatever the interrupted engine raised.
    """
    if seconds is None:
        yield
        return
    over = False

    def interrupt(*_: object) -> None:
        nonlocal over
        over = True
        raise KeyboardInterrupt  # Ray and Spark lose other exceptions

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    except (KeyboardInterrupt, Exception) as error:
        if not over:
            raise
        raise EngineFailed(f"stopped: it had not ended after {seconds:.3g} s") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def oracle_totals(plan: Plan) -> tuple[int, Totals]:
    """Return how many tuples there are, and the totals of the oracle."""
    totals = sum((Totals.of(one) for one in expected_sums(plan.query, plan.files)), Totals())
    return sum(file.tuples for file in plan.files), totals
