"""A process that ends what another has started, when that one is gone; run as a script.

Whatever ends a process, even a signal that nothing can handle, the system closes its pipe to the
watcher. What it started has no parent then, and is recognised by a variable of its environment,
which processes inherit. A process that ends as it should sends its watcher a byte, and the watcher
does nothing.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress

import psutil

MARK = "JOINSIM_STARTED_BY"
_AGAIN_S = 0.2
_QUIET = 5
"""So many times in turn nothing may be left: one that was just being started is not missed."""


def end_all(mark: str) -> None:
    """Kill all processes that have this *mark*, until there are none."""
    quiet = 0
    while quiet < _QUIET:
        quiet += 1
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == mark and process.status() != "zombie":
                    process.kill()
                    quiet = 0
        time.sleep(_AGAIN_S)


if __name__ == "__main__":
    if not sys.stdin.buffer.read(1):
        end_all(sys.argv[1])
