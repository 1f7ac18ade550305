"""Window joins whose joiner PEs each store a share of the whole window.

They share a graph, and differ in where a tuple is stored and where it probes
(`actors.window_join`), in the structure of the local windows
(`joins.indexes.structures`), and in how messages reach the PEs::

    source -> router -+-> joiner.0 -+-> sink
                      +-> joiner.1 -+
                      +-> ...      -+
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from annotated_types import Interval
from pydantic.dataclasses import dataclass as validated

from actors.source import Source
from actors.stream_source import ScaleGate, StreamSource
from actors.window_join import (
    GridRouting,
    HashRouting,
    Joiner,
    Relay,
    ReplicatedRouting,
    RoundRobinRouting,
    Routing,
    WindowRouter,
)
from joins.indexes.index import Index
from joins.queries.query import JoinQuery
from topologies.actor_graph import ActorGraph
from topologies.own_class import OR_OWN_INDEX
from topologies.topology import PES_MOST, STRICT, Job, P, Pes, Topology, TopologyError

Fanout = Annotated[int, Interval(ge=2, le=1000)]
"""For parameters: most branches of a node in the trees around PEs (`connect_by_trees`)."""

_MOST_LINKS = 16
"""Every link of a chain is probed by every tuple: a window that slides tuple by tuple must not be
a chain of single tuples."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What one of these systems is made of."""

    routing: Routing
    """Where tuples are stored and where they probe."""
    joiners: Mapping[str, int]
    """Role of joiner PEs to their number; *routing* numbers them through in this order."""
    index: str | type[Index]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Structure of the local windows, and what is set of it."""
    nodes: int | None = None
    """Machines that all but a single sink share in turns; None gives each actor one of its own."""
    fanout: int | None = None
    """Most receivers of the router, and of each relay in a tree between it and the PEs; the same
    applies to a tree that gathers results on their way to the sink. None connects directly."""


class WindowJoinTopology(Topology[P]):
    """Source, router, joiner PEs, sink."""

    exact = True

    @abstractmethod
    def lay_out(self, job: Job, parameters: P) -> Layout:
        """Return what the system is made of.

        Raise :exc:`TopologyError` when the query is not one it can evaluate.
        """

    def assemble(self, job: Job, parameters: P) -> ActorGraph:
        """Return the graph of `lay_out`."""
        layout = self.lay_out(job, parameters)
        routing = layout.routing
        graph = ActorGraph(machines=layout.nodes)
        entrance = self.add_entrance(graph, job)
        router = graph.add("router", "router", WindowRouter, **job.windows, routing=routing)
        names = [(role, place) for role, count in layout.joiners.items() for place in range(count)]
        joiners = [
            graph.add(
                role,
                f"{role}.{place}",
                Joiner,
                **job.join,
                routing=routing,
                pe=pe,
                index=layout.index,
                options=layout.options,
                pairs=job.pairs,
            )
            for pe, (role, place) in enumerate(names)
        ]
        graph.connect(entrance, "out", router)
        graph.connect(router, "joiner", *connect_by_trees(graph, joiners, layout.fanout))
        return graph

    def add_entrance(self, graph: ActorGraph, job: Job) -> str:
        """Add what all streams arrive through; return the actor that sends them on from ``out``."""
        return graph.add("source", "source", Source, **job.input)


def connect_by_trees(graph: ActorGraph, pes: list[str], fanout: int | None) -> list[str]:
    """Add the sink, wire *pes* to it, and return what to send to so that all of *pes* receive it.

    With a *fanout* trees of relays are on either side of the PEs; else the PEs are what to send to.
    """
    heads, spread = _grow_tree(graph, "distributor", pes, fanout)
    tails, gather = _grow_tree(graph, "collector", pes, fanout)
    for parent, children in spread.items():
        graph.connect(parent, "out", *children)
    sink = graph.add_sink(gathers=bool(gather))
    for parent, children in [*gather.items(), (sink, tails)]:
        for child in children:
            graph.connect(child, "out" if child in gather else "sink", parent)
    return heads


def _grow_tree(
    graph: ActorGraph, role: str, leaves: list[str], fanout: int | None
) -> tuple[list[str], dict[str, list[str]]]:
    """Add a tree of relays on *leaves*; return its topmost nodes, and the children of each relay.

    Only a node that would be alone in its group goes up without a parent of its own.
    """
    level, top, children = 0, leaves, dict[str, list[str]]()
    while fanout is not None and len(top) > fanout:
        groups = [top[begin : begin + fanout] for begin in range(0, len(top), fanout)]
        top = []
        for place, group in enumerate(groups):
            if len(group) > 1:
                parent = graph.add(role, f"{role}.{level}.{place}", Relay)
                children[parent] = group
            top.append(parent if len(group) > 1 else group[0])
        level += 1
    return top, children


def add_gate(
    graph: ActorGraph, job: Job, role: str, actor: type[ScaleGate], **arguments: Any
) -> str:
    """Add a source for each stream of *job*, and what merges them, an *actor*; return its name."""
    each: dict[str, Any] = {**job.input, "replica": 0, "replicas": 1}
    sources = tuple(
        graph.add("source", f"source.{name}", StreamSource, **each, stream=stream)
        for stream, name in enumerate(job.query.streams)
    )
    gate = graph.add(role, role, actor, sources=sources, **arguments)
    for source in sources:
        graph.connect(source, "out", gate)
    return gate


def chain_options(query: JoinQuery, units: int, sub_index: int | None = None) -> dict[str, int]:
    """Return the options of a chain index at each of *units* PEs that share a stream.

    A sub-index has *sub_index* tuples; None takes a unit's share of a slide, so that sub-indexes
    expire as windows do, but of a window at the least one part in `_MOST_LINKS`. The tuples of a
    slide by time are not known beforehand: the index's own default then applies.
    """
    if sub_index is not None:
        return {"length": sub_index}
    tuples = [max(w.slide, w.length // _MOST_LINKS) for w in query.windows if w.kind == "count"]
    return {"length": -(-min(tuples) // units)} if tuples else {}


@validated(frozen=True, kw_only=True, config=STRICT)
class NoParameters:
    """Nothing can be set."""


class SinglePeTopology(WindowJoinTopology[NoParameters]):
    """The baselines: one PE with one index over each stream's whole window."""

    parameters_type = NoParameters
    index: ClassVar[str]
    """As `joins.indexes.structures.make_window_index` takes it."""

    def lay_out(self, job: Job, parameters: NoParameters) -> Layout:
        """Return one PE that stores all tuples and probes with all of them."""
        routing = RoundRobinRouting(sides=(range(1),) * 2)
        return Layout(routing=routing, joiners={"joiner": 1}, index=self.index)


