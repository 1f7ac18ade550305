"""A scenario: a query with its data, system and network, and what can be done with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from actors.hosting.imports import import_meanwhile
from actors.whole_files import at_home
from joins.errors import suggest
from joinsim._arguments import check_methods
from joinsim._outcomes import Advice, Comparison, EngineComparison, Run, StudyRun, TemporaryFolder
from scenarios import scenario_files
from scenarios.config import SCALES, RunConfig
from scenarios.observer import COMPILING, SILENT, Line, Observer
from scenarios.plan import Plan, make_plan, name_others
from scenarios.preparation import Preparation
from scenarios.replays import Repeatable
from scenarios.report.run_summary import write_run_json
from scenarios.run import execute
from scenarios.run_directory import (
    POINTS,
    RUNS,
    Interrupted,
    check_saves,
    resume_line_of,
    run_directory,
    saving,
    shared_directory,
)
from scenarios.scenario_files import ConfigError
from scenarios.wall_clock import WallClock
from spark_bridge.prepared import PreparedStream
from topologies import (
    AUTO,
    TOPOLOGIES,
    Named,
    Topology,
    TopologyError,
    find_topologies,
    registered_names,
)
from topologies.quantities import Duration

# What only studies and comparisons need is imported by what runs them: it would take a plain run
# a quarter of a second.
if TYPE_CHECKING:
    from scenarios.plan import Prepare
    from scenarios.planners import Proposal
    from scenarios.study.study import Point, Study

_SHARED = RunConfig.model_fields.keys() - {"topology", "parameters"}
"""Keys of what systems that are compared have in common."""


@check_methods
@dataclass(frozen=True, eq=False)
class Scenario:
    """A query with its data, system and network: a single run, or a study of many.

    Parameters
    ----------
    source
        A scenario's name, the path of a TOML file, or the keys of one as a mapping.
    scale
        ``smoke``, ``laptop`` or ``paper``: what a scenario's file changes for each.
    settings
        What is changed of it: a key of the configuration, dotted inside a section
        (``network.preset``); any other key is a parameter of the topology.
    number
        Of a study, the one run that this is; see `point`.
    topology
        A topology of the caller's own, in place of a registered one.
    streams
        The query's streams, where they are prepared already.
    observer
        Shows progress; by default nothing is shown.
    keep
        Whether what runs without ``out=`` writes into a new folder below ``runs/``, not into a
        temporary one.
    replay
        Returns what repeats a run of some seed, to be written into its files; by default the
        command or call that does.
    wall_clock
        Measures the first run's wall time, from when the command or call began; by default, and
        for any further run, from the call of `run`.

    Examples
    --------
    >>> import joinsim as js
    >>> study = js.scenario("spo-fig17", scale="smoke")
    >>> len(study.study.points) > 1
    True
    """

    source: str | Mapping[str, Any]
    _: KW_ONLY
    scale: str = "laptop"
    settings: Mapping[str, Any] = field(default_factory=dict)
    number: int | None = None
    topology: Topology[Any] | None = None
    streams: tuple[PreparedStream, ...] | None = None
    observer: Observer = SILENT
    keep: bool = False
    replay: Callable[[int], str] | None = None
    wall_clock: WallClock | None = None

    def __post_init__(self) -> None:
        check_scale(self.scale)

    def with_settings(self, settings: Mapping[str, Any]) -> Scenario:
        """Return the scenario with *settings* changed, keys as for ``--set``."""
        return replace(self, settings={**self.settings, **settings})

    @cached_property
    def base(self) -> RunConfig:
        """The configuration before `settings`; of a study, what its runs share."""
        if not isinstance(self.source, str):
            values = scenario_files.at_scale(dict(self.source), self.scale, where="query")
            return scenario_files.build(values, where="query")
        if self.number is not None:
            return _find_point(replace(self, number=None), self.number)
        return scenario_files.load(self.source, scale=self.scale)

    @cached_property
    def config(self) -> RunConfig:
        """The whole configuration. Raise :exc:`ConfigError` naming a key that is wrong."""
        return scenario_files.change(self.base, self._of_each_run)

    @property
    def _of_each_run(self) -> Mapping[str, Any]:
        """The settings without those that are a study's own; a point's seed follows from its."""
        if not self._is_study and self.number is None:
            return self.settings
        from scenarios.study.study import REPEAT

        own = REPEAT if self.number is None else (*REPEAT, "seed")
        return {key: value for key, value in self.settings.items() if key not in own}

    @property
    def _is_study(self) -> bool:
        if self.number is not None or not isinstance(self.source, str):
            return False
        return scenario_files.is_study(self.source)

    @cached_property
    def study(self) -> Study | None:
        """The study, where the scenario is one, and not one run of it."""
        if not self._is_study:
            return None
        from scenarios.study.study import load_study

        return load_study(str(self.source), scale=self.scale, settings=self.settings)

    def run(
        self,
        *,
        out: str | Path | None = None,
        address: str | None = None,
        save_every: str | PositiveInt | None = None,
        scale: str | None = None,
        **settings: Any,
    ) -> Run | StudyRun:
        """Run it, and judge every answer.

        Parameters
        ----------
        out
            Folder for what it writes; by default a temporary one, see *keep*.
        address
            A running Ray cluster, as ``HOST:PORT`` or ``auto``.
        save_every
            How often a single run saves itself into *out*, such as ``"10 s"`` of real time, for
            `joinsim.resume` to go on when its process has died.
        scale
            Of this run; by default the scenario's.
        settings
            Changed for this run, as in `with_settings`. ``repeat=N`` runs every point of a study
            with N seeds, and gives its figures with their 95 % intervals.

        Raises
        ------
        JoinsimError
            The configuration, the data or the network is wrong, before anything runs.
        """
        if settings or scale is not None:
            again = replace(self.with_settings(settings), scale=scale or self.scale)
            return again.run(out=out, address=address, save_every=save_every)
        every_ns = None
        if save_every is not None:
            where = f"save_every = {save_every!r}"
            every_ns = scenario_files.validate(Duration, save_every, where=where)
        clock = self._clock()
        if self.study is None:
            if self.config.survey:
                raise ConfigError(
                    f"{self.config.name}: survey is for a study or a sweep, whose points are "
                    "surveys in the place of runs, as in joinsim sweep --over survey.KEY=A,B"
                )
            return self._run_once(out, address, clock, every_ns)
        if address is not None or every_ns is not None:
            raise ConfigError(
                f"{self.config.name} is a study of many runs: an address and save_every are for one"
            )
        return self._run_study(self.study, out)

    def resume(self, interrupted: Interrupted, *, address: str | None = None) -> Run:
        """Go on with an *interrupted* run of this scenario."""
        clock = self._clock()
        plan = self.prepare(address=address)
        clock.lap("prepare")
        out = interrupted.directory.absolute()
        return self._run(plan, out, clock, interrupted.every_ns, resuming=True)

    def _clock(self) -> WallClock:
        clock = self.wall_clock
        if clock is None or clock.stopped:
            clock = WallClock()
        clock.lap("import")
        return clock

    def point(self, number: int) -> Scenario:
        """Return one run of a study, by its number.

        Raise :exc:`ConfigError` where there is no such point, or where it is a survey.
        """
        _find_point(self, number)
        return replace(self, number=number)

    def compare(
        self,
        topologies: Named | Sequence[Named] = (),
        *,
        out: str | Path | None = None,
    ) -> Comparison:
        """Run it on *topologies*, or on all that can evaluate it, and rank them.

        Parameters and errors are as in `joinsim.compare`.
        """
        from scenarios.many_runs import plan_all, run_all, systems_by_label

        self._check_query("compare systems on")
        systems = find_topologies(topologies)
        own = {system.name: system for system in systems if system.name not in TOPOLOGIES}
        chosen = systems_by_label(self.base, systems, self._of_each_run)
        with self.observer.preparing() as progress:
            plans, refused, failed = plan_all(chosen, self._preparation(progress), own)
        self.observer.compared(next(iter(plans.values())))
        replay = self._replay("compare", topologies=[system.name for system in systems])
        with self._directory(out, "compare-") as (folder, directory):
            with self.observer.points(len(plans)) as line:
                compared = run_all(
                    plans,
                    refused,
                    failed,
                    directory,
                    on_point=line.on_point,
                    replay=self._replay_alone,
                )
            return Comparison(compared, directory, replay, folder).write()

    def sweep(
        self,
        over: Mapping[str, Sequence[Any]] | Sequence[str] | str,
        *,
        seeds: PositiveInt = 1,
        measures: Sequence[str] = (),
        find: str | None = None,
        processes: PositiveInt | None = None,
        fresh: bool = False,
        out: str | Path | None = None,
    ) -> StudyRun:
        """Run it with every combination of the values of *over*.

        Parameters and errors are as in `joinsim.sweep`.
        """
        from scenarios.study.point_runs import plan_points, run_points
        from scenarios.sweep import check_search, read_ranges, sweep_study

        if self._is_study:
            raise ConfigError(f"{self.source} is a study, which has ranges of its own; run it")
        ranges = read_ranges(over)
        if isinstance(over, Mapping):
            over = {one.key: list(one.values) for one in ranges}
        search = check_search(find)
        study = sweep_study(
            self.config,
            ranges,
            seeds=seeds,
            measures=measures,
            search=search,
            scale=self.scale,
        )
        folder = None
        if out is None and not self.keep:
            folder = TemporaryFolder()
        own = folder.path if folder else self._place(out)
        directory = own or RUNS / f"sweep-{self.config.name}"
        replay = self._replay("sweep", over=over, seeds=seeds, measures=measures, find=find)
        with shared_directory(directory, POINTS):
            (directory / POINTS).mkdir(exist_ok=True)
            self.observer.study(study)
            with self.observer.preparing() as progress:
                plans = plan_points(study, self._preparation(progress))
            with self.observer.points(len(study.points)) as line:
                findings = run_points(
                    study,
                    plans,
                    directory,
                    on_point=line.on_point,
                    replay=lambda _: replay,
                    processes=processes,
                    search=search,
                    store=True,
                    fresh=fresh,
                )
            return StudyRun(findings, directory, replay, folder).write()

    def advise(
        self,
        *,
        goal: str | Sequence[str] = "throughput",
        machines: PositiveInt = 8,
        topologies: Named | Sequence[Named] = (),
        engines: str | Sequence[str] = "duckdb,polars",
        budget_s: NonNegativeFloat = 60.0,
        seeds: PositiveInt = 3,
        prices: Mapping[str, NonNegativeFloat] | None = None,
        out: str | Path | None = None,
    ) -> Advice:
        """Find the topology that is best for it.

        Parameters and errors are as in `joinsim.advise`.
        """
        from scenarios.advice import advise

        if self._is_study:
            raise ConfigError(f"{self.source} is a study of many runs: advice is for one query")
        self._check_query("give advice on")
        names = registered_names(topologies)
        how: dict[str, Any] = {"machines": machines, "topologies": names, "engines": engines}
        how |= {"budget_s": budget_s, "seeds": seeds, "prices": prices}
        goals = [goal] if isinstance(goal, str) else goal
        with (
            self.observer.preparing() as progress,
            self._directory(out, "advise-") as (folder, directory),
        ):
            advised = advise(
                self.base,
                self._preparation(progress),
                goals=goals,
                settings=self._of_each_run,
                on_round=progress,
                **how,
            )
            replay = self._replay("advise", goal=goal, **how)
            return Advice(advised, directory, replay, folder).write()

    def compare_engines(
        self,
        engines: str | Sequence[str] = "all",
        *,
        limit_s: PositiveFloat | None = None,
        out: str | Path | None = None,
        on_result: Callable[[EngineComparison], None] | None = None,
    ) -> EngineComparison:
        """Run it on real engines: live Ray, Spark, DuckDB, Polars, Flink.

        Parameters and errors are as in `joinsim.compare_engines`; *on_result* is called with what
        there is, also when the comparison is interrupted.
        """
        from scenarios.engines.comparison import (
            check_limit,
            check_ordered,
            compare_engines,
            find_engines,
        )

        self._check_query("compare engines on")
        chosen = find_engines(engines)
        check_ordered(self.config.feeding.disorder)  # before the data, which can take minutes
        check_limit(limit_s)
        plan = self.prepare()
        replay = self._replay("compare_engines", engines=engines, limit_s=limit_s)
        finished: EngineComparison | None = None
        with self._directory(out, "engines-") as (folder, directory):
            try:
                with self.observer.points(len(chosen)) as line:
                    for compared in compare_engines(
                        plan, chosen, directory, limit_s=limit_s, on_engine=line.on_point
                    ):
                        finished = EngineComparison(compared, directory, replay, folder)
                        compared.write_json(directory, finished.replay)
            finally:  # Ctrl-C loses none of the engines that have run
                if finished is not None:
                    finished.write()
                    if on_result is not None:
                        on_result(finished)
        assert finished is not None
        return finished

    def plan(
        self, *, simulate: bool = True, out: str | Path | None = None
    ) -> tuple[Proposal, Run | None]:
        """Return how its system will go about the query and what that should cost.

        With *simulate* run it so: costs then stand beside the estimated ones, and the run is
        returned too. *out* is as in `run`, and errors are as in `joinsim.plan`.
        """
        from scenarios.planners import PLANNERS

        self._check_query("plan for")
        config = self.config
        if config.topology == AUTO:
            first = next(iter(PLANNERS))
            return self.with_settings({"topology": first}).plan(simulate=simulate, out=out)
        if config.topology not in PLANNERS:
            raise ConfigError(
                f"{config.topology} has nothing to plan; the topology can be {', '.join(PLANNERS)}"
            )
        planner = PLANNERS[config.topology]
        chosen = self.with_settings(planner.left_to_it(config.parameters))
        plan = chosen.prepare()
        proposal = planner.propose(plan)
        if not simulate:
            return proposal, None
        run = chosen._run(plan, out, WallClock())
        return planner.measure(run.finished, proposal), run

    def _check_query(self, purpose: str) -> None:
        """Raise :exc:`ConfigError` for a survey, which has no query."""
        if self.config.survey:
            name = self.config.name
            raise ConfigError(
                f"{name} is a survey, which has no query to {purpose}: joinsim run {name} takes it"
            )

    def prepare(
        self, *, address: str | None = None, on_spark: Callable[[], None] = lambda: None
    ) -> Plan:
        """Look up everything that a run needs, and prepare its streams.

        *on_spark* is called before Spark starts, where there is something for it to do.
        """
        with self.observer.preparing() as progress:
            try:
                return make_plan(
                    self.config,
                    address=address,
                    topology=self.topology,
                    prepare=self._preparation(progress, on_spark),
                )
            except TopologyError as error:
                if self.topology is not None:
                    raise
                raise TopologyError(f"{error}{name_others(self.config)}") from None

    def _run_once(
        self, out: str | Path | None, address: str | None, clock: WallClock, every_ns: int | None
    ) -> Run:
        """Prepare a single run and make it; while Spark prepares, compile what the run needs."""
        from scenarios.rehearsal import rehearsing_ahead
        from scenarios.report.picture import making_vega_script

        stays = out is not None or self.keep  # and has a report
        with making_vega_script() if stays else nullcontext():
            note = partial(self.observer.note, COMPILING)
            own = self.topology is not None  # another process would not find it
            with (
                nullcontext(lambda: None)
                if own
                else rehearsing_ahead(self.config, note) as rehearse
            ):
                plan = self.prepare(address=address, on_spark=rehearse)
                clock.lap("prepare")
            if every_ns is not None:
                check_saves(plan)
                if not stays:
                    raise ConfigError("save_every: name a folder that stays, as in out='run'")
            return self._run(plan, out, clock, every_ns)

    def _preparation(self, progress: Line, on_spark: Callable[[], None] = lambda: None) -> Prepare:
        """Return what prepares its streams, or returns them where they are prepared already."""
        streams = self.streams
        if streams is None:
            return Preparation(progress, on_spark)
        return lambda config, query: streams

    def _replay(self, function: str = "run", **more: Any) -> str:
        """Return the command, or the call, that repeats *function* of it; *more* is passed too."""
        if self.replay is not None:
            return self.replay(self.config.seed)
        given = Repeatable(
            source=self.source,
            config=self.config,
            scale=self.scale,
            settings=self.settings,
            number=self.number,
        )
        return given.line(function, more)

    def _replay_alone(self, config: RunConfig) -> str:
        """Return what repeats one of the compared systems, whose configuration is *config*."""
        shared = {
            key: value
            for key, value in self.settings.items()
            # And the setting by which a point has its number.
            if key.split(".")[0] in _SHARED or key not in self._of_each_run
        }
        system = {"topology": config.topology, **config.parameters}
        return replace(self, settings=shared | system, replay=None)._as_one_run()._replay()

    def _as_one_run(self) -> Scenario:
        """Return the scenario itself; of a study, what its runs share as a scenario."""
        if not self._is_study:
            return self
        return replace(self, source=self.config.written(), settings={})

    @contextmanager
    def _directory(
        self, out: str | Path | None, kind: str = "", **saves: Any
    ) -> Iterator[tuple[TemporaryFolder | None, Path]]:
        """Yield the folder of a run; where it is temporary, also what removes it.

        *saves* is as for `run_directory`.
        """
        if out is not None or self.keep:
            name, place = kind + self.config.name, self._place(out)
            with run_directory(name, self.config.seed, place, **saves) as directory:
                yield None, directory
        else:
            folder = TemporaryFolder()
            yield folder, folder.path

    def _place(self, out: str | Path | None) -> Path | None:
        """Return the folder *out* of a person's own, where a caller finds it from any other."""
        if out is None:
            return None
        if not os.fspath(out):
            raise ConfigError("out = '': name a folder; None takes a temporary one")
        place = at_home(out)
        return place if self.keep else place.absolute()

    def _run(
        self,
        plan: Plan,
        out: str | Path | None,
        clock: WallClock,
        every_ns: int | None = None,
        *,
        resuming: bool = False,
    ) -> Run:
        """Run what was prepared, write the report and ``run.json``, and return the run.

        It is saved every *every_ns* of real time.
        """
        replay = self._as_one_run()._replay()
        line_of = None if every_ns is None else resume_line_of(plan)
        with self._directory(out, resume_line=line_of, resuming=resuming) as (folder, directory):
            if folder is None:
                import_meanwhile("scenarios.report.run_pages")
            self.observer.planned(plan)
            with ExitStack() as open_, self.observer.running(plan) as line:
                disk = None
                if every_ns is not None:
                    disk = open_.enter_context(saving(plan, directory, every_ns, replay))
                finished = execute(plan, directory, line=line, clock=clock, disk=disk)
            try:
                if folder is None:
                    if plan.config.pairs:
                        from scenarios.result_readers import write_joined
                        from scenarios.verdict.joined_check import check_joined

                        write_joined(plan.query, plan.streams, directory)
                        clock.lap("write")
                        checks = finished.verdict.checks
                        place = [one.name for one in checks].index("pairs") + 1
                        checks.insert(place, check_joined(plan, directory))
                        clock.lap("oracle")
                    from scenarios.report.run_pages import write_report

                    write_report(finished, directory / "report.html", replay)
            finally:  # run.json is written even if the report fails
                clock.lap("report")
                clock.stop()
                write_run_json(finished, replay)
        return Run(finished, replay, folder)

    def _run_study(self, study: Study, out: str | Path | None) -> StudyRun:
        from scenarios.study.point_runs import plan_points, run_points

        with self.observer.preparing() as progress:
            plans = plan_points(study, Preparation(progress))
        with self._directory(out) as (folder, directory):
            self.observer.study(study)
            with self.observer.points(len(study.points)) as line:
                findings = run_points(
                    study,
                    plans,
                    directory,
                    on_point=line.on_point,
                    replay=self._replay_point,
                    # To start processes takes longer than most runs of the smallest scale.
                    processes=1 if study.scale == "smoke" else None,
                )
            return StudyRun(findings, directory, self._replay(), folder).write()

    def _replay_point(self, point: Point) -> str:
        """Return what repeats a point: its number, unless a setting of the study would change it.

        Such a setting is of a key that the point sets, too. All of its configuration is given then.
        """
        alone = replace(self.point(point.number), replay=None)
        config = point.config
        if scenario_files.change(config, alone._of_each_run) != config:
            alone = Scenario(config.written())
        return alone._replay()


def check_scale(scale: str) -> None:
    """Raise :exc:`ConfigError` where there is no such scale."""
    if scale not in SCALES:
        raise ConfigError(f"scale = {scale!r}: {suggest(scale, SCALES)}")


def _find_point(scenario: Scenario, number: int) -> RunConfig:
    """Return the configuration of a study's point; raise as `Scenario.point` does."""
    name, study = scenario.config.name, scenario.study
    if study is None:
        raise ConfigError(f"point {number}: {name} is one run; a study has points")
    if not 1 <= number <= len(study.points):
        raise ConfigError(f"point {number}: {name} has points 1 to {len(study.points)}")
    config = study.points[number - 1].config
    if config.survey:
        raise ConfigError(f"point {number}: it is a survey, which is not run; run all points")
    return config
