"""What the two-way joins of a tree cost: Appendix B's formulas in both directions.

The paper only says that tree ordering needs "a different cost model pertinent to the ordering"
(section 4.2). The formulas hold where S_1 and S_2 are output streams: of rates added up over all of
their streams, for any stream's tuple may be the newest of a combination.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topologies.semijoins.costs.bloom_formulas import FORMULAS
from topologies.semijoins.costs.costing import Costing, probes_late
from topologies.semijoins.costs.operands import Term
from topologies.semijoins.costs.outputs import Outputs

_OWN_BYTES, _KEY_BYTES = 24, 8
"""What a tuple of an output stream has of its own (`joins.semijoins.operand`), and does not have of
each tuple in it."""


@dataclass(frozen=True, kw_only=True)
class OneWayCosts:
    """One-way joins from outputs to others by every algorithm: (ones, twos, algorithms), a second.

    Attributes
    ----------
    processing_s
        Time of processing.
    shipments, shipped_bytes
        Messages, and bytes in them without their headers.
    """

    processing_s: np.ndarray
    shipments: np.ndarray
    shipped_bytes: np.ndarray


class TreeCosting:
    """Prices of a tree's joins.

    Parameters
    ----------
    costing
        Under whose statistics, and of which algorithms.
    """

    def __init__(self, costing: Costing) -> None:
        self.costing = costing

    def outputs(self, done: np.ndarray) -> Outputs:
        """Return what the sets of streams *done* make; bool, (outputs, streams)."""
        members = done.sum(axis=1)
        own = np.where(members > 1, _OWN_BYTES - _KEY_BYTES * members, 0)
        full_bytes = done @ self.costing.outputs.full_bytes + own
        return Outputs(done=done, heads=done, full_bytes=full_bytes)

    def terms(self, ones: np.ndarray, twos: np.ndarray) -> list[list[Term]]:
        """Return each algorithm's terms, their figures (ones, twos) for sets of streams."""
        one, two = self.outputs(ones), self.outputs(twos)
        operands = {
            late: self.costing.outputs.operands(one, two, self._removal_s(late))
            for late in (False, True)
        }
        return [FORMULAS[join](operands[probes_late(join)]) for join in self.costing.algorithms]

    def one_way(self, ones: np.ndarray, twos: np.ndarray) -> OneWayCosts:
        """Return what joins from every one of *ones* to every one of *twos* cost."""
        shape = len(ones), len(twos)
        terms = self.terms(ones, twos)

        def added(figure: str) -> np.ndarray:
            totals = []
            for each in terms:
                figures = [getattr(term, figure) for term in each]
                known = sum(one for one in figures if one is not None)
                totals.append(np.broadcast_to(np.asarray(known, np.float64), shape))
            return np.stack(totals, axis=-1)

        return OneWayCosts(
            processing_s=added("seconds"),
            shipments=added("shipments"),
            shipped_bytes=added("shipped_bytes"),
        )

    def seconds(
        self, costs: OneWayCosts, one: int, two: int, sites: np.ndarray, other_sites: np.ndarray
    ) -> np.ndarray:
        """Return the time of a one-way join, whose places in *costs* are *one* and *two*.

        By the site of either output and by algorithm: (sites, other sites, algorithms).
        """
        statistics = self.costing.statistics
        links = np.ix_(sites, other_sites)
        shipments = costs.shipments[one, two]
        sent_bytes = costs.shipped_bytes[one, two] + shipments * statistics.header_bytes
        bandwidth_bps = statistics.bandwidth_bps[links][:, :, None]
        latency_s = statistics.latency_s[links][:, :, None]
        carried_s = shipments * latency_s + 8 * sent_bytes / bandwidth_bps
        return costs.processing_s[one, two] + carried_s

    def _removal_s(self, late_probes: bool) -> float:
        """Return how long what expired is kept: by the paper's model longer for each join below."""
        statistics = self.costing.statistics
        once = self.costing.removal_s(late_probes)
        return once if statistics.punctuated else once * (len(statistics.streams) - 1)
