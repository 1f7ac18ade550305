"""Runs the points of a study or a sweep: in turn, or side by side in processes.

A sweep stores what each point came to in a folder that a digest of its inputs names, and takes it
from there where an earlier sweep has run the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

from actors.hosting.inline import InlineHost
from joins.threads import usable_cores
from scenarios.config import RunConfig
from scenarios.formatting import format_bytes
from scenarios.machine import MachinePace, free_memory_bytes, without_collections
from scenarios.many_runs import RunResult, one_ray_for, result_or_failure, run_one_of_many
from scenarios.measures import Parts, highest_sustained, is_sustained, look_up, saturated_tps
from scenarios.plan import Plan, Prepare, make_plan, read_profile
from scenarios.run import FinishedRun, InlineHosting, execute
from scenarios.run_directory import POINTS, read_json, write_json
from scenarios.scenario_files import ConfigError, change
from scenarios.study.findings import Findings, digest_inputs, digest_runs
from scenarios.study.study import Point, Study, kernel_clock
from scenarios.subprocesses import process_pool
from scenarios.survey import take_survey
from scenarios.sweep import SUSTAINABLE
from scenarios.tables import TableStream
from spark_bridge.prepared import PreparedStream
from spark_bridge.session import lasting_session

_STORED = "point.json"
_RATE = "feeding.rate_tps"
_MORE_TIMES = 2
"""How often a point is measured once more while others disturb the machine, at the most."""


def plan_points(study: Study, prepare: Prepare) -> dict[int, Plan]:
    """Return a plan for each point, so that what is wrong with any is known before the first runs.

    A survey needs none, but memory. Raise :exc:`ConfigError` naming the point.
    """
    plans = {}
    with lasting_session():  # points may have streams of their own, as each seed has
        for point in study.points:
            try:
                if point.config.survey:
                    _check_memory(point.config.survey.memory_bytes)
                else:
                    plans[point.number] = make_plan(point.config, prepare=prepare)
            except ValueError as error:
                raise ConfigError(
                    f"{study.base.name}, point {point.number} ({point.label}): {error}"
                ) from None
    return plans


def _check_memory(needed: int) -> None:
    """Raise :exc:`ConfigError` where a survey needs more memory than there is."""
    free = free_memory_bytes()
    if needed > free:
        raise ConfigError(
            f"it needs about {format_bytes(needed)} of memory and {format_bytes(free)} are free; "
            "take a smaller scale, or a file of your own that extends the scenario and runs fewer "
            "points (only)"
        )


def run_points(
    study: Study,
    plans: Mapping[int, Plan],
    directory: Path,
    *,
    on_point: Callable[[int, str], None],
    replay: Callable[[Point], str],
    processes: int | None = 1,
    search: bool = False,
    store: bool = False,
    fresh: bool = False,
) -> Findings:
    """Run every point into a folder of its own below *directory*.

    Parameters
    ----------
    plans
        Of `plan_points`.
    on_point
        Called with how many points are done, and with what is next or, side by side, what is done.
    replay
        Returns the command that repeats a point. Not asked of a survey, which none repeats alone.
    processes
        How many run at once, at most one per core; None: as many as there are cores. What is timed
        runs by itself, when the others are done, and what runs on Ray, which is started once.
    search
        Whether to find each point's sustainable rate, in place of running it as it is.
    store
        Whether results are stored, and those that *directory* has of the same configuration, data
        and version are taken from there.
    fresh
        Whether to run all again, whatever is stored.

    Raises
    ------
    ConfigError
        A point has no number of the name that is to be measured, or a process has died.
    """
    inputs = digest_inputs(study)
    runs: dict[int, _PointRun] = {}
    for point in study.in_turns:
        plan = plans.get(point.number)
        folder = _digest_of(study, point, plan, search=search) if store else f"{point.number:03}"
        runs[point.number] = _PointRun(
            point=point,
            streams=plan.streams if plan else (),
            directory=directory / POINTS / folder,
            parts=study.section.parts,
            inline_host=partial(InlineHost, clock=kernel_clock(study.measures_of(point))),
            is_timed=study.is_timed(point),
            search=search,
            store=store,
            replay="" if point.config.survey else replay(point),
        )
    results: dict[int, RunResult] = {}

    def add(number: int, result: RunResult) -> None:
        results[number] = result
        if result.record:
            _check_measures(study, runs[number].point, result.record)

    for number, one in runs.items() if store and not fresh else ():
        if stored := one.stored():
            add(number, stored)
    waiting = {number: one for number, one in runs.items() if number not in results}
    cores = usable_cores()
    together = {number: one for number, one in waiting.items() if not one.runs_alone}
    most = min(processes or cores, cores, len(together))

    def note(label: str) -> None:
        on_point(len(results), label)

    if most > 1:
        _side_by_side(together, most, note, add)
        waiting = {number: one for number, one in waiting.items() if one.runs_alone}
    _in_turn(waiting, plans, note, add, MachinePace() if study.turns > 1 else None)
    return Findings(
        study=study,
        results={point.number: results[point.number] for point in study.points},
        inputs=inputs,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )


def _digest_of(study: Study, point: Point, plan: Plan | None, *, search: bool) -> str:
    """Return the name of the folder with all that equal runs of a point came to."""
    parts = study.section.parts | {"clock": (kernel_clock(study.measures_of(point)).__name__,)}
    parts |= {"search": (SUSTAINABLE,)} if search else {}
    streams = plan.streams if plan else ()
    tables = [one.table for one in streams if isinstance(one, TableStream)]
    digest = digest_runs([point.config], parts=parts, measured=study.is_measured, tables=tables)
    return digest[:16]


@dataclass(frozen=True, kw_only=True)
class _PointRun:
    """One point, as it goes to a process: its configuration, and the streams, prepared."""

    point: Point
    streams: tuple[PreparedStream, ...]
    directory: Path
    parts: Parts
    inline_host: InlineHosting
    is_timed: bool
    search: bool
    store: bool
    replay: str

    @property
    def runs_alone(self) -> bool:
        """Whether no other point may run beside it."""
        return self.is_timed or self.point.config.backend == "ray"

    def run(self, plan: Plan | None = None, pace: MachinePace | None = None) -> RunResult:
        """Run it, or search for its sustainable rate; *plan* is its own, where there is one yet.

        With a *pace*, what is timed is run again where others disturb the machine.
        """
        with without_collections() if self.is_timed else nullcontext():
            if pace and self.is_timed:
                result = self._run_at_best_pace(plan, pace)
            else:
                result = self._run_once(plan)
        if self.store and result.failure is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            stored = {key: getattr(result, key) for key in ("record", "passed", "claims_exact")}
            write_json(self.directory / _STORED, stored)
        return result

    def _run_at_best_pace(self, plan: Plan | None, pace: MachinePace) -> RunResult:
        """Return what the run at the machine's best pace came to, or one that is wrong.

        Which one counts does not depend on how long it took.
        """
        pace.read()  # other points have run since the latest that was timed
        ran = []
        for _ in range(1 + _MORE_TIMES):
            result = self._run_once(plan)
            if result.failure is not None or result.passed is False:
                return result
            ran.append((pace.after_work(), result))
            if not pace.is_disturbed(ran[-1][0]):
                break
        return min(ran, key=itemgetter(0))[1]

    def _run_once(self, plan: Plan | None) -> RunResult:
        config = self.point.config
        if config.survey:
            return _take_survey(config)
        if self.search:
            return result_or_failure(config, self.directory, partial(_find_sustainable, self))
        plan = plan or make_plan(config, prepare=lambda *_: self.streams)
        is_exact = plan.topology.claims_exact(plan.parameters)
        return run_one_of_many(
            plan,
            self.directory,
            replay=self.replay,
            parts=self.parts,
            keep=False,
            inline_host=self.inline_host,
            # Listing pairs takes actors real time.
            judging="after" if is_exact or self.is_timed else "from pairs",
        )

    def stored(self) -> RunResult | None:
        """Return what an earlier run of the same came to; None without one, or a damaged file."""
        try:
            written = read_json(self.directory / _STORED)
            result = RunResult(config=self.point.config, **written)
        except (OSError, ValueError, TypeError):
            return None
        return result if result.record else None


def _in_turn(
    runs: Mapping[int, _PointRun],
    plans: Mapping[int, Plan],
    note: Callable[[str], None],
    add: Callable[[int, RunResult], None],
    pace: MachinePace | None,
) -> None:
    """Run all of *runs* here, and *add* what each came to; *note* is called before each.

    *pace* says whether others disturb the machine while they are timed.
    """
    with one_ray_for(plans[number] for number in runs if number in plans):
        for number, one in runs.items():
            note(one.point.label)
            add(number, one.run(plans.get(number), pace))


def _side_by_side(
    runs: Mapping[int, _PointRun],
    processes: int,
    note: Callable[[str], None],
    add: Callable[[int, RunResult], None],
) -> None:
    """Run all of *runs* in *processes*, and *add* what each came to; *note* is called after it."""
    try:
        with process_pool(processes) as pool:
            futures: dict[Future[RunResult], int] = {
                pool.submit(one.run): number for number, one in runs.items()
            }
            for future in as_completed(futures):
                number = futures[future]
                add(number, future.result())
                note(f"{runs[number].point.label} is done")
    except BrokenProcessPool:
        raise ConfigError(
            "a process with a point has died, as it does where there is too little memory: run "
            "fewer points at once, a sweep with processes=1, a study on one core (taskset -c 0)"
        ) from None


def _take_survey(config: RunConfig) -> RunResult:
    """Take the survey of a point that is one."""
    assert config.survey is not None  # what has no plan
    surveyed = take_survey(config.survey, seed=config.seed, profile=read_profile(config.profile))
    record = surveyed.record | {"checked": surveyed.checked}
    return RunResult(config=config, record=record, passed=surveyed.passed, claims_exact=False)


def _find_sustainable(one: _PointRun) -> RunResult:
    """Return what the run at the highest sustained rate came to."""
    sustained: dict[int, RunResult | None] = {}

    def run(rate: int | None, folder: str) -> FinishedRun:
        config = change(one.point.config, {_RATE: rate})
        plan = make_plan(config, prepare=lambda *_: one.streams)
        return execute(plan, Path(folder), inline_host=one.inline_host, judging="after")

    def sustains(rate: int) -> bool:
        with TemporaryDirectory(dir=one.directory) as folder:
            finished = run(rate, folder)
            result = RunResult.of(finished, one.point.config, one.parts)
            sustained[rate] = result if is_sustained(finished) else None
        return sustained[rate] is not None

    with TemporaryDirectory(dir=one.directory) as folder:
        guess_tps = saturated_tps(run(None, folder))
    highest = highest_sustained(sustains, guess_tps)
    best = sustained.get(highest)
    if best is None:
        return RunResult(config=one.point.config, failure="not even 1 tuple a second is sustained")
    found = {
        SUSTAINABLE: highest,
        "saturated_tps": guess_tps,
        "rates": {str(rate): result is not None for rate, result in sustained.items()},
    }
    return replace(best, record=best.record | found)


def _check_measures(study: Study, point: Point, record: Mapping[str, object]) -> None:
    """Raise :exc:`ConfigError` where the *record* of a point lacks what the study looks up."""
    for measure in study.measures_of(point):
        try:
            look_up(record, measure)
        except KeyError as error:
            raise ConfigError(f"{study.base.name}: {error.args[0]}") from None
