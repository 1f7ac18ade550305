"""Low-latency handshake join (Roy, Teubner and Gemulla): a handshake join that does not wait.

The chain is that of the handshake join. A tuple is forwarded from core to core as fast as they take
it and stored on its way at one of them, its home, in turns; so it has met all others when it comes
out at the far end, and every core holds an equal share of both windows. A message crosses every
core for every batch of either stream: 2n messages for n cores, twice a broadcast's.
"""

from __future__ import annotations

from actors.handshake.low_latency import LowLatencyCore
from topologies.handshake_join import HandshakeJoin


class LowLatencyHandshakeJoin(HandshakeJoin):
    """A chain of cores through which tuples are forwarded at once."""

    name = "low_latency_handshake_join"
    title = "Low-latency handshake join: tuples pass all cores at once and are stored at one"
    paper = "Low-latency handshake join (Roy, Teubner and Gemulla, PVLDB 7(9), 2014)"
    core = LowLatencyCore
