"""How far a run has come, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass


class EndlessRunError(Exception):
    """A run that went past its limit of virtual time."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run has come: virtual nanoseconds, tuples fed in, messages delivered."""

    virtual_ns: int
    tuples: int
    messages: int


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was counted in a run.

    Attributes
    ----------
    virtual_ns
        When the last service was done.
    tuples
        Tuples that sources fed in.
    messages, nbytes
        Messages that crossed between two actors, and the bytes of those that crossed between sites.
    in_flight
        Messages sent but not served when the run ended; 0 when nothing was lost.
    digest
        The trace's; None for a run that did not simulate, and is not repeatable.
    """

    virtual_ns: int
    tuples: int
    messages: int
    nbytes: int
    in_flight: int
    digest: str | None
