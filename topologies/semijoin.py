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

A plan may also be a tree of two-way joins (section 4.2): what a join finds is then a stream at one
of the two sites, with a window of its own, and meets the other operand of the join above.

With *replan_every* the sites tell a coordinator, beside the first of them, what they see of their
streams, and it changes the plan where another one has become better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx

from actors.protocol import FEEDBACK
from actors.results import Sink
from actors.semijoins.adaptive_site import AdaptiveSite
from actors.semijoins.coordinator import Coordinator
from actors.semijoins.replanning import Replanning
from actors.semijoins.site_source import SiteSource
from joins.queries.query import JoinQuery
from joins.semijoins.kept_values import KeptTuples, KeptValues
from joins.semijoins.one_way_join import OneWayJoin
from topologies.actor_graph import ActorGraph
from topologies.semijoins.carrying_out import carrying_out
from topologies.semijoins.choosing import SEARCHES
from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.costs.measuring import Measuring, measured_statistics
from topologies.semijoins.costs.sizes import sized
from topologies.semijoins.costs.statistics import JoinStatistics
from topologies.semijoins.costs.thinning import kept_statistics
from topologies.semijoins.delays import longest_path
from topologies.semijoins.parameters import SemijoinParameters, plan_of
from topologies.semijoins.plan import LinearPlan
from topologies.semijoins.reading import JoinPlan
from topologies.semijoins.replanning import GreedyPlans
from topologies.semijoins.shedding import shared_fields, within_budget
from topologies.topology import Approximation, Job, Topology, TopologyError

__all__ = ["Semijoin", "SemijoinParameters", "plan_of"]


