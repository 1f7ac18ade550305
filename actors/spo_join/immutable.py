"""The immutable component of one PO-Join PE: sealed epochs, and probing a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from actors.probes import Probes
from actors.spo_join.payloads import Offsets, Permutations
from joins.indexes.immutable.segment import Segment, probe_all
from joins.indexes.immutable.segments import SEGMENTS
from joins.indexes.index import ranges_for
from joins.indexes.search import Brackets
from joins.matches import Matches, ProbeResult
from joins.queries.conditions import Condition
from joins.work import COUNTERS, NO_WORK, Work


@dataclass(slots=True)
class Sealed:
    """One epoch's immutable structure: a segment per stream and the offsets between them."""

    epoch: int
    segments: tuple[Segment, ...]
    offsets: tuple[np.ndarray, ...] | None

    @property
    def brackets(self) -> Brackets | None:
        """Stream 0's sorted keys and where they fall among stream 1's; None in a self join."""
        return None if self.offsets is None else Brackets(self.segments[0].keys, self.offsets)

    def stop(self, stream: int) -> int:
        """Return the position after the epoch's last of *stream*."""
        return self.segments[stream].first + len(self.segments[stream])


@dataclass(slots=True)
class Assembly:
    """A record of the assembling table: an epoch's arrays as they come in (section 4.3)."""

    offsets: dict[int, Offsets] = field(default_factory=dict)
    permutations: dict[int, Permutations] = field(default_factory=dict)

    def add(self, arrays: Offsets | Permutations) -> None:
        """Take one array."""
        if isinstance(arrays, Offsets):
            self.offsets[arrays.predicate] = arrays
        else:
            self.permutations[arrays.stream] = arrays

    def is_complete(self, *, predicates: int, streams: int) -> bool:
        """Return whether every array is here."""
        return len(self.offsets) == predicates and len(self.permutations) == streams

    def seal(self, epoch: int, structure: str) -> tuple[Sealed, Work]:
        """Build *structure*, a key of `SEGMENTS`, for every stream."""
        by_predicate = [arrays for _, arrays in sorted(self.offsets.items())]
        segments = tuple(
            SEGMENTS[structure](
                [arrays.keys[stream] for arrays in by_predicate],
                permutations.lead_ids,
                permutations.arrays,
                first=permutations.first,
            )
            for stream, permutations in sorted(self.permutations.items())
        )
        offsets = [arrays.offsets for arrays in by_predicate]
        known = tuple(array for array in offsets if array is not None)
        sealed = Sealed(epoch, segments, known if len(known) == len(offsets) else None)
        return sealed, sum((segment.work for segment in segments), NO_WORK)


def probe_sealed(
    structures: Sequence[Sealed],
    part: Probes,
    conditions: Sequence[Condition],
    window: tuple[np.ndarray | None, np.ndarray | None],
    *,
    stream: int,
    stored: int,
    threads: int,
    pairs: bool,
) -> tuple[Matches, Work]:
    """Probe the segments of stream *stored* in *structures* (at least one) with *part*.

    Return the matches and the work of the busiest of *threads* (Algorithm 4).
    """
    columns = [part.batch.fields[c.probe_field] for c in conditions]
    found = probe_all(
        [sealed.segments[stored] for sealed in structures],
        ranges_for(conditions, columns, *window),
        brackets=[sealed.brackets if stream == 0 else None for sealed in structures],
        threads=threads,
        enumerate=pairs,
    )
    matches = ProbeResult.sum(found).of(stream, part.batch.id)
    return matches, busiest([one.work for one in found], threads)


def busiest(works: Sequence[Work], threads: int) -> Work:
    """Return what the busiest of *threads* does when each takes the next of *works* as it is free.

    That is Algorithm 4's dealing: the lock hands the list of segments out one by one. It is the
    time until the last thread is done, on a machine with a core for each; which thread is free
    first is told by counted operations, all taken as equally long.
    """
    shares = [NO_WORK] * min(threads, len(works))
    spent = [0] * len(shares)
    for work in works:
        free = spent.index(min(spent))
        shares[free] += work
        spent[free] += sum(getattr(work, counter) for counter in COUNTERS)
    return shares[spent.index(max(spent))]