class NestedLoopTopology(SinglePeTopology):
    """The plainest window join: the PE compares every tuple with every one in its window.

    SPO-Join's section 5.4 and PIM-Tree's NLWJ measure against it. No structure is stored but the
    window itself, so that a tuple costs as many comparisons as it sees tuples.
    """

    name = "nested_loop"
    title = "Nested loop: one PE compares each tuple with its whole window"
    paper = "Evaluating Window Joins over Unbounded Streams (Kang, Naughton and Viglas, ICDE 2003)"
    index = "nested_loop"


class BPlusTreeTopology(SinglePeTopology):
    """B+-trees over each stream's whole window: what SPO-Join calls the B+-tree join.

    It is PIM-Tree's index-based window join (section 2.2.1): every tuple is inserted, every expired
    one deleted, and a probe scans the leaves of a range.
    """

    name = "b_plus_tree"
    title = "B+-tree join: one PE indexes its whole window"
    paper = (
        "Parallel Index-based Stream Join on a Multicore CPU (Shahvarani and Jacobsen, SIGMOD "
        "2020), section 2.2.1"
    )
    index = "b_plus_tree"


class IeJoinTopology(SinglePeTopology):
    """Batch IE-Join, applied to a stream: the PE joins each batch of tuples with its whole window.

    IE-Join is made for data that stay as they are: it sorts all of it, relates the orders by
    permutation and offset arrays, and scans a bit array. On a stream the arrays are stale as soon
    as a tuple comes, so they are made anew for every batch; SPO-Join exists to avoid just that.
    """

    name = "ie_join"
    title = "IE-Join: one PE sorts its whole window anew for each batch"
    paper = "Fast and Scalable Inequality Joins (Khayyat et al., VLDB Journal 2017)"
    index = "ie_join"


