"""The rows of a batch by key: work on one key at a time touches that key's tuples alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import kernel
from joins.machine.lanes import LOOKAHEAD
from joins.state import storable

_PADDING = np.zeros(LOOKAHEAD, np.int64)


@storable
class KeyGroups(NamedTuple):
    """Rows of a batch, those of one key side by side, in the order of event time.

    Attributes
    ----------
    keys
        int64, the keys, each once.
    ends
        int64, where each key's rows end; they begin where those before end.
    order
        int64 rows of the batch; those of equal key and time as in the batch.
    ts, ids
        int64, their event times and ids. Of times there are `LOOKAHEAD` more, of no meaning, so
        that a kernel may read past the end before it compares with the end.
    sums
        uint64, the wrapping sum of the hashes of all ids before each row, and of all.
    """

    keys: np.ndarray
    ends: np.ndarray
    order: np.ndarray
    ts: np.ndarray
    ids: np.ndarray
    sums: np.ndarray

    def only(self, chosen: np.ndarray) -> KeyGroups:
        """Return the groups of the rows that the mask *chosen* names; some may be empty."""
        rows = np.flatnonzero(chosen[self.order])
        sums = np.concatenate([[np.uint64(0)], np.cumsum(np.diff(self.sums)[rows])])
        ends = np.searchsorted(rows, self.ends)
        ts = np.append(self.ts[rows], _PADDING)
        return KeyGroups(self.keys, ends, self.order[rows], ts, self.ids[rows], sums)


def group_by_key(key: np.ndarray, ts: np.ndarray, ids: np.ndarray) -> KeyGroups:
    """Group the rows of three int64 columns; keys come as they first occur in the order of time."""
    rows = len(key)
    if not _in_time(ts):
        by_time = np.argsort(ts, kind="stable")
        groups = group_by_key(key[by_time], ts[by_time], ids[by_time])
        return groups._replace(order=by_time[groups.order])
    table = np.zeros(max(2, 1 << (2 * rows - 1).bit_length()), np.uint32)
    group = np.empty(rows, np.uint32)
    keys, ends, order, ids_in_order = (np.empty(rows, np.int64) for _ in range(4))
    ts_in_order, sums = np.empty(rows + LOOKAHEAD, np.int64), np.empty(rows + 1, np.uint64)
    count = _number_keys(key, table, keys, ends, group)
    keys, ends = keys[:count], ends[:count]
    _deal_rows(group, ts, ids, ends, order, ts_in_order, ids_in_order, sums)
    return KeyGroups(keys, ends, order, ts_in_order, ids_in_order, sums)


@kernel
def _in_time(ts: np.ndarray) -> bool:
    latest = np.int64(-(2**63))
    for time in ts:
        if time < latest:
            return False
        latest = time
    return True


@kernel
def _number_keys(
    key: np.ndarray, table: np.ndarray, keys: np.ndarray, sizes: np.ndarray, group: np.ndarray
) -> int:
    """Give each key a number, by open addressing in *table*, and return how many there are."""
    # Unsigned, since numba lets signed places count from the end, at the price of a test each.
    mask, one = np.uint64(len(table) - 1), np.uint32(1)
    count = 0
    for i in range(len(key)):
        place = splitmix64(key[i]) & mask
        while table[place] and keys[table[place] - one] != key[i]:
            place = (place + np.uint64(1)) & mask
        if not table[place]:
            keys[count] = key[i]
            sizes[count] = 0
            count += 1
            table[place] = count
        number = table[place] - one
        group[i] = number
        sizes[number] += 1
    return count


@kernel
def _deal_rows(
    group: np.ndarray,
    ts: np.ndarray,
    ids: np.ndarray,
    ends: np.ndarray,
    order: np.ndarray,
    ts_in_order: np.ndarray,
    ids_in_order: np.ndarray,
    sums: np.ndarray,
) -> None:
    """Turn sizes into ends, put rows and columns into their groups, and sum up the hashes."""
    begin = 0
    for g in range(len(ends)):
        size = ends[g]
        ends[g] = begin
        begin += size
    for i in range(len(group)):
        place = np.uint64(ends[group[i]])
        ends[group[i]] = place + np.uint64(1)
        order[place] = i
        ts_in_order[place] = ts[i]
        ids_in_order[place] = ids[i]
    sums[0] = 0
    for k in range(len(ids)):
        sums[k + 1] = sums[k] + splitmix64(ids_in_order[k])
