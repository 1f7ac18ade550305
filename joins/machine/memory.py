"""Where arrays begin in memory: at cache lines, and on huge pages."""

from __future__ import annotations

import contextlib
import mmap

import numpy as np

_LINE_BYTES = 64
LINE = _LINE_BYTES // 8
"""Words of int64 in a cache line."""
_HUGE_PAGE = 2 << 20


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
