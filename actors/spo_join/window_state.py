"""How a PO-Join PE of SPO-Join learns what has left the window (section 4.2).

The router, which alone sees all arrivals in order, adds to every tuple the positions it sees. A PE
that goes by them (`Carried`) is exact, and needs no further message. The paper has three other
ways, which need no such bounds and find some expired tuples: a PE expires by the epochs assigned to
it (`OwnSlide`), counts the tuples merged (`MergedCounts`), or reads the first PE's count from a
cache (`Cached` and `Cache`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from actors.protocol import FEEDBACK, Actor, Context, Message, Payload
from actors.source import Probes
from actors.spo_join.permutation_pe import MergedCount, Permutations
from actors.spo_join.router import Routed, UpTo
from joins.queries.windows import Window
from joins.state import Stateful


@dataclass(frozen=True, slots=True)
class WindowCount(UpTo):
    """How many tuples of each stream the first PO-Join PE has evaluated (Figure 6 B).

    *last* is the arrival number of the latest.
    """

    counts: tuple[int, ...]
    last: int

    bytes_of = ("counts",)


@dataclass(frozen=True, slots=True)
class SyncRequest(Payload):
    """PO-Join PE number *pe* asks the cache for the count."""

    pe: int


class WindowState(Stateful, ABC):
    """How far the window has moved, as one PO-Join PE sees it.

    A PE asks it for the bounds of its probes and for what has expired, and reports what happens; a
    subclass overrides the events that it learns from.
    """

    def bounds(self, part: Probes) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the positions that the tuples of *part* see: by default whole segments."""
        return None, None

    def may_see(self, part: Probes, stop: int) -> bool:
        """Return whether a tuple of *part* may see what is before position *stop*."""
        return len(part) > 0

    def before_evaluation(self, context: Context) -> None:
        """Prepare for tuples that are about to be evaluated."""

    def after_evaluation(self, routed: Routed, context: Context) -> None:
        """Update the window by tuples that were evaluated (Algorithm 4, line 12)."""

    def on_permutations(self, arrays: Permutations) -> None:
        """Update the window by a permutation array that was assigned to this PE."""

    def on_count(self, count: MergedCount | WindowCount) -> None:
        """Update the window by another operator's count."""

    @abstractmethod
    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether an epoch's segment of *stream* has left the window.

        *stop* is the position after the segment's last.
        """


@dataclass(kw_only=True, eq=False)
class Carried(WindowState):
    """Every tuple carries its window: exact, and no message more.

    A probe cannot find what has expired, however late a PE drops it; and since windows only move
    forward, the bounds that pass by show when to.
    """

    stored: Sequence[int]
    """Per probing stream the stream it probes."""

    state = ("_horizon",)

    def __post_init__(self) -> None:
        self._horizon = [0] * len(self.stored)

    def bounds(self, part: Probes) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what the tuples carry."""
        return part.start, part.stop

    def may_see(self, part: Probes, stop: int) -> bool:
        """Return whether the window of the first tuple begins before *stop*."""
        return len(part) > 0 and bool(part.start[0] < stop)

    def after_evaluation(self, routed: Routed, context: Context) -> None:
        """Store the last bounds that passed by."""
        for stream, part in enumerate(routed.parts):
            if len(part):
                self._horizon[self.stored[stream]] = int(part.start[-1])

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether no later probe can see any of it."""
        return stop <= self._horizon[stream]


@dataclass(kw_only=True, eq=False)
class OwnSlide(WindowState):
    """The first way: a new permutation array means that the PE's oldest epoch has expired.

    Epochs are assigned in turns, so a PE learns that the window has moved only when its own turn
    comes: up to as many merges late as there are PEs. In the paper the new array replaces the
    existing slide, which supposes a PE for every slide of the window; here a PE has as many as can
    fall to it, so that a smaller number of PEs loses nothing.
    """

    pes: int
    """Number of PO-Join PEs."""
    epochs: int
    """Epochs of the window that fall to one PE at most, the newest included."""

    state = ("_newest",)

    def __post_init__(self) -> None:
        self._kept_epochs = self.pes * self.epochs
        self._newest = -1

    def on_permutations(self, arrays: Permutations) -> None:
        """Move on to the epoch of a new array."""
        self._newest = max(self._newest, arrays.epoch)

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether enough newer epochs were assigned to this PE."""
        return epoch <= self._newest - self._kept_epochs


