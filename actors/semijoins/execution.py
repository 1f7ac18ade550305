"""How a site learns that an interval is complete: by waiting δ, or by punctuations."""

from __future__ import annotations

from dataclasses import dataclass

FOREVER = 2**62


@dataclass(frozen=True, kw_only=True)
class Execution:
    """When a one-way join may look into a window, and when a window may forget.

    In the paper's model what happened at t is known everywhere at t + δ (section 2.2). That is
    exact as long as no message takes longer; later ones are lost results.

    *punctuated* execution is the paper's future work: messages state up to which interval they are
    complete. It is exact whatever the latencies: a probe waits until the other site has announced
    its interval, and a tuple is removed when every site that may look for it has announced that it
    needs it no more. Every site announces every interval in which some stream has a tuple, at the
    cost of a message header.

    Attributes
    ----------
    punctuated
        Whether sites wait for punctuations; else for time to pass. Where they do, an interval
        without tuples is shipped, too: as a punctuation.
    delta_ns
        δ, by which probes of a copy of another site's window are delayed (Constraint 1).
    removal_ns
        By which removals are delayed (Constraint 2). The paper says δ. That is too short where a
        probe has waited δ itself before it is shipped on: its tuples arrive up to 2 δ late. In a
        tree it is as much again for every join below.
    """

    punctuated: bool
    delta_ns: int
    removal_ns: int

    def complete_at(self, tick: int, late_ns: int) -> int | None:
        """Return when an interval is complete; None where messages announce it.

        *late_ns* is what it takes after the interval's end: an output stream of a tree must be
        made, a copy of a window must be sent.
        """
        return None if self.punctuated else tick + late_ns

    def is_complete(self, tick: int, late_ns: int, heard: int, now: int) -> bool:
        """Return whether an interval is complete, where *heard* is the latest one announced."""
        at = self.complete_at(tick, late_ns)
        return heard >= tick if at is None else now >= at

    def may_remove(self, tick: int, done: int) -> int:
        """Return up to which interval what expired may be removed, when the one at *tick* ends.

        *done* is the latest interval of which all probes have come.
        """
        return done if self.punctuated else tick - self.removal_ns
