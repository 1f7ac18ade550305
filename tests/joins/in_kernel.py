"""Parts of kernels, called in a test as kernels call them: compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from joins.machine.compiling import kernel


def in_kernel(part: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that does nothing but call *part*."""
    return kernel(lambda *arguments: part(*arguments))