@dataclass(kw_only=True, eq=False)
class Counted(WindowState):
    """Takes a count for the number of tuples that have arrived, per stream."""

    windows: Sequence[Window]
    """One per stream, over that stream, by count."""

    state: ClassVar[tuple[str, ...]] = ("_counts", "_horizon")

    def __post_init__(self) -> None:
        self._set_counts([0] * len(self.windows))

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether a tuple that so many precede would see none of it."""
        return stop <= self._horizon[stream]

    def _set_counts(self, counts: Sequence[int]) -> None:
        self._counts = list(counts)
        self._horizon = [
            int(window.bound(np.array([count]))[0])
            for window, count in zip(self.windows, counts, strict=True)
        ]

    def _count(self, stream: int, tuples: int) -> None:
        """Count more tuples of a stream."""
        self._counts[stream] += tuples
        self._set_counts(self._counts)


class MergedCounts(Counted):
    """The second way: tuples merged so far, of its own arrays and of other PEs' as announced.

    The count is behind the stream by what has not been merged, and by the time that a merge takes;
    a slide that expires meanwhile is still probed until then.
    """

    def on_permutations(self, arrays: Permutations) -> None:
        """Add the tuples of an array of this PE."""
        self._count(arrays.stream, arrays.rows)

    def on_count(self, count: MergedCount | WindowCount) -> None:
        """Add the tuples of an array of another PE."""
        assert isinstance(count, MergedCount)
        self._count(count.stream, count.tuples)


@dataclass(kw_only=True, eq=False)
class Cached(Counted):
    """The third way: the first PE counts tuples, and the others read its count from a cache.

    Every PE sees every tuple, so the first PE's count of what it has evaluated is the stream's. It
    publishes the count when it has evaluated tuples and *interval_ns* have passed; the others ask
    for it when tuples come and *interval_ns* have passed, and go on with the old count until the
    answer is there. A count that is old finds expired slides; one that comes from a PE far ahead in
    the stream expires what a slower PE's tuples should still see.

    The paper adds the evaluated tuples to the partitioner's count of merged ones. Merged tuples
    were evaluated before, so the sum counts them twice unless the first is reset at every merge;
    then it is the count used here.

    Port: ``cache``.
    """

    pe: int
    """This PE's index; 0 is the first."""
    interval_ns: int
    """Least virtual time between two of its messages to the cache."""

    state = ("_last_ns",)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._last_ns: int | None = None

    def before_evaluation(self, context: Context) -> None:
        """Ask the cache for the count, if it is time to."""
        if self.pe and self._is_time(context):
            context.send("cache", SyncRequest(self.pe))

    def after_evaluation(self, routed: Routed, context: Context) -> None:
        """Count tuples, and publish the count if it is time to."""
        if self.pe:
            return
        for stream, part in enumerate(routed.parts):
            self._count(stream, len(part))
        if self._is_time(context):
            context.send("cache", WindowCount(tuple(self._counts), routed.span[1]))

    def on_count(self, count: MergedCount | WindowCount) -> None:
        """Replace the count by the first PE's."""
        assert isinstance(count, WindowCount)
        self._set_counts(count.counts)

    def _is_time(self, context: Context) -> bool:
        if self._last_ns is not None and context.now - self._last_ns < self.interval_ns:
            return False
        self._last_ns = context.now
        return True


class Cache(Actor):
    """The distributed cache: stores the last published count, and sends it to a PE that asks.

    Port: `FEEDBACK` to the PO-Join PEs: an answer that needed room at a PE which waits for room at
    the cache would end the run.
    """

    state = ("_count",)

    def __init__(self) -> None:
        self._count: WindowCount | None = None

    def receive(self, message: Message, context: Context) -> None:
        """Store a count, or answer with the one stored."""
        payload = message.payload
        if isinstance(payload, WindowCount):
            self._count = payload
        elif self._count is not None:
            context.send(FEEDBACK, self._count, to=payload.pe)
