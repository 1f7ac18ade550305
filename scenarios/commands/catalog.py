"""``joinsim list`` and ``joinsim show``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from scenarios import scenario_files
from scenarios.commands.options import parse_settings
from scenarios.commands.output import print_json
from scenarios.plan import make_parameters
from scenarios.study.study import Study, load_study
from scenarios.terminal.progress import Terminal
from scenarios.terminal.views import show_catalog, show_topology
from topologies import TOPOLOGIES, Topology, find_topology
from topologies.parameters import describe


def list_all(*, json_output: bool) -> None:
    """List scenarios and topologies."""
    scenarios = [_scenario(name) for name in scenario_files.catalog()]
    topologies = list(TOPOLOGIES.values())
    if json_output:
        print_json(
            {"scenarios": scenarios, "topologies": [_topology(topology) for topology in topologies]}
        )
    else:
        show_catalog(Terminal().out, scenarios, topologies)


def show(name: str, settings: list[str], out: Path | None) -> None:
    """Show a topology and its parameters in the terminal, or draw it into a file."""
    topology = find_topology(name)
    parameters = make_parameters(topology, parse_settings(settings))
    graph = topology.build(topology.example(), parameters)
    terminal = Terminal()
    if out:
        from scenarios.report.topology_drawing import draw_topology

        draw_topology(graph, topology.title, out)
        terminal.out.print(f"wrote {out}")
    else:
        show_topology(terminal.out, topology, graph)


def _scenario(name: str) -> dict[str, Any]:
    config = scenario_files.load(name)
    study: Study | None = load_study(name)
    return {
        "name": config.name,
        "title": config.title,
        "figure": config.figure,
        "topologies": study.topologies if study else [config.topology],
        "query": " ".join(config.query.split()),
        "runs": len(study.points) if study else 1,
    }


def _topology(topology: Topology[Any]) -> dict[str, Any]:
    return {
        "name": topology.name,
        "title": topology.title,
        "exact": topology.exact,
        "paper": topology.paper,
        "parameters": [asdict(parameter) for parameter in describe(topology)],
    }
