"""The rows of a batch by key: work on one key at a time touches that key's tuples alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine import kernel


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
        int64, their event times and ids. Of times there is one more, of no meaning, so that a
        kernel may look past the end before it asks where the end is.
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
        kept = np.flatnonzero(chosen[self.order])
        sums = np.concatenate([[np.uint64(0)], np.cumsum(np.diff(self.sums)[kept])])
        ends = np.searchsorted(kept, self.ends)
        ts = self.ts[np.append(kept, 0)]
        return KeyGroups(self.keys, ends, self.order[kept], ts, self.ids[kept], sums)


def group_by_key(key: np.ndarray, ts: np.ndarray, ids: np.ndarray) -> KeyGroups:
    """Group the rows of three int64 columns; keys come as they first occur."""
    rows = len(key)
    table = np.zeros(max(2, 1 << (2 * rows - 1).bit_length()), np.int32)
    keys, ends, group, order, ids_in_order = np.empty((5, rows), np.int64)
    ts_in_order, sums = np.zeros(rows + 1, np.int64), np.zeros(rows + 1, np.uint64)
    count = _number_keys(key, table, keys, ends, group)
    keys, ends = keys[:count], ends[:count]
    _deal_rows(group, ts, ids, ends, order, ts_in_order, ids_in_order)
    if not _in_time(ends, ts_in_order):
        order = order[np.lexsort((ts[order], group[order]))]
        ts_in_order[:rows], ids_in_order = ts[order], ids[order]
    _sum_hashes(ids_in_order, sums)
    return KeyGroups(keys, ends, order, ts_in_order, ids_in_order, sums)


@kernel
def _number_keys(
    key: np.ndarray, table: np.ndarray, keys: np.ndarray, sizes: np.ndarray, group: np.ndarray
) -> int:
    """Give each key a number, by open addressing in *table*, and return how many there are."""
    mask = len(table) - 1
    count = 0
    for i in range(len(key)):
        place = np.int64(splitmix64(key[i]) & np.uint64(mask))
        while table[place] and keys[table[place] - 1] != key[i]:
            place = (place + 1) & mask
        if not table[place]:
            keys[count] = key[i]
            sizes[count] = 0
            count += 1
            table[place] = count
        number = table[place] - 1
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
) -> None:
    """Turn sizes into ends, and put rows and columns into their groups."""
    begin = 0
    for g in range(len(ends)):
        size = ends[g]
        ends[g] = begin
        begin += size
    for i in range(len(group)):
        k = ends[group[i]]
        ends[group[i]] = k + 1
        order[k] = i
        ts_in_order[k] = ts[i]
        ids_in_order[k] = ids[i]


@kernel
def _in_time(ends: np.ndarray, ts: np.ndarray) -> bool:
    """Return whether each group is in the order of time."""
    begin = 0
    for g in range(len(ends)):
        for k in range(begin + 1, ends[g]):
            if ts[k] < ts[k - 1]:
                return False
        begin = ends[g]
    return True


@kernel
def _sum_hashes(ids: np.ndarray, sums: np.ndarray) -> None:
    """Fill in the running sums of hashes; the first is 0 already."""
    total = np.uint64(0)
    for k in range(len(ids)):
        total += splitmix64(ids[k])
        sums[k + 1] = total
