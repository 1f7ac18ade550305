"""How a process keeps its memory: once had, arrays of a few megabytes are not given back."""

from __future__ import annotations

import ctypes
import platform

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Of glibc's mallopt.
_LARGEST_KEPT = 32 << 20  # What glibc allows.
_KEPT = 256 << 20


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
