"""How much memory an actor holds."""

from __future__ import annotations

from collections import deque
from types import FunctionType, ModuleType

import numpy as np

_LEAVES = (str, bytes, int, float, type, type(None), FunctionType, ModuleType)


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
