"""What there is, in the terminal: scenarios, topologies, prepared streams."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from spark_bridge.prepared import REJECTED, PreparedStream
from topologies import Topology
from topologies.actor_graph import ActorGraph
from topologies.parameters import describe


def show_catalog(out: Console, scenarios: list[dict[str, Any]], topologies: list[Topology]) -> None:
    """List scenarios and topologies."""
    table = Table("scenario", "figure", "runs", "topologies", "what it is")
    for scenario in scenarios:
        table.add_row(
            scenario["name"],
            scenario["figure"] or "",
            str(scenario["runs"]),
            ", ".join(scenario["topologies"]),
            scenario["title"],
        )
    out.print(table)
    table = Table("topology", "exact", "what it is", "paper")
    for topology in topologies:
        exact = "yes" if topology.exact else "no claim"
        table.add_row(topology.name, exact, topology.title, topology.paper)
    out.print(table)


def show_topology(out: Console, topology: Topology, graph: ActorGraph) -> None:
    """Show a topology's operators, their PEs, and what each sends to whom."""
    tree = Tree(Text(topology.title, "bold"))
    pes: dict[str, list[str]] = {}
    for name, role in graph.nodes(data="role"):
        pes.setdefault(role, []).append(name)
    for role, names in pes.items():
        branch = tree.add(Text.assemble((role, "bold cyan"), f"  {_listed(names)}"))
        targets: dict[str, list[str]] = {}
        for name in names:
            for port, receivers in graph.wiring[name].items():
                known = targets.setdefault(port, [])
                known += [receiver for receiver in receivers if receiver not in known]
        for port, reached in targets.items():
            branch.add(Text.assemble(f"{port} -> ", (_listed(reached), "green")))
    out.print(tree)
    out.print(f"{len(graph)} actors on {len(set(graph.placement.values()))} sites")
    out.print(f"from: {topology.paper}")
    show_parameters(out, topology)


def show_parameters(out: Console, topology: Topology) -> None:
    """List what may be set of a topology."""
    table = Table("parameter", "by default", "allowed", "what it is")
    for parameter in describe(topology):
        table.add_row(parameter.name, parameter.default, parameter.allowed, Text(parameter.meaning))
    if table.row_count:
        out.print(table)


def show_prepared(out: Console, stream: PreparedStream) -> None:
    """Say what a prepared stream holds."""
    out.print(
        f"stream {stream.name}: {stream.rows:,} tuples in {stream.path}, "
        f"{stream.rejected:,} rejected"
    )
    remarks(out, stream)


def remarks(out: Console, stream: PreparedStream, *, style: str | None = None) -> None:
    """Say what was decided about a stream's rows, and why some of them are not in it."""
    for note in stream.notes:
        out.print(f"    {note}", style=style)
    if stream.rejected:
        reasons = ", ".join(
            f"{count:,} x {reason}" for reason, count in stream.rejected_reasons.items()
        )
        out.print(
            f"    rejected: {reasons}; the rows are in {stream.path.with_name(REJECTED)}",
            style=style,
        )


def _listed(names: list[str]) -> str:
    """Name a few PEs in full, and of many the first and the last."""
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} .. {names[-1]} ({len(names)})"
