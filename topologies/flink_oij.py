"""Flink's keyed interval join, as PPOIJ compares with it: KP-OIJ with every tuple a message.

What is Flink's here is the pattern: a key has one parallel instance, and every tuple is a record of
its own on the wire. The kernels and what they cost are those of the other patterns, so no virtual
machine or serialisation makes it slower than KP-OIJ without batches.
"""

from __future__ import annotations

from typing import Any

from actors.interval_join.distribution import ByKey
from actors.interval_join.emitter import Emitter
from topologies.interval_join import KeyedParameters, OijPattern


class FlinkOij(OijPattern[KeyedParameters]):
    """KP-OIJ tuple by tuple."""

    name = "flink_oij"
    title = "Flink's keyed interval join: each key at one replica, tuples handed over one by one"
    parameters_type = KeyedParameters

    def emitter(self, parameters: KeyedParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that distribute point to point."""
        return Emitter, {"distribution": ByKey(parameters.homes)}
