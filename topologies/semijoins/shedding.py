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
from topologies.semijoins.measuring import Measuring, kept_samples, tied_fields
from topologies.semijoins.plans import JoinPlan
from topologies.semijoins.replanning import control_bytes
from topologies.semijoins.statistics import JoinStatistics, StreamStatistics
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
    """A budget for the links of a plan, and what its streams are like.

    Attributes
    ----------
    bytes_ps
        Most bytes a second that any link may carry, both ways together, on average over the run.
    plan, measuring
        How streams are joined, and what their statistics are measured with.
    samples, statistics
        First tuples of each stream, and the statistics of all that comes.
    replanning
        How the plan changes; None where it stays.
    """

    bytes_ps: int
    plan: JoinPlan
    measuring: Measuring
    samples: Sequence[Batch]
    statistics: JoinStatistics
    replanning: Replanning | None = None

    def fitting(self) -> ValueSample:
        """Return what keeps most results within the budget, by estimates.

        Raise :exc:`TopologyError` where next to nothing would be left, naming the busiest link.
        """
        everything = ValueSample(share=1.0)
        if self._fits(everything):
            return everything
        known = self._known()
        # One after the other: by formulas for even values, uneven ones may take more when fewer.
        for step in range(_TO_HALF * _HALVINGS):
            values = replace(known, share=2 ** (-step / _TO_HALF))
            if self._fits(values):
                return values
        raise TopologyError(self._too_little())

    def _known(self) -> ValueSample:
        """Return which of the frequent values are kept: each that there is room for, in turn."""
        values, results = self._frequent()
        kept = np.zeros(len(values), bool)
        for place in range(len(values)):
            kept[place] = True
            kept[place] = self._fits(self._deciding(values, results, kept))
        return self._deciding(values, results, kept)

    def _deciding(self, values: np.ndarray, results: np.ndarray, kept: np.ndarray) -> ValueSample:
        return ValueSample(
            share=_LEAST_SHARE,
            always=tuple(map(float, values[kept])),
            never=tuple(map(float, values[~kept])),
            never_results=float(results[~kept].sum()),
            squared_results=float((self._by_value[2] ** 2).sum() - (results**2).sum()),
        )

    def _fits(self, values: ValueSample) -> bool:
        thinned = self._thinned(values)
        room = self.bytes_ps * (1 - _SPARED)
        return bool(thinned) and max(self._carried(thinned).values()) <= room

    def _thinned(self, values: ValueSample) -> list[Batch]:
        """Return the kept tuples of the samples; none where they are too few to measure."""
        fields = shared_fields(self.measuring.query)
        kept = [TupleSample(field=field, values=values) for field in fields]
        left = kept_samples(self.samples, kept)
        return left if min(len(batch) for batch in left) > 1 else []

    def _carried(self, left: Sequence[Batch]) -> dict[tuple[int, int], float]:
        """Return the bytes a second on every link, by its two sites, for what is left."""
        statistics = self.measuring.thinned(self.statistics, self.samples, left)
        columns = [self._column(place, batch) for place, batch in enumerate(left)]
        carried = estimate_plan(statistics, self.plan).link_bytes(
            unevenness(columns, statistics.streams)
        )
        if self.replanning is not None:
            control = control_bytes(self.replanning, self.measuring, statistics.streams)
            for link, nbytes in control.items():
                carried[link] = carried.get(link, 0.0) + nbytes
        return carried

    def _column(self, place: int, batch: Batch) -> np.ndarray:
        return batch.fields[shared_fields(self.measuring.query)[place]]

    def _frequent(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the values that have most results, and the share of all results that each has.

        They are in the order of results a byte, most first; bytes are taken to be those of full
        tuples, whichever algorithm would ship fewer.
        """
        values, seen, results = self._by_value
        bytes_of_one = [
            stream.rate_tps * stream.full_bytes / len(sample)
            for stream, sample in zip(self.statistics.streams, self.samples, strict=True)
        ]
        worth = results / (np.array(bytes_of_one) @ seen)
        most = np.argsort(-results, kind="stable")
        most = most[seen.min(axis=0)[most] >= _SURE_TUPLES][:_MOST_KNOWN]
        most = most[np.argsort(-worth[most], kind="stable")]
        return values[most], results[most]

    @cached_property
    def _by_value(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values of all streams, how often each stream has them, and their share of results.

        Results of a value are as the product of its frequencies.
        """
        columns = [self._column(place, sample) for place, sample in enumerate(self.samples)]
        values = reduce(np.intersect1d, columns)
        seen = np.stack([_seen(column, values) for column in columns])
        results = seen.prod(axis=0, dtype=np.float64)
        return values, seen, results / max(results.sum(), 1.0)

    def _too_little(self) -> str:
        carried = self._carried(self.samples)
        (a, b), nbytes = max(carried.items(), key=lambda link: link[1])
        names = self.statistics.names
        return (
            f"byte_budget = {self.bytes_ps}: so few bytes a second leave next to nothing of the "
            f"streams; the busiest link, {names[a]} - {names[b]}, would carry {nbytes:,.0f} with "
            "all of them"
        )


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


def _seen(column: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return how often each of some ascending *values* is in a column."""
    shared = column[np.isin(column, values)]
    return np.bincount(np.searchsorted(values, shared), minlength=len(values))


def unevenness(columns: Sequence[np.ndarray], streams: Sequence[StreamStatistics]) -> float:
    """Return how many times as many tuples match as even values would let, at the most; 1 or more.

    Cost formulas assume even values. Few frequent ones are in every window and requested in every
    interval: more tuples match, so that semijoins leave out less of what they ship.

    Parameters
    ----------
    columns
        Values of the join attribute in each stream.
    streams
        The streams that they are from.
    """
    values = reduce(np.union1d, columns)
    seen = [np.isin(values, column) for column in columns]
    frequency = [
        np.bincount(np.searchsorted(values, column), minlength=len(values)) / len(column)
        for column in columns
    ]
    worst = 1.0
    for a, b in permutations(range(len(columns)), 2):
        if not (seen[a] & seen[b]).any():
            continue
        # Tuples of a that meet those of b in a window: b's own, or as long as the window of a.
        window_s = [streams[one].window_rows / streams[one].rate_tps for one in (a, b)]
        for rows in (streams[b].rate_tps * seconds for seconds in window_s):
            met = frequency[a] @ -np.expm1(rows * np.log1p(-np.minimum(frequency[b], 1 - 1e-12)))
            values_of_b = int(seen[b].sum())
            even = frequency[a] @ seen[b] * distinct_among(values_of_b, rows) / values_of_b
            worst = max(worst, float(met / even))
    return worst
