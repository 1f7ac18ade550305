"""How a run ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from actors.protocol import Channel


@dataclass(kw_only=True)
class Injected:
    """What went wrong in a run because of its faults, and what the transport did about it."""

    counts: Counter[str] = field(default_factory=Counter)
    """By kind of fault: frames that a link lost, doubled, delayed and so on, services that were
    paused or slowed, timers of a source that waited, messages received by a wrong clock."""
    retransmissions: int = 0
    timeouts: int = 0
    """Frames that were sent again, and how often it was because a timeout had come."""
    acknowledgements: int = 0
    """How many were sent."""
    overhead_bytes: int = 0
    """Bytes of acknowledgements and of frames that were sent again."""
    failed: dict[str, str] = field(default_factory=dict)
    """Actors that failed, and why: without a transport, on input that was damaged on its way; with
    the guarantee ``none``, for want of what a crash lost."""


@dataclass(frozen=True, kw_only=True)
class Recovered:
    """What recovery did in a run."""

    guarantee: str
    """``exactly_once``, ``at_least_once`` or ``none``."""
    crashes: int
    restarts: int
    """Actors that crashed, and times that actors started again, alone or all together."""
    snapshots: int
    snapshot_bytes: int
    """Complete ones, and the bytes of all of their states."""
    marker_lost: bool = False
    """Whether a link lost a marker of the last one, which is never complete then: no other is
    taken."""

    @property
    def weakens(self) -> bool:
        """Whether results may differ: an actor crashed, and they need not come exactly once."""
        return self.crashes > 0 and self.guarantee != "exactly_once"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What was counted in a run."""

    virtual_ns: int
    """When the last service was done."""
    tuples: int
    """Tuples that sources fed in."""
    messages: int
    nbytes: int
    """Messages that crossed between two actors, and the bytes of those that crossed between sites;
    of a live run, of all."""
    due: Mapping[Channel, int]
    """By sender and receiver how many messages were to be received: those sent but for those lost
    for good, and one more for each that arrived twice."""
    in_flight: int
    """Messages sent but not served when the run ended; 0 when nothing was lost."""
    digest: str | None
    """The trace's; None for a run that did not simulate, and is not repeatable."""
    standstill: tuple[str, ...] = ()
    """Actors that each wait for room in the inbox of the next, and the last for the first: nothing
    could happen any more."""
    unserved: tuple[str, ...] = ()
    """What each actor raised first, if anything, on messages that it received and never came to
    serve, as in a standstill."""
    lost: int = 0
    doubled: int = 0
    """Messages that a link or a crash lost for good, and those that arrived twice."""
    injected: Injected | None = None
    """What the run's faults did; None where it has none."""
    recovered: Recovered | None = None
    """What recovery did; None for a run without it."""
    unpriced: tuple[str, ...] = ()
    """Steps that have no price in a profile that prices structures: they cost what their units of
    work do."""
