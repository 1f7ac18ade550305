"""The one real clock among actors' hosts: a live run has no virtual time.

All processes count from one moment. On one machine their clocks agree to the microsecond; between
machines as well as the machines' own clocks do, so that latencies across them are as good as those.
"""

from __future__ import annotations

import time


def moment_ns() -> int:
    """Return the present, for other processes to count from."""
    return time.time_ns()


class Clock:
    """Nanoseconds since the run began, never going back.

    Parameters
    ----------
    began_ns
        When that was, as `moment_ns` says.
    """

    def __init__(self, began_ns: int) -> None:
        self._zero_ns = time.monotonic_ns() - (time.time_ns() - began_ns)

    def now(self) -> int:
        """Return the nanoseconds since the run began."""
        return time.monotonic_ns() - self._zero_ns

    @staticmethod
    def processor_ns() -> int:
        """Return the processor time that all threads of this process have used."""
        return time.process_time_ns()

    @staticmethod
    def worked_ns() -> int:
        """Return the processor time that this thread has used."""
        return time.thread_time_ns()
