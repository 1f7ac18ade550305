"""A stopwatch around the inline host: how long operators really took, not what they are charged.

It stands here because nothing simulated may read a clock.
"""

from __future__ import annotations

import time
from collections import deque
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from actors.hosting.inline import InlineHost
from actors.protocol import Reply

_LEAVES = (str, bytes, int, float, type, type(None), FunctionType, ModuleType)


class TimedHost:
    """Passes everything on to *host* and adds up the wall seconds spent in each actor.

    Attributes
    ----------
    seconds
        Actor name to seconds.
    """

    def __init__(self, host: InlineHost) -> None:
        self._host = host
        self.seconds = dict.fromkeys(host.cells, 0.0)

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        """Run the actor at once and take the time."""
        start = time.perf_counter()
        self._host.submit(ticket, actor, sender, port, handle, now)
        self.seconds[actor] += time.perf_counter() - start

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a submitted message."""
        return self._host.reply(ticket)

    def state_bytes(self) -> dict[str, int]:
        """Return actor name to the bytes of the arrays that it holds now, each array once."""
        return {name: held_bytes(cell.actor) for name, cell in self._host.cells.items()}


def held_bytes(root: object) -> int:
    """Return the bytes of all arrays that *root* reaches, of views what they are views of."""
    total, seen, waiting = 0, set(), [root]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or isinstance(found, _LEAVES):
            continue
        seen.add(id(found))
        if isinstance(found, np.ndarray):
            if isinstance(found.base, np.ndarray):
                waiting.append(found.base)
            else:
                total += found.nbytes
        elif isinstance(found, dict):
            waiting += found.values()
        elif isinstance(found, (list, tuple, set, deque)):
            waiting += found
        else:
            waiting += vars(found).values() if hasattr(found, "__dict__") else ()
            slots = (name for kind in type(found).__mro__ for name in _slots(kind))
            waiting += [getattr(found, name) for name in slots if hasattr(found, name)]
    return total


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)
