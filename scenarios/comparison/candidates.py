"""Which systems, and which variants of them, a comparison runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from scenarios.config import RunConfig
from scenarios.scenario_files import ConfigError, change
from topologies import TOPOLOGIES, Topology, find_topology

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


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One system as it is to be run; *config* is a plain run, to be repeated alone."""

    label: str
    config: RunConfig


def candidates(
    base: RunConfig, names: Sequence[str], settings: Mapping[str, Any]
) -> list[Candidate]:
    """Return what to run: the systems *names*, or all there are.

    *settings* are changes by key, as on the command line. What is no key of a configuration is a
    parameter of the systems that have one of that name. The base's own parameters go to its own
    topology.

    Raises
    ------
    ConfigError
        A setting means nothing to any of the systems.
    TopologyError
        There is no system of that name.
    """
    topologies = [find_topology(name) for name in names] or list(TOPOLOGIES.values())
    known = base.model_dump()
    general = {key: value for key, value in settings.items() if "." in key or key in known}
    special = {key: value for key, value in settings.items() if key not in general}
    allowed = {topology.name: _parameters(topology) for topology in topologies}
    for key in special:
        if not any(key in names_ for names_ in allowed.values()):
            raise ConfigError(
                f"--set {key}: no system compared here has such a parameter; there are "
                f"{', '.join(sorted(set().union(*allowed.values())))}"
            )
    base = change(base, general)
    found: dict[str, Candidate] = {}
    for topology in topologies:
        own = {k: v for k, v in special.items() if k in allowed[topology.name]}
        if topology.name == base.topology:
            own = base.parameters | own
        for label, variant in VARIANTS.get(topology.name, {topology.name: {}}).items():
            config = change(base, {"topology": topology.name, "parameters": {**variant, **own}})
            # A setting can make two variants one.
            found.setdefault(
                repr((topology.name, sorted(config.parameters.items()))),
                Candidate(label=label, config=config),
            )
    return list(found.values())


def _parameters(topology: Topology[Any]) -> set[str]:
    return {parameter.name for parameter in fields(topology.parameters_type)}
