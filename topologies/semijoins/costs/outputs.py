"""What streams joined so far are like, as either operand of the next one-way join.

Rate, distinct values and width follow from which streams are joined, whatever the order they were
joined in. In a join sequence the head's tuple is the newest of every output, and the next stream
comes alone; in a tree any stream's may be the newest, and outputs meet each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topologies.semijoins.costs.operands import Operands, distinct_among
from topologies.semijoins.costs.statistics import JoinStatistics

_NEVER = 1e-300
"""Least selectivity: its logarithm must be finite."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Sets of joined streams, one per row.

    Attributes
    ----------
    done
        Which streams are joined, bool, (rows, streams).
    heads
        Of which of them the newest tuple may be, bool, (rows, streams).
    full_bytes
        Size of a combination, (rows).
    """

    done: np.ndarray
    heads: np.ndarray
    full_bytes: np.ndarray


class OutputStatistics:
    """Figures of outputs under given statistics.

    Attributes
    ----------
    alone
        Every stream as it comes.
    """

    def __init__(self, statistics: JoinStatistics) -> None:
        self._statistics = statistics
        streams = statistics.streams
        self._rate = np.array([stream.rate_tps for stream in streams])
        self._window = np.array([stream.window_rows for stream in streams])
        self.full_bytes = np.array([stream.full_bytes for stream in streams])
        each = np.eye(len(streams), dtype=bool)
        self.alone = Outputs(done=each, heads=each, full_bytes=self.full_bytes)

    def rates(self, outputs: Outputs) -> np.ndarray:
        """Return the tuples a second of every output by the stream of the newest, (rows, streams).

        With each stream, r becomes r · w · ρ.
        """
        combinations = self._combinations(outputs.done)[:, None]
        return np.where(outputs.heads, combinations * self._rate / self._window, 0.0)

    def _combinations(self, done: np.ndarray) -> np.ndarray:
        """Return how many combinations of tuples in windows match, (rows)."""
        found = np.where(done, np.log(self._window), 0).sum(axis=1)
        for attribute in self._statistics.attributes:
            found += np.log(np.maximum(attribute.selectivity(done), _NEVER))
        for other in self._statistics.others:
            both = done[:, list(other.distinct)].all(axis=1)
            found += np.where(both, np.log(max(other.selectivity, _NEVER)), 0)
        return np.exp(found)

    def operands(self, one: Outputs, two: Outputs, removal_s: float) -> Operands:
        """Return S_1, outputs *one*, beside S_2, outputs *two*: arrays of (ones, twos).

        What expired is kept for *removal_s*.
        """
        shape = len(one.done), len(two.done)
        distinct_1, distinct_2, share_12, share_21 = np.ones((4, *shape))
        partial = np.zeros(shape)
        equality = np.zeros(shape, dtype=bool)
        from_head = np.ones((*shape, one.done.shape[1]), dtype=bool)
        for attribute in self._statistics.attributes:
            shared = attribute.shared(one.done, two.done)
            distinct_1 *= np.where(shared, attribute.values(one.done)[:, None], 1.0)
            distinct_2 *= np.where(shared, attribute.values(two.done), 1.0)
            there, back = attribute.shares(one.done, two.done)
            share_12 *= there
            share_21 *= back
            partial += shared * attribute.partial_bytes
            equality |= shared
            from_head &= attribute.has | ~shared[:, :, None]
        rates_1 = self.rates(one)
        rate_2 = self.rates(two).sum(axis=1)
        # A tuple that is just as old as may be is still held, until the next one comes.
        longest_s = np.where(two.done, self._window / self._rate, 0).max(axis=1)
        held = rate_2 * (longest_s + removal_s) + 1
        held_s = held / rate_2
        hit: np.ndarray = share_12 * distinct_among(distinct_2, held) / distinct_2
        draws = np.where(from_head, np.minimum(rates_1, self._rate)[:, None], rates_1[:, None])
        draws = draws.sum(axis=2)
        for other in self._statistics.others:
            for near, far in (tuple(other.distinct), tuple(other.distinct)[::-1]):
                meets = one.done[:, near][:, None] & two.done[:, far]
                miss = np.log1p(-min(other.selectivity, 1 - 1e-12))
                hit *= np.where(meets, -np.expm1(miss * held), 1.0)
                share_21 *= np.where(meets, -np.expm1(miss * draws * held_s), 1.0)
                distinct_1 *= np.where(meets, other.distinct[near], 1.0)
                distinct_2 *= np.where(meets, other.distinct[far], 1.0)
                partial += np.where(meets, other.partial_bytes, 0.0)
        return Operands(
            rate_1=np.broadcast_to(rates_1.sum(axis=1)[:, None], shape),
            draws_1=draws,
            rate_2=rate_2,
            window_2=self._combinations(two.done),
            held_2=held,
            held_s=held_s,
            distinct_1=distinct_1,
            distinct_2=distinct_2,
            share_21=share_21,
            hit=hit,
            full_1=np.broadcast_to(one.full_bytes[:, None], shape),
            full_2=two.full_bytes,
            partial=partial,
            equality=equality,
            interval_s=self._statistics.interval_s,
            punctuated=self._statistics.punctuated,
            prices=self._statistics.prices,
        )
