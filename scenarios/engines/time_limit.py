"""How long an engine may take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from scenarios.engines.engine import EngineFailed


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Interrupt what runs in the ``with`` after *seconds* of wall time; None is no limit.

    It is interrupted as Ctrl-C would do it: every engine ends its processes then. Only the main
    thread can be.

    Raise :exc:`EngineFailed` in place of whatever the interrupted engine raised.
    """
    if seconds is None:
        yield
        return
    over = False

    def interrupt(*_: object) -> None:
        nonlocal over
        over = True
        raise KeyboardInterrupt  # what Ray and Spark look out for; another exception they lose

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if not over:
            raise
        raise EngineFailed(f"stopped: it had not ended after {seconds:g} s (--limit)") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
