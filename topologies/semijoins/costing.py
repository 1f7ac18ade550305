"""What a step of a join sequence costs: Appendix B's formulas on the output joined so far.

The output of a head stream joined with others is described by the set of streams in it and by the
site it is at, whatever the order they were joined in: rate, distinct values and width follow from
the set. So steps are priced for many outputs at once, rows of a `Frontier`, and for every stream
that may come next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from joins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from topologies.semijoins.bloom_formulas import FORMULAS
from topologies.semijoins.formulas import Operands, Term, distinct_among
from topologies.semijoins.statistics import JoinStatistics

_NEVER = 1e-300
"""Least selectivity: its logarithm must be finite."""


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
    """

    def __init__(
        self, statistics: JoinStatistics, algorithms: Sequence[OneWayJoin] = PAPER_ALGORITHMS
    ) -> None:
        self.statistics = statistics
        self.algorithms = tuple(algorithms)
        self.at_source = np.array([algorithm.at_source for algorithm in self.algorithms])
        interval_s = statistics.interval_s
        self._removal_s = np.ceil(statistics.delay_s / interval_s) * interval_s
        streams = statistics.streams
        self._rate = np.array([stream.rate_tps for stream in streams])
        self._window = np.array([stream.window_rows for stream in streams])
        self._full = np.array([stream.full_bytes for stream in streams])
        self._adjacent = nx.to_numpy_array(statistics.graph, range(len(streams))).astype(bool)

    def seconds(self, frontier: Frontier) -> np.ndarray:
        """Return the time of every next step, (rows, streams, algorithms), seconds a second.

        It is infinite for a stream that is joined already, or shares no predicate.
        """
        operands = self.operands(frontier)
        latency_s = self.statistics.latency_s[frontier.site]
        bandwidth_bps = self.statistics.bandwidth_bps[frontier.site]
        times = [
            self.time(FORMULAS[algorithm](operands), latency_s, bandwidth_bps)
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
        """Return the tuples a second of every output.

        With each stream, r becomes r · w · ρ.
        """
        done = frontier.done
        rate = np.log(self._rate[frontier.head])
        rate += np.where(done, np.log(self._window), 0).sum(axis=1)
        rate -= np.log(self._window[frontier.head])
        for attribute in self.statistics.attributes:
            rate += np.log(np.maximum(attribute.selectivity(done), _NEVER))
        for other in self.statistics.others:
            both = done[:, list(other.distinct)].all(axis=1)
            rate += np.where(both, np.log(max(other.selectivity, _NEVER)), 0)
        return np.exp(rate)

    def operands(self, frontier: Frontier) -> Operands:
        """Return S_1, every output, beside S_2, every stream: arrays of (rows, streams)."""
        done = frontier.done
        shape = done.shape
        distinct_1, distinct_2, share_12, share_21 = np.ones((4, *shape))
        partial = np.zeros(shape)
        from_head = np.ones(shape, dtype=bool)
        for attribute in self.statistics.attributes:
            shared = attribute.shared(done)
            distinct_1 *= np.where(shared, attribute.values(done)[:, None], 1.0)
            distinct_2 *= np.where(shared, attribute.distinct, 1.0)
            there, back = attribute.shares(done)
            share_12 *= there
            share_21 *= back
            partial += shared * attribute.partial_bytes
            from_head &= attribute.has[frontier.head][:, None] | ~shared
        held_s = self._window / self._rate + self._removal_s
        held = self._rate * held_s
        hit: np.ndarray = share_12 * distinct_among(distinct_2, held) / distinct_2
        rate = np.broadcast_to(self.rates(frontier)[:, None], shape)
        head_rate = self._rate[frontier.head][:, None]
        draws = np.where(from_head, np.minimum(rate, head_rate), rate)
        for other in self.statistics.others:
            for stream, (near, far) in _both_ways(other.distinct):
                meets = done[:, near]
                miss = np.log1p(-min(other.selectivity, 1 - 1e-12))
                hit[meets, stream] *= -np.expm1(miss * held[stream])
                share_21[meets, stream] *= -np.expm1(miss * draws[meets, stream] * held_s[stream])
                distinct_1[meets, stream] *= other.distinct[near]
                distinct_2[meets, stream] *= other.distinct[far]
                partial[meets, stream] += other.partial_bytes
        return Operands(
            rate_1=rate,
            draws_1=draws,
            rate_2=self._rate,
            window_2=self._window,
            held_2=held,
            held_s=held_s,
            distinct_1=distinct_1,
            distinct_2=distinct_2,
            share_21=share_21,
            hit=hit,
            full_1=np.broadcast_to((done @ self._full)[:, None], shape),
            full_2=self._full,
            partial=partial,
            interval_s=self.statistics.interval_s,
            punctuated=self.statistics.punctuated,
            prices=self.statistics.prices,
        )


def _both_ways(distinct: dict[int, float]) -> list[tuple[int, tuple[int, int]]]:
    """Return for either of two streams as the next: itself, and (the other, itself)."""
    a, b = distinct
    return [(b, (a, b)), (a, (b, a))]
