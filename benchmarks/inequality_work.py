"""Work that is measured: stored tuples and probes of an inequality join on two fields (Q3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from joins.codes import encode
from joins.hashing import mix
from joins.indexes.index import Ranges, make_ranges
from joins.matches import ProbeResult
from scenarios.streams import find_file
from spark_bridge.engines import Totals

PROBES = 2_000
_STORED_MAX = 100_000
_COLUMNS = ("trip_distance", "fare_amount")


@dataclass(frozen=True, kw_only=True)
class InequalityWork:
    """Pairs with stored.distance < probe.distance and stored.fare > probe.fare.

    Attributes
    ----------
    stored, probes
        The codes of distance and fare, a column each.
    ranges
        What the probes look for.
    """

    name: str
    stored: tuple[np.ndarray, np.ndarray]
    probes: tuple[np.ndarray, np.ndarray]
    ranges: Ranges

    def batches(self, probes: int) -> list[Ranges]:
        """Return what *probes* at a time look for."""
        low, high = self.ranges.low, self.ranges.high
        parts = (slice(row, row + probes) for row in range(0, low.shape[1], probes))
        return [make_ranges(low[:, rows], high[:, rows]) for rows in parts]

    @classmethod
    def of(
        cls,
        name: str,
        distance: np.ndarray,
        fare: np.ndarray,
        stored: int,
        probes: int = PROBES,
    ) -> InequalityWork:
        """Return the work of storing the first rows and probing with the *probes* after them."""
        distance, fare = encode(distance), encode(fare)
        d, f = distance[stored : stored + probes], fare[stored : stored + probes]
        bounds = np.iinfo(np.int64)
        return cls(
            name=name,
            stored=(distance[:stored], fare[:stored]),
            probes=(d, f),
            ranges=make_ranges(
                [np.full_like(d, bounds.min), f + 1], [d - 1, np.full_like(f, bounds.max)]
            ),
        )


def taxi_work() -> InequalityWork:
    """Return the first 100,000 valid yellow-taxi trips in file order, and the next 2,000."""
    names = ("taxi_nyc_yellow_monthly_sample.parquet", "yellow_taxi_sample.parquet")
    table = pq.read_table(find_file(names), columns=list(_COLUMNS))
    distance, fare = (table[name].to_numpy().astype(np.float64) for name in _COLUMNS)
    valid = np.isfinite(distance) & np.isfinite(fare)
    stored = min(_STORED_MAX, int(valid.sum()) - PROBES)
    return InequalityWork.of("taxi", distance[valid], fare[valid], stored)


def uniform_work(*, stored: int = 50_000, probes: int = PROBES) -> InequalityWork:
    """Return uniform tuples and probes; by default with 24,505,143 pairs."""
    values = np.uint64(74_999)
    row = np.arange(stored + probes, dtype=np.uint64)
    distance, fare = (
        (mix((np.uint64(stream) << np.uint64(48)) ^ row) % values).astype(np.int64) + 1
        for stream in (11, 12)
    )
    return InequalityWork.of("uniform", distance, fare, stored, probes)


def counted(found: ProbeResult) -> Totals:
    """Return the totals of what the probes counted."""
    return Totals.of_counts(np.arange(len(found.count)), found.count, found.fingerprint)


def listed(found: ProbeResult) -> Totals:
    """Return the totals of the matches that the probes listed."""
    assert found.match_id is not None
    return Totals.of_pairs(np.repeat(np.arange(len(found.count)), found.count), found.match_id)


class NumpyScan:
    """Sort the stored tuples by distance once; scan the prefix that each probe's distance gives."""

    def __init__(self, work: InequalityWork) -> None:
        order = np.argsort(work.stored[0], kind="stable")
        self._probes = work.probes
        self._distance, self._fare = work.stored[0][order], work.stored[1][order]
        self._mixed = mix(order)

    def count(self) -> Totals:
        """Count and fingerprint."""
        ends = np.searchsorted(self._distance, self._probes[0], "left").tolist()
        count, fingerprint = np.zeros(len(ends), np.int64), np.zeros(len(ends), np.uint64)
        for row, (end, fare) in enumerate(zip(ends, self._probes[1].tolist(), strict=True)):
            match = self._fare[:end] > fare
            count[row] = np.count_nonzero(match)
            fingerprint[row] = self._mixed[:end][match].sum(dtype=np.uint64)
        return Totals.of_counts(np.arange(len(ends)), count, fingerprint)
