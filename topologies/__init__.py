"""Who talks to whom: a file per system or family of systems, each a networkx graph of actors."""

from topologies.registry import (
    AUTO,
    TOPOLOGIES,
    Named,
    find_topologies,
    find_topology,
    registered_names,
)
from topologies.topology import Topology, TopologyError

__all__ = [
    "AUTO",
    "TOPOLOGIES",
    "Named",
    "Topology",
    "TopologyError",
    "find_topologies",
    "find_topology",
    "registered_names",
]
