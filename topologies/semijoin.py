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
after the fact. A message that takes longer costs results. *punctuated* execution waits for messages
that announce it, and is exact whatever the network does.

A plan may also be a tree of two-way joins (section 4.2): a join's output is then a stream at one
of the two sites, with a window of its own, and meets the other operand of the join above.

With *replan_every* the sites report to a coordinator, beside the first of them, what they see of
their streams, and it changes the plan where another one has become better.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Literal

import networkx as nx
from annotated_types import Interval
from pydantic import StringConstraints
from pydantic.dataclasses import dataclass

from actors.protocol import FEEDBACK, HEADER_BYTES, NS_PER_S
from actors.results import Sink
from actors.semijoins.adaptive_site import AdaptiveSite, Coordinator, Replanning
from actors.semijoins.one_way import Execution
from actors.semijoins.site import Site
from actors.semijoins.site_source import SiteSource
from joins.batch import Batch
from joins.errors import suggest
from joins.queries.query import JoinQuery
from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from joins.semijoins.value_sample import TupleSample, ValueSample
from netsim.network import link_matrices
from topologies.actor_graph import ActorGraph
from topologies.quantities import Duration
from topologies.semijoins.costing import Costing
from topologies.semijoins.join_statistics import (
    JoinStatistics,
    Measuring,
    Setting,
    check_measurable,
    kept_samples,
    read_samples,
    site_prices,
)
from topologies.semijoins.plan_steps import longest_path, plan_steps
from topologies.semijoins.plans import (
    JoinPlan,
    LinearPlan,
    join_graph,
    parse_plan,
    uniform_plan,
)
from topologies.semijoins.replanning import GreedyPlans
from topologies.semijoins.searches import SEARCHES
from topologies.semijoins.shedding import Budget, shared_fields
from topologies.topology import (
    STRICT,
    Approximation,
    Job,
    Topology,
    TopologyError,
    unused_notes,
)