@validated(frozen=True, kw_only=True, config=STRICT)
class PeParameters:
    """What a person may set of a system of equal joiner PEs.

    Attributes
    ----------
    pes
        Joiner PEs.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    pes: Pes = 4
    nodes: Pes | None = None


class BchjTopology(WindowJoinTopology[PeParameters]):
    """The broadcast hash join that SPO-Join compares with.

    Each of k PEs stores the whole window, and compares a k-th of the tuples with all of it by
    nested loops. The paper says of it only that it broadcasts each tuple to all PEs, where
    SplitJoin deals them out in turns. Were a tuple stored at one PE and probed at all, this would
    be SplitJoin, dealt out otherwise. So it is read as what databases call a broadcast join: one
    side is replicated, the other partitioned by hash; in a stream every tuple is in turn both.
    Against SplitJoin it has the same messages to the PEs and the same comparisons, k times the
    inserts and the memory, and one answer a tuple, not k.
    """

    name = "bchj"
    title = "Broadcast hash join: every PE stores everything, and a tuple probes at one of them"
    paper = "SPO-Join: Efficient Stream Inequality Join, section 5.4 and Figures 11b and 11d"
    parameters_type = PeParameters

    def lay_out(self, job: Job, parameters: PeParameters) -> Layout:
        """Return PEs that all store everything."""
        return Layout(
            routing=ReplicatedRouting(pes=parameters.pes),
            joiners={"joiner": parameters.pes},
            index="nested_loop",
            nodes=parameters.nodes,
        )


class HashJoinTopology(WindowJoinTopology[PeParameters]):
    """Hash join for equalities, as Apache Storm joins streams (SPO-Join, Figures 22 and 23).

    Tuples are grouped by the field that an equality compares: Storm's fields grouping. Both streams
    use the same hash, so that tuples with equal values meet at one PE, where a hash table finds
    them; further predicates are checked on what it finds. A tuple costs one message and one answer.
    Work follows the values: a PE has as much of it as its values are frequent. Storm joins windows
    batch against batch; here each tuple probes as it comes, like in every other system here, and
    the windows slide as the query says.
    """

    name = "hash_join"
    title = "Hash join: tuples meet where the hash of their equal values sends them"
    paper = "Storm@Twitter (Toshniwal et al., SIGMOD 2014); SPO-Join, Figures 22 and 23"
    parameters_type = PeParameters
    needs_equality = True
    example_query = (
        "SELECT R.POW_ID, S.POW_ID FROM R, S "
        "WHERE R.POWER = S.POWER AND R.COOL > S.COOL "
        "WINDOW AS (SLIDE INTERVAL '10' ON '60')"
    )

    def lay_out(self, job: Job, parameters: PeParameters) -> Layout:
        """Return PEs partitioned by the query's first equality; refuse a query without one."""
        query, key = job.query, job.query.key
        if key is None:
            raise TopologyError(
                "hash_join needs a predicate with =, to partition tuples by; the query has only "
                + ", ".join(str(predicate) for predicate in query.predicates)
            )
        streams = range(len(query.streams))
        equalities = tuple(query.conditions(stream, job.schemas)[key] for stream in streams)
        return Layout(
            routing=HashRouting(pes=parameters.pes, equalities=equalities),
            joiners={"joiner": parameters.pes},
            index="hash",
            nodes=parameters.nodes,
        )


