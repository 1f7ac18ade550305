"""Results by epoch: handed on when nothing can take them back, or discarded after a crash.

A sink that commits by epoch is what makes a recovery exact: what was emitted since the snapshot
that the system goes back to is emitted once more. Its price is that a result waits until the
snapshot behind it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from actors.results import Output


class ResultEpochs:
    """Results that are not committed, in virtual order.

    Parameters
    ----------
    collect
        Takes results that are committed.
    at_once
        Hand all results on as they come; nothing is ever taken back.
    """

    def __init__(self, collect: Callable[[list[Any]], None], *, at_once: bool) -> None:
        self._collect = collect
        self._at_once = at_once
        self._waiting: list[tuple[int, int, list[Any]]] = []

    def add(self, epoch: int, results: list[Any], now: int) -> None:
        """Take *results* that were emitted at *now*, after the snapshot number *epoch*."""
        if self._at_once:
            self._collect(results)
        else:
            self._waiting.append((epoch, now, results))

    def commit(self, epoch: int | None, now: int) -> None:
        """Hand on what was emitted before the snapshot number *epoch*; None: everything.

        Results have then waited until *now*, which is part of their latency.
        """
        waiting, self._waiting = self._waiting, []
        for emitted_in, emitted_ns, results in waiting:
            if epoch is None or emitted_in < epoch:
                self._collect([_delayed(one, now - emitted_ns) for one in results])
            else:
                self._waiting.append((emitted_in, emitted_ns, results))

    def discard(self, epoch: int) -> None:
        """Forget what was emitted after the snapshot number *epoch*."""
        self._waiting = [one for one in self._waiting if one[0] < epoch]


def _delayed(result: Any, by_ns: int) -> Any:
    if isinstance(result, Output):
        return replace(result, latency_ns=result.latency_ns + by_ns)
    return result