Intervals = Annotated[int, Interval(ge=1, le=1_000_000)]
BytesPerSecond = Annotated[int, Interval(ge=1, le=10**12)]
PlanText = Annotated[str, StringConstraints(strip_whitespace=True), "a plan"]
"""What `topologies.semijoins.plans` reads, or the name of a search."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SemijoinParameters:
    """What a person may set of the semijoin system.

    Attributes
    ----------
    algorithm
        Of every one-way join, in sequences breadth first along the join graph.
    plan
        Sequences with an algorithm for each step, such as "A: B SP-D, C SM-S1; B: ...", in place of
        *algorithm*; or a tree of two-way joins, such as "(A, B SP-S/SP-D, C SM-S1/SP-D)"; or
        ``greedy``, ``exhaustive``, ``auto``, ``greedy-tree`` or ``exhaustive-tree``: searched for
        by estimated costs.
    bloom
        Whether a search may choose semijoins by Bloom filters, too.
    execution
        *delayed* is the paper's model, exact as long as messages take less than *delta*.
    tau
        τ, the execution interval.
    delta
        δ, the longest accumulated delay that the paper's model allows for.
    replan_every
        Execution intervals, those in which any stream has a tuple, after which the plan is costed
        anew and changed where rates or selectivities have drifted; needs *punctuated*. With a
        *byte_budget* never to one that ships more over its busiest link.
    tuple_bytes
        Stream to the size of its full tuples, where they carry more than is joined on.
    byte_budget
        Most bytes a second that any link may carry, both ways together, on average over the run: so
        much of the streams is shed that estimates are within it.
    kept
        What is kept of the streams, by values of their join attribute, such as ``{ share = 0.1 }``.
        Left to *byte_budget*, and without that all.
    """

    algorithm: Literal[tuple(OneWayJoin)] = OneWayJoin.SP_D  # type: ignore[valid-type]
    plan: PlanText | None = None
    bloom: bool = False
    execution: Literal["delayed", "punctuated"] = "punctuated"
    tau: Duration = 100_000_000
    delta: Duration = 80_000_000
    replan_every: Intervals | None = None
    tuple_bytes: dict[str, int] = field(default_factory=dict)
    byte_budget: BytesPerSecond | None = None
    kept: ValueSample | None = None

    @property
    def algorithms(self) -> tuple[OneWayJoin, ...]:
        """What a search chooses from."""
        return tuple(OneWayJoin) if self.bloom else PAPER_ALGORITHMS

    @property
    def punctuated(self) -> bool:
        """Whether execution waits for punctuations."""
        return self.execution == "punctuated"


class SemijoinTopology(Topology[SemijoinParameters]):
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
        kept, budget = parameters.kept, parameters.byte_budget
        sheds = budget is not None if kept is None else kept.share < 1 or kept.never
        return parameters.punctuated and not sheds

    def approximation(
        self, query: JoinQuery, parameters: SemijoinParameters
    ) -> Approximation | None:
        """Return what is kept, and the budget that the rest is shed for."""
        if parameters.kept is None and parameters.byte_budget is None:
            return None
        values = parameters.kept or ValueSample(share=1.0)
        return Approximation(
            kept=tuple(TupleSample(field=name, values=values) for name in shared_fields(query)),
            byte_budget=parameters.byte_budget,
            exact=parameters.punctuated,
        )

    def notes(self, job: Job, parameters: SemijoinParameters) -> tuple[str, ...]:
        """Return notes on Bloom filters that no search may choose, and on δ where there is none."""
        p, unused = parameters, {}
        if p.plan not in SEARCHES and p.replan_every is None:
            unused["bloom"] = "a plan that is not searched for"
        if p.punctuated:
            unused["delta"] = "punctuated execution"
        return unused_notes(p, unused)

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
        if parameters.punctuated or latency_ns <= parameters.delta:
            return ()
        return (
            f"delta is {parameters.delta / 1e6:g} ms, less than the {latency_ns / 1e6:g} ms of "
            f"latency on the path {' > '.join(path)}: results may be lost, unless execution is "
            "punctuated",
        )

    def fitted(
        self, job: Job, parameters: SemijoinParameters, network: nx.Graph
    ) -> SemijoinParameters:
        """Return *parameters* with the plan that was to be searched for, and what is kept.

        Raise :exc:`TopologyError` for a byte budget that leaves next to nothing of the streams.
        """
        if parameters.plan in SEARCHES:
            statistics = self.statistics(job, parameters, network)
            plan = SEARCHES[parameters.plan](Costing(statistics, parameters.algorithms))
            parameters = replace(parameters, plan=plan.one_line)
        if parameters.byte_budget is None or parameters.kept is not None:
            return parameters
        plan = plan_of(job.query, parameters)
        full = with_tuple_bytes(job, parameters.tuple_bytes)
        measuring, samples = measuring_of(full, network, parameters), read_samples(full)
        budget = Budget(
            bytes_ps=parameters.byte_budget,
            plan=plan,
            measuring=measuring,
            samples=samples,
            statistics=measuring.statistics(samples, feeding_tps=job.feeding.rate_tps),
            replanning=replanning_of(full, plan, parameters),
        )
        return replace(parameters, kept=budget.choose_sample())

    def statistics(
        self, job: Job, parameters: SemijoinParameters, network: nx.Graph
    ) -> JoinStatistics:
        """Return what plans for *job* are costed with, measured from its streams.

        Of streams of which something is shed, as far as is known by then, from the rest.
        """
        full = with_tuple_bytes(job, parameters.tuple_bytes)
        measuring, samples = measuring_of(full, network, parameters), read_samples(full)
        statistics = measuring.statistics(samples, feeding_tps=job.feeding.rate_tps)
        approximation = self.approximation(job.query, parameters)
        if approximation is None or parameters.kept is None:
            return statistics
        left = kept_samples(samples, approximation.kept)
        for name, sample in zip(job.query.streams, left, strict=True):
            check_measurable(name, len(sample), "keeps")
        return measuring.thinned(statistics, samples, left)

    def assemble(self, job: Job, parameters: SemijoinParameters) -> ActorGraph:
        """Return sources, sites and sinks.

        Raise :exc:`TopologyError` for a join graph in several parts, a plan that does not fit the
        query, a Bloom filter where there is no equality, a size smaller than the fields, a tree
        over windows that count tuples, and plans that are to change and are trees or without
        punctuations.
        """
        query = job.query
        job = with_tuple_bytes(job, parameters.tuple_bytes)
        approximation = self.approximation(query, parameters)
        plan = plan_of(query, parameters)
        replanning = replanning_of(job, plan, parameters)
        steps = plan_steps(query, plan, job.schemas, parameters.delta)
        site: type[Site] = Site
        of_plan: dict[str, Any] = {"steps": steps.steps, "outputs": steps.outputs}
        if replanning:
            site, of_plan = AdaptiveSite, {"replanning": replanning}
        execution = Execution(
            punctuated=parameters.punctuated,
            delta_ns=parameters.delta,
            removal_ns=steps.removal_ns,
        )
        graph = ActorGraph()
        _add_sources(graph, job, parameters)
        for stream, name in enumerate(query.streams):
            own: dict[str, Any] = {"schema": job.files[stream].schema} if replanning else {}
            graph.add(
                "site",
                f"site.{name}",
                site,
                site=name,
                stream=stream,
                streams=len(query.streams),
                window=query.windows[stream],
                execution=execution,
                pairs=job.pairs,
                kept=approximation.kept[stream] if approximation else None,
                **own,
                **of_plan,
            )
        _add_sinks(graph, query.streams)
        if replanning:
            _add_coordinator(graph, query.streams, replanning)
        return graph


def _add_sources(graph: ActorGraph, job: Job, parameters: SemijoinParameters) -> None:
    """Add each stream's source, at its site."""
    for stream, name in enumerate(job.query.streams):
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


