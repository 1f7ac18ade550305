"""Intersection of lists of ids by hashing, the way of joins without bit arrays.

SPO-Join's section 2.4 calls it naive, and its section 5.4 measures it as the mutable component's
alternative: every predicate lists the ids that it finds, and a hash table of one list is looked up
with the ids of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import kernel
from joins.matches import ProbeResult
from joins.work import COMPARISONS, COUNTERS, INSERTS, MATCHES, Work

_SLOTS_PER_ID = 2
"""Room of the hash table at the least: half of it stays empty, so that runs of full slots are
short."""


def intersect_ids(
    counts: Sequence[np.ndarray], ids: Sequence[np.ndarray], *, enumerate: bool = False
) -> ProbeResult:
    """Find for every row the ids that all lists of that row hold.

    The shortest list of a row fills the table; no other order of the lists is cheaper.

    Parameters
    ----------
    counts
        Per list (at least one) int64, how many ids each row has.
    ids
        Per list int64, the ids of the first row, then of the second, ...; within a row each once.
    enumerate
        List the ids found too, in no particular order within a row.

    Raises
    ------
    ValueError
        When there is no list, or lists differ in their number of rows or ids.
    """
    if not counts or len(counts) != len(ids) or len({len(count) for count in counts}) != 1:
        raise ValueError("lists of ids to intersect must be one or more, of equally many rows")
    for count, listed in zip(counts, ids, strict=True):
        if int(count.sum()) != len(listed):
            raise ValueError(
                f"the rows of a list count {int(count.sum())} ids; it has {len(listed)}"
            )
    sizes = np.stack(counts).astype(np.int64)
    begins = np.cumsum(sizes, axis=1) - sizes
    begins += np.cumsum([0, *(len(listed) for listed in ids[:-1])])[:, None]
    least = sizes.min(axis=0)
    slots = 1 << (_SLOTS_PER_ID * int(least.max(initial=1))).bit_length()
    found, fingerprint = np.zeros(len(least), np.int64), np.zeros(len(least), np.uint64)
    match_id = np.empty(int(least.sum()) if enumerate else 0, np.int64)
    counters = np.zeros(len(COUNTERS), np.int64)
    listed = _intersect(
        sizes,
        begins,
        np.concatenate(ids),
        np.empty(slots, np.int64),
        np.empty(slots, np.int64),
        enumerate,
        found,
        fingerprint,
        match_id,
        counters,
    )
    return ProbeResult(
        count=found,
        fingerprint=fingerprint,
        match_id=match_id[:listed] if enumerate else None,
        work=Work.from_counters(counters),
    )


@kernel
def _find_slot(
    key: int, keys: np.ndarray, lists: np.ndarray, mask: int, counters: np.ndarray
) -> np.int64:
    """Return the slot that holds *key*, or the empty one where it belongs."""
    slot = np.int64(splitmix64(key) & np.uint64(mask))
    counters[COMPARISONS] += 1
    while lists[slot] != 0 and keys[slot] != key:
        slot = (slot + 1) & mask
        counters[COMPARISONS] += 1
    return slot


@kernel
def _fill(ids: np.ndarray, keys: np.ndarray, lists: np.ndarray, counters: np.ndarray) -> np.int64:
    """Make a table of *ids* in as many slots as it needs, and return that number less one."""
    size = np.int64(2)
    while size < _SLOTS_PER_ID * len(ids):
        size *= 2
    lists[:size] = 0
    for key in ids:
        slot = _find_slot(key, keys, lists, size - 1, counters)
        keys[slot] = key
        lists[slot] = 1
    counters[INSERTS] += len(ids)
    return size - 1


@kernel
def _keep(
    ids: np.ndarray, nth: int, keys: np.ndarray, lists: np.ndarray, mask: int, counters: np.ndarray
) -> np.int64:
    """Count those of *ids*, the *nth* list, that were in all lists before; return how many."""
    kept = np.int64(0)
    for key in ids:
        slot = _find_slot(key, keys, lists, mask, counters)
        if lists[slot] == nth:
            lists[slot] = nth + 1
            kept += 1
    return kept


@kernel
def _intersect(
    sizes: np.ndarray,
    begins: np.ndarray,
    ids: np.ndarray,
    keys: np.ndarray,
    lists: np.ndarray,
    keep_ids: bool,
    found: np.ndarray,
    fingerprint: np.ndarray,
    match_id: np.ndarray,
    counters: np.ndarray,
) -> np.int64:
    """Fill in *found*, *fingerprint* and *match_id*; return how many ids are listed.

    A slot of the table is a key and in how many lists it was (0: empty).
    """
    listed = np.int64(0)
    for row in range(sizes.shape[1]):
        shortest = np.argmin(sizes[:, row])
        begin = begins[shortest, row]
        table = ids[begin : begin + sizes[shortest, row]]
        mask = _fill(table, keys, lists, counters)
        kept, nth = len(table), 1
        for part in range(sizes.shape[0]):
            if part != shortest:
                begin = begins[part, row]
                others = ids[begin : begin + sizes[part, row]]
                kept = _keep(others, nth, keys, lists, mask, counters)
                nth += 1
        found[row] = kept
        counters[MATCHES] += kept
        if kept == 0:
            continue
        for key in table:
            if lists[_find_slot(key, keys, lists, mask, counters)] == nth:
                fingerprint[row] += splitmix64(key)
                if keep_ids:
                    match_id[listed] = key
                    listed += 1
    return listed
