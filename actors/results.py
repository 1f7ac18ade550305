"""What joiners send to a sink, and what the sink hands out of the system."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.protocol import Actor, Context, Message, State
from joins.matches import Matches

_PROBE_BYTES = 16
_PAIR_BYTES = 16


@dataclass(frozen=True, slots=True)
class Answers:
    """The matches that one joiner found for the probes of one message.

    Attributes
    ----------
    matches
        One per probing stream.
    born_ns
        Per element of *matches* the virtual birth times of its probing tuples, int64.
    span
        First and last arrival number of the probes.
    """

    matches: tuple[Matches, ...]
    born_ns: tuple[np.ndarray, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: two ids a pair, whether or not this run keeps them."""
        return sum(_PROBE_BYTES * len(part) + _PAIR_BYTES * part.total for part in self.matches)

    @property
    def rows(self) -> int:
        """Number of probing tuples."""
        return sum(len(part) for part in self.matches)


@dataclass(frozen=True, slots=True)
class Output:
    """Some matches as they left the system, with the latency of each probing tuple in ns."""

    matches: Matches
    latency_ns: np.ndarray


class Sink(Actor):
    """Where results leave the system."""

    def receive(self, message: Message, context: Context) -> None:
        """Emit every part of an `Answers`."""
        answers: Answers = message.payload
        for matches, born_ns in zip(answers.matches, answers.born_ns, strict=True):
            if len(matches):
                context.emit(Output(matches, context.now - born_ns))

    def snapshot(self) -> State:
        """Return nothing: a sink keeps nothing."""
        return {}

    def restore(self, state: State) -> None:
        """Take over nothing."""
