"""What a step of a join sequence costs: Appendix B's formulas on the output joined so far.

The output of a head stream joined with others is described by the set of streams in it and by the
site it is at. So steps are priced for many outputs at once, rows of a `Frontier`, and for every
stream that may come next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import networkx as nx
import numpy as np

from actors.semijoins.parts import PARTS
from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from topologies.semijoins.costs.bloom_formulas import FORMULAS
from topologies.semijoins.costs.operands import Operands, Term
from topologies.semijoins.costs.outputs import Outputs, OutputStatistics
from topologies.semijoins.costs.statistics import JoinStatistics


@dataclass(frozen=True, kw_only=True)
class Frontier:
    """Outputs that are to be joined further, one per row.

    Attributes
    ----------
    head
        Head streams, int64.
    done
        Which streams are joined already, bool, (rows, streams).
    site
        Where the output is, int64.
    """

    head: np.ndarray
    done: np.ndarray
    site: np.ndarray

    @classmethod
    def of_heads(cls, streams: int) -> Frontier:
        """Return the beginnings of all join sequences: every stream at its own site."""
        everyone = np.arange(streams)
        return cls(head=everyone, done=np.eye(streams, dtype=bool), site=everyone)

    def take(self, rows: np.ndarray) -> Frontier:
        """Return the given *rows*."""
        return Frontier(head=self.head[rows], done=self.done[rows], site=self.site[rows])

    def joined(self, stream: np.ndarray, at_source: np.ndarray) -> Frontier:
        """Return the outputs after each was joined with its *stream*, at the source or there."""
        done = self.done.copy()
        done[np.arange(len(done)), stream] = True
        return Frontier(head=self.head, done=done, site=np.where(at_source, self.site, stream))


class Costing:
    """Prices of steps under given statistics.

    Parameters
    ----------
    statistics
        What is joined, over which network.
    algorithms
        Those to choose from, by default the paper's.

    Attributes
    ----------
    outputs
        Figures of what is joined so far.
    """

    def __init__(
        self, statistics: JoinStatistics, algorithms: Sequence[OneWayJoin] = PAPER_ALGORITHMS
    ) -> None:
        self.statistics = statistics
        self.algorithms = tuple(algorithms)
        self.at_source = np.array([algorithm.at_source for algorithm in self.algorithms])
        self.outputs = OutputStatistics(statistics)
        streams = range(len(statistics.streams))
        self._adjacent = nx.to_numpy_array(statistics.graph, streams).astype(bool)

    def seconds(self, frontier: Frontier) -> np.ndarray:
        """Return the time of every next step, (rows, streams, algorithms), seconds a second.

        It is infinite for a stream that is joined already, or shares no predicate.
        """
        operands = {late: self.operands(frontier, late_probes=late) for late in (False, True)}
        latency_s = self.statistics.latency_s[frontier.site]
        bandwidth_bps = self.statistics.bandwidth_bps[frontier.site]
        times = [
            self.time(
                FORMULAS[algorithm](operands[probes_late(algorithm)]), latency_s, bandwidth_bps
            )
            for algorithm in self.algorithms
        ]
        allowed = (frontier.done @ self._adjacent) & ~frontier.done
        return np.where(allowed[:, :, None], np.stack(times, axis=-1), np.inf)

    def time(
        self, terms: Sequence[Term], latency_s: np.ndarray, bandwidth_bps: np.ndarray
    ) -> np.ndarray:
        """Return the time of *terms*: processing, and S(x) = latency + x / bandwidth."""
        processing = sum(term.seconds for term in terms)
        shipments = sum(term.shipments for term in terms if term.shipments is not None)
        shipped_bytes = sum(term.shipped_bytes for term in terms)
        sent_bytes = shipped_bytes + shipments * self.statistics.header_bytes
        return processing + shipments * latency_s + 8 * sent_bytes / bandwidth_bps

    def rates(self, frontier: Frontier) -> np.ndarray:
        """Return the tuples a second of every output."""
        return self.outputs.rates(self._joined(frontier)).sum(axis=1)

    def operands(self, frontier: Frontier, *, late_probes: bool) -> Operands:
        """Return S_1, every output, beside S_2, every stream: arrays of (rows, streams).

        *late_probes* are of an algorithm whose probes wait δ, so that removals wait for them, too.
        """
        alone, removal_s = self.outputs.alone, self.removal_s(late_probes)
        return self.outputs.operands(self._joined(frontier), alone, removal_s)

    def _joined(self, frontier: Frontier) -> Outputs:
        return Outputs(
            done=frontier.done,
            heads=self.outputs.alone.done[frontier.head],
            full_bytes=frontier.done @ self.outputs.full_bytes,
        )

    def removal_s(self, late_probes: bool) -> float:
        """Return how long what expired is kept: δ, or 2 δ, to the end of an interval."""
        statistics = self.statistics
        delays = 2 if late_probes and not statistics.punctuated else 1
        return ceil(delays * statistics.delay_s / statistics.interval_s) * statistics.interval_s


def probes_late(algorithm: OneWayJoin) -> bool:
    """Return whether probes wait δ for what the destination ships of its own accord."""
    return PARTS[algorithm][0].delayed
