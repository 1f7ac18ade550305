"""KP-OIJ (PPOIJ, sections 3.1 and 4.1): each key has one replica.

Cheapest where there are enough keys of about equal frequency; a frequent key is one replica's load.
"""

from __future__ import annotations

from typing import Any

from actors.interval_join.distribution import ByKey
from actors.interval_join.emitter import Emitter
from topologies.interval_join import OijParameters, OijPattern


class KpOij(OijPattern):
    """Point-to-point distribution by key, and collectors that take whatever comes."""

    name = "kp_oij"
    title = "KP-OIJ: interval join, each key at one replica"

    def emitter(self, parameters: OijParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that distribute point to point."""
        return Emitter, {"distribution": ByKey(parameters.replicas)}
