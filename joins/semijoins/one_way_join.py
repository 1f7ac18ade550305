"""The one-way join algorithms between two sites, by name (stream semijoin paper, section 3.1).

A one-way join S_1 → S_2 looks for each new tuple of S_1, at the source site, into the window of
S_2, at the destination site.
"""

from __future__ import annotations

from enum import StrEnum


class OneWayJoin(StrEnum):
    """How, and where, the tuples of a source are joined with the window of a destination."""

    SP_S = "SP-S"
    """Simple join at the source: all tuples of S_2 are shipped there (Algorithm 1)."""
    SP_D = "SP-D"
    """Simple join at the destination: all tuples of S_1 are shipped there (Algorithm 2)."""
    SM_S1 = "SM-S1"
    """One-step semijoin at the source (Algorithm 3)."""
    SM_S2 = "SM-S2"
    """Two-step semijoin at the source (Algorithm 4)."""
    SM_D1 = "SM-D1"
    """One-step semijoin at the destination (Algorithm 5)."""
    SM_D2 = "SM-D2"
    """Two-step semijoin at the destination (Algorithm 6)."""
    BLOOM_S = "BLOOM-S"
    """Semijoin at the source by a Bloom filter of the new tuples; not in the paper."""
    BLOOM_D = "BLOOM-D"
    """Semijoin at the destination by a Bloom filter of the window; not in the paper."""

    @property
    def at_source(self) -> bool:
        """Whether the output is made at the source site; else at the destination."""
        return self in _AT_SOURCE


_AT_SOURCE = (OneWayJoin.SP_S, OneWayJoin.SM_S1, OneWayJoin.SM_S2, OneWayJoin.BLOOM_S)

PAPER_ALGORITHMS = tuple(join for join in OneWayJoin if not join.startswith("BLOOM"))
"""The six of the paper."""
