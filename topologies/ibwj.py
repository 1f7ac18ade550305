"""The index-based window join of one multicore machine (PIM-Tree, Shahvarani and Jacobsen).

One machine holds the windows of both streams and an index of each; a tuple is looked up in the
other stream's index and inserted into its own::

    source -> machine -> sink

With *threads* at 0 one core does that, without locks: the paper's single-threaded join, over any of
its indexes. With more it is the parallel join of section 4: tuples wait in a shared queue, cores
take tasks from it, share the indexes, and results leave in arrival order. An actor is a machine
here and not a thread, because what threads do to each other takes nanoseconds and goes through
memory: in virtual time the machine simulates its cores itself, down to the locks that they wait
for, or for a Bw-Tree the compare-and-swaps that fail, and charges the time they took. In a live run
the threads are real. Both take the same steps (`joins.window_join.schedulers`).

The paper's joins over round-robin partitioned windows are SplitJoin (``split_join --set
index=nested_loop|b_plus_tree``) and low-latency handshake join.
"""

from __future__ import annotations

from typing import Annotated

from pydantic.dataclasses import dataclass

from actors.ibwj import Machine
from actors.source import Source
from joins.indexes.pim_tree.forest import level_nodes
from joins.indexes.pim_tree.forest_index import WIDTH
from joins.threads import usable_cores
from joins.window_join.window_join import WindowJoin
from joins.window_join.window_join_spec import SHARED, IndexName, WindowJoinSpec
from topologies.actor_graph import ActorGraph
from topologies.own_class import OrOwnClass, derived_from
from topologies.topology import STRICT, Job, Topology, TopologyError, unused_notes


@dataclass(frozen=True, kw_only=True, config=STRICT)
class IbwjParameters(WindowJoinSpec):
    """What can be set of the index-based window join."""

    index: Annotated[IndexName, OrOwnClass(derived_from(WindowJoin))] = "pim_tree"


_INDEXES_OF: dict[str, tuple[IndexName, ...]] = {
    "merge": ("pim_tree", "im_tree"),
    "merge_ratio": ("pim_tree", "im_tree"),
    "insertion_depth": ("pim_tree",),
    "chain_length": ("ib_chain", "b_chain"),
}
"""Parameter to the indexes that have it."""


def _unused(p: IbwjParameters, *, live: bool) -> dict[str, str]:
    """Return each parameter that changes nothing, and what does not depend on it."""
    unused = {name: p.index_name for name, of in _INDEXES_OF.items() if p.index not in of}
    if p.threads:
        unused["lookup_rows"] = "an index that threads share"
        if live:
            unused["cores"] = "a live run"
    else:
        unused |= dict.fromkeys(("cores", "task_rows", "merge"), "one thread")
        if not live:
            unused["lookup_rows"] = "virtual time"
    return unused


def _unit_ps(job: Job, index: str, cores: int) -> tuple[int, ...]:
    """Return what a unit of work takes one of *cores* that share *index* with full windows.

    Each tuple is inserted once: the price of an insertion includes that of a tuple.
    """
    windows = job.query.windows
    tuples = max(
        window.length if window.kind == "count" else file.tuples
        for window, file in zip(windows, job.files, strict=True)
    )
    profile = job.profile.on_cores(cores, same=True)
    return profile.units_of(f"ibwj_shared_{index}.join", tuples)


class IbwjTopology(Topology[IbwjParameters]):
    """One machine, an index per window, cores that share it."""

    name = "ibwj"
    title = "IBWJ: one machine, windows in PIM-Trees (or other indexes) that its cores share"
    paper = (
        "Parallel Index-based Stream Join on a Multicore CPU (Shahvarani and Jacobsen, SIGMOD 2020)"
    )
    exact = True
    parameters_type = IbwjParameters
    example_query = (
        "SELECT R.id, S.id FROM R, S WHERE ABS(R.value - S.value) <= 5 "
        "WINDOW AS (SLIDE INTERVAL '1' ON '1048576')"
    )
    window_per_stream = True

    def notes(self, job: Job, parameters: IbwjParameters) -> tuple[str, ...]:
        """Return notes on shared cores, a depth beyond the tree's, and what changes nothing."""
        p, notes = parameters, []
        cores = usable_cores() if job.live else p.cores
        if cores and p.threads > cores:
            note = f"{p.threads} threads on {cores} cores: they share them"
            gain = ", and gain nothing by it, as no hyper-threading is simulated"
            notes.append(note + ("" if job.live else gain))
        longest = max((w.length for w in job.query.windows if w.kind == "count"), default=None)
        if p.index == "pim_tree" and longest is not None:
            deepest = max(0, len(level_nodes(longest, WIDTH)) - 1)
            if p.insertion_depth > deepest:
                notes.append(
                    f"insertion_depth = {p.insertion_depth}: the tree of a window of {longest} "
                    f"tuples is {deepest} deep, so subindexes hang at {deepest}"
                )
        return (*notes, *unused_notes(p, _unused(p, live=job.live)))

    def assemble(self, job: Job, parameters: IbwjParameters) -> ActorGraph:
        """Return source, machine and sink; refuse an index that threads cannot share."""
        p = parameters
        if p.threads and p.index not in SHARED:
            raise TopologyError(
                f"threads = {p.threads}: several threads cannot share an index of {p.index_name}; "
                f"leave threads at 0, or share one of {', '.join(SHARED)}"
            )
        graph = ActorGraph()
        source = graph.add("source", "source", Source, **job.input)
        machine = graph.add(
            "machine",
            "machine",
            Machine,
            **job.join,
            spec=p,
            unit_ps=None if job.live else _unit_ps(job, p.index_name, p.cores or p.threads),
            pairs=job.pairs,
        )
        graph.connect(source, "out", machine)
        graph.add_sink(machine)
        return graph
