"""What a planner is: it says how a system will go about a query, and what that should cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.source import NS_PER_S
from netsim.network import link_between
from scenarios.formatting import NO_VALUE
from scenarios.plan import Plan
from scenarios.report.text_table import TextTable, notebook_html
from scenarios.run import Report
from topologies.actor_graph import ActorGraph


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Something that is estimated and can be measured in a run; None where it was not measured."""

    name: str
    unit: str
    estimated: float
    measured: float | None = None


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """How a system will go about a query.

    Attributes
    ----------
    plan
        As people write it, a line each.
    tables
        Why: what it was costed with, and what every part of it costs.
    costs
        What the whole should cost.
    """

    plan: tuple[str, ...]
    tables: tuple[TextTable, ...]
    costs: tuple[Cost, ...]

    @property
    def costs_table(self) -> TextTable:
        """What it was estimated to cost, and what it did in a run where there was one."""
        columns = ("", "estimated", "simulated", "estimate over simulation")
        return TextTable(columns=columns, rows=list(map(_cost_row, self.costs)), text_columns=1)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        keys = ("title", "columns", "rows")
        tables = [{key: vars(table)[key] for key in keys} for table in self.tables]
        costs = [asdict(cost) for cost in self.costs]
        return {"plan": self.plan, "tables": tables, "costs": costs}

    def __repr__(self) -> str:
        costs = [
            f"{name}: {estimated} estimated, {simulated} simulated"
            for name, estimated, simulated, _ in self.costs_table.rows
        ]
        return "\n".join([*self.plan, *costs])

    def _repr_html_(self) -> str:
        return notebook_html("\n".join(self.plan), [*self.tables, self.costs_table])


def _cost_row(cost: Cost) -> tuple[str, str, str, str]:
    name = f"{cost.name}, {cost.unit}"
    if not cost.measured:
        return name, _five_digits(cost.estimated), NO_VALUE, NO_VALUE
    ratio = f"{cost.estimated / cost.measured:.3f}"
    return name, _five_digits(cost.estimated), _five_digits(cost.measured), ratio


def _five_digits(value: float) -> str:
    """Return a number to five digits, never with an exponent."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:,.5g}"


class Planner(ABC):
    """Proposes for one system; one per topology that chooses parameters by a cost model."""

    @abstractmethod
    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to set, beside the parameters *given*, so that the system does the planning.

        Nothing where they say what is to be done.
        """

    @abstractmethod
    def propose(self, plan: Plan) -> Proposal:
        """Return what the system will do in the run *plan*, and what that should cost.

        Raise :exc:`topologies.TopologyError` for what the cost model does not cover.
        """

    @abstractmethod
    def measure(self, report: Report, proposal: Proposal) -> Proposal:
        """Return the *proposal* with what the run of it cost."""


_COLUMNS = ["sender", "receiver", "nbytes", "sent_ns", "started_ns", "done_ns"]


@dataclass(frozen=True, kw_only=True)
class MeasuredPlan:
    """What went between sites, bytes, and the total execution time, seconds.

    The execution time is that of all processing and all transmissions, added up as if nothing
    overlapped (section 5.1 of the stream semijoin paper); a transmission takes its link's latency,
    and its size over the bandwidth.
    """

    nbytes: float
    seconds: float


def measured_cost(
    trace_path: Path, graph: ActorGraph, network: nx.Graph, roles: Collection[str]
) -> MeasuredPlan:
    """Return what the actors of *roles* did, and sent to each other over *network*."""
    everything = np.array([0, np.iinfo(np.int64).max])
    (measured,) = measured_costs(trace_path, graph, network, roles, everything)
    return measured


def measured_costs(
    trace_path: Path,
    graph: ActorGraph,
    network: nx.Graph,
    roles: Collection[str],
    edges_ns: np.ndarray,
) -> list[MeasuredPlan]:
    """Return what the actors of *roles* did, and sent to each other over *network*, by time.

    *edges_ns* are virtual times, int64, ascending: between each two of them goes what is due to
    messages that were sent from the first on and before the second.
    """
    actors = [name for name, role in graph.roles.items() if role in roles]
    trace = pq.read_table(trace_path, columns=_COLUMNS)
    span = np.searchsorted(edges_ns, trace["sent_ns"].to_numpy(), "right") - 1
    sender, receiver = (_places(trace[name], actors) for name in ("sender", "receiver"))
    sites = list(dict.fromkeys(graph.placement[name] for name in actors))
    place = {name: at for at, name in enumerate(sites)}
    site = np.array([place[graph.placement[name]] for name in actors], np.int64)
    within = (span >= 0) & (span < len(edges_ns) - 1)
    crosses = within & (sender >= 0) & (receiver >= 0) & (site[sender] != site[receiver])
    # Of the pairs of sites that occur: of thousands of sites, few of all pairs do.
    ends, pair = np.unique(
        site[sender[crosses]] * len(sites) + site[receiver[crosses]], return_inverse=True
    )
    links = [
        link_between(network, sites[end // len(sites)], sites[end % len(sites)])
        for end in ends.tolist()
    ]
    latency_s = np.array([link.latency.mean_ns / 1e9 for link in links if link])
    byte_s = 8 / np.array([link.bandwidth_bps for link in links if link], np.float64)
    sent = trace["nbytes"].to_numpy()[crosses]
    served = within & (receiver >= 0)
    served_ns = (trace["done_ns"].to_numpy() - trace["started_ns"].to_numpy())[served]
    measured = []
    for number in range(len(edges_ns) - 1):
        mine = span[crosses] == number
        transmissions_s = latency_s[pair[mine]].sum() + (sent[mine] * byte_s[pair[mine]]).sum()
        processing_s = float(served_ns[span[served] == number].sum()) / NS_PER_S
        measured.append(
            MeasuredPlan(
                nbytes=float(sent[mine].sum()), seconds=float(transmissions_s) + processing_s
            )
        )
    return measured


def _places(names: pa.ChunkedArray, actors: list[str]) -> np.ndarray:
    """Return for each name its place among *actors*; -1 for others."""
    place = {name: at for at, name in enumerate(actors)}
    return np.array([place.get(name, -1) for name in names.to_pylist()], np.int64)
