"""Why a kernel stopped before it was through."""

from __future__ import annotations

DONE, MAINTAIN, NO_NODES, NO_OUTPUT = range(4)
"""All rows are done; the row's side must be maintained; the pool of nodes is full; the row's
matches had no room (it has left no trace)."""
