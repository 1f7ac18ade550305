"""What joiners send to a sink, and what the sink hands out of the system."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from actors.protocol import Actor, Context, Message, Payload
from joins.batch import Batch
from joins.matches import Matches
from joins.state import storable

_PROBE_BYTES = 16
_ID_BYTES = 8


@dataclass(frozen=True, slots=True)
class Answers(Payload):
    """One joiner's matches for the probes of one message.

    Attributes
    ----------
    matches
        One per probing stream.
    born_ns
        Per element of *matches* the virtual birth times of its probing tuples, int64.
    span
        First and last arrival number of the probes.
    streams
        Streams joined: a result has so many ids.
    """

    matches: tuple[Matches, ...]
    born_ns: tuple[np.ndarray, ...]
    span: tuple[int, int]
    streams: int = 2

    rows_of = ("matches",)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: two ids a pair, whether or not this run writes them."""
        nbytes = self.frame_bytes
        for part in self.matches:
            nbytes += _PROBE_BYTES * len(part) + _ID_BYTES * self.streams * part.total
        return nbytes


@storable
class Found(NamedTuple):
    """The matches of some probes of one message.

    Attributes
    ----------
    matches, born_ns
        The matches, and for each row the virtual birth time of the probing tuple, int64.
    span
        First and last arrival number of the message.
    """

    matches: Matches
    born_ns: np.ndarray
    span: tuple[int, int]


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
    """Some matches as they left the system.

    Attributes
    ----------
    matches
        The matches.
    latency_ns
        Of each probing tuple, from its birth until it arrived at the sink, int64.
    sender
        The actor that sent them to the sink.
    """

    matches: Matches
    latency_ns: np.ndarray
    sender: str


@dataclass(frozen=True, slots=True)
class Late(Payload):
    """Tuples of one stream that a joiner dropped, because a watermark had passed them.

    Attributes
    ----------
    stream
        Position of the stream in the query.
    ids, ts
        int64, the tuples and their event times.
    watermark
        The one that each was older than, when it reached the join.
    span
        First and last arrival number of the message they came in.
    """

    stream: int
    ids: np.ndarray
    ts: np.ndarray
    watermark: int
    span: tuple[int, int]

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
    """What a replica's collector did, sent once at the end of the streams.

    Attributes
    ----------
    replica
        Its number.
    most_tuples
        Tuples that waited in it at once, at the most.
    tuples
        Tuples that passed through it.
    waited_ns, longest_ns
        How long they waited for their turn, all together and the one that waited longest.
    backward
        Watermarks that came in behind an earlier one of the same channel, and were ignored.
    """

    replica: int
    most_tuples: int
    tuples: int
    waited_ns: int
    longest_ns: int
    backward: int

    bytes_of = ("replica", "most_tuples", "tuples", "waited_ns", "longest_ns", "backward")


class Sink(Actor):
    """Where results leave the system."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        """Emit every part of an `Answers`, and anything else as it is."""
        if isinstance(message.payload, (Late, Collected)):
            context.emit(message.payload)
            return
        answers: Answers = message.payload
        for matches, born_ns in zip(answers.matches, answers.born_ns, strict=True):
            if len(matches):
                # The clock of its source may be ahead of the sink's.
                latency_ns = np.maximum(context.now - born_ns, 0)
                context.emit(Output(matches, latency_ns, message.sender))
