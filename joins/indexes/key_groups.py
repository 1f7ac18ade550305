"""The rows of a batch by key: work on one key at a time touches that key's tuples alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import LEAST
from joins.hashing import find_key, splitmix64
from joins.machine.compiling import kernel
from joins.machine.lanes import LOOKAHEAD

_OUT_OF_TIME = -1


class KeyGroups(NamedTuple):
    """Rows of a batch, those of one key side by side, in the order of event time."""

    keys: np.ndarray
    """int64, the keys, each once."""
    ends: np.ndarray
    """int64, where each key's rows end; they begin where those before end."""
    order: np.ndarray
    """int64 rows of the batch; those of equal key and time as in the batch."""
    ts: np.ndarray
    ids: np.ndarray
    """int64, their event times and ids. Of times there are `LOOKAHEAD` more, of no meaning, so that
    a kernel may read past the end before it compares with the end."""
    sums: np.ndarray
    """uint64, the wrapping sum of the hashes of all ids before each row, and of all."""

    def only(self, chosen: np.ndarray) -> KeyGroups:
        """Return the groups of the rows that the mask *chosen* names; some may be empty."""
        rows = int(np.count_nonzero(chosen))
        part = _with_room(self.keys, np.empty(len(self.keys), np.int64), rows)
        _choose_rows(self, chosen, part)
        return part


def _with_room(keys: np.ndarray, ends: np.ndarray, rows: int) -> KeyGroups:
    """Return groups with room for so many *rows*."""
    order, ids = np.empty((2, rows), np.int64)
    ts, sums = np.empty(rows + LOOKAHEAD, np.int64), np.empty(rows + 1, np.uint64)
    return KeyGroups(keys, ends, order, ts, ids, sums)


def group_by_key(key: np.ndarray, ts: np.ndarray, ids: np.ndarray) -> KeyGroups:
    """Group the rows of three int64 columns; keys come as they first occur in the order of time."""
    rows = len(key)
    table = np.zeros(max(2, 1 << (2 * rows - 1).bit_length()), np.uint32)
    group = np.empty(rows, np.uint32)
    keys, ends = np.empty((2, rows), np.int64)
    groups = _with_room(keys, ends, rows)
    count = _group_rows(key, ts, ids, table, group, groups)
    if count == _OUT_OF_TIME:
        by_time = np.argsort(ts, kind="stable")
        groups = group_by_key(key[by_time], ts[by_time], ids[by_time])
        return groups._replace(order=by_time[groups.order])
    return KeyGroups(keys[:count], ends[:count], *groups[2:])


@kernel
def _group_rows(
    key: np.ndarray,
    ts: np.ndarray,
    ids: np.ndarray,
    table: np.ndarray,
    group: np.ndarray,
    groups: KeyGroups,
) -> int:
    """Fill in *groups*, and return how many there are, or `_OUT_OF_TIME`.

    It is one kernel, since a message of few rows takes less time than calling it.
    """
    if not _in_time(ts):
        return _OUT_OF_TIME
    count = _number_keys(key, table, groups.keys, groups.ends, group)
    _deal_rows(group, ts, ids, count, groups)
    return int(count)


@kernel
def _choose_rows(groups: KeyGroups, chosen: np.ndarray, part: KeyGroups) -> None:
    """Put the rows of *groups* that the mask *chosen* names into *part*, which has their keys."""
    place = begin = 0
    part.sums[0] = 0
    for g in range(len(groups.keys)):
        for k in range(begin, groups.ends[g]):
            if chosen[groups.order[k]]:
                part.order[place] = groups.order[k]
                part.ts[place] = groups.ts[k]
                part.ids[place] = groups.ids[k]
                part.sums[place + 1] = part.sums[place] + groups.sums[k + 1] - groups.sums[k]
                place += 1
        begin = groups.ends[g]
        part.ends[g] = place


@kernel
def _in_time(ts: np.ndarray) -> bool:
    latest = LEAST
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
    mask, count = len(table) - 1, 0
    for i in range(len(key)):
        place, _ = find_key(table, mask, keys, key[i])
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
    group: np.ndarray, ts: np.ndarray, ids: np.ndarray, count: int, groups: KeyGroups
) -> None:
    """Turn *count* sizes into ends, put rows into their groups, and sum up the hashes."""
    begin = 0
    for g in range(count):
        size = groups.ends[g]
        groups.ends[g] = begin
        begin += size
    for i in range(len(group)):
        place = groups.ends[group[i]]
        groups.ends[group[i]] = place + 1
        groups.order[place] = i
        groups.ts[place] = ts[i]
        groups.ids[place] = ids[i]
    groups.sums[0] = 0
    for k in range(len(ids)):
        groups.sums[k + 1] = groups.sums[k] + splitmix64(groups.ids[k])
