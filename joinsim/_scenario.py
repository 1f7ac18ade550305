"""A scenario: a query with its data, system and network, and what can be done with it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from joins.queries.query import JoinQuery
from joinsim._outcomes import Comparison, EngineComparison, Run, StudyRun
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.many_runs import Preparation
from scenarios.plan import Plan, make_plan
from scenarios.run import OnRun, execute
from scenarios.run_directory import new_run_directory
from scenarios.run_json import write_run_json
from scenarios.scenario_files import ConfigError
from scenarios.streams import prepare_streams
from scenarios.study.findings import plan_points, run_points
from scenarios.study.study import Point, Study, load_study
from scenarios.system_comparison import candidates, plan_all, run_all
from spark_bridge.prepared import PreparedStream
from topologies import Topology

if TYPE_CHECKING:
    from scenarios.engines.comparison import EngineComparison as _EnginesCompared
    from scenarios.planning.planner import Planner, Proposal

PLANNED = ("semijoin", "ibwj")
"""Topologies that plan; the first plans a query that comes without a topology."""

_CONNECT_S = 5.0
"""Seconds for a cluster to answer; one that takes longer is of no use to a run."""


Preparing = AbstractContextManager[Callable[[str, int, int], None]]
"""Inside it, call with a stage, the number of stages done, and how many there are."""


class Observer(Protocol):
    """What is shown while something runs."""

    def preparing(self) -> Preparing:
        """Show the preparation of streams: stage, stages done, stages in all."""

    def planned(self, plan: Plan) -> None:
        """Show what will run."""

    def running(self, plan: Plan) -> AbstractContextManager[_Display]:
        """Show how far a run is."""

    def study(self, study: Study) -> None:
        """Show what a study will run."""

    def points(self, total: int) -> AbstractContextManager[_Points]:
        """Show which of several runs is in progress."""


class _Display(Protocol):
    @property
    def on_run(self) -> OnRun | None: ...

    def on_judge(self) -> None: ...


class _Points(Protocol):
    def on_point(self, done: int, label: str) -> None: ...


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
    topology
        A topology of the caller's own, in place of a registered one.
    streams
        The query's streams, where they are prepared already.

    Examples
    --------
    >>> import joinsim as js
    >>> study = js.scenario("spo-fig17", scale="smoke")
    >>> len(study.study.points) > 1
    True
    """

    def __init__(
        self,
        source: str | Mapping[str, Any],
        *,
        scale: str = "laptop",
        settings: Mapping[str, Any] | None = None,
        topology: Topology[Any] | None = None,
        streams: tuple[PreparedStream, ...] | None = None,
    ) -> None:
        self.source = source
        self.scale = scale
        self.settings = dict(settings or {})
        self._topology = topology
        self._streams = streams

    def with_settings(self, settings: Mapping[str, Any]) -> Scenario:
        """Return the scenario with *settings* changed, keys as for ``--set``."""
        return Scenario(
            self.source,
            scale=self.scale,
            settings=self.settings | dict(settings),
            topology=self._topology,
            streams=self._streams,
        )

    @cached_property
    def base(self) -> RunConfig:
        """The configuration before `settings`; of a study, what its runs share."""
        if isinstance(self.source, str):
            return scenario_files.load(self.source, scale=self.scale)
        return scenario_files.build(dict(self.source), where="query")

    @cached_property
    def config(self) -> RunConfig:
        """The whole configuration. Raise :exc:`ConfigError` naming a key that is wrong."""
        base = self.base
        if self.settings.get("topology", base.topology) != base.topology:
            base = scenario_files.change(base, {"parameters": {}})  # they are the other system's
        return scenario_files.change(base, self.settings)

    @cached_property
    def study(self) -> Study | None:
        """The study, where the scenario is one."""
        if not isinstance(self.source, str):
            return None
        return load_study(self.source, scale=self.scale, settings=self.settings)

    def run(
        self,
        *,
        out: str | Path | None = None,
        keep: bool = False,
        address: str | None = None,
        observer: Observer | None = None,
        replay: str | None = None,
        **settings: Any,
    ) -> Run | StudyRun:
        """Run it, and judge every answer.

        Parameters
        ----------
        out
            Folder for what it writes. By default a temporary one, or with *keep* a new one below
            ``runs/``.
        address
            A running Ray cluster, as ``HOST:PORT`` or ``auto``.
        observer
            Shows progress; None shows nothing.
        replay
            What repeats it, to be written into its files.
        settings
            Changed for this run, as in `with_settings`.

        Raises
        ------
        JoinsimError
            The configuration, the data or the network is wrong, before anything runs.
        """
        if settings:
            changed = self.with_settings(settings)
            return changed.run(
                out=out, keep=keep, address=address, observer=observer, replay=replay
            )
        if self.study is not None:
            if address is not None:
                raise ConfigError(f"{self.config.name} is a study of many runs: no address for it")
            return self._run_study(self.study, out, keep, observer or Silent(), replay)
        plan = self.prepare(address=address, observer=observer)
        return run_plan(plan, out=out, keep=keep, observer=observer, replay=self._replay(replay))

    def point(self, number: int) -> Scenario:
        """Return one run of a study, by its number.

        Raise :exc:`ConfigError` where there is no such point, or where it is a survey.
        """
        if self.study is None:
            raise ConfigError(f"point {number}: {self.config.name} is one run; a study has points")
        points = self.study.points
        if not 1 <= number <= len(points):
            raise ConfigError(f"point {number}: {self.config.name} has points 1 to {len(points)}")
        config = points[number - 1].config
        if config.survey:
            raise ConfigError(f"point {number}: it is a survey, which is not run; run all points")
        # What was set wins over what the study sets.
        return Scenario(config.model_dump(), settings=self.settings)

    def compare(
        self,
        topologies: Sequence[str] = (),
        *,
        out: str | Path | None = None,
        keep: bool = False,
        observer: Observer | None = None,
        replay: str | None = None,
        replay_alone: Callable[[RunConfig], str] | None = None,
    ) -> Comparison:
        """Run it on *topologies*, or on all that can evaluate it, and rank them.

        Parameters other than *topologies* are those of `run`; *replay_alone* returns what repeats
        one of the systems.

        Raises
        ------
        ConfigError
            No system can evaluate the query, or a setting means nothing to any of them.
        """
        shown: Observer = observer or Silent()
        chosen = candidates(self.base, topologies, self.settings)
        with shown.preparing() as progress:
            preparation = self._preparation or Preparation(progress)
            plans, refused = plan_all(chosen, preparation)
        folder, directory = _directory(f"compare-{self.base.name}", self.config.seed, out, keep)
        replay = self._replay(replay)
        with shown.points(len(plans)) as display:
            compared = run_all(
                plans,
                refused,
                directory,
                on_point=display.on_point,
                replay=replay_alone or (lambda config: replay),
            )
        compared.write_json(directory, replay)
        from scenarios.report.pages import write_comparison_page

        write_comparison_page(compared, directory, replay)
        return Comparison(compared, directory, replay, folder)

    def compare_engines(
        self,
        engines: str = "all",
        *,
        limit_s: float | None = None,
        out: str | Path | None = None,
        keep: bool = False,
        observer: Observer | None = None,
        replay: str | None = None,
        on_result: Callable[[EngineComparison], None] | None = None,
    ) -> EngineComparison:
        """Run it on real engines: live Ray, Spark, DuckDB, Polars, Flink.

        Parameters
        ----------
        engines
            Their names with commas between, or ``all``.
        limit_s
            Seconds after which an engine is stopped.
        on_result
            Is called with what there is, also when the comparison is interrupted.

        Raises
        ------
        ConfigError
            There is no such engine.
        """
        from scenarios.engines.comparison import compare_engines
        from scenarios.engines.registry import find_engines
        from scenarios.report.pages import write_engines_page

        shown: Observer = observer or Silent()
        chosen = find_engines(engines)
        plan = self.prepare(observer=observer)
        name, seed = plan.config.name, plan.config.seed
        folder, directory = _directory(f"engines-{name}", seed, out, keep)
        replay = self._replay(replay)
        compared: _EnginesCompared | None = None
        try:
            with shown.points(len(chosen)) as display:
                for compared in compare_engines(
                    plan, chosen, directory, limit_s=limit_s, on_engine=display.on_point
                ):
                    compared.write_json(directory, replay)
        finally:  # Ctrl-C loses none of the engines that have run
            if compared is not None:
                write_engines_page(compared, directory, replay)
                if on_result is not None:
                    on_result(EngineComparison(compared, directory, replay))
        assert compared is not None
        return EngineComparison(compared, directory, replay, folder)

    def plan(
        self,
        *,
        simulate: bool = True,
        out: str | Path | None = None,
        keep: bool = False,
        observer: Observer | None = None,
        replay: str | None = None,
    ) -> tuple[Proposal, Run | None]:
        """Return how its system will go about the query and what that should cost.

        With *simulate* run it so: costs then stand beside the estimated ones, and the run is
        returned too.

        Raises
        ------
        ConfigError
            The system has nothing to plan.
        """
        config = self.config
        if config.survey:
            raise ConfigError(
                f"{config.name} is a survey, which has no query to plan for: joinsim run "
                f"{config.name} takes it"
            )
        planner = _planner(config.topology)
        left = self.with_settings(planner.left_to_it(config.parameters))
        plan = left.prepare(observer=observer)
        proposal = planner.propose(plan)
        if not simulate:
            return proposal, None
        run = run_plan(plan, out=out, keep=keep, observer=observer, replay=self._replay(replay))
        return planner.measure(run.finished, proposal), run

    def prepare(self, *, address: str | None = None, observer: Observer | None = None) -> Plan:
        """Look up everything that a run needs, and prepare its streams."""
        check_address(self.config, address)
        with (observer or Silent()).preparing() as progress:
            return make_plan(
                self.config,
                address=address,
                topology=self._topology,
                prepare=self._preparation or partial(prepare_streams, progress=progress),
            )

    @property
    def _preparation(self) -> _Prepared | None:
        return None if self._streams is None else _Prepared(self._streams)

    def _replay(self, replay: str | None) -> str:
        if replay is not None:
            return replay
        if isinstance(self.source, str):
            return f"joinsim run {self.source} --scale {self.scale} --seed {self.config.seed}"
        topology, seed = self.config.topology, self.config.seed
        return f"joinsim.run(query, streams, topology={topology!r}, seed={seed})"

    def _run_study(
        self,
        study: Study,
        out: str | Path | None,
        keep: bool,
        observer: Observer,
        replay: str | None,
    ) -> StudyRun:
        with observer.preparing() as progress:
            plans = plan_points(study, Preparation(progress))
        folder, directory = _directory(study.base.name, study.base.seed, out, keep)
        observer.study(study)
        with observer.points(len(study.points)) as display:
            findings = run_points(
                study,
                plans,
                directory,
                on_point=display.on_point,
                replay=lambda point: self._replay_point(point),
            )
        replay = self._replay(replay)
        findings.write_json(directory, replay)
        from scenarios.report.pages import write_study_page

        write_study_page(findings, directory, replay)
        return StudyRun(findings, directory, replay, folder)

    def _replay_point(self, point: Point) -> str:
        words = ["joinsim", "run", str(self.source), "--scale", self.scale]
        words += ["--point", str(point.number), "--seed", str(point.config.seed)]
        return " ".join(words)


