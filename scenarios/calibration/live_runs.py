"""Live runs of every system on each kind of join: what a profile is fitted to and compared with.

What an operator takes is measured where predictions are about it: in a process beside others, which
share caches and memory with it, and with arrays that another process has just sent. Alone it takes
less, and how much less differs from one operator to the next.
"""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from actors.hosting.live.live_run import LiveRun
from actors.hosting.live.post import Served
from actors.hosting.processes import label_processes
from netsim.trace import COLUMNS
from scenarios import scenario_files
from scenarios.plan import Plan, make_plan
from scenarios.preparation import Preparation
from scenarios.rehearsal import rehearse
from scenarios.run import FinishedRun, execute, live_system
from topologies import TOPOLOGIES, TopologyError

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses

_QUERIES = {
    "inequality": "WHERE A.x < B.x AND A.y > B.y WINDOW AS (SLIDE INTERVAL 'S' ON 'W')",
    "equality": "WHERE A.key = B.key WINDOW AS (SLIDE INTERVAL 'S' ON 'W')",
    "interval": "WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'",
}
_FIELDS = {"key": "uniform(0, 49)", "x": "uniform(0, 99999)", "y": "uniform(0, 999)"}
_LOADS = ((500, 1_000, 4_000), (4_000, 1_000, 4_000), (2_000, 2_500, 10_000))
"""Tuples a message, slide, and window."""
_REPEATS = 3
"""How often the first plan of a system and query is run: where a machine has neighbours its speed
changes within minutes, and what is predicted from one run should not depend on its luck."""


def calibration_plans(
    rows: int,
    prepare: Preparation,
    *,
    topologies: Sequence[str] = tuple(TOPOLOGIES),
) -> Iterator[Plan]:
    """Yield a plan for every system, kind of join it can evaluate, and load.

    Parameters
    ----------
    rows
        Tuples of each of the two streams; they are synthetic, equal on every machine.
    prepare
        Prepares them.
    topologies
        Names of the systems.
    """
    for topology in topologies:
        for kind, where in _QUERIES.items():
            for batch_rows, slide, length in _LOADS:
                values = {
                    "name": f"calibrate-{kind}",
                    "query": f"SELECT * FROM A, B {where}",
                    "bind": {"S": slide, "W": length} if "WINDOW" in where else {},
                    "topology": topology,
                    "streams": [_stream(1, rows, "0 s"), _stream(11, rows, "501 us")],
                    "feeding": {"batch_rows": batch_rows},
                    "network": {"preset": "same-host"},
                }
                config = scenario_files.build(values, where="calibration")
                try:
                    yield make_plan(config, prepare=prepare)
                except TopologyError:
                    break


def _stream(seed: int, rows: int, start: str) -> dict[str, Any]:
    return {"synthetic": {"rows": rows, "seed": seed, "start": start, "fields": _FIELDS}}


class CarriedMessages(NamedTuple):
    """The messages that one process of a live run passed on."""

    seconds: float
    """Its processor time outside the actors."""
    served: int
    """Messages and timers that its actors were given."""
    received: int
    received_bytes: int
    """Of these, messages from other processes, and their bytes."""
    sent: int
    sent_bytes: int
    """Messages to other processes, and their bytes."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """What repeated runs of one plan came to."""

    tps: float
    """Tuples a second of the run's clock, the runs' median."""
    ms: float | None
    """Median latency of tuples, the runs' median; None without any."""
    exact: bool
    """Whether all runs were exactly right, or do not claim to be."""

    @classmethod
    def of(cls, runs: Sequence[FinishedRun]) -> Speed:
        """Return what *runs* of one plan came to; at least one."""
        latencies = [ns / 1e6 for run in runs if (ns := run.latencies.percentile(50)) is not None]
        return cls(
            tps=statistics.median(run.throughput_tps for run in runs),
            ms=statistics.median(latencies) if latencies else None,
            exact=all(run.verdict.passed is not False for run in runs),
        )


