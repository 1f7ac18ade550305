"""The wall time of a command or a call, from its beginning, and its parts.

A part begins where the one before it ends, so that the parts add up to the whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

WALL_PARTS = {
    "import": "the interpreter's own start, and loading joinsim up to the command",
    "prepare": "reading the configuration, preparing the streams, planning",
    "compile": "the run in miniature that compiles its kernels, in every process",
    "start": "building the actors; starting, and later ending, the processes that they live in",
    "run": "from the first event to the last",
    "write": "what was still to be written then: results, trace and joined rows, as whole files",
    "oracle": "checking the answer",
    "report": "drawing and writing the report",
}
"""What a run spends its wall time on, in order, and what each part means."""


class WallClock:
    """Measures the parts of one command or call, which *began_s* of `time.monotonic`, or now."""

    def __init__(self, began_s: float | None = None) -> None:
        self._seconds = dict.fromkeys(WALL_PARTS, 0.0)
        self._since_s: float | None = time.monotonic() if began_s is None else began_s

    def lap(self, part: str) -> None:
        """Add what has passed since the last call to *part*, one of `WALL_PARTS`."""
        if self._since_s is not None:
            now_s = time.monotonic()
            self._seconds[part] += now_s - self._since_s
            self._since_s = now_s

    def stop(self) -> None:
        """End the measurement: what comes later belongs to no part."""
        self._since_s = None

    @property
    def stopped(self) -> bool:
        """Whether the measurement has ended."""
        return self._since_s is None

    @property
    def since_lap_s(self) -> float:
        """Seconds since the last part ended."""
        return 0.0 if self._since_s is None else time.monotonic() - self._since_s

    @property
    def parts(self) -> Mapping[str, float]:
        """Part to seconds, to the millisecond."""
        return {part: round(seconds, 3) for part, seconds in self._seconds.items()}

    @property
    def seconds(self) -> float:
        """The whole: the sum of the parts."""
        return round(sum(self.parts.values()), 3)

    def __str__(self) -> str:
        parts = (f"{part} {s:,.2f}" for part, s in self.parts.items() if s >= 0.005)
        return f"{self.seconds:,.2f} s: {', '.join(parts)}"


def process_began_s() -> float:
    """Return when this process began, of `time.monotonic`, to a hundredth of a second.

    Where the system does not say, that is now.
    """
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
        began_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # after the system's own start
        return time.monotonic() - (time.clock_gettime(time.CLOCK_BOOTTIME) - began_s)
    except (OSError, AttributeError, ValueError, IndexError):
        return time.monotonic()
