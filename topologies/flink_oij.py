"""Flink's keyed interval join, as PPOIJ compares with it: KP-OIJ with tuples handed over singly.

What is Flink's here is the pattern: a key has one parallel instance, and every tuple is a record of
its own on the wire. The kernels and what they cost are those of the other patterns, so no virtual
machine or serialisation makes it slower than KP-OIJ without batches.
"""

from __future__ import annotations

from topologies.interval_join import KeyedParameters, OijParameters
from topologies.kp_oij import KpOij


class FlinkOij(KpOij):
    """KP-OIJ tuple by tuple."""

    name = "flink_oij"
    title = "Flink's keyed interval join: each key at one replica, tuples handed over one by one"
    parameters_type = KeyedParameters

    def batching(self, parameters: OijParameters) -> dict[str, int]:
        """Return batches of one tuple."""
        return {"batch_rows": 1, "linger_turns": 0}