class Semijoin(Topology[SemijoinParameters]):
    """One site per stream, join sequences or a tree, one-way joins by simple or semijoins."""

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

    def claims_exact(self, parameters: SemijoinParameters) -> bool:
        """Return whether it is exact over any network; the paper's model trusts in δ."""
        return parameters.execution == "punctuated" and not parameters.approximates

    def approximation(
        self, query: JoinQuery, parameters: SemijoinParameters
    ) -> Approximation | None:
        """Return what is kept, and the budget that the rest is shed for."""
        if parameters.kept is None and parameters.byte_budget is None:
            return None
        values = parameters.kept or KeptValues(share=1.0)
        return Approximation(
            kept=tuple(KeptTuples(field=name, values=values) for name in shared_fields(query)),
            byte_budget=parameters.byte_budget,
        )

    def in_miniature(self, parameters: SemijoinParameters) -> SemijoinParameters:
        """Return *parameters* with nothing shed and no tree: a miniature's window is counted.

        In place of a tree there is a linear plan by the algorithm that calls most kernels.
        """
        small = replace(parameters, byte_budget=None, kept=None)
        if (parameters.plan or "").startswith("("):
            small = replace(small, plan=None, algorithm=OneWayJoin.SM_S2)
        return small

    def warnings(
        self, query: JoinQuery, parameters: SemijoinParameters, network: nx.Graph
    ) -> tuple[str, ...]:
        """Return a warning where δ is less than the latency of the longest path."""
        latency_ns, path = longest_path(plan_of(query, parameters), network, query.streams)
        if parameters.execution == "punctuated" or latency_ns <= parameters.delta:
            return ()
        return (
            f"delta is {parameters.delta / 1e6:g} ms, less than the {latency_ns / 1e6:g} ms of "
            f"latency on the path {' > '.join(path)}: results may be lost, unless execution is "
            "punctuated",
        )

    def fitted(
        self, job: Job, parameters: SemijoinParameters, network: nx.Graph
    ) -> SemijoinParameters:
        """Return *parameters* with the plan that was to be searched for, and what is kept."""
        if parameters.plan in SEARCHES:
            statistics = self.statistics(job, parameters, network)
            plan = SEARCHES[parameters.plan](Costing(statistics, parameters.algorithms))
            parameters = replace(parameters, plan=str(plan).replace("\n", "; "))
        if parameters.byte_budget is None or parameters.kept is not None:
            return parameters
        plan = plan_of(job.query, parameters)
        full = sized(job, parameters.tuple_bytes)
        values = within_budget(
            full,
            plan,
            network,
            self.statistics(job, parameters, network),
            parameters,
            replanning_of(full, plan, parameters),
        )
        return replace(parameters, kept=values)

    def statistics(
        self, job: Job, parameters: SemijoinParameters, network: nx.Graph
    ) -> JoinStatistics:
        """Return what plans for *job* are costed with, measured from its streams.

        Of streams of which something is shed, as far as is known by then, from the rest.
        """
        full = sized(job, parameters.tuple_bytes)
        approximation = self.approximation(job.query, parameters)
        if approximation is None or parameters.kept is None:
            return measured_statistics(full, network, job.query.streams, **parameters.timing)
        return kept_statistics(full, network, approximation.kept, **parameters.timing)

    def assemble(self, job: Job, parameters: SemijoinParameters) -> ActorGraph:
        """Return sources, sites and sinks.

        Raise :exc:`TopologyError` for a join graph in several parts, a plan that does not fit the
        query, a Bloom filter where there is no equality, a size smaller than the fields, a tree
        over windows that count tuples, and plans that are to change and are trees or without
        punctuations.
        """
        query = job.query
        job = sized(job, parameters.tuple_bytes)
        approximation = self.approximation(query, parameters)
        plan = plan_of(query, parameters)
        replanning = replanning_of(job, plan, parameters)
        carried_out = carrying_out(query, plan, [file.schema for file in job.files], parameters)
        graph = ActorGraph()
        for stream, name in enumerate(query.streams):
            graph.add(
                "source",
                f"source.{name}",
                SiteSource,
                site=name,
                files=job.files,
                stream=stream,
                feeding=job.feeding,
                interval_ns=parameters.tau,
            )
        for stream, name in enumerate(query.streams):
            steps = {"replanning": replanning, "schema": job.files[stream].schema}
            graph.add(
                "site",
                f"site.{name}",
                AdaptiveSite if replanning else carried_out.actor,
                site=name,
                stream=stream,
                streams=len(query.streams),
                window=query.windows[stream],
                execution=carried_out.execution,
                pairs=job.pairs,
                kept=approximation.kept[stream] if approximation else None,
                **(steps if replanning else carried_out.steps),
            )
        for name in query.streams:
            graph.add("sink", f"sink.{name}", Sink, site=name, only_emits=True)
            graph.connect(f"source.{name}", "out", f"site.{name}")
            graph.connect(f"site.{name}", "sink", f"sink.{name}")
            others = [f"site.{other}" for other in query.streams if other != name]
            graph.connect(f"site.{name}", FEEDBACK, *others)
        if replanning:
            _add_coordinator(graph, query.streams, replanning)
        return graph


def replanning_of(job: Job, plan: JoinPlan, parameters: SemijoinParameters) -> Replanning | None:
    """Return how *plan* changes while it runs; None where it stays.

    Raise :exc:`TopologyError` for trees, and without punctuations.
    """
    if parameters.replan_every is None:
        return None
    if not isinstance(plan, LinearPlan):
        raise TopologyError(
            f"replan_every = {parameters.replan_every}: only linear plans change while they run; "
            f"{plan} is a tree, whose output streams a new plan would have to make all over again"
        )
    if parameters.execution != "punctuated":
        raise TopologyError(
            f"replan_every = {parameters.replan_every}: sites change plans together by what "
            f"punctuations tell; execution must be punctuated, not {parameters.execution}"
        )
    sites = job.query.streams
    measuring = Measuring.of_job(job, job.network(sites), sites, **parameters.timing)
    return Replanning(
        book=GreedyPlans(measuring=measuring, budgeted=parameters.byte_budget is not None),
        plan=str(plan).replace("\n", "; "),
        intervals=parameters.replan_every,
    )


def _add_coordinator(graph: ActorGraph, streams: Sequence[str], replanning: Replanning) -> None:
    sites = [f"site.{name}" for name in streams]
    graph.add(
        "coordinator",
        "coordinator",
        Coordinator,
        site=streams[0],
        book=replanning.book,
        plan=replanning.plan,
        streams=len(streams),
    )
    graph.connect("coordinator", FEEDBACK, *sites)
    for site in sites:
        graph.connect(site, "report", "coordinator")
