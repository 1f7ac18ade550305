"""The source: feeds prepared streams into a system at a chosen rate, or as fast as it is taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.feed import Feed, StreamFile
from actors.protocol import START, Actor, Context, Message, State
from joins.arrivals import Arrivals

NS_PER_S = 1_000_000_000

_AHEAD = 8
"""Batches that a source without a rate keeps ready at its port, so that the port never runs dry."""


@dataclass(frozen=True, kw_only=True)
class Feeding:
    """How a source feeds its streams in.

    Attributes
    ----------
    batch_rows
        Tuples per message, at least 1.
    rate_tps
        Tuples per virtual second over all streams; None feeds as fast as back-pressure allows.
    """

    batch_rows: int = 500
    rate_tps: int | None = None

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise ValueError(f"batch_rows is {self.batch_rows}: must be at least 1")
        if self.rate_tps is not None and self.rate_tps < 1:
            raise ValueError(f"rate_tps is {self.rate_tps}: must be at least 1 tuple a second")


@dataclass(frozen=True, slots=True)
class Fed:
    """Arrivals on their way, with the virtual time at which each tuple came into being.

    Attributes
    ----------
    arrivals
        The tuples.
    born_ns
        Per stream an int64 array beside its tuples, virtual nanoseconds.
    """

    arrivals: Arrivals
    born_ns: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return self.arrivals.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return self.arrivals.rows

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return self.arrivals.span


class Source(Actor):
    """Sends its streams' tuples in arrival order on port ``out``, a batch at a time.

    A batch leaves when its last tuple has come into being; a source whose receiver has no room
    falls behind, and its tuples' latency tells.
    """

    def __init__(self, *, files: tuple[StreamFile, ...], feeding: Feeding) -> None:
        self._feed = Feed(files)
        self._feeding = feeding
        self._next: Arrivals | None = None

    def receive(self, message: Message, context: Context) -> None:
        """Send what is due and set the timer for the next batch."""
        if message.port == START:
            self._advance()
        else:
            for _ in range(_AHEAD if self._feeding.rate_tps is None else 1):
                if self._next is not None:
                    born_ns = tuple(self._born_ns(seq, context.now) for seq in self._next.seq)
                    context.send("out", Fed(self._next, born_ns))
                    self._advance()
        if self._next is not None:
            context.set_timer(self._due_ns(self._next, context.now), "next")

    def snapshot(self) -> State:
        """Return the position in each stream of the next batch to send."""
        position = self._feed.position
        if self._next is not None:
            position = [
                taken - len(part) for taken, part in zip(position, self._next.parts, strict=True)
            ]
        return {
            "position": position,
            "holding": self._next is not None,
        }

    def restore(self, state: State) -> None:
        """Go back to the position of the snapshot."""
        self._feed.seek(state["position"])
        self._next = None
        if state["holding"]:
            self._advance()

    def _advance(self) -> None:
        self._next = self._feed.take(self._feeding.batch_rows)

    def _due_ns(self, arrivals: Arrivals, now: int) -> int:
        rate = self._feeding.rate_tps
        return now if rate is None else (arrivals.span[1] + 1) * NS_PER_S // rate

    def _born_ns(self, seq: np.ndarray, now: int) -> np.ndarray:
        rate = self._feeding.rate_tps
        if rate is None:
            return np.full(len(seq), now, np.int64)
        whole, rest = np.divmod(seq, rate)  # seq * NS_PER_S would overflow in long streams
        return whole * NS_PER_S + rest * NS_PER_S // rate
