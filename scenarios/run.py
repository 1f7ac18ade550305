"""One run, from plan to verdict: in virtual time on this process or on Ray, or live on Ray.

A rehearsal comes first, in every process (see `scenarios.rehearsal`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from actors.hosting.imports import import_meanwhile
from actors.hosting.inline import InlineHost
from actors.hosting.journal import JournalHost
from actors.hosting.live.live_run import LiveRun, LiveSystem
from actors.hosting.live.post import Measured
from actors.hosting.live.recovery import RecoveringRun
from actors.hosting.process_host import ProcessHost
from actors.hosting.process_memory import peak_bytes
from actors.hosting.processes import EACH, label_processes
from actors.hosting.saved_run import SavedRun, SavingHost
from actors.protocol import Host
from actors.result_files import Destination, ResultWriter, put_together, receive_piece
from actors.results import ResultEpochs
from joins.machine.compiling import on_first_compile
from netsim.cost import operator_profiles
from netsim.faulty_kernel import FaultyKernel
from netsim.kernel import Kernel
from netsim.outcome import Outcome, Recovered
from netsim.recovering_kernel import RecoveringKernel
from netsim.trace import Trace, pack_row, trace_names
from scenarios.config import RecoveryConfig
from scenarios.observer import NO_LINE, Line
from scenarios.plan import Plan
from scenarios.rehearsal import rehearse
from scenarios.result_readers import LatencyHistogram
from scenarios.run_directory import TRACE
from scenarios.verdict import Verdict
from scenarios.verdict.expectation import WORTH_A_THREAD, Expectation
from scenarios.verdict.judge import Approximated, judge
from scenarios.wall_clock import WallClock
from topologies.actor_graph import ActorGraph

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses

InlineHosting = Callable[..., InlineHost]
"""The host of actors in this process: `InlineHost` with a clock of its own, or one that watches or
hardens the run."""

Judging = Literal["beside", "after", "from pairs"]
"""How a run in virtual time is judged.

The oracle works *beside* it; or *after* it, for its real seconds to be compared with others'; or
after it *from pairs* that it lists at once, where its results may differ from the oracle's: to find
which do, a second run would list them otherwise.
"""


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What was counted and measured while a plan ran."""

    outcome: Outcome
    """The kernel's counts."""
    memory_bytes: int
    """Peak resident memory of all processes that ran actors."""
    kernel_seconds: dict[str, float] = field(default_factory=dict)
    """Actor name to the time spent in it (see `scenarios.measures`); empty where actors lived in
    other processes in virtual time."""
    state_bytes: dict[str, int] = field(default_factory=dict)
    """Likewise to the bytes of its arrays at the end."""

    @property
    def throughput_tps(self) -> float:
        """Tuples a second of the run's clock, over the whole run; 0 where that took no time."""
        seconds = self.outcome.virtual_ns / 1e9
        return self.outcome.tuples / seconds if seconds else 0.0


def simulate(
    plan: Plan,
    directory: Path | None,
    *,
    pairs: bool,
    line: Line = NO_LINE,
    clock: WallClock | None = None,
    inline_host: InlineHosting = InlineHost,
    disk: SavedRun | None = None,
) -> RunFigures:
    """Run *plan* once, its trace and results into *directory*; None writes neither.

    *line* shows how far it is; *inline_host* is what runs actors in this process, by whose clock
    ``kernel_seconds`` are; *disk* has what is saved, and gone on from (see
    `scenarios.run_directory`).
    """
    config, clock = plan.config, clock or WallClock()
    graph = plan.graph(pairs=pairs)
    wiring = graph.wiring
    profiles = operator_profiles(config.profile, plan.topology.name)
    streams = plan.query.streams
    with (
        Trace(trace_names(wiring), directory and directory / TRACE, line.on_rows) as trace,
        _host(plan, graph, clock, inline_host, disk) as (host, memory),
        ResultWriter(directory, streams=streams, actors=graph, pairs=pairs)
        if directory
        else nullcontext() as results,
    ):
        kernel = _kernel(plan, results.collect if results else lambda _: None)(
            wiring=wiring,
            placement=graph.placement,
            network=plan.network,
            profile=plan.profile,
            host=host,
            seed=config.seed,
            trace=trace,
            inbox_messages=config.network.inbox_messages,
            only_emit=graph.only_emit,
            operators={
                name: profiles[role] for name, role in graph.roles.items() if role in profiles
            },
        )
        clock.lap("start")
        outcome = kernel.run(progress=lambda at: line.on_run(at, clock.since_lap_s))
        clock.lap("run")
        actors = host.host if isinstance(host, SavingHost) else host
        figures = RunFigures(
            outcome=outcome,
            memory_bytes=memory(),
            kernel_seconds=actors.seconds() if isinstance(actors, InlineHost) else {},
            state_bytes=actors.state_bytes() if isinstance(actors, InlineHost) else {},
        )
    clock.lap("write")
    return figures


