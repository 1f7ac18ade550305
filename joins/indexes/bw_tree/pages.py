"""The memory of a Bw-Tree: the mapping table, base nodes and delta records, as matrices of int64.

A page is named by its place in the mapping table. There stands the address of its newest delta
record, or of its base node when it has no deltas: delta i has address i, node j has -1 - j. A
record never changes once it can be reached, and its row is not used again while any thread is in
the tree; so an address that is still in the table stands for what it stood for before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.memory import LINE, aligned

ROOT = 0
"""The page that is always the root."""
NONE = -1
LEAST, GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

LEVEL, SIZE, RIGHT, HIGH_KEY, HIGH_POSITION, ENTRIES = range(6)
"""A base node: 0 for a leaf, entries held, the page to its right, and the entry before which its
own end. From `ENTRIES` on come keys, then positions, then children, each `Pages.room` wide."""

KIND, KEY, POSITION, CHILD, NEXT, LENGTH, BASE = range(7)
"""A delta: what it does to entry (key, position), the record below it, how many deltas the chain
has with it, and the chain's base node. One cache line."""
DELTA_WORDS = 8
INSERTED, DELETED = 0, 1
"""Kinds. A child's separator in an inner page is inserted as a leaf's entry is."""

NODES, DELTAS, PAGES = range(3)
"""Rows of `Pages.used`, a cache line each: how many of them have been given away."""

(
    SPARE_DELTA,
    SPARE_NODE,
    SPARE_RIGHT,
    SPARE_TOP,
    SPARE_PAGE,
    SPARE_LEFT,
    STEP,
    PAGE,
    SEEN,
    NEW,
    PENDING,
    RANDOM,
    SCRATCH,
) = range(13)
"""A thread's own row: records and pages that it was given and has not published; its next
compare-and-swap, see `PUT`, of a page, from the address it saw to a new one; how many changes it
still has to publish; and the state of its pauses. From `SCRATCH` on come these changes (level,
kind, key, position and child, the next one last), `PENDING_MAX` at the most, and room for the
deltas of a chain."""
PENDING_MAX, PENDING_WORDS = 32, 5
PUT, CONSOLIDATE, SPLIT, GROW = range(4)
"""Steps: a delta before the chain; a base node in the chain's place, or two; or two below the root.
"""


class Pages(NamedTuple):
    """The arrays of one tree; all but the threads' own are changed atomically alone.

    Attributes
    ----------
    mapping
        Shape (pages, 1): addresses.
    nodes, deltas
        A record per row.
    used
        See `NODES`.
    own
        A row per thread, see `SPARE_DELTA`.
    limits
        Shape (3,): entries beyond which a node is split, deltas at which a chain is consolidated,
        and for tests, in one of how many cases a thread pauses (`joins.machine.atomics`).
    """

    mapping: np.ndarray
    nodes: np.ndarray
    deltas: np.ndarray
    used: np.ndarray
    own: np.ndarray
    limits: np.ndarray


def node_room(width: int, chain: int) -> int:
    """Return the entries that a node has room for: all it may hold before it is split."""
    return width + chain


def make_pages(
    *,
    pages: int,
    nodes: int,
    deltas: int,
    threads: int,
    width: int,
    chain: int,
    pauses: int,
    seed: int,
) -> Pages:
    """Return memory of which nothing is used."""
    own = np.full((threads, SCRATCH + PENDING_MAX * PENDING_WORDS + chain), NONE, np.int64)
    own[:, PENDING] = 0
    own[:, RANDOM] = seed * threads + np.arange(1, threads + 1)
    return Pages(
        mapping=np.zeros((pages, 1), np.int64),
        nodes=np.zeros((nodes, ENTRIES + 3 * node_room(width, chain)), np.int64),
        deltas=np.zeros((deltas, DELTA_WORDS), np.int64),
        used=aligned((3, LINE)),
        own=own,
        limits=np.array([width, chain, pauses], np.int64),
    )
