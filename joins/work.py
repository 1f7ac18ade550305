"""What an operation cost, counted in the machine's own currency rather than in seconds."""

from __future__ import annotations

from operator import add
from typing import NamedTuple

import numpy as np

from joins.state import storable


@storable
class Work(NamedTuple):
    """Counters of one or more index operations; a cost profile turns them into nanoseconds.

    Attributes
    ----------
    comparisons
        Key comparisons: binary search steps and scanned keys.
    inserts
        Entries inserted into a mutable structure.
    moves
        Entries shifted, split, merged or sorted into place.
    bits
        Operations on bit arrays: single bits set, cleared or tested, and whole words of 64 bits
        combined or scanned; both take about the same time.
    bytes_copied
        Bytes copied between structures (sealing, shipping, snapshots).
    matches
        Pairs of tuples that match.
    atomics
        Atomic operations on words that several threads share: locks acquired and released, tests
        and sets, compares and swaps; and reads of lines that others have just written, which take
        as long.
    elapsed_ns
        Nanoseconds that a machine of several cores takes for the work of the other counters, until
        its last core is done.
    """

    comparisons: int = 0
    inserts: int = 0
    moves: int = 0
    bits: int = 0
    bytes_copied: int = 0
    matches: int = 0
    atomics: int = 0
    elapsed_ns: int = 0

    def __add__(self, other: Work) -> Work:  # type: ignore[override]
        return Work._make(map(add, self, other))

    @classmethod
    def from_counters(cls, counters: np.ndarray) -> Work:
        """Read the counters a kernel filled in, in the order of `COUNTERS`."""
        return cls._make(counters.tolist())


@storable
class Step(NamedTuple):
    """One call of an operation of a structure: what its work costs depends on all three.

    Attributes
    ----------
    name
        Structure and operation, as a cost profile names them: ``hash.probe``.
    rows
        Tuples of the call.
    size
        Tuples in the structure; of several that are probed together, in all of them.
    """

    name: str
    rows: int
    size: int


def structure_name(structure: str | type) -> str:
    """Return what steps of a structure are named after: its name, or that of the caller's class."""
    return structure.__qualname__ if isinstance(structure, type) else structure


COUNTERS = Work._fields
"""The order in which kernels write their int64 counters."""
COMPARISONS, INSERTS, MOVES, BITS, BYTES_COPIED, MATCHES, ATOMICS, ELAPSED_NS = range(len(COUNTERS))

NO_WORK = Work()

ENTRY_BYTES = 16
"""Size of an index entry: a key and a position."""


def new_counters() -> np.ndarray:
    """Return counters for a kernel, all zero."""
    return np.zeros(len(COUNTERS), np.int64)