def _kernel(plan: Plan, collect: Callable[[list[Any]], None]) -> Callable[..., Kernel]:
    """Return a factory of the simplest kernel that the configuration allows."""
    config = plan.config
    faulty: dict[str, Any] = {"faults": plan.faults, "transport": config.network.transport}
    if plan.recovers:
        recovery = config.recovery or RecoveryConfig()
        return partial(
            RecoveringKernel,
            guarantee=recovery.guarantee,
            interval_ns=recovery.interval,
            storage_bps=recovery.storage,
            results=ResultEpochs(collect, at_once=recovery.guarantee != "exactly_once"),
            **faulty,
        )
    if config.faults:
        return partial(FaultyKernel, collect=collect, **faulty)
    return partial(Kernel, collect=collect)


@contextmanager
def _host(
    plan: Plan,
    graph: ActorGraph,
    clock: WallClock,
    inline_host: InlineHosting,
    disk: SavedRun | None,
) -> Iterator[tuple[Host, Callable[[], int]]]:
    """Yield the host that the configuration names, and a function that returns its peak memory.

    Processes of Ray are replaced when one is lost.
    """
    seed = plan.config.seed
    if plan.config.backend == "inline":
        host = inline_host(graph.specs, graph.wiring, seed, measured=plan.config.measured)
        yield SavingHost(host, graph, disk) if disk else host, peak_bytes
        return
    homes = graph.homes(plan.config.processes)
    hosts: list[ProcessHost] = []
    with _started(plan, graph, homes, clock) as processes:
        from actors.hosting.ray_processes import ProcessLostError

        def start() -> ProcessHost:
            if hosts:
                processes.restart()
                processes.everywhere(rehearse, *plan.rehearsal)
            hosts.append(ProcessHost(processes, graph.specs, graph.wiring, seed, homes=homes))
            return hosts[-1]

        processes.everywhere(rehearse, *plan.rehearsal)
        clock.lap("compile")
        journal = JournalHost(start, graph, lost=ProcessLostError)
        yield (
            SavingHost(journal, graph, disk) if disk else journal,
            lambda: peak_bytes() + sum(hosts[-1].peak_bytes()),
        )


@contextmanager
def _started(
    plan: Plan, graph: ActorGraph, homes: Mapping[str, int], clock: WallClock
) -> Iterator[RayProcesses]:
    """Yield Ray processes for the actors of *graph*; *homes* is actor name to process.

    On *clock* what is left to do in them is writing, and their start and end are its start.
    """
    # Only here: importing Ray takes a second that inline runs need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    labels = label_processes(plan.topology.name, graph.without_partitions().specs, homes)
    # Where each actor has a process most are idle: a core for each would reserve too many.
    config = plan.config
    cores = 0 if config.processes == EACH else 1
    with (
        ray_cluster(plan.address, processes=len(labels)) as goes_on,
        RayProcesses(
            labels,
            run=config.name,
            cores=cores,
            silence_s=config.silence / 1e9,
            encrypt=config.encrypt,
            reuse=goes_on,
        ) as processes,
    ):
        clock.lap("start")
        yield processes
        clock.lap("write")
    clock.lap("start")


def run_live(plan: Plan, directory: Path, line: Line, clock: WallClock) -> RunFigures:
    """Run *plan* once, its trace and results into *directory*; all times are measured.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`.
    """
    config, graph = plan.config, plan.graph()
    if config.recovery:
        return _run_recovering(plan, config.recovery, directory, line, clock)
    homes = graph.homes(config.processes)
    with _started(plan, graph, homes, clock) as processes:
        processes.everywhere(rehearse, *plan.rehearsal)
        clock.lap("compile")
        destination = Destination.make(
            directory, streams=plan.query.streams, actors=graph, pairs=config.pairs
        )
        run = LiveRun(processes, live_system(plan, graph, homes), destination)
        clock.lap("start")
        measured = run.run(lambda at: line.on_run(at, at.now_ns / 1e9))
        clock.lap("run")
        with Trace(trace_names(graph.wiring), directory / TRACE) as trace:
            for rows in run.entries():
                assert isinstance(rows, np.ndarray)  # results are in files
                _record(trace, rows)
            trace.close()  # the disk takes it while results are put together
            for piece in run.pieces():
                receive_piece(piece, destination)
            put_together(destination)
    return _live_figures(measured)


def _run_recovering(
    plan: Plan, recovery: RecoveryConfig, directory: Path, line: Line, clock: WallClock
) -> RunFigures:
    """Do what `run_live` does in processes that are replaced when one is lost."""
    graph, pairs = plan.graph(), plan.config.pairs
    homes = graph.homes(plan.config.processes)
    with (
        _started(plan, graph, homes, clock) as processes,
        Trace(trace_names(graph.wiring), directory / TRACE) as trace,
        ResultWriter(directory, streams=plan.query.streams, actors=graph, pairs=pairs) as results,
    ):
        from actors.hosting.ray_processes import ProcessLostError

        def start() -> RayProcesses:
            if run.losses:
                processes.restart()
            processes.everywhere(rehearse, *plan.rehearsal)
            if not run.losses:
                clock.lap("compile")
            return processes

        def take(written: list[Any]) -> None:
            for one in written:
                if isinstance(one, np.ndarray):
                    _record(trace, one)
                else:
                    results.collect([one])

        run = RecoveringRun(
            start,
            live_system(plan, graph, homes),
            lost=ProcessLostError,
            interval_ns=recovery.interval,
            collect=take,
        )
        measured = run.run(lambda at: line.on_run(at, at.now_ns / 1e9))
        clock.lap("run")
        trace.close()
    recovered = Recovered(
        guarantee=recovery.guarantee,
        crashes=run.losses,
        restarts=run.losses,
        snapshots=run.snapshots,
        snapshot_bytes=run.snapshot_bytes,
    )
    return _live_figures(measured, recovered)


