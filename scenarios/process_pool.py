"""A pool of processes that end with this one, whatever ends it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker

from actors.hosting.descendants import ending_with


@contextmanager
def process_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of so many processes, which are started at once.

    At the end of the ``with``, after an interrupt too, work that has not begun is dropped, and the
    processes end with all that they have started.
    """
    resource_tracker.ensure_running()  # multiprocessing's, for all such processes
    # Not forked: threads of Arrow would be missing in the copies.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))

    def stop() -> None:
        pool.shutdown(wait=False, cancel_futures=True)  # it would wait for the work to end

    def start() -> None:
        for future in [pool.submit(os.getpid) for _ in range(processes)]:
            future.result()

    with ending_with(stop, start=start):
        yield pool
