"""One query on every system that can evaluate it: same data, same network, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from joins.errors import suggest
from scenarios.config import RunConfig
from scenarios.formatting import group_refusals
from scenarios.many_runs import RunResult, one_ray_for, run_one_of_many
from scenarios.plan import Plan, Prepare, make_plan
from scenarios.run_directory import POINTS, write_json
from scenarios.run_json import versions
from scenarios.scenario_files import ConfigError, change
from topologies import TOPOLOGIES, Named, Topology, TopologyError, find_topologies

VARIANTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "spo_join": {
        "spo_join": {},
        "spo_join, parted merges": {"merge_threshold": "slide/pes"},
        "spo_join, prefix grid": {"immutable": "prefix_grid"},
        "spo_join, CSS bits": {"immutable": "css_bits"},
        "spo_join, all hash": {"mutable": "hash", "immutable": "css_hash"},
    },
}
"""Systems that are compared in several variants: label to parameters."""

_KEYS = (
    "digest", "tuples", "virtual_seconds", "wall_seconds", "wall_parts", "throughput_tps",
    "latency_ms", "network", "state_bytes", "kernel_seconds", "verdict",
)  # fmt: skip


def systems_by_label(
    base: RunConfig, systems: Named | Sequence[Named], settings: Mapping[str, Any]
) -> dict[str, RunConfig]:
    """Return what to run, by label: *systems*, or all there are.

    Each is a plain run, which can be repeated alone. *settings* are as for `share`.

    Raises
    ------
    ConfigError
        A setting means nothing to any of the systems.
    TopologyError
        There is no system of that name.
    """
    topologies = find_topologies(systems) or list(TOPOLOGIES.values())
    base, own = share(base, topologies, settings)
    configs: dict[str, RunConfig] = {}
    for topology in topologies:
        for label, variant in VARIANTS.get(topology.name, {topology.name: {}}).items():
            parameters = {**variant, **own[topology.name]}
            config = change(base, {"topology": topology.name, "parameters": parameters})
            if config not in configs.values():  # a setting can make two variants one
                configs[label] = config
    return configs


def share(
    base: RunConfig, topologies: Sequence[Topology[Any]], settings: Mapping[str, Any]
) -> tuple[RunConfig, dict[str, dict[str, Any]]]:
    """Return what several systems have in common, and by name the parameters of each.

    *settings* are changes by key, as on the command line. What is no key of a configuration is a
    parameter of the systems that have one of that name. The base's own parameters go to its own
    topology.

    Raise :exc:`ConfigError` for a setting that means nothing to any of the systems.
    """
    known = base.model_dump()
    general = {key: value for key, value in settings.items() if "." in key or key in known}
    special = {key: value for key, value in settings.items() if key not in general}
    allowed = {
        topology.name: {parameter.name for parameter in fields(topology.parameters_type)}
        for topology in topologies
    }
    every = set().union(*allowed.values())
    for key in special:
        if key not in every:
            raise ConfigError(
                f"--set {key}: no system compared here has such a parameter; "
                f"{suggest(key, sorted(every))}"
            )
    base = change(base, general)
    own = {
        name: {key: value for key, value in special.items() if key in keys}
        for name, keys in allowed.items()
    }
    if base.topology in own:
        own[base.topology] = base.parameters | own[base.topology]
    return base, own


@dataclass(frozen=True, kw_only=True)
class SystemComparison:
    """What was compared, best first.

    Attributes
    ----------
    base
        What all runs share.
    results
        Label to what came out, by falling throughput; failures are last.
    refused
        Label to why a system cannot evaluate the query.
    streams
        Name, path and rows of the streams.
    """

    base: RunConfig
    results: dict[str, RunResult]
    refused: dict[str, str]
    streams: list[dict[str, Any]]

    @property
    def fastest(self) -> str | None:
        """The exact system of highest throughput."""
        for label, result in self.results.items():
            if result.passed and result.record["verdict"]["exact"]:
                return label
        return None

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        return {
            "comparison": self.base.name,
            "query": " ".join(self.base.query.split()),
            "streams": self.streams,
            "seed": self.base.seed,
            "backend": self.base.backend,
            "network": self.base.network.model_dump(mode="json"),
            "feeding": self.base.feeding.model_dump(mode="json"),
            "fastest_exact": self.fastest,
            "systems": [
                {
                    "label": label,
                    "topology": result.config.topology,
                    "parameters": result.config.parameters,
                    "claims_exact": result.claims_exact,
                    "passed": result.passed,
                    "failure": result.failure,
                    **{key: result.record.get(key) for key in _KEYS},
                }
                for label, result in self.results.items()
            ],
            "refused": [{"label": label, "reason": why} for label, why in self.refused.items()],
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``compare.json``."""
        write_json(directory / "compare.json", self.as_json(replay))


def plan_all(
    configs: Mapping[str, RunConfig],
    preparation: Prepare,
    own: Mapping[str, Topology[Any]] = MappingProxyType({}),
) -> tuple[dict[str, Plan], dict[str, str]]:
    """Return a plan for each system that can evaluate the query, and why the others cannot.

    *own* are the caller's own systems, by name.

    Raise :exc:`ConfigError` when none of them can.
    """
    plans, refused = {}, {}
    for label, config in configs.items():
        try:
            plans[label] = make_plan(config, topology=own.get(config.topology), prepare=preparation)
        except TopologyError as error:
            refused[label] = str(error)
    if not plans:
        raise ConfigError(
            f"no system compared here can evaluate the query: {group_refusals(refused)}"
        )
    return plans, refused


def run_all(
    plans: dict[str, Plan],
    refused: dict[str, str],
    directory: Path,
    *,
    on_point: Callable[[int, str], None],
    replay: Callable[[RunConfig], str],
) -> SystemComparison:
    """Run every plan into a folder of its own below *directory*."""
    results = {}
    with one_ray_for(plans.values()):
        for place, (label, plan) in enumerate(plans.items()):
            on_point(place, label)
            folder = directory / POINTS / re.sub(r"\W+", "-", label)
            results[label] = run_one_of_many(plan, folder, replay=replay(plan.config), keep=True)
    first = next(iter(plans.values()))
    ranked = sorted(results.items(), key=lambda item: -item[1].record.get("throughput_tps", -1))
    return SystemComparison(
        base=first.config,
        results=dict(ranked),
        refused=refused,
        streams=[
            {"name": stream.name, "path": str(stream.path), "rows": rows}
            for stream, rows in zip(first.streams, first.rows, strict=True)
        ],
    )
