"""How a process keeps freed memory, and how much it has taken."""

from __future__ import annotations

import contextlib
import ctypes
import platform
import resource
import sys
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # Of glibc's mallopt.
_LARGEST_KEPT = 32 << 20  # What glibc allows.
_KEPT = 256 << 20


def keep_freed_memory() -> None:
    """Have glibc reuse the memory of freed arrays.

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
