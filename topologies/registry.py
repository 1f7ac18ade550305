"""The topologies there are, by name."""

from __future__ import annotations

from difflib import get_close_matches

from topologies.b_plus_tree import BPlusTreeJoin
from topologies.bchj import Bchj
from topologies.chain_index import ChainIndex
from topologies.dp_oij import DpOij
from topologies.flink_oij import FlinkOij
from topologies.handshake_join import HandshakeJoin
from topologies.hash_join import HashJoin
from topologies.hp_oij import HpOij
from topologies.ibwj import Ibwj
from topologies.ie_join import IeJoin
from topologies.kp_oij import KpOij
from topologies.low_latency_handshake_join import LowLatencyHandshakeJoin
from topologies.nested_loop import NestedLoop
from topologies.panjoin import PanJoin
from topologies.scale_join import ScaleJoin
from topologies.scale_oij import ScaleOij
from topologies.semijoin import Semijoin
from topologies.split_join import SplitJoin
from topologies.split_oij import SplitOij
from topologies.spo_join import SpoJoin
from topologies.topology import Topology, TopologyError

TOPOLOGIES: dict[str, Topology] = {
    topology.name: topology
    for topology in (
        SpoJoin(),
        ChainIndex(),
        SplitJoin(),
        ScaleJoin(),
        HandshakeJoin(),
        LowLatencyHandshakeJoin(),
        Bchj(),
        HashJoin(),
        BPlusTreeJoin(),
        IeJoin(),
        NestedLoop(),
        KpOij(),
        DpOij(),
        HpOij(),
        FlinkOij(),
        ScaleOij(),
        SplitOij(),
        PanJoin(),
        Ibwj(),
        Semijoin(),
    )
}


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