def live_system(plan: Plan, graph: ActorGraph, homes: Mapping[str, int]) -> LiveSystem:
    """Return what the processes of a live run need to know; *homes* is actor name to process."""
    names = trace_names(graph.wiring)
    return LiveSystem(
        specs=dict(graph.specs),
        wiring=dict(graph.wiring),
        seed=plan.config.seed,
        homes=dict(homes),
        room=plan.config.network.inbox_messages,
        codes={name: code for code, name in enumerate(names) if code >= len(graph)},
    )


def _record(trace: Trace, rows: np.ndarray) -> None:
    for row in rows.tolist():
        trace.record(pack_row(*row))
    trace.flush_if_full()


def _live_figures(measured: Measured, recovered: Recovered | None = None) -> RunFigures:
    outcome = Outcome(
        virtual_ns=measured.ended_ns,
        tuples=measured.tuples,
        messages=measured.messages,
        nbytes=measured.nbytes,
        due=measured.sent,
        in_flight=measured.messages - measured.received,
        digest=None,
        recovered=recovered,
    )
    return RunFigures(
        outcome=outcome,
        memory_bytes=measured.peak_bytes + peak_bytes(),
        kernel_seconds={name: one.worked_ns / 1e9 for name, one in measured.served.items()},
        state_bytes=measured.state_bytes,
    )


@dataclass(frozen=True, kw_only=True)
class FinishedRun(RunFigures):
    """A finished run: what was planned, counted, measured and judged."""

    plan: Plan
    directory: Path
    verdict: Verdict
    latencies: LatencyHistogram
    """Of every tuple, nanoseconds of virtual time from its birth to the last report of it."""
    clock: WallClock
    """What a person waited for until now."""
    approximated: Approximated | None = None
    """What an approximate run says of its recall; None where nothing is left out on purpose."""

    @property
    def price_note(self) -> str | None:
        """A remark on steps without a price of their own, if there were any."""
        names = self.outcome.unpriced
        if not names:
            return None
        return (
            f"the profile has no price for {', '.join(names)}, which cost what their counted "
            "units of work do: no clock has tested that"
        )


def execute(
    plan: Plan,
    directory: Path,
    *,
    line: Line = NO_LINE,
    rehearsal: bool = True,
    clock: WallClock | None = None,
    judging: Judging = "beside",
    inline_host: InlineHosting = InlineHost,
    disk: SavedRun | None = None,
) -> FinishedRun:
    """Run *plan* into *directory* and judge it, by default after a `rehearse`.

    *clock* measures the parts of it; by default one that begins now. *inline_host* runs the actors
    of a run in this process, where another host is to watch or to harden it, or to time its actors
    by another clock; those of a live run are timed by processor time. *line* and *disk* are as for
    `simulate`.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`.
    """
    clock = clock or WallClock()
    if rehearsal:
        with on_first_compile(line.on_compile):
            rehearse(*plan.rehearsal)
    clock.lap("compile")
    if judging == "beside":
        import_meanwhile("scenarios.verdict.second_reading")
    live = plan.config.clock == "live"
    lists_pairs = plan.config.pairs or (judging == "from pairs" and not live)
    tuples = sum(file.tuples for file in plan.files)
    looks_ahead = judging == "beside" and not live and tuples >= WORTH_A_THREAD
    with Expectation(plan.query, plan.files) if looks_ahead else nullcontext() as ahead:
        if live:
            figures = run_live(plan, directory, line, clock)
        else:
            figures = simulate(
                plan,
                directory,
                pairs=lists_pairs,
                line=line,
                clock=clock,
                inline_host=inline_host,
                disk=disk,
            )
        line.on_judge()
        with_pairs = partial(_with_pairs, plan, directory, listed=lists_pairs)
        verdict, latencies, approximated = judge(
            plan, directory, figures.outcome, with_pairs, ahead
        )
        clock.lap("oracle")
    return FinishedRun(
        plan=plan,
        directory=directory,
        verdict=verdict,
        latencies=latencies,
        clock=clock,
        approximated=approximated,
        **vars(figures),
    )


def _with_pairs(plan: Plan, directory: Path, *, listed: bool) -> Path:
    """Return where the run's pairs are, replaying it from its seed if it has not *listed* them.

    A live run cannot be repeated: what its replay in virtual time got wrong stands in for it.
    """
    if listed:
        return directory
    replayed = directory / "replay"
    replayed.mkdir(exist_ok=True)
    simulate(plan, replayed, pairs=True)
    return replayed
