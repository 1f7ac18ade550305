"""Step 1: tuples gather in a buffer per stream until they are a batch."""

from __future__ import annotations

from dataclasses import dataclass

from actors.probes import Probes, give_windows
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.epochs import EpochCut, EpochCutter, MergeThreshold
from joins.event_time import EventTimeBounds
from joins.queries.windows import WindowBounds
from joins.state import State, plain, revive


@dataclass(frozen=True, slots=True)
class Collected:
    """A batch: per stream its tuples with their windows, and what those of later ones begin with.

    Attributes
    ----------
    parts
        One per stream, in order of arrival.
    horizon
        Per stream what the bounds call so after these tuples.
    span
        First and last arrival number.
    """

    parts: tuple[Probes, ...]
    horizon: tuple[int, ...]
    span: tuple[int, int]


class Collector:
    """Gathers arrivals, in their order, into batches.

    A batch is full when one of the buffers is. All buffers are then emptied: a tuple of the other
    stream that came earlier must be stored when the later one probes.

    Parameters
    ----------
    batch_count
        Tuples of one stream that make a batch.
    """

    def __init__(
        self, bounds: WindowBounds | EventTimeBounds, streams: int, batch_count: int
    ) -> None:
        self._bounds = bounds
        self._streams = streams
        self._threshold = MergeThreshold(kind="count", length=batch_count)
        self._next_arrival = 0
        self._early: dict[int, Fed] = {}
        self._gathered: list[tuple[Probes, ...]] = []
        self._spans: list[tuple[int, int]] = []
        self._cutter = EpochCutter(self._threshold, self._streams)

    @property
    def is_empty(self) -> bool:
        """Whether no tuple is waiting."""
        return not self._gathered

    def take(self, fed: Fed) -> list[Collected]:
        """Take arrivals and return the batches that are full.

        Prefilters work side by side, so that one may overtake another: what comes early waits.
        """
        self._early[fed.span[0]] = fed
        full = []
        while self._next_arrival in self._early:
            fed = self._early.pop(self._next_arrival)
            self._next_arrival = fed.span[1] + 1
            full += self._gather(fed)
        return full

    def empty(self) -> Collected:
        """Return what has gathered (at least one tuple) as a batch before it is full."""
        self._cutter = EpochCutter(self._threshold, self._streams)
        return self._pack()

    def _pack(self) -> Collected:
        parts = [Probes.concat(pieces) for pieces in zip(*self._gathered, strict=True)]
        span = self._spans[0][0], self._spans[-1][1]
        self._gathered, self._spans = [], []
        return Collected(tuple(parts), self._bounds.horizon, span)

    def _gather(self, fed: Fed) -> list[Collected]:
        full = []
        arrivals = fed.arrivals
        for cut in self._cutter.cut([part.ts for part in arrivals.parts], arrivals.seq):
            piece = _cut_out(fed, cut)
            # Window by window as batches go: the horizon is then that of the batch.
            self._gathered.append(give_windows(piece, self._bounds))
            self._spans.append(piece.span)
            if cut.ends_epoch:
                full.append(self._pack())
        return full

    def snapshot(self) -> State:
        """Return the state as plain data."""
        return {
            "bounds": self._bounds.snapshot(),
            "cutter": self._cutter.snapshot(),
            "next_arrival": self._next_arrival,
            "early": plain(list(self._early.values())),
            "gathered": plain(self._gathered),
            "spans": plain(self._spans),
        }

    def restore(self, state: State) -> None:
        """Take over what `snapshot` returned."""
        self._bounds.restore(state["bounds"])
        self._cutter.restore(state["cutter"])
        self._next_arrival = state["next_arrival"]
        self._early = {fed.span[0]: fed for fed in revive(state["early"])}
        self._gathered = [tuple(parts) for parts in revive(state["gathered"])]
        self._spans = [tuple(span) for span in state["spans"]]


def _cut_out(fed: Fed, cut: EpochCut) -> Fed:
    """Return the part of *fed* that a cut takes."""
    rows = list(zip(cut.starts, cut.stops, strict=True))
    arrivals = Arrivals(
        tuple(p.slice(*r) for p, r in zip(fed.arrivals.parts, rows, strict=True)),
        tuple(s[slice(*r)] for s, r in zip(fed.arrivals.seq, rows, strict=True)),
    )
    return Fed(arrivals, tuple(b[slice(*r)] for b, r in zip(fed.born_ns, rows, strict=True)))
