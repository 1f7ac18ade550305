"""The topologies there are, by name."""

from __future__ import annotations

from difflib import get_close_matches

from topologies.spo_join import SpoJoin
from topologies.topology import Topology, TopologyError

TOPOLOGIES: dict[str, Topology] = {topology.name: topology for topology in (SpoJoin(),)}


def find_topology(name: str) -> Topology:
    """Return the topology called *name*.

    Raise :exc:`TopologyError` with the names there are, the nearest first, when there is none.
    """
    if name in TOPOLOGIES:
        return TOPOLOGIES[name]
    near = get_close_matches(name, TOPOLOGIES, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise TopologyError(
        f"no topology is called {name!r}: {hint}there are {', '.join(sorted(TOPOLOGIES))}"
    )
