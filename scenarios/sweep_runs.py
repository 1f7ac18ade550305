"""Runs the points of a sweep: side by side in processes, and each only once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from joins.threads import usable_cores
from scenarios.many_runs import RunResult, run_one_of_many
from scenarios.measures import Parts, record
from scenarios.plan import Prepare, make_plan
from scenarios.process_pool import process_pool
from scenarios.run import Report, execute
from scenarios.run_directory import POINTS, write_json
from scenarios.scenario_files import ConfigError, change
from scenarios.study.findings import Findings, check_measures, check_memory, survey_result
from scenarios.study.inputs import digest_inputs, digest_runs
from scenarios.study.study import Point, Study
from scenarios.sustainable import highest_sustained, is_sustained, saturated_tps
from scenarios.sweep import SUSTAINABLE
from scenarios.tables import TableStream
from spark_bridge.prepared import PreparedStream

_STORED = "point.json"
_RATE = "feeding.rate_tps"


@dataclass(frozen=True, kw_only=True)
class _PointRun:
    """One point, as it goes to a process: its configuration, and the streams, prepared."""

    point: Point
    streams: tuple[PreparedStream, ...]
    directory: Path
    parts: Parts
    search: bool
    replay: str

    def run(self) -> RunResult:
        """Run it, or search for its sustainable rate; what came out is stored in its folder."""
        if self.point.config.survey:
            self.directory.mkdir(parents=True, exist_ok=True)
            result = survey_result(self.point.config)
        elif self.search:
            self.directory.mkdir(parents=True, exist_ok=True)
            result = _find_sustainable(self)
        else:
            plan = make_plan(self.point.config, prepare=lambda *_: self.streams)
            result = run_one_of_many(
                plan, self.directory, replay=self.replay, parts=self.parts, keep=False
            )
        if result.failure is None:
            stored = {key: getattr(result, key) for key in ("record", "passed", "claims_exact")}
            write_json(self.directory / _STORED, stored)
        return result

    def stored(self) -> RunResult | None:
        """Return what an earlier run of the same came to; None where there was none."""
        try:
            written = json.loads((self.directory / _STORED).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return RunResult(config=self.point.config, **written)


def check_search(find: str | None) -> bool:
    """Return whether there is something to search for; refuse what cannot be."""
    if find not in (None, "sustainable"):
        raise ConfigError(
            f"--find {find}: it can be sustainable, the highest rate without a queue that grows"
        )
    return find is not None


def run_sweep(
    study: Study,
    prepare: Prepare,
    directory: Path,
    *,
    search: bool,
    processes: int | None,
    fresh: bool,
    on_point: Callable[[int, str], None],
    replay: str,
) -> Findings:
    """Run what *directory* has no results of, of the same configuration, data and version.

    Parameters
    ----------
    prepare
        Returns the streams of a run.
    search
        Whether to find each point's sustainable rate, in place of running it as it is.
    processes
        How many at once, at most one per core; None: as many as there are cores. Where seconds of
        this machine are measured it is one.
    fresh
        Whether to run all again.

    Raises
    ------
    ConfigError
        A point cannot be run, naming it, before any of them is; or it has no number of the name
        that is to be measured.
    """
    runs = {}
    for point in study.in_turns:
        streams = _prepare_streams(study, point, prepare)
        tables = [one.table for one in streams if isinstance(one, TableStream)]
        parts = study.section.parts | {"search": (SUSTAINABLE,)} if search else study.section.parts
        digest = digest_runs([point.config], parts=parts, measured=study.is_measured, tables=tables)
        runs[point.number] = _PointRun(
            point=point,
            streams=streams,
            directory=directory / POINTS / digest[:16],
            parts=study.section.parts,
            search=search,
            replay=replay,
        )
    known = {} if fresh else {number: one.stored() for number, one in runs.items()}
    results = {number: result for number, result in known.items() if result is not None}
    waiting = {number: one for number, one in runs.items() if number not in results}
    cores = usable_cores()
    most = 1 if study.is_measured else min(processes or cores, cores, len(waiting) or 1)
    for done, (number, result) in enumerate(_side_by_side(waiting, most), len(results) + 1):
        results[number] = result
        on_point(min(done, len(runs) - 1), f"{runs[number].point.label} is done")
    for point in study.points:
        if results[point.number].record:
            check_measures(study, point, results[point.number].record)
    return Findings(
        study=study,
        results={point.number: results[point.number] for point in study.points},
        inputs=digest_inputs(study),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )


def _prepare_streams(study: Study, point: Point, prepare: Prepare) -> tuple[PreparedStream, ...]:
    """Return the streams of a point, none where it is a survey; raise as `run_sweep` does."""
    if point.config.survey:
        check_memory(study, point)
        return ()
    try:
        return make_plan(point.config, prepare=prepare).streams
    except ValueError as error:
        raise ConfigError(f"point {point.number} ({point.label}): {error}") from None


def _side_by_side(runs: dict[int, _PointRun], processes: int) -> Iterator[tuple[int, RunResult]]:
    """Run all of *runs* and return each with its number as it is done."""
    if processes == 1:
        yield from ((number, one.run()) for number, one in runs.items())
        return
    try:
        with process_pool(processes) as pool:
            futures: dict[Future[RunResult], int] = {
                pool.submit(one.run): number for number, one in runs.items()
            }
            for future in as_completed(futures):
                yield futures[future], future.result()
    except BrokenProcessPool:
        raise ConfigError(
            "a process of the sweep has died, as it does where there is too little memory: run "
            "fewer points at once, as with processes=1"
        ) from None


def _find_sustainable(one: _PointRun) -> RunResult:
    """Return what the run at the highest rate came to that the system sustains."""
    best: dict[str, Any] = {}
    rates: dict[int, bool] = {}

    def run(rate: int | None, folder: str) -> Report:
        config = change(one.point.config, {_RATE: rate})
        return execute(make_plan(config, prepare=lambda *_: one.streams), Path(folder))

    def sustains(rate: int) -> bool:
        with TemporaryDirectory(dir=one.directory) as folder:
            report = run(rate, folder)
            rates[rate] = is_sustained(report)
            if rates[rate]:
                best.update(report=report.verdict, record=record(report, one.parts))
        return rates[rate]

    with TemporaryDirectory(dir=one.directory) as folder:
        free = run(None, folder)
        guess_tps = saturated_tps(free)
    rate = highest_sustained(sustains, guess_tps)
    if not best:
        return RunResult(config=one.point.config, failure="not even 1 tuple a second is sustained")
    found = {
        SUSTAINABLE: rate,
        "saturated_tps": guess_tps,
        "rates": {str(k): rates[k] for k in rates},
    }
    verdict = best["report"]
    return RunResult(
        config=one.point.config,
        record=best["record"] | found,
        passed=verdict.passed,
        claims_exact=verdict.claims_exact,
    )
