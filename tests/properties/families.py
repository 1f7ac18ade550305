"""Systems that share their actors test these for each other: each has fewer examples."""

from __future__ import annotations

from math import ceil
from typing import Any

from topologies import TOPOLOGIES, Topology
from topologies.handshake_join import HandshakeJoinTopology
from topologies.interval_join import IntervalJoinTopology
from topologies.window_join import WindowJoinTopology

_FAMILIES = (HandshakeJoinTopology, WindowJoinTopology, IntervalJoinTopology)
_LEAST_SHARE = 0.2
"""Each is still tried by itself: how it wires the actors, and which it takes, is its own."""
_LEAST = 4


def examples_of(topology: Topology[Any], examples: int) -> int:
    """Return how many of *examples* to try of *topology*; its family has as many or more."""
    family = next((kind for kind in _FAMILIES if isinstance(topology, kind)), None)
    if family is None:
        return examples
    members = sum(isinstance(one, family) for one in TOPOLOGIES.values())
    share = max(_LEAST_SHARE, 1 / members)
    return min(examples, max(_LEAST, ceil(share * examples)))