@validated(frozen=True, kw_only=True, config=STRICT)
class ChainIndexParameters:
    """What a person may set of the chain index.

    Attributes
    ----------
    units
        Units on each side.
    sub_index
        Tuples of a sub-index; None takes a unit's share of a slide, or of a sixteenth of the window
        if that is more, when windows count tuples, and the index's default
        (`joins.indexes.windows.chain_index.LENGTH`) when they are of time.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    units: Pes = 2
    sub_index: Annotated[int, Interval(ge=1, le=2**40)] | None = None
    nodes: Pes | None = None


class ChainIndexTopology(WindowJoinTopology[ChainIndexParameters]):
    """BiStream (Lin, Ooi, Wang and Yu): a biclique of units, each with a chained index.

    Every unit belongs to one stream and stores a share of it. A tuple is stored at one unit of its
    own side, in turns, and probes at all units of the other side::

        source -> router -+-> R_unit.0, R_unit.1, ... -+-> sink
                          +-> S_unit.0, S_unit.1, ... -+

    No tuple is stored twice, and units do not talk to each other; a tuple costs as many messages as
    the other side has units, and one more. A unit's index is a chain of B+-trees: tuples enter the
    last, and expire by whole trees. In a self join the two sides are one, and a tuple probes at all
    units of it. The original ends a tree after a period of time; here it ends after a number of
    tuples. BiStream's subgroups, which route by value within a side, are for equalities and are
    left out.
    """

    name = "chain_index"
    title = "Chain index: a biclique of units, each with a chain of B+-trees"
    paper = "Scalable Distributed Stream Join Processing (Lin, Ooi, Wang and Yu, SIGMOD 2015)"
    parameters_type = ChainIndexParameters

    def lay_out(self, job: Job, parameters: ChainIndexParameters) -> Layout:
        """Return the units of every stream, side by side."""
        p, streams = parameters, job.query.streams
        begins = range(0, p.units * len(streams), p.units)
        return Layout(
            routing=RoundRobinRouting(
                sides=tuple(range(begin, begin + p.units) for begin in begins)
            ),
            joiners={f"{stream}_unit": p.units for stream in streams},
            index="chain_index",
            options=chain_options(job.query, p.units, p.sub_index),
            nodes=p.nodes,
        )


@validated(frozen=True, kw_only=True, config=STRICT)
class JoinMatrixParameters:
    """What a person may set of the Join-Matrix.

    Attributes
    ----------
    grid_rows
        PEs that a tuple of the second stream goes to.
    grid_columns
        PEs that a tuple of the first stream goes to.
    index
        Structure of the PEs' windows.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    grid_rows: Pes = 2
    grid_columns: Pes = 2
    index: Annotated[Literal["nested_loop", "b_plus_tree"], OR_OWN_INDEX] = "nested_loop"
    nodes: Pes | None = None


class JoinMatrixTopology(WindowJoinTopology[JoinMatrixParameters]):
    """Join-Matrix (Stamos and Young; Elseidy et al.): a grid of PEs, a row for each tuple of R.

    PE (i, j) of the grid joins the i-th part of R with the j-th part of S. A tuple of R goes to all
    PEs of one row and a tuple of S to all PEs of one column, which the hash of its position
    chooses: a row and a column cross at one PE, so every pair of tuples meets there and nowhere
    else::

        source -> router -+-> joiner.0  joiner.1  joiner.2 -+-> sink
                          +-> joiner.3  joiner.4  joiner.5 -+

    It serves any predicate, and no value can overload a PE. With r rows and c columns a tuple of R
    is shipped and stored c times and one of S r times, where BiStream's biclique stores each tuple
    once but sends it to a whole side. In a self join a tuple is stored at a row and probes at a
    column. Elseidy et al. reshape the grid as the streams' rates change; here it stays.
    """

    name = "join_matrix"
    title = "Join-Matrix: a grid of PEs, a tuple goes to a row or a column of it"
    paper = "Scalable and Adaptive Online Joins (Elseidy et al., PVLDB 7(6), 2014)"
    parameters_type = JoinMatrixParameters

    def lay_out(self, job: Job, parameters: JoinMatrixParameters) -> Layout:
        """Return the grid; refuse one of more PEs than a run may have."""
        p = parameters
        grid = GridRouting(
            rows=p.grid_rows, columns=p.grid_columns, self_join=job.query.is_self_join
        )
        pes = p.grid_rows * p.grid_columns
        if pes > PES_MOST:
            raise TopologyError(
                f"grid_rows = {p.grid_rows} and grid_columns = {p.grid_columns}: a grid of {pes:,} "
                f"PEs; it may have {PES_MOST:,} at the most"
            )
        return Layout(routing=grid, joiners={"joiner": pes}, index=p.index, nodes=p.nodes)


