"""How kernels are compiled."""

from __future__ import annotations

from typing import Any

from numba import njit
from numba.extending import intrinsic as numba_intrinsic

kernel: Any = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
"""Compile a function of arrays that allocates none: its callers own them all.

Without this ``_nrt=False`` numba counts a reference to every array at every call, atomically; with
the many arrays of a tree that made it three times as slow.
"""

inlined: Any = njit(  # type: ignore[call-overload]
    cache=True, nogil=True, _nrt=False, forceinline=True
)
"""Put a function into the kernels that call it.

A call copies every array's structure, some seventy words for the arrays of a tree; in a loop over
tuples that costs several times what a short function does."""

part_of: Any = njit(cache=True, nogil=True, inline="always")
"""The same for a function that returns part of an array: a kernel may take one, not return it."""

# numba's own annotation describes what the decorated function is to the compiler, not its callers.
intrinsic: Any = numba_intrinsic