def _add_sinks(graph: ActorGraph, streams: Sequence[str]) -> None:
    """Add each site's sink, and connect sites to their sources, their sinks and each other."""
    for name in streams:
        graph.add("sink", f"sink.{name}", Sink, site=name, only_emits=True)
        graph.connect(f"source.{name}", "out", f"site.{name}")
        graph.connect(f"site.{name}", "sink", f"sink.{name}")
        others = [f"site.{other}" for other in streams if other != name]
        graph.connect(f"site.{name}", FEEDBACK, *others)


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
    if not parameters.punctuated:
        raise TopologyError(
            f"replan_every = {parameters.replan_every}: sites change plans together when "
            f"punctuations arrive; execution must be punctuated, not {parameters.execution}"
        )
    measuring = measuring_of(job, job.network(job.query.streams), parameters)
    return Replanning(
        book=GreedyPlans(
            measuring=measuring,
            budgeted=parameters.byte_budget is not None,
            algorithms=parameters.algorithms,
        ),
        plan=plan.one_line,
        intervals=parameters.replan_every,
    )


def measuring_of(job: Job, network: nx.Graph, parameters: SemijoinParameters) -> Measuring:
    """Return what *job*'s streams are measured with, each at the site of its name in *network*."""
    latency_s, bandwidth_bps = link_matrices(network, job.query.streams)
    return Measuring(
        query=job.query,
        schemas=job.schemas,
        setting=Setting(
            latency_s=latency_s,
            bandwidth_bps=bandwidth_bps,
            interval_s=parameters.tau / NS_PER_S,
            delay_s=parameters.delta / NS_PER_S,
            punctuated=parameters.punctuated,
            header_bytes=HEADER_BYTES,
            prices=site_prices(job.profile),
        ),
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


def plan_of(query: JoinQuery, parameters: SemijoinParameters) -> JoinPlan:
    """Return the plan in *parameters*, or the one that uses their algorithm everywhere.

    Raise :exc:`TopologyError` for one that does not fit the query.
    """
    joins = join_graph(query)
    if parameters.plan is None or parameters.plan in SEARCHES:  # not yet searched for
        return uniform_plan(query.streams, joins, OneWayJoin(parameters.algorithm))
    if re.fullmatch(r"[\w-]+", parameters.plan):
        raise TopologyError(
            f"plan = {parameters.plan!r}: {suggest(parameters.plan, SEARCHES, 'searches are')}; or "
            "write a plan, as in A: B SP-D, C SM-S1; B: ..."
        )
    plan = parse_plan(parameters.plan, query.streams)
    plan.check(joins)
    return plan


def with_tuple_bytes(job: Job, sizes: dict[str, int]) -> Job:
    """Return *job* with tuples of the given sizes, bytes, by the streams' names.

    Raise :exc:`TopologyError` for a size smaller than the fields, or of no stream.
    """
    schemas = {schema.stream: schema for schema in job.schemas}
    for name, size in sizes.items():
        if name not in schemas:
            raise TopologyError(
                f"tuple_bytes: there is no stream {name!r}; there are {', '.join(schemas)}"
            )
        schema = schemas[name]
        least = Batch.empty(schema).row_bytes - schema.width_bytes  # position, time, key, fields
        if size < least:
            raise TopologyError(
                f"tuple_bytes.{name} is {size}: what is joined on takes {least} bytes"
            )
        schemas[name] = replace(schema, width_bytes=size - least)
    files = tuple(replace(file, schema=schemas[file.schema.stream]) for file in job.files)
    return replace(job, files=files)
