"""How a site knows that it has heard everything: by waiting δ, or by punctuations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

FOREVER = 2**62


class Execution(Protocol):
    """When a one-way join may look into a window, and when a window may forget."""

    @property
    def ships_nothing(self) -> bool:
        """Whether an interval without tuples is told, too: as a punctuation."""

    def ends_at(self, tick: int, late_ns: int) -> int | None:
        """Return when a stream has all of an interval; None where messages tell.

        *late_ns* after the interval's end are what an output stream of a tree takes to be made.
        """

    def has_all(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether a stream has all of an interval at its site.

        *heard* is the latest interval of which it has been told.
        """

    def wakes_at(self, tick: int, late_ns: int) -> int | None:
        """Return when a site looks whether what waits since *tick* may go on; None: at messages."""

    def may_probe(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether a copy of another site's window is complete up to *tick*.

        *heard* is the latest interval of which that site has told.
        """

    def may_remove(self, tick: int, done: int) -> int:
        """Return up to which interval what expired may be removed, when the one at *tick* ends.

        *done* is the latest interval of which all probes have come.
        """


@dataclass(frozen=True, kw_only=True)
class Delayed:
    """The paper's model: what happened at t is known everywhere at t + δ (section 2.2).

    Exact as long as no message takes longer; later ones are lost results.

    Attributes
    ----------
    delta_ns
        δ, by which probes of another site's window are delayed (Constraint 1).
    removal_ns
        By which removals are delayed (Constraint 2). The paper says δ. That is too short where a
        probe has waited δ itself before it is shipped on: its tuples arrive up to 2 δ late. In a
        tree it is as much again for every join below.
    """

    delta_ns: int
    removal_ns: int

    @property
    def ships_nothing(self) -> bool:
        """No: an interval without tuples needs no action."""
        return False

    def ends_at(self, tick: int, late_ns: int) -> int | None:
        """Return t, and later for an output stream."""
        return tick + late_ns

    def has_all(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether that time has come."""
        return now >= tick + late_ns

    def wakes_at(self, tick: int, late_ns: int) -> int | None:
        """Return δ after the stream has all of the interval."""
        return tick + late_ns + self.delta_ns

    def may_probe(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether δ has passed."""
        return now >= tick + late_ns + self.delta_ns

    def may_remove(self, tick: int, done: int) -> int:
        """Return what has expired that long ago."""
        return tick - self.removal_ns


@dataclass(frozen=True)
class Punctuated:
    """Messages tell up to which interval they are complete; the paper's future work.

    Exact whatever the latencies: a probe waits until the other site has told of its interval, and a
    tuple is removed when every site that may look for it has told that it needs it no more. Every
    site tells of every interval in which some stream has a tuple, at the cost of a message header.
    """

    @property
    def ships_nothing(self) -> bool:
        """Yes."""
        return True

    def ends_at(self, tick: int, late_ns: int) -> int | None:
        """Return None: only messages bring news."""
        return None

    def has_all(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether all that makes it has told of the interval."""
        return heard >= tick

    def wakes_at(self, tick: int, late_ns: int) -> int | None:
        """Return None."""
        return None

    def may_probe(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether the other site has told of the interval."""
        return heard >= tick

    def may_remove(self, tick: int, done: int) -> int:
        """Return up to where nothing more can come."""
        return done
