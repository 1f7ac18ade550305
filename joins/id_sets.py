"""Intersects lists of ids by hashing, as joins without bit arrays do.

SPO-Join's section 2.4 calls it naive, and its section 5.4 measures it as the mutable component's
alternative: every predicate lists the ids that satisfy it, one list is put into a hash table, and
the ids of the others are looked up there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from joins.hashing import find_key
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, ProbeResult, add_match, find_matches, has_room
from joins.work import COMPARISONS, INSERTS

_SLOTS_PER_ID = 2
"""Room of the hash table at the least: half of it stays empty, so that runs of full slots are
short."""


class _Lists(NamedTuple):
    """Lists of ids, all in one array; l lists, m rows."""

    begin: np.ndarray
    size: np.ndarray
    """int64, shape (l, m): where a list's ids of a row begin in *ids*, and how many they are."""
    ids: np.ndarray
    """int64, the lists end to end."""


class _Table(NamedTuple):
    """A hash table of a row's shortest list, see `joins.hashing.find_key`."""

    numbers: np.ndarray
    seen_in: np.ndarray
    """Per id of the list, in how many lists it was."""


def intersect_ids(
    counts: Sequence[np.ndarray], ids: Sequence[np.ndarray], *, enumerate: bool = False
) -> ProbeResult:
    """Return for every row the ids that are in all lists of that row.

    The shortest list of a row fills the table; no other order of the lists is cheaper.

    Parameters
    ----------
    counts
        Per list (at least one) int64, how many ids each row has.
    ids
        Per list int64, the ids of the first row, then of the second, ...; within a row each once.
    enumerate
        List these ids too, in no particular order within a row.

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
    size = np.stack(counts).astype(np.int64)
    begin = np.cumsum(size, axis=1) - size
    begin += np.cumsum([0, *(len(listed) for listed in ids[:-1])])[:, None]
    lists = _Lists(begin, size, np.concatenate(ids))
    least = size.min(axis=0)
    slots = 1 << (_SLOTS_PER_ID * int(least.max(initial=1))).bit_length()
    table = _Table(np.empty(slots, np.int64), np.empty(slots, np.int64))
    step = partial(_intersect, lists, table)
    return find_matches(step, len(least), enumerate=enumerate, most=least)


@kernel
def _find_slot(table: _Table, mask: int, ids: np.ndarray, key: int, counters: np.ndarray) -> int:
    """Return the slot of *key*, or the empty one where it belongs; *mask* is the last slot."""
    slot, passed = find_key(table.numbers, mask, ids, key)
    counters[COMPARISONS] += passed + 1
    return int(slot)


@kernel
def _fill(table: _Table, ids: np.ndarray, counters: np.ndarray) -> int:
    """Make a table of *ids* in as many slots as it needs, and return the last of them."""
    slots = np.int64(2)
    while slots < _SLOTS_PER_ID * len(ids):
        slots *= 2
    table.numbers[:slots] = 0
    table.seen_in[: len(ids)] = 1
    for i in range(len(ids)):
        table.numbers[_find_slot(table, int(slots) - 1, ids, ids[i], counters)] = i + 1
    counters[INSERTS] += len(ids)
    return int(slots) - 1


@kernel
def _intersect(
    lists: _Lists, table: _Table, row: int, buffer: MatchBuffer, counters: np.ndarray
) -> int:
    """Intersect the lists of every row from *row* on; see `joins.matches.ProbeStep`."""
    for i in range(row, lists.size.shape[1]):
        shortest = np.argmin(lists.size[:, i])
        begin, size = lists.begin[shortest, i], lists.size[shortest, i]
        if not has_room(buffer, size):
            return i
        candidates = lists.ids[begin : begin + size]
        mask = _fill(table, candidates, counters)
        common, seen_in = size, 1
        for other in range(lists.size.shape[0]):
            if other == shortest:
                continue
            common = 0
            begin = lists.begin[other, i]
            for key in lists.ids[begin : begin + lists.size[other, i]]:
                number = table.numbers[_find_slot(table, mask, candidates, key, counters)]
                if number > 0 and table.seen_in[number - 1] == seen_in:
                    table.seen_in[number - 1] = seen_in + 1
                    common += 1
            seen_in += 1
        if common == 0:
            continue
        for key in candidates:
            slot = _find_slot(table, mask, candidates, key, counters)
            if table.seen_in[table.numbers[slot] - 1] == seen_in:
                add_match(buffer, i, key)
    return int(lists.size.shape[1])
