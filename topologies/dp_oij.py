"""DP-OIJ (PPOIJ, sections 3.2 and 4.2): every replica probes with every tuple.

The state of each key is spread over all replicas, so they are equally loaded however keys are
distributed; the price is that every tuple travels to each of them.
"""

from __future__ import annotations

from typing import Any

from actors.interval_join.distribution import ToAll
from actors.interval_join.emitter import Emitter
from topologies.interval_join import CollectedParameters, OijPattern


class DpOij(OijPattern[CollectedParameters]):
    """Full broadcast, and collectors that take the channels in turns."""

    name = "dp_oij"
    title = "DP-OIJ: interval join, every tuple to all replicas and stored at one"
    parameters_type = CollectedParameters

    def emitter(self, parameters: CollectedParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that broadcast."""
        return Emitter, {"distribution": ToAll(parameters.replicas)}
