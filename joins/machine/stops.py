"""Reasons for a kernel to stop before its last row."""

from __future__ import annotations

DONE, MAINTAIN, NO_ROOM, NO_OUTPUT = range(4)
"""All rows are done; the row's side must be maintained; its index or window has no room; the list
has no room for the row's matches, of which nothing is left."""