@validated(frozen=True, kw_only=True, config=STRICT)
class StoringInTurnsParameters(PeParameters):
    """What a person may set of systems whose PEs store in turns.

    Attributes
    ----------
    index
        Structure of the PEs' windows: nested loops in the originals and in SPO-Join's section 5.4;
        later work puts an index there.
    """

    index: Annotated[Literal["nested_loop", "b_plus_tree", "chain_index"], OR_OWN_INDEX] = (
        "nested_loop"
    )


StoringP = TypeVar("StoringP", bound=StoringInTurnsParameters)


class StoringInTurnsTopology(WindowJoinTopology[StoringP]):
    """Every PE stores a share of each stream, in turns, and probes with everything."""

    def lay_out(self, job: Job, parameters: StoringP) -> Layout:
        """Return PEs that all store both streams."""
        p = parameters
        return Layout(
            routing=RoundRobinRouting(sides=(range(p.pes),) * len(job.query.streams)),
            joiners={"joiner": p.pes},
            index=p.index,
            options=chain_options(job.query, p.pes) if p.index == "chain_index" else {},
            nodes=p.nodes,
        )


@validated(frozen=True, kw_only=True, config=STRICT)
class SplitJoinParameters(StoringInTurnsParameters):
    """What a person may set of SplitJoin.

    Attributes
    ----------
    fanout
        Most branches of a node in the two trees; None goes without trees.
    """

    fanout: Fanout | None = None


class SplitJoinTopology(StoringInTurnsTopology[SplitJoinParameters]):
    """SplitJoin (Najafi, Sadoghi, Jacobsen): every PE stores a share and probes with everything.

    Storing and probing are split: a tuple reaches all PEs, probes at every one of them, and is
    stored at one, in turns: which one, a PE knows from its own number and the tuple's position.
    With a *fanout* messages come down a tree of distributors and results go up a tree of
    collectors, as in the original; without it the router reaches each PE itself::

        source -> router -> (distributors) -+-> joiner.0 -+-> (collectors) -> sink
                                            +-> joiner.1 -+
                                            +-> ...      -+

    A tuple costs a message to each of the k PEs and an answer from each; the k windows together
    hold it once. The original's storage and processing cores work side by side; here they are the
    two steps of one message. Its punctuations, which order the results of different cores, are left
    out: a result names its tuples.
    """

    name = "split_join"
    title = "SplitJoin: PEs store tuples in turns, and every tuple probes at all of them"
    paper = (
        "SplitJoin: A Scalable, Low-latency Stream Join Architecture with Adjustable Ordering "
        "Precision (Najafi, Sadoghi and Jacobsen, USENIX ATC 2016)"
    )
    parameters_type = SplitJoinParameters

    def lay_out(self, job: Job, parameters: SplitJoinParameters) -> Layout:
        """Return PEs that all store both streams, between the trees."""
        return replace(super().lay_out(job, parameters), fanout=parameters.fanout)


class ScaleJoinTopology(StoringInTurnsTopology[StoringInTurnsParameters]):
    """ScaleJoin (Gulisano et al.): deterministic, every PE compares its share of all comparisons.

    Each stream has a source of its own. A ScaleGate merges them into one order that depends on the
    streams alone, every PE gets all tuples in it, and each stores one in turns::

        source.R -+-> gate -> router -+-> joiner.0 -+-> sink
        source.S -+                   +-> joiner.1 -+
                                      +-> ...      -+

    Where SplitJoin has one input whose order is the order of arrival, here tuples wait until all
    streams have come past their event time; from there on messages are SplitJoin's, without trees.
    The router is the gate's other half: on its machine it gives tuples their windows. The original
    merges results through a second gate, in the order of event times; a result names its tuples
    here and goes straight to the sink. It counts tuples of all streams to take turns in storing
    them; here each stream is counted by itself, which shares out either window as evenly.
    """

    name = "scale_join"
    title = "ScaleJoin: streams merged by event time, then stored in turns and probed at all PEs"
    paper = (
        "ScaleJoin: A Deterministic, Disjoint-Parallel and Skew-Resilient Stream Join "
        "(Gulisano et al., IEEE Transactions on Big Data 2016)"
    )
    parameters_type = StoringInTurnsParameters

    def add_entrance(self, graph: ActorGraph, job: Job) -> str:
        """Add a source for each stream, and the gate that merges them."""
        return add_gate(graph, job, "gate", ScaleGate, schemas=job.schemas)
