"""What one-way joins and whole plans cost: Appendix B's formulas on what is joined so far.

Rate, distinct values and width of what is joined so far follow from which streams are in it,
whatever the order they were joined in. In a join sequence the head's tuple is the newest of every
combination, and the next stream comes alone; in a tree any stream's may be the newest, and outputs
meet each other. The paper only says that tree ordering needs "a different cost model pertinent to
the ordering" (section 4.2); its formulas hold where S_1 and S_2 are output streams.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import NamedTuple

import networkx as nx
import numpy as np

from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from topologies.semijoins.formulas import FORMULAS, Operands, Term, distinct_among
from topologies.semijoins.join_statistics import JoinStatistics, OutputValues
from topologies.semijoins.plans import JoinPlan, PlannedJoin, TreePlan

_NEVER = 1e-300
"""Least selectivity: its logarithm must be finite."""

_OWN_BYTES, _KEY_BYTES = 24, 8
"""What a tuple of an output stream has of its own (`joins.semijoins.operand`), and does not
have of each tuple in it."""


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Sets of joined streams, one per row."""

    done: np.ndarray
    """Which streams are joined, bool, (rows, streams)."""
    newest: np.ndarray
    """Of which of them the newest tuple may be, bool, (rows, streams)."""
    full_bytes: np.ndarray
    """Size of a combination, (rows)."""
    values: tuple[OutputValues, ...]
    """Those of each join attribute."""
    in_tree: bool
    """Whether they are streams of a tree; else they are on their way through join sequences."""


class OneWayCosts(NamedTuple):
    """One-way joins by every algorithm: (S_1, S_2, algorithms), per second of arrivals."""

    processing_s: np.ndarray
    """Time of processing."""
    shipments: np.ndarray
    sent_bytes: np.ndarray
    """Messages, and their bytes with headers."""

    def between(self, one: int, two: int) -> OneWayCosts:
        """Return the costs from the output in row *one* to the one in column *two*."""
        return OneWayCosts(*(figure[one, two] for figure in self))

    def seconds(self, latency_s: np.ndarray, bandwidth_bps: np.ndarray) -> np.ndarray:
        """Return the time over links: processing, and S(x) = latency + x / bandwidth."""
        latency_s, bandwidth_bps = latency_s[..., None], bandwidth_bps[..., None]
        waiting_s = self.processing_s + self.shipments * latency_s
        execution_s: np.ndarray = waiting_s + 8 * self.sent_bytes / bandwidth_bps
        return execution_s


