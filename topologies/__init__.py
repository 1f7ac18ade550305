"""Who talks to whom: a file per system or family of systems, each a networkx graph of actors."""

from topologies.registry import TOPOLOGIES, find_topology
from topologies.topology import Topology, TopologyError

__all__ = ["TOPOLOGIES", "Topology", "TopologyError", "find_topology"]
