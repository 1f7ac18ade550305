"""How fast the machine is now: others may use it, too.

What they do shows in Python's interpreter, which jumps about in much code, before it shows in reads
of memory: on a machine in a cloud it took 1.3 to 1.7 times as long for a minute, now and then,
while a read of the nearest cache took 1.02 to 1.1 times, once 1.24.
"""

from __future__ import annotations

import time

SLOW = 1.15
"""How many times as long as at its best the interpreter takes on a machine that is disturbed. In
other minutes what it took was within a tenth of the usual."""
_STEPS = 3000
_ROUNDS = 3


def interpret_s() -> float:
    """Return how many seconds the interpreter takes now for a fixed piece of Python."""
    return min(_interpret() for _ in range(_ROUNDS))


class _Record:
    def __init__(self, fields: dict[str, int]) -> None:
        self.fields = fields

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(self.fields.values())


def _interpret() -> float:
    """Time calls, objects, names and loops, as there are around every kernel."""
    started = time.thread_time()
    for step in range(_STEPS):
        record = _Record({"first": step, "second": 2, "third": 3})
        sum(value + 1 for value in record.values)
    return time.thread_time() - started
