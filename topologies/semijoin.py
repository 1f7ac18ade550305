r"""Distributed stream joins with semijoins (Tran and Lee, 2010).

Every stream arrives at a site of its own, and sites ship batches to each other every τ::

    source.A -> site.A <-> site.B <- source.B
                  |   \   /  |
                  |    site.C | <- source.C
                  v      v    v
               sink.A  sink.C sink.B

A new tuple goes through the join sequence of its stream, a one-way join after the other; each is
computed by one of six algorithms of the paper, or one of two with Bloom filters. They differ in
what crosses the wires and where results are made, never in what the results are. Sources and sinks
are at their sites: results are not shipped to one place, as in the paper.

In the paper's model (*delayed*) probes and removals wait until everything is known everywhere: δ
after the fact. A message that takes longer costs results. *punctuated* waits for messages that say
so, and is exact whatever the network does.

With *replan_every* the sites tell a coordinator, beside the first of them, what they see of their
streams, and it changes the plan where another one has become better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Literal

import networkx as nx
from annotated_types import Interval
from pydantic.dataclasses import dataclass

from actors.protocol import FEEDBACK, ActorSpec
from actors.results import Sink
from actors.semijoins.adaptive_site import AdaptiveSite
from actors.semijoins.coordinator import Coordinator
from actors.semijoins.execution import Delayed, Execution, Punctuated
from actors.semijoins.part import OneWayStep
from actors.semijoins.parts import PARTS
from actors.semijoins.replanning import Replanning
from actors.semijoins.site import Site
from actors.semijoins.site_source import SiteSource
from actors.source import NS_PER_S
from joins.one_way_join import OneWayJoin
from joins.query import JoinQuery
from topologies.quantities import Duration
from topologies.semijoins.choosing import SEARCHES
from topologies.semijoins.costing import Costing
from topologies.semijoins.delays import longest_path
from topologies.semijoins.measuring import Measuring, measured_statistics
from topologies.semijoins.plan import LinearPlan, join_graph, uniform_plan
from topologies.semijoins.reading import read_plan
from topologies.semijoins.replanning import GreedyPlans
from topologies.semijoins.sizes import sized
from topologies.semijoins.statistics import JoinStatistics
from topologies.semijoins.steps import one_way_steps
from topologies.topology import STRICT, ActorGraph, Job, Topology, TopologyError

Intervals = Annotated[int, Interval(ge=1, le=1_000_000)]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SemijoinParameters:
    """What a person may set of the semijoin system.

    Attributes
    ----------
    algorithm
        Of every one-way join, in sequences breadth first along the join graph.
    plan
        Sequences with an algorithm for each step, such as "A: B SP-D, C SM-S1; B: ...", in place of
        *algorithm*; or ``greedy``, ``exhaustive`` or ``auto``: searched for by estimated costs.
    execution
        *delayed* is the paper's model, exact as long as messages take less than *delta*.
    tau
        τ, the execution interval.
    delta
        δ, the longest accumulated delay that the paper's model allows for.
    replan_every
        Execution intervals, those in which any stream has a tuple, after which the plan is looked
        at anew and changed where rates or selectivities have drifted; needs *punctuated*.
    tuple_bytes
        Stream to the size of its full tuples, where they carry more than is joined on.
    """

    algorithm: Literal[tuple(OneWayJoin)] = OneWayJoin.SP_D  # type: ignore[valid-type]
    plan: str | None = None
    execution: Literal["delayed", "punctuated"] = "punctuated"
    tau: Duration = 100_000_000
    delta: Duration = 80_000_000
    replan_every: Intervals | None = None
    tuple_bytes: dict[str, int] = field(default_factory=dict)


class Semijoin(Topology):
    """One site per stream, a join sequence per stream, one-way joins by simple or semijoins."""

    name = "semijoin"
    title = "Streams at sites of their own, joined by shipping partial tuples"
    paper = "Distributed stream join query processing with semijoins"
    exact = True
    parameters_type = SemijoinParameters
    multiway = True
    example_query = (
        "SELECT * FROM S1, S2, S3 WHERE S1.dest = S2.dest AND S2.dest = S3.dest "
        "WINDOW AS (SLIDE INTERVAL '1 ns' ON '60 min' PRECISE)"
    )

    def claims_exact(self, parameters: Any) -> bool:
        """Return whether it is exact over any network; the paper's model trusts in δ."""
        return parameters.execution == "punctuated"

    def warnings(
        self, query: JoinQuery, parameters: SemijoinParameters, network: nx.Graph
    ) -> tuple[str, ...]:
        """Return a warning where δ is less than the latency of the longest path."""
        latency_ns, path = longest_path(plan_of(query, parameters), network, query.streams)
        if parameters.execution == "punctuated" or latency_ns <= parameters.delta:
            return ()
        return (
            f"delta is {parameters.delta / 1e6:g} ms, less than the {latency_ns / 1e6:g} ms of "
            f"latency on the path {' > '.join(path)}: results will be lost, unless execution is "
            "punctuated",
        )

    def fitted(
        self, job: Job, parameters: SemijoinParameters, network: nx.Graph
    ) -> SemijoinParameters:
        """Return *parameters* with the plan that was to be searched for."""
        if parameters.plan is None or parameters.plan not in SEARCHES:
            return parameters
        plan = SEARCHES[parameters.plan](Costing(self.statistics(job, parameters, network)))
        return replace(parameters, plan=str(plan).replace("\n", "; "))

    def statistics(
        self, job: Job, parameters: SemijoinParameters, network: nx.Graph
    ) -> JoinStatistics:
        """Return what plans for *job* are costed with, measured from its streams."""
        return measured_statistics(
            replace(job, files=sized(job.files, parameters.tuple_bytes)),
            network,
            job.query.streams,
            **_timing(parameters),
        )

    def assemble(self, job: Job, parameters: SemijoinParameters) -> ActorGraph:
        """Return sources, sites and sinks.

        Raise :exc:`TopologyError` for a join graph in several parts, a plan that does not fit the
        query, a Bloom filter where there is no equality, a size smaller than the fields, and plans
        that are to change without punctuations.
        """
        query = job.query
        files = sized(job.files, parameters.tuple_bytes)
        plan = plan_of(query, parameters)
        steps = one_way_steps(query, plan, [file.schema for file in files])
        replanning = _replanning(replace(job, files=files), plan, parameters)
        execution = _execution(parameters, steps)
        graph = ActorGraph()
        for stream, name in enumerate(query.streams):
            graph.add_actor(
                f"source.{name}",
                role="source",
                site=name,
                spec=ActorSpec(
                    actor=SiteSource,
                    arguments={
                        "files": files,
                        "stream": stream,
                        "feeding": job.feeding,
                        "interval_ns": parameters.tau,
                    },
                ),
            )
        for stream, name in enumerate(query.streams):
            graph.add_actor(
                f"site.{name}",
                role="site",
                site=name,
                spec=ActorSpec(
                    actor=AdaptiveSite if replanning else Site,
                    arguments={
                        "stream": stream,
                        "streams": len(query.streams),
                        "window": query.windows[stream],
                        "execution": execution,
                        "pairs": job.pairs,
                    }
                    | (
                        {"replanning": replanning, "schema": files[stream].schema}
                        if replanning
                        else {"steps": steps}
                    ),
                ),
            )
        for name in query.streams:
            spec = ActorSpec(actor=Sink, only_emits=True)
            graph.add_actor(f"sink.{name}", role="sink", site=name, spec=spec)
            graph.connect(f"source.{name}", "out", f"site.{name}")
            graph.connect(f"site.{name}", "sink", f"sink.{name}")
            others = [f"site.{other}" for other in query.streams if other != name]
            graph.connect(f"site.{name}", FEEDBACK, *others)
        if replanning:
            _add_coordinator(graph, query.streams, replanning)
        return graph


