"""How a process keeps its memory, and where arrays begin in it."""

from __future__ import annotations

import ctypes
import platform

import numpy as np

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Of glibc's mallopt.
_LARGEST_KEPT = 32 << 20  # What glibc allows.
_KEPT = 256 << 20
_LINE_BYTES = 64


def keep_freed_memory() -> None:
    """Let the memory of freed arrays serve the next ones.

    glibc returns arrays above some megabytes to the system when they are freed, and every page of
    the next one is then handed out anew and zeroed first: for a list of matches that takes longer
    than to find them. Up to 256 MiB are kept. Does nothing with another C library.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
    library.mallopt(_TRIM_THRESHOLD, _KEPT)


def aligned(shape: tuple[int, ...], dtype: str | np.dtype = "int64", fill: int = 0) -> np.ndarray:
    """Return an array that begins at a cache line, all *fill*.

    Written by us rather than asked for as zeros: only memory from `numpy.empty` is offered to the
    system as huge pages, and what is searched far apart needs them.
    """
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.empty(nbytes + _LINE_BYTES, np.uint8)
    skip = -room.ctypes.data % _LINE_BYTES
    array = room[skip : skip + nbytes].view(dtype).reshape(shape)
    array[...] = fill
    return array
