"""Where the stream is cut into merge epochs (SPO-Join, sections 3.3 and 4.3).

An epoch is the content of the mutable component between two merges; sealed, it becomes one
immutable segment. Every message that moves a tuple from one to the other carries the epoch's
number, so that no hand-over depends on what arrives first.

PanJoin's batches are cut in the same way: there an epoch is a batch, and what ends it is a full
buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from joins.arrivals import Arrivals
from joins.state import Stateful, storable


@storable
@dataclass(frozen=True, kw_only=True)
class MergeThreshold:
    """When the mutable component is merged: the paper's δ.

    In the paper δ = W_s or δ = W_s / |PEs|. The quotient is seldom whole; the cuts then fall at
    j * length / parts, rounded down by count and up by time, so that every slide is still cut
    exactly at its end. With any other length a segment may extend over two slides: probes then see
    a part of it.
    """

    kind: str
    """``count``: merge when either stream has gathered so many tuples; ``time``: merge when event
    time enters the next stretch of so many nanoseconds."""
    length: int
    """Tuples or nanoseconds, at least 1."""
    parts: int = 1
    """How many epochs share *length*, at least 1."""

    def __post_init__(self) -> None:
        if self.kind not in ("count", "time"):
            raise ValueError(f"merge threshold of kind {self.kind!r}: must be count or time")
        if self.length < 1 or self.parts < 1:
            raise ValueError(
                f"merge threshold of {self.length} in {self.parts} parts: both must be at least 1"
            )

    def count(self, epoch: int) -> int:
        """Return how many tuples *epoch* takes before it is merged."""
        part = epoch % self.parts
        here = part * self.length // self.parts
        return max(1, (part + 1) * self.length // self.parts - here)

    def stretch(self, ts: np.ndarray) -> np.ndarray:
        """Return the number (int64) of the stretch of time that each of *ts* (ns) falls into."""
        slide, within = np.divmod(ts, self.length)
        stretch: np.ndarray = slide * len(self._ends) + self._ends.searchsorted(within, "right")
        return stretch

    @cached_property
    def _ends(self) -> np.ndarray:
        """Where the stretches within *length* end, ns: more parts than nanoseconds have one each.

        Python's integers, because a long *length* times *parts* does not fit 64 bits.
        """
        ends = {-(-part * self.length // self.parts) for part in range(1, self.parts + 1)}
        return np.array(sorted(ends))


@dataclass(frozen=True, kw_only=True)
class EpochCut:
    """A run of arrivals of one epoch."""

    epoch: int
    """Its number."""
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    """Per stream its rows of the arrivals, stop exclusive."""
    ends_epoch: bool
    """Whether the epoch is merged right after it."""


class EpochCutter(Stateful):
    """Cuts arrivals, chunk by chunk, at the ends of merge epochs.

    Where the cuts fall depends on the arrivals alone, not on how they were cut into chunks.
    """

    state = ("epoch", "_gathered", "_stretch")

    def __init__(self, threshold: MergeThreshold, streams: int) -> None:
        self._threshold = threshold
        self.epoch = 0
        self._gathered = [0] * streams
        self._stretch: int | None = None

    def cut(self, arrivals: Arrivals) -> list[EpochCut]:
        """Cut the next chunk of them."""
        threshold = self._threshold
        by_time = threshold.kind == "time"
        stretches = [threshold.stretch(part.ts) for part in arrivals.parts] if by_time else []
        cuts = []
        starts = tuple(0 for _ in arrivals.seq)
        ends = tuple(len(numbers) for numbers in arrivals.seq)
        while True:
            stops = (
                self._end_by_time(stretches) if by_time else self._end_by_count(starts, arrivals)
            )
            until = stops or ends
            for stream, (start, stop) in enumerate(zip(starts, until, strict=True)):
                self._gathered[stream] += stop - start
            if stops or starts != ends:
                cuts.append(
                    EpochCut(epoch=self.epoch, starts=starts, stops=until, ends_epoch=bool(stops))
                )
            if stops is None:
                return cuts
            self.epoch += 1
            self._gathered = [0] * len(starts)
            starts = stops

    def _end_by_count(self, starts: tuple[int, ...], arrivals: Arrivals) -> tuple[int, ...] | None:
        """Return where this epoch ends in the chunk, or None when it goes on past the chunk."""
        room = self._threshold.count(self.epoch)
        lasts = []
        for start, gathered, numbers in zip(starts, self._gathered, arrivals.seq, strict=True):
            row = start + room - gathered - 1
            if row < len(numbers):
                lasts.append(numbers[row])
        if not lasts:
            return None
        return tuple(int(np.searchsorted(numbers, min(lasts), "right")) for numbers in arrivals.seq)

    def _end_by_time(self, stretches: Sequence[np.ndarray]) -> tuple[int, ...] | None:
        """Return the same for a chunk whose tuples fall into these *stretches* of time."""
        if self._stretch is None:
            self._stretch = min(int(own[0]) for own in stretches if len(own))
        stops = tuple(int(np.searchsorted(own, self._stretch, "right")) for own in stretches)
        later = [own[stop] for own, stop in zip(stretches, stops, strict=True) if stop < len(own)]
        if not later:
            return None
        self._stretch = int(min(later))
        return stops
