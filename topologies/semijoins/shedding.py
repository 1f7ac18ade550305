"""What is shed under a byte budget: as little of the results as estimated bytes allow.

Beyond the stream semijoin paper, which leaves "a good approximation for the join output in the case
of insufficient system resources" to future work. Shed are values of the join attribute
(`joins.semijoins.value_sample`). The few that give most results are known from the streams'
beginnings, and are kept or not one by one, first what gives most for its bytes; of the others a
share is kept, by hash, so that their results are a sample of what is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import permutations

import numpy as np

from actors.semijoins.adaptive_site import Replanning
from joins.batch import Batch
from joins.queries.query import JoinQuery
from joins.semijoins.value_sample import TupleSample, ValueSample
from topologies.semijoins.costing import estimate_plan
from topologies.semijoins.formulas import distinct_among
from topologies.semijoins.join_statistics import (
    JoinAttribute,
    JoinStatistics,
    JoinStream,
    Measuring,
    kept_samples,
    tied_fields,
)
from topologies.semijoins.plans import JoinPlan
from topologies.semijoins.replanning import control_bytes
from topologies.topology import TopologyError

_SPARED = 0.1
"""Part of a budget that stays free: estimates are near to within 5 %, and streams vary."""

_TO_HALF, _HALVINGS = 8, 16
"""Shares that are tried: so many from one to its half, and so many halves."""

_LEAST_SHARE = 1 / 8
"""What must remain possible of the others beside those: of too few no recall can be stated."""

_MOST_KNOWN, _SURE_TUPLES = 32, 50
"""Values decided on one by one: at most so many, seen in so many tuples of each stream."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """A budget for the links of a plan, and what its streams are like."""

    bytes_ps: int
    """Most bytes a second that any link may carry, both ways together, on average over the run."""
    plan: JoinPlan
    measuring: Measuring
    """How streams are joined, and what their statistics are measured with."""
    samples: Sequence[Batch]
    statistics: JoinStatistics
    """First tuples of each stream, and the statistics of all that comes."""
    replanning: Replanning | None = None
    """How the plan changes; None where it stays."""

    def choose_sample(self) -> ValueSample:
        """Return the sample that keeps most results within the budget, by estimates.

        Raise :exc:`TopologyError` where next to nothing would be left, naming the busiest link.
        """
        everything = ValueSample(share=1.0)
        if self._fits(everything):
            return everything
        sample = self._sample_frequent()
        # One after the other: by formulas for even values, uneven ones may take more when fewer.
        for step in range(_TO_HALF * _HALVINGS):
            smaller = replace(sample, share=2 ** (-step / _TO_HALF))
            if self._fits(smaller):
                return smaller
        carried = self._link_bytes(self.samples)
        (a, b), nbytes = max(carried.items(), key=lambda link: link[1])
        names = self.statistics.names
        raise TopologyError(
            f"byte_budget = {self.bytes_ps}: so few bytes a second leave next to nothing of the "
            f"streams; the busiest link, {names[a]} - {names[b]}, would carry {nbytes:,.0f} with "
            "all of them"
        )

    def _sample_frequent(self) -> ValueSample:
        """Return which of the frequent values are kept: each that there is room for, in turn.

        Of those that have most results, first comes what gives most of them for its bytes, which
        are taken to be those of full tuples, whichever algorithm would ship fewer.
        """
        columns = [
            sample.fields[name] for sample, name in zip(self.samples, self._fields, strict=True)
        ]
        values = reduce(np.intersect1d, columns)  # that all streams have
        shared = [np.searchsorted(values, column[np.isin(column, values)]) for column in columns]
        tuples = np.stack([np.bincount(places, minlength=len(values)) for places in shared])
        results = tuples.prod(axis=0, dtype=np.float64)  # of a value: the product of its counts
        results /= max(results.sum(), 1.0)
        bytes_of_one = [
            stream.rate_tps * stream.full_bytes / len(sample)
            for stream, sample in zip(self.statistics.streams, self.samples, strict=True)
        ]
        worth = results / (np.array(bytes_of_one) @ tuples)
        frequent = np.argsort(-results, kind="stable")
        frequent = frequent[tuples.min(axis=0)[frequent] >= _SURE_TUPLES][:_MOST_KNOWN]
        frequent = frequent[np.argsort(-worth[frequent], kind="stable")]
        squared = (np.delete(results, frequent) ** 2).sum()
        chosen = np.zeros(len(frequent), bool)

        def sample() -> ValueSample:
            kept, shed = frequent[chosen], frequent[~chosen]
            return ValueSample(
                share=_LEAST_SHARE,
                always=tuple(map(float, values[kept])),
                never=tuple(map(float, values[shed])),
                never_results=float(results[shed].sum()),
                squared_results=float(squared),
            )

        for place in range(len(chosen)):
            chosen[place] = True
            chosen[place] = self._fits(sample())
        return sample()

    def _fits(self, values: ValueSample) -> bool:
        kept = [TupleSample(field=field, values=values) for field in self._fields]
        left = kept_samples(self.samples, kept)
        if min(len(batch) for batch in left) < 2:  # too few to measure
            return False
        return max(self._link_bytes(left).values()) <= self.bytes_ps * (1 - _SPARED)

    def _link_bytes(self, left: Sequence[Batch]) -> dict[tuple[int, int], float]:
        """Return the bytes a second on every link, by its two sites, for what is left."""
        statistics = self.measuring.thinned(self.statistics, self.samples, left)
        attribute = next(one for one in statistics.attributes if one.has.all())
        carried = estimate_plan(statistics, self.plan).link_bytes(
            unevenness(attribute, statistics.streams)
        )
        if self.replanning is not None:
            control = control_bytes(self.replanning, self.measuring, statistics.streams)
            for link, nbytes in control.items():
                carried[link] = carried.get(link, 0.0) + nbytes
        return carried

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return shared_fields(self.measuring.query)


def shared_fields(query: JoinQuery) -> tuple[str, ...]:
    """Return the field of each stream that equalities make one join attribute of all streams.

    Raise :exc:`TopologyError` where there is none, or where a window counts tuples.
    """
    for name, window in zip(query.streams, query.windows, strict=True):
        if window.kind == "count":
            raise TopologyError(
                f"byte_budget, kept: the window of {name} holds the latest {window.length} tuples; "
                "without those that are shed it would hold others. Give it a time"
            )
    for fields in tied_fields(query):
        if len(fields) == len(query.streams):
            return tuple(fields[stream] for stream in range(len(query.streams)))
    raise TopologyError(
        "byte_budget, kept: tuples are shed by the value of a join attribute that all streams "
        f"share; in {query} no equalities make one of a field of each stream"
    )


def unevenness(attribute: JoinAttribute, streams: Sequence[JoinStream]) -> float:
    """Return how many times as many tuples match as even values would let, at the most; 1 or more.

    Cost formulas assume even values. Few frequent ones are in every window and requested in every
    interval: more tuples match, so that semijoins leave out less of what they ship.
    """
    worst = 1.0
    for a, b in permutations(range(len(streams)), 2):
        ours, theirs = attribute.frequency[[a, b]]
        shared = float(ours @ (theirs > 0))
        if not shared:
            continue
        # Tuples of a that meet those of b in a window: b's own, or as long as the window of a.
        window_s = [streams[one].window_rows / streams[one].rate_tps for one in (a, b)]
        for rows in (streams[b].rate_tps * seconds for seconds in window_s):
            met = ours @ -np.expm1(rows * np.log1p(-np.minimum(theirs, 1 - 1e-12)))
            distinct = attribute.distinct[b]
            even = shared * distinct_among(distinct, rows) / distinct
            worst = max(worst, float(met / even))
    return worst