@dataclass
class Watched:
    """What was seen of live runs."""

    runs: int = 0
    """How many were watched for what their operators took."""
    operators: dict[str, dict[str, list[Served]]] = field(default_factory=dict)
    """System to operator to its part in each of them."""
    carried: list[CarriedMessages] = field(default_factory=list)
    """What processes of these runs passed on."""
    live: list[tuple[Plan, Speed]] = field(default_factory=list)
    """Plans, and what they came to when they were run as a whole."""

    def observe(self, plan: Plan, processes: RayProcesses) -> None:
        """Run *plan* live in *processes*, which serve nothing else meanwhile; discard its results.

        What its operators took, and what each process passed on, is added.
        """
        graph = plan.graph(pairs=False)
        home_of = graph.homes(processes.count)
        processes.everywhere(rehearse, *plan.rehearsal)
        run = LiveRun(processes, live_system(plan, graph, home_of))
        measured = run.run(lambda count: None)
        operators: dict[str, Served] = defaultdict(Served)
        outside_ns = dict(measured.processor_ns)
        for name, role in graph.roles.items():
            served = measured.served[name]
            operators[role].add(served)
            outside_ns[home_of[name]] -= served.worked_ns
        roles = self.operators.setdefault(plan.topology.name, {})
        for role, served in operators.items():
            roles.setdefault(role, []).append(served)
        trace = np.concatenate([entry for entry in run.entries() if isinstance(entry, np.ndarray)])
        at = dict(zip(COLUMNS, trace.T, strict=True))
        by_number = np.array([home_of[name] for name in graph])
        sender, receiver = by_number[at["sender"]], by_number[at["receiver"]]
        for process, ns in outside_ns.items():
            received = (receiver == process) & (sender != process)
            sent = (sender == process) & (receiver != process)
            carried = CarriedMessages(
                seconds=ns / 1e9,
                served=int((receiver == process).sum()),
                received=int(received.sum()),
                received_bytes=int(at["nbytes"][received].sum()),
                sent=int(sent.sum()),
                sent_bytes=int(at["nbytes"][sent].sum()),
            )
            self.carried.append(carried)
        self.runs += 1


def watch(
    plans: Sequence[Plan],
    *,
    processes: int,
    observing: bool,
    measuring: bool,
    note: Callable[[str], None],
) -> Watched:
    """Run *plans* live, one after the other, in so many Ray *processes*.

    Parameters
    ----------
    observing
        Whether all are watched for what their operators take.
    measuring
        Whether the first of each system and query is measured as a whole, too: each time right
        after it was watched, so that both had the same neighbours.
    note
        Called with a description of what is run next.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`, and
    :exc:`actors.hosting.processes.RayUnavailableError` where Ray has no room for the processes.
    """
    # Only here: importing Ray takes a second that other commands need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    watched = Watched()
    first = {(plan.topology.name, plan.config.name): plan for plan in reversed(plans)}
    live: dict[str, Any] = {"backend": "ray", "clock": "live", "processes": processes}
    with ray_cluster(processes=processes):
        for plan in plans:
            system, query = plan.topology.name, plan.config.name
            is_first = plan is first[system, query]
            if observing or (measuring and is_first):
                note(f"{system}, {query}, {plan.feeding.batch_rows:,} tuples a message")
            runs = []
            for _ in range(_REPEATS if is_first else 1):
                if observing:
                    graph = plan.graph(pairs=False)
                    specs = graph.without_partitions().specs
                    labels = label_processes(system, specs, graph.homes(processes))
                    # The same processes as those of `_run`, started once for all of them.
                    with RayProcesses(labels, run=query, reuse=True) as places:
                        watched.observe(plan, places)
                if measuring and is_first:
                    runs.append(_run(plan.with_settings(**live)))
            if runs:
                watched.live.append((plan, Speed.of(runs)))
    return watched


def _run(plan: Plan) -> FinishedRun:
    """Run *plan*; leave no files."""
    with tempfile.TemporaryDirectory(prefix="joinsim-") as folder:
        return execute(plan, Path(folder))


@dataclass(frozen=True, kw_only=True)
class LivePrediction:
    """One system on one query, predicted and measured."""

    topology: str
    query: str
    predicted: Speed
    measured: Speed

    @property
    def exact(self) -> bool:
        """Whether all runs were exactly right, or do not claim to be."""
        return self.predicted.exact and self.measured.exact

    @property
    def throughput_error(self) -> float:
        """How far the predicted throughput is from the measured one, as a fraction of it."""
        return self.predicted.tps / self.measured.tps - 1

    @property
    def latency_error(self) -> float | None:
        """The same of latency."""
        if self.predicted.ms is None or not self.measured.ms:
            return None
        return self.predicted.ms / self.measured.ms - 1

    def as_json(self) -> dict[str, Any]:
        """Return it with stable keys."""
        return {
            "topology": self.topology,
            "query": self.query,
            "predicted_tps": self.predicted.tps,
            "measured_tps": self.measured.tps,
            "predicted_ms": self.predicted.ms,
            "measured_ms": self.measured.ms,
            "exact": self.exact,
            "throughput_error": self.throughput_error,
            "latency_error": self.latency_error,
        }


def predict_live(plan: Plan, live: Speed, *, profile: Path, processes: int) -> LivePrediction:
    """Run *plan* in virtual time, with the costs of *profile*, to compare with *live* runs.

    Its sites are the processes of those, each with a core.
    """
    simulated = plan.with_settings(
        backend="inline",
        clock="virtual",
        profile=str(profile.resolve()),
        network=plan.config.network.model_copy(update={"sites": "processes"}),
        processes=processes,
    )
    return LivePrediction(
        topology=plan.topology.name,
        query=plan.config.name.removeprefix("calibrate-"),
        predicted=Speed.of([_run(simulated)]),
        measured=live,
    )
