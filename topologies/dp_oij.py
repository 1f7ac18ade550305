"""DP-OIJ (PPOIJ, sections 3.2 and 4.2): every replica probes with every tuple.

The state of each key is dealt out over all replicas, so they are equally loaded however keys are
distributed; the price is that every tuple travels to each of them.
"""

from __future__ import annotations

from typing import Any, TypeVar

from actors.interval_join.distribution import ToAll
from actors.interval_join.emitter import Emitter
from actors.interval_join.replica import Order
from topologies.interval_join import CollectedParameters, OijPattern

CollectedP = TypeVar("CollectedP", bound=CollectedParameters)


class CollectedPattern(OijPattern[CollectedP]):
    """A pattern in which a tuple may reach several replicas, so that collectors must order."""

    def claims_exact(self, parameters: CollectedP) -> bool:
        """Return whether the collectors are ordered: Examples 4.1 and 4.2 are about naive ones."""
        return parameters.collector == "ordered"

    def collector(self, parameters: CollectedP) -> Order:
        """Return what the parameters say."""
        return parameters.collector


class DpOij(CollectedPattern[CollectedParameters]):
    """Full broadcast, and collectors that take the channels in turns."""

    name = "dp_oij"
    title = "DP-OIJ: interval join, every tuple to all replicas and stored at one"
    parameters_type = CollectedParameters

    def emitter(self, parameters: CollectedParameters) -> tuple[type[Emitter], dict[str, Any]]:
        """Return emitters that broadcast."""
        return Emitter, {"distribution": ToAll(parameters.replicas)}