class Costing:
    """Prices of one-way joins under given statistics.

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
        """Which of these make their output at the source, bool."""
        streams = statistics.streams
        self._rate = np.array([stream.rate_tps for stream in streams])
        self._window = np.array([stream.window_rows for stream in streams])
        self._full_bytes = np.array([stream.full_bytes for stream in streams])
        everyone = range(len(streams))
        self.adjacent = nx.to_numpy_array(statistics.graph, everyone).astype(bool)
        """Which streams share a predicate, bool, (streams, streams)."""
        self.alone = self.outputs(np.eye(len(streams), dtype=bool))
        """Every stream as it comes."""

    def outputs(self, done: np.ndarray, newest: np.ndarray | None = None) -> Outputs:
        """Return the output streams of the sets of streams *done*; bool, (rows, streams).

        With *newest*, likewise, what is on its way through the join sequences of these streams.
        """
        full_bytes, in_tree = done @ self._full_bytes, newest is None
        if in_tree:
            members = done.sum(axis=1)
            full_bytes += np.where(members > 1, _OWN_BYTES - _KEY_BYTES * members, 0)
        return Outputs(
            done=done,
            newest=done if newest is None else newest,
            full_bytes=full_bytes,
            values=tuple(one.of_outputs(done) for one in self.statistics.attributes),
            in_tree=in_tree,
        )

    def members(self, sets: Iterable[tuple[int, ...]]) -> np.ndarray:
        """Return which streams each of *sets* has, bool, (sets, streams)."""
        streams = range(len(self.statistics.streams))
        return np.array([np.isin(streams, members) for members in sets])

    def rates(self, outputs: Outputs) -> np.ndarray:
        """Return the tuples a second of every output by the stream of the newest, (rows, streams).

        With each stream, r becomes r · w · ρ.
        """
        combinations = self._combinations(outputs)[:, None]
        return np.where(outputs.newest, combinations * self._rate / self._window, 0.0)

    def _combinations(self, outputs: Outputs) -> np.ndarray:
        """Return how many combinations of tuples in windows match, (rows)."""
        log = np.where(outputs.done, np.log(self._window), 0).sum(axis=1)
        for values in outputs.values:
            log += np.log(np.maximum(values.selectivity, _NEVER))
        for other in self.statistics.others:
            both = outputs.done[:, list(other.distinct)].all(axis=1)
            log += np.where(both, np.log(max(other.selectivity, _NEVER)), 0)
        combinations: np.ndarray = np.exp(log)
        return combinations

    def costs(self, one: Outputs, two: Outputs) -> OneWayCosts:
        """Return what joins from every output of *one* to every one of *two* cost."""
        shape = len(one.done), len(two.done)
        processing_s, shipments, shipped_bytes = np.empty((3, *shape, len(self.algorithms)))
        for place, terms in enumerate(self.terms(one, two)):
            processing_s[:, :, place] = sum(term.seconds for term in terms)
            shipments[:, :, place] = sum(
                term.shipments for term in terms if term.shipments is not None
            )
            shipped_bytes[:, :, place] = sum(term.shipped_bytes for term in terms)
        sent_bytes = shipped_bytes + shipments * self.statistics.header_bytes
        return OneWayCosts(processing_s, shipments, sent_bytes)

    def terms(self, one: Outputs, two: Outputs) -> list[list[Term]]:
        """Return each algorithm's terms, their figures (ones, twos)."""
        removals_s = [self._removal_s(join, in_tree=one.in_tree) for join in self.algorithms]
        operands = {removal_s: self._operands(one, two, removal_s) for removal_s in {*removals_s}}
        return [
            FORMULAS[join](operands[removal_s])
            for join, removal_s in zip(self.algorithms, removals_s, strict=True)
        ]

    def _removal_s(self, algorithm: OneWayJoin, *, in_tree: bool) -> float:
        """Return how long what expired is stored, a multiple of τ: it goes as an interval ends.

        In the paper's model δ, once more behind a delayed probe, and as much again for each join of
        a tree. Punctuated there is no δ: what an interval made unseen goes when its probes have
        come. They take the latency of the slowest link, and a little more for their bytes; behind
        what the destination announces, as long once more.
        """
        statistics = self.statistics
        punctuated = statistics.punctuated
        wait_s = statistics.latency_s.max() if punctuated else statistics.delay_s
        waits = 2 if algorithm.delayed else 1
        intervals = round(waits * float(wait_s) / statistics.interval_s, 9)  # 3, not 2.9999999999
        if punctuated:
            return (floor(intervals) + 1) * statistics.interval_s
        joins = len(statistics.streams) - 1 if in_tree else 1
        return ceil(intervals) * statistics.interval_s * joins

    def _operands(self, one: Outputs, two: Outputs, removal_s: float) -> Operands:
        """Return S_1, outputs *one*, beside S_2, outputs *two*: arrays of (ones, twos)."""
        shape = len(one.done), len(two.done)
        distinct_1, distinct_2, share_12, share_21 = np.ones((4, *shape))
        partial = np.zeros(shape)
        equality = np.zeros(shape, dtype=bool)
        from_newest = np.ones((*shape, one.done.shape[1]), dtype=bool)
        for attribute, ours, theirs in zip(
            self.statistics.attributes, one.values, two.values, strict=True
        ):
            shared = ours.shared(theirs)
            distinct_1 *= np.where(shared, ours.distinct[:, None], 1.0)
            distinct_2 *= np.where(shared, theirs.distinct, 1.0)
            there, back = ours.shares(theirs)
            share_12 *= there
            share_21 *= back
            partial += shared * attribute.partial_bytes
            equality |= shared
            from_newest &= attribute.has | ~shared[:, :, None]
        rates_1 = self.rates(one)
        rate_2 = self.rates(two).sum(axis=1)
        # A tuple that is just as old as may be is still stored, until the next one comes.
        longest_s = np.where(two.done, self._window / self._rate, 0).max(axis=1)
        stored = rate_2 * (longest_s + removal_s) + 1
        stored_s = stored / rate_2
        hit: np.ndarray = share_12 * distinct_among(distinct_2, stored) / distinct_2
        draws = np.where(from_newest, np.minimum(rates_1, self._rate)[:, None], rates_1[:, None])
        draws = draws.sum(axis=2)
        for other in self.statistics.others:
            for near, far in (tuple(other.distinct), tuple(other.distinct)[::-1]):
                meets = one.done[:, near][:, None] & two.done[:, far]
                miss = np.log1p(-min(other.selectivity, 1 - 1e-12))
                hit *= np.where(meets, -np.expm1(miss * stored), 1.0)
                share_21 *= np.where(meets, -np.expm1(miss * draws * stored_s), 1.0)
                distinct_1 *= np.where(meets, other.distinct[near], 1.0)
                distinct_2 *= np.where(meets, other.distinct[far], 1.0)
                partial += np.where(meets, other.partial_bytes, 0.0)
        return Operands(
            rate_1=np.broadcast_to(rates_1.sum(axis=1)[:, None], shape),
            draws_1=draws,
            rate_2=rate_2,
            window_2=self._combinations(two),
            stored_2=stored,
            stored_s=stored_s,
            distinct_1=distinct_1,
            distinct_2=distinct_2,
            share_21=share_21,
            hit=hit,
            full_1=np.broadcast_to(one.full_bytes[:, None], shape),
            full_2=two.full_bytes,
            partial=partial,
            equality=equality,
            interval_s=self.statistics.interval_s,
            punctuated=self.statistics.punctuated,
            prices=self.statistics.prices,
        )