class _Prepared:
    """Streams that are prepared already, for `make_plan`."""

    def __init__(self, streams: tuple[PreparedStream, ...]) -> None:
        self._streams = streams

    def __call__(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        return self._streams


def _planner(topology: str) -> Planner:
    """Return what plans for *topology*. Raise :exc:`ConfigError` where it has nothing to plan."""
    from scenarios.planning.semijoin import SemijoinPlanner
    from scenarios.planning.window_join import WindowJoinPlanner

    if topology not in PLANNED:
        raise ConfigError(
            f"{topology} has nothing to plan; the topology can be {', '.join(PLANNED)}"
        )
    return SemijoinPlanner() if topology == "semijoin" else WindowJoinPlanner()


def run_plan(
    plan: Plan,
    *,
    out: str | Path | None = None,
    keep: bool = False,
    observer: Observer | None = None,
    replay: str,
) -> Run:
    """Run what was prepared, write ``run.json`` and the report, and return the run."""
    shown: Observer = observer or Silent()
    folder, directory = _directory(plan.config.name, plan.config.seed, out, keep)
    shown.planned(plan)
    with shown.running(plan) as display:
        report = execute(plan, directory, on_run=display.on_run, on_judge=display.on_judge)
    write_run_json(report, replay)
    if folder is None:
        from scenarios.report.pages import write_report

        write_report(report, directory / "report.html", replay)
    return Run(report, replay, folder)


def check_address(config: RunConfig, address: str | None) -> None:
    """Raise when nothing listens at *address*: Ray itself would try for minutes to reach it."""
    if address is None:
        return
    if config.backend != "ray":
        raise ConfigError(
            f"--address {address}: it is for --backend ray, and this run is {config.backend}"
        )
    if address == "auto":
        return
    try:
        at = urlsplit(address if "://" in address else f"ray://{address}")
        if not (at.hostname and at.port):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"--address {address}: write it as HOST:PORT, ray://HOST:PORT or auto"
        ) from None
    try:
        socket.create_connection((at.hostname, at.port), _CONNECT_S).close()
    except OSError as error:
        raise ConfigError(
            f"--address {address}: nothing answers there ({error.strerror or error}). Give the "
            "address of a running cluster (`ray start --head` prints it), or leave it out to "
            "start Ray here"
        ) from None


def _directory(
    name: str, seed: int, out: str | Path | None, keep: bool
) -> tuple[TemporaryDirectory[str] | None, Path]:
    """Return the folder of a run; where it is temporary, also what removes it."""
    if out is not None or keep:
        return None, new_run_directory(name, seed, None if out is None else Path(out))
    folder = TemporaryDirectory(prefix="joinsim-")
    return folder, Path(folder.name)


class Silent:
    """An observer that shows nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""

    @contextmanager
    def preparing(self) -> Iterator[Callable[[str, int, int], None]]:
        yield lambda stage, done, total: None

    def planned(self, plan: Plan) -> None:
        pass

    @contextmanager
    def running(self, plan: Plan) -> Iterator[_Quiet]:
        yield _Quiet()

    def study(self, study: Study) -> None:
        pass

    @contextmanager
    def points(self, total: int) -> Iterator[_Quiet]:
        yield _Quiet()


class _Quiet:
    on_run: OnRun | None = None

    def on_judge(self) -> None:
        pass

    def on_point(self, done: int, label: str) -> None:
        pass
