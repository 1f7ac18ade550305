"""The one virtual clock, on simpy: whole nanoseconds, and what is to happen when."""

from __future__ import annotations

from collections.abc import Callable

import simpy

from netsim.parts import Letter


class Clock(simpy.Environment):
    """Virtual time from 0 on, in nanoseconds."""

    _now: int  # simpy's own may be a float

    def __init__(self) -> None:
        super().__init__(initial_time=0)

    @property
    def now(self) -> int:
        """The virtual time in nanoseconds."""
        return self._now

    def at(self, at_ns: int, action: Callable[[Moment], None], letter: Letter) -> None:
        """Have *action* happen to *letter* at *at_ns*; of one time, the least priority is first."""
        moment = Moment(action, letter)
        # simpy's own priorities are two, urgent and normal; any number serves.
        self.schedule(moment, letter.priority, at_ns - self._now)  # type: ignore[arg-type]

    def advance(self, events: int) -> bool:
        """Process the next *events*; return whether there were as many."""
        step = self.step
        try:
            for _ in range(events):
                step()
        except simpy.core.EmptySchedule:
            return False
        return True


class Moment(simpy.Event):
    """A simpy event that is sure to happen, with no more of one than the clock looks at.

    Built without a process, which would cost twice.
    """

    _ok = True

    def __init__(self, action: Callable[[Moment], None], letter: Letter) -> None:
        self.callbacks = [action]
        self.letter = letter
