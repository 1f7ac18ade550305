"""Waiting for another process, never without a limit."""

from __future__ import annotations

import subprocess
from queue import Empty, Queue
from threading import Thread


def read_line(process: subprocess.Popen[str], *, limit_s: float = 120) -> str:
    """Return the next line that *process* prints; after *limit_s* seconds kill it, and fail.

    A process that ends prints an empty line.
    """
    stdout, lines = process.stdout, Queue[str](1)
    assert stdout is not None
    Thread(target=lambda: lines.put(stdout.readline()), daemon=True).start()
    try:
        return lines.get(timeout=limit_s)
    except Empty:
        process.kill()
        raise AssertionError(f"it printed nothing for {limit_s:g} s") from None
