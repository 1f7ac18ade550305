"""What joiners send to a sink, what the sink hands out of the system, and when that is final.

Results are handed on when nothing can take them back, or discarded after a crash (`ResultEpochs`).
A sink that commits by epoch is what makes a recovery exact: what was emitted since the snapshot
that the system goes back to is emitted once more. Its price is that a result waits until the
snapshot behind it is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from actors.protocol import Actor, Context, Message, Payload
from joins.batch import Batch
from joins.matches import Matches
from joins.state import storable

_PROBE_BYTES = 16
_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Answers(Payload):
    """One joiner's matches for the probes of one message."""

    matches: tuple[Matches, ...]
    """For each stream that has tuples that probe, those of some or all of them."""
    born_ns: tuple[np.ndarray, ...]
    """Per element of *matches* the virtual birth times of its probing tuples, int64."""
    span: tuple[int, int]
    """First and last arrival number of the probes."""
    streams: int = 2
    """Streams joined: a result has so many ids."""

    rows_of = ("born_ns",)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: two ids a pair, whether or not this run writes them."""
        nbytes = self.frame_bytes
        for part in self.matches:
            nbytes += _PROBE_BYTES * len(part) + _ID_BYTES * self.streams * part.total
        return nbytes


@storable
class Found(NamedTuple):
    """The matches of some probes of one message."""

    matches: Matches
    born_ns: np.ndarray
    """The matches, and for each row the virtual birth time of the probing tuple, int64."""
    span: tuple[int, int]
    """First and last arrival number of the message."""


def send_answers(found: Iterable[Found], context: Context) -> None:
    """Send the sink what was *found*, in one message, if there is a row at all."""
    found = [one for one in found if len(one.matches)]
    if found:
        matches, born_ns, spans = zip(*found, strict=True)
        firsts, lasts = zip(*spans, strict=True)
        context.send("sink", Answers(matches, born_ns, (min(firsts), max(lasts))))


@storable
@dataclass(frozen=True, slots=True)
class Output:
    """Some matches as they left the system."""

    matches: Matches
    """The matches."""
    latency_ns: np.ndarray
    """Of each probing tuple, from its birth until it arrived at the sink, int64."""
    sender: str
    """The actor that sent them to the sink."""


@dataclass(frozen=True, slots=True)
class Late(Payload):
    """Tuples of one stream that a joiner dropped, because a watermark had passed them."""

    stream: int
    """Position of the stream in the query."""
    ids: np.ndarray
    ts: np.ndarray
    """int64, the tuples and their event times."""
    watermark: int
    """The one that each was older than, when it reached the join."""
    span: tuple[int, int]
    """First and last arrival number of the message they came in."""

    bytes_of = ("ids", "ts")
    rows_of = ("ids",)


def report_late(
    stream: int,
    batch: Batch,
    late: np.ndarray,
    watermark: int,
    span: tuple[int, int],
    context: Context,
) -> None:
    """Send the sink the tuples of *batch* that the mask *late* names, if there are any."""
    if late.any():
        batch = batch.take(np.flatnonzero(late))
        context.send("sink", Late(stream, batch.id, batch.ts, watermark, span))


@dataclass(frozen=True, slots=True)
class Collected(Payload):
    """What a replica's collector did, sent once at the end of the streams."""

    replica: int
    """Its number."""
    most_tuples: int
    """Tuples that waited in it at once, at the most."""
    tuples: int
    """Tuples that passed through it."""
    waited_ns: int
    longest_ns: int
    """How long they waited for their turn, all together and the one that waited longest."""
    backward: int
    """Watermarks that came in behind an earlier one of the same channel, and were ignored."""

    bytes_of = ("replica", "most_tuples", "tuples", "waited_ns", "longest_ns", "backward")


class Sink(Actor):
    """Where results leave the system."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        """Emit every part of an `Answers`, and a `Late` or a `Collected` as it is."""
        answers = message.payload
        if isinstance(answers, (Late, Collected)):
            context.emit(answers)
            return
        if not isinstance(answers, Answers):
            raise TypeError(
                f"a sink takes Answers, Late or Collected, not {type(answers).__name__}"
            )
        for matches, born_ns in zip(answers.matches, answers.born_ns, strict=True):
            if len(matches):
                # The clock of its source may be ahead of the sink's.
                latency_ns = np.maximum(context.now - born_ns, 0)
                context.emit(Output(matches, latency_ns, message.sender))


class ResultEpochs:
    """Results by epoch, in virtual order, that are not committed.

    Those that are go to *collect*; with *at_once* all do as they come, and none is taken back.
    """

    def __init__(self, collect: Callable[[list[Any]], None], *, at_once: bool) -> None:
        self._collect = collect
        self._at_once = at_once
        self._waiting: list[tuple[int, int, list[Any]]] = []

    def add(self, epoch: int, results: list[Any], now: int) -> None:
        """Take *results* that were emitted at *now*, after the snapshot number *epoch*."""
        if self._at_once:
            self._collect(results)
        else:
            self._waiting.append((epoch, now, results))

    def commit(self, epoch: int | None, now: int) -> None:
        """Hand on what was emitted before the snapshot number *epoch*; None: everything.

        Results have then waited until *now*, which is part of their latency.
        """
        waiting, self._waiting = self._waiting, []
        for emitted_in, emitted_ns, results in waiting:
            if epoch is None or emitted_in < epoch:
                self._collect([_delayed(one, now - emitted_ns) for one in results])
            else:
                self._waiting.append((emitted_in, emitted_ns, results))

    def discard(self, epoch: int) -> None:
        """Forget what was emitted after the snapshot number *epoch*."""
        self._waiting = [one for one in self._waiting if one[0] < epoch]


def _delayed(result: Any, by_ns: int) -> Any:
    if isinstance(result, Output):
        return replace(result, latency_ns=result.latency_ns + by_ns)
    return result
