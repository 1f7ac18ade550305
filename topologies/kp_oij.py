"""KP-OIJ (PPOIJ, sections 3.1 and 4.1): each key has one replica.

Cheapest where there are enough keys of about equal frequency; a frequent key is one replica's load.
"""

from __future__ import annotations

from typing import Any

from pydantic.dataclasses import dataclass

from actors.interval_join.distribution import ByKey
from actors.interval_join.emitter import Emitter
from topologies.interval_join import (
    BatchingParameters,
    KeyedParameters,
    OijPattern,
)
from topologies.topology import STRICT


@dataclass(frozen=True, kw_only=True, config=STRICT)
class KpOijParameters(BatchingParameters, KeyedParameters):
    """What a person may set of KP-OIJ."""


class KpOij(OijPattern[KpOijParameters]):
    """Point-to-point distribution by key, and collectors that take whatever comes."""

    name = "kp_oij"
    title = "KP-OIJ: interval join, each key at one replica"
    parameters_type = KpOijParameters

    def emitter(self, parameters: KpOijParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that distribute point to point."""
        return Emitter, {"distribution": ByKey(parameters.homes)}
