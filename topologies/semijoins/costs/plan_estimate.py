"""What a plan of any ordering is estimated to cost: all of its one-way joins together."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from joins.semijoins.one_way_join import OneWayJoin

_SIMPLE = (OneWayJoin.SP_S, OneWayJoin.SP_D)
"""Algorithms that ship everything, whatever matches."""


@dataclass(frozen=True, kw_only=True)
class OneWayEstimate:
    """A one-way join of a plan; every figure is per second of arrivals.

    Attributes
    ----------
    source, destination
        Sites of S_1 and S_2.
    algorithm
        By which it is computed.
    seconds, nbytes
        Estimated time, and bytes shipped with the messages' headers.
    rate_in_tps
        Tuples a second of S_1.
    """

    source: int
    destination: int
    algorithm: OneWayJoin
    seconds: float
    nbytes: float
    rate_in_tps: float


@dataclass(frozen=True, kw_only=True)
class PlanEstimate:
    """What a plan is estimated to cost, per second of arrivals: C_JEP (equation 1)."""

    steps: tuple[OneWayEstimate, ...]

    @property
    def seconds(self) -> float:
        """Total execution time: of processing at all sites, and of all transmissions."""
        return sum(step.seconds for step in self.steps)

    @property
    def nbytes(self) -> float:
        """Bytes shipped."""
        return sum(step.nbytes for step in self.steps)

    def link_bytes(self, unevenness: float = 1.0) -> dict[tuple[int, int], float]:
        """Return the bytes shipped on every link, both ways together, by its two sites ascending.

        Semijoins ship at most *unevenness* times the bytes that formulas for even values say.
        """
        carried: dict[tuple[int, int], float] = defaultdict(float)
        for step in self.steps:
            link = min(step.source, step.destination), max(step.source, step.destination)
            carried[link] += step.nbytes * (1 if step.algorithm in _SIMPLE else unevenness)
        return carried
