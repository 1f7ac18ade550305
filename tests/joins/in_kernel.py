"""Parts of kernels, called in a test as kernels call them: compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def in_kernel(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that does nothing but call *part*.

    It is not stored: what this file imports, and so its digest, stays the same if *part* is edited.
    """
    called: Callable[..., Any] = njit(lambda *arguments: part(*arguments))
    return called