@dataclass(frozen=True, kw_only=True)
class JoinEstimate:
    """What a one-way join of a plan is estimated to cost; figures are per second of arrivals."""

    join: PlannedJoin
    """The one-way join."""
    seconds_by: dict[OneWayJoin, float]
    """Estimated time by each algorithm there is, between the same sites."""
    nbytes: float
    """Bytes shipped with the messages' headers."""
    rate_in_tps: float
    """Tuples a second of S_1."""

    @property
    def seconds(self) -> float:
        """Estimated time."""
        return self.seconds_by[self.join.algorithm]


@dataclass(frozen=True, kw_only=True)
class PlanEstimate:
    """What a plan is estimated to cost, per second of arrivals: C_JEP (equation 1)."""

    plan: JoinPlan
    joins: tuple[JoinEstimate, ...]

    @property
    def seconds(self) -> float:
        """Total execution time: of processing at all sites, and of all transmissions."""
        return sum(one.seconds for one in self.joins)

    @property
    def nbytes(self) -> float:
        """Bytes shipped."""
        return sum(one.nbytes for one in self.joins)

    def link_bytes(self, unevenness: float = 1.0) -> dict[tuple[int, int], float]:
        """Return the bytes shipped on every link, both ways together, by its two sites ascending.

        Semijoins ship at most *unevenness* times the bytes that formulas for even values say.
        """
        carried: dict[tuple[int, int], float] = defaultdict(float)
        for one in self.joins:
            ends = one.join.source, one.join.destination
            more = 1 if one.join.algorithm.simple else unevenness
            carried[min(ends), max(ends)] += one.nbytes * more
        return carried


def estimate_plan(statistics: JoinStatistics, plan: JoinPlan) -> PlanEstimate:
    """Return what *plan* costs under given statistics."""
    costing = Costing(statistics, tuple(OneWayJoin))
    joins = plan.one_way_joins

    in_tree = isinstance(plan, TreePlan)
    newest = None if in_tree else costing.members(join.probe[:1] for join in joins)
    probe = costing.outputs(costing.members(join.probe for join in joins), newest)
    stored = list(dict.fromkeys(join.stored for join in joins))
    costs = costing.costs(probe, costing.outputs(costing.members(stored)))
    rates = costing.rates(probe).sum(axis=1)
    estimates = []
    for place, join in enumerate(joins):
        of_join = costs.between(place, stored.index(join.stored))
        link = join.source, join.destination
        seconds = of_join.seconds(statistics.latency_s[link], statistics.bandwidth_bps[link])
        estimates.append(
            JoinEstimate(
                join=join,
                seconds_by=dict(zip(costing.algorithms, seconds.tolist(), strict=True)),
                nbytes=float(of_join.sent_bytes[costing.algorithms.index(join.algorithm)]),
                rate_in_tps=float(rates[place]),
            )
        )
    return PlanEstimate(plan=plan, joins=tuple(estimates))
