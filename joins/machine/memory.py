"""How a process keeps its memory, how much it has taken, and where arrays begin in it."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import platform
import resource
import sys
from pathlib import Path

import numpy as np

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Of glibc's mallopt.
_LARGEST_KEPT = 32 << 20  # What glibc allows.
_KEPT = 256 << 20
_LINE_BYTES = 64
LINE = _LINE_BYTES // 8
"""Words of int64 in a cache line."""
_HUGE_PAGE = 2 << 20


def keep_freed_memory() -> None:
    """Keep the memory of freed arrays for the arrays to come.

    glibc returns arrays above some megabytes to the system when they are freed, and every page of
    the next one is then handed out anew and zeroed first: for a list of matches that takes longer
    than to find them. Up to 256 MiB are kept. Does nothing with another C library.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, _LARGEST_KEPT)
    library.mallopt(_TRIM_THRESHOLD, _KEPT)


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes, since `forget_peak` if that was called."""
    unit_bytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit_bytes


def forget_peak() -> None:
    """Reset `peak_bytes`, for a process that serves one run after another."""
    with contextlib.suppress(OSError):  # Linux alone has it, and some containers forbid it
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def aligned(shape: tuple[int, ...], dtype: str | np.dtype = "int64", fill: float = 0) -> np.ndarray:
    """Return an array that begins at a cache line, all *fill*.

    One that fills huge pages has some of its own: what is searched far apart needs them, and memory
    that was another array's before remains on small pages.
    """
    nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    fresh = nbytes >= _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE")
    if fresh:
        room, edge = _huge_pages(nbytes), _HUGE_PAGE
    else:
        room, edge = np.empty(nbytes + _LINE_BYTES, np.uint8), _LINE_BYTES
    skip = -room.ctypes.data % edge
    array = room[skip : skip + nbytes].view(dtype).reshape(shape)
    if fill or not fresh:  # The system's pages are 0 when they are first touched.
        array[...] = fill
    return array


def record(*names: str, words: int = 2 * LINE) -> np.dtype:
    """Return a dtype of int64 fields padded to *words* words.

    Two lines keep the records of different threads apart: processors fetch lines in pairs.
    """
    offsets = [8 * place for place in range(len(names))]
    formats = ["i8"] * len(names)
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": 8 * words})


def own_lines(words: int) -> np.ndarray:
    """Return int64 numbers, all 0, in cache lines that hold nothing else.

    For what one thread writes again and again, or all of them read: were another thread to write
    beside it, each would wait for the line at every access.
    """
    return aligned((-(-words // LINE) * LINE,))[:words]


def _huge_pages(nbytes: int) -> np.ndarray:
    """Return memory for *nbytes* from the next huge page on, which the system is asked to use."""
    pages = 1 + -(-nbytes // _HUGE_PAGE)
    room = mmap.mmap(-1, pages * _HUGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    # A system without huge pages says so.
    with contextlib.suppress(OSError):
        room.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(room, np.uint8)