def plan_of(query: JoinQuery, parameters: SemijoinParameters) -> LinearPlan:
    """Return the plan that *parameters* say, or name the algorithm of.

    Raise :exc:`TopologyError` for one that does not fit the query.
    """
    joins = join_graph(query)
    if parameters.plan is None or parameters.plan in SEARCHES:  # not yet searched for
        return uniform_plan(query.streams, joins, OneWayJoin(parameters.algorithm))
    plan = read_plan(parameters.plan, query.streams)
    plan.check(joins)
    if not isinstance(plan, LinearPlan):
        raise TopologyError(f"plan {plan}: only linear plans can be run")
    return plan


def _timing(parameters: SemijoinParameters) -> dict[str, Any]:
    """Return what statistics hold of *parameters*."""
    return {
        "interval_s": parameters.tau / NS_PER_S,
        "delay_s": parameters.delta / NS_PER_S,
        "punctuated": parameters.execution == "punctuated",
    }


def _replanning(job: Job, plan: LinearPlan, parameters: SemijoinParameters) -> Replanning | None:
    if parameters.replan_every is None:
        return None
    if parameters.execution != "punctuated":
        raise TopologyError(
            f"replan_every = {parameters.replan_every}: sites change plans together by what "
            f"punctuations tell; execution must be punctuated, not {parameters.execution}"
        )
    sites = job.query.streams
    measuring = Measuring.of_job(job, job.network(sites), sites, **_timing(parameters))
    return Replanning(
        book=GreedyPlans(measuring=measuring),
        plan=str(plan).replace("\n", "; "),
        intervals=parameters.replan_every,
    )


def _add_coordinator(graph: ActorGraph, streams: Sequence[str], replanning: Replanning) -> None:
    sites = [f"site.{name}" for name in streams]
    graph.add_actor(
        "coordinator",
        role="coordinator",
        site=streams[0],
        spec=ActorSpec(
            actor=Coordinator,
            arguments={
                "book": replanning.book,
                "plan": replanning.plan,
                "streams": len(streams),
            },
        ),
    )
    graph.connect("coordinator", FEEDBACK, *sites)
    for site in sites:
        graph.connect(site, "report", "coordinator")


def _execution(parameters: SemijoinParameters, steps: Sequence[OneWayStep]) -> Execution:
    if parameters.execution == "punctuated":
        return Punctuated()
    delayed = any(PARTS[step.algorithm][0].delayed for step in steps)
    return Delayed(delta_ns=parameters.delta, removal_ns=parameters.delta * (2 if delayed else 1))
