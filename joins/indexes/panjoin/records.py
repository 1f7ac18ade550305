"""⟨start, end⟩ records: a BI-Sort's answer without its tuples (section III-D).

A record names a run of places in a sorted array, so that its size does not depend on how many
tuples match. Whoever has the same arrays, a mirror, can turn it back into tuples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored, work_of
from joins.indexes.panjoin.bi_sort import BiSort
from joins.work import NO_WORK, Work


@dataclass(frozen=True, slots=True)
class Records:
    """What some probes find in one BI-Sort.

    Attributes
    ----------
    ranges
        int32, shape (bands, 4, probes): per band of the join condition start and end in the main
        array and start and end in the insertion buffer, end exclusive. A tuple in two bands is in
        the record of one of them.
    negated
        The label *not*: what lies in none of the records is meant.
    """

    ranges: np.ndarray
    negated: bool

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the records, and a bit for the label."""
        return self.ranges.nbytes + 1

    @property
    def lengths(self) -> int:
        """Tuples in all records together."""
        return int((self.ranges[:, 1::2] - self.ranges[:, ::2]).sum(dtype=np.int64))


def find_records(held: BiSort, bands: Sequence[Probes]) -> tuple[Records, Work]:
    """Return the records of probes with one or more *bands*: the same probes, with other ranges.

    A condition of several bands is satisfied in any one of them. The work does not depend on how
    many tuples match.
    """
    work = NO_WORK
    ranges = np.empty((len(bands), 4, len(bands[0].low)), np.int64)
    for band, probes in enumerate(bands):
        ranges[band], cost = held.search(probes)
        work += cost
    for run in (ranges[:, :2], ranges[:, 2:]):
        order = np.argsort(run[:, :1], axis=0, kind="stable")
        run[:] = np.take_along_axis(run, order, axis=0)
        reached = np.maximum.accumulate(run[:, 1], axis=0)
        run[1:, 0] = np.maximum(run[1:, 0], reached[:-1])
        run[:, 1] = np.maximum(run[:, 1], run[:, 0])
    return Records(ranges.astype(np.int32), bands[0].negated), work


def read_records(
    held: BiSort, records: Records, probes: Probes, stored: Stored, output: Output
) -> Work:
    """Add to *output* the tuples that *records* mean in a BI-Sort with the same arrays.

    Windows and further predicates are those of *probes*; the ranges of *probes* are not looked at.
    """
    ranges = records.ranges.astype(np.int64)
    if records.negated:
        ranges = _gaps(ranges, held.sizes)
    work = NO_WORK
    for band in ranges:
        work += work_of(held.report(band, probes._replace(negated=False), stored, output))
    return work


def _gaps(ranges: np.ndarray, sizes: tuple[int, int]) -> np.ndarray:
    """Return what lies between, before and after the *ranges* of each array."""
    bands, _, probes = ranges.shape
    gaps = np.zeros((bands + 1, 4, probes), np.int64)
    for run, size in zip((0, 2), sizes, strict=True):
        # An empty range may stand anywhere; the one before it decides where its gap begins.
        gaps[1:, run] = np.maximum.accumulate(ranges[:, run + 1], axis=0)
        gaps[:-1, run + 1] = ranges[:, run]
        gaps[-1, run + 1] = size
    return gaps
