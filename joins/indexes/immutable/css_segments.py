"""Sealed segments that are searched by CSS-trees: what SPO-Join compares its own with (section 5).

Each predicate's tree leads to a stretch of leaves, and the leaves contain the ids of stream tuples
in the order of that predicate's keys. The trees are not linked, so what satisfies all predicates is
found by provenance, from the ids: with bit arrays, one per predicate, or by hashing the ids of one
result and looking up those of the others. A leaf's id counts from the epoch's first position.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from joins.bit_array import (
    BIT_MASK,
    FIRST_BIT,
    WORD_BITS,
    WORD_SHIFT,
    intersect,
    keep_window,
    read_matches,
    words_for,
)
from joins.hashing import INCREMENT, splitmix64
from joins.indexes.immutable.css_tree import TreeSearchedSegment
from joins.indexes.immutable.segment import PlaceRanges, satisfying, stretch_of
from joins.indexes.index import window_in
from joins.machine.compiling import inlined, kernel
from joins.matches import MatchBuffer, ProbeResult, add_total, find_matches, has_room
from joins.work import BITS, COMPARISONS, INSERTS, Work, new_counters

_WORD_BYTES = 8
_STRETCHES = 4
_ROW_WORDS_MAX = 1 << 16  # Words of bit arrays filled at a time, per predicate: half a megabyte.

_EMPTY = -1


class _CssSegment(TreeSearchedSegment):
    """A CSS-tree per predicate, and the ids of its leaves; probes search the trees."""

    def _seal(self) -> Work:
        searched = super()._seal()
        ids = np.empty((len(self.keys), len(self)), self.to_lead.dtype)
        ids[0] = self.lead - self.first
        for other, to_lead in enumerate(self.to_lead, start=1):
            ids[other] = ids[0][to_lead]
        self._leaf_id = ids
        return searched + Work(bytes_copied=ids.nbytes)


class CssBitsSegment(_CssSegment):
    """CSS-trees whose results are intersected as bit arrays, a bit per tuple of the epoch."""

    def _intersect(
        self, places: PlaceRanges, counters: np.ndarray, *, enumerate: bool
    ) -> ProbeResult:
        m, words = len(places.start), words_for(len(self))
        at_a_time = max(1, _ROW_WORDS_MAX // max(1, words))
        parts = [
            self._intersect_bits(places, row, min(row + at_a_time, m), enumerate=enumerate)
            for row in range(0, max(m, 1), at_a_time)
        ]
        result = ProbeResult.concat(parts)
        return replace(result, work=Work.from_counters(counters) + result.work)

    def _intersect_bits(
        self, places: PlaceRanges, row: int, end: int, *, enumerate: bool
    ) -> ProbeResult:
        """Return the matches of probes *row* to *end* - 1."""
        counters = new_counters()
        arrays = []
        for predicate in range(len(self.keys)):
            array = np.zeros((end - row, words_for(len(self))), np.uint64)
            _fill_rows(self._leaf_id, places, predicate, row, array, counters)
            arrays.append(array)
        common, intersecting = intersect(arrays)
        seen, cutting = keep_window(
            common, places.start[row:end], places.stop[row:end], base=self.first
        )
        result = read_matches(seen, base=self.first, enumerate=enumerate)
        work = Work.from_counters(counters) + intersecting + cutting + result.work
        return replace(result, work=work)


@kernel
def _fill_rows(
    leaf_id: np.ndarray,
    places: PlaceRanges,
    predicate: int,
    row: int,
    rows: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Set in *rows*, zero before, what satisfies *predicate*, for the probes from *row* on.

    *leaf_id* has a row per predicate: the ids in the order of its keys.
    """
    n = leaf_id.shape[1]
    for i in range(len(rows)):
        stretch = stretch_of(places, predicate, row + i)
        for part in range(2):
            begins, ends = satisfying(stretch, part, n)
            _set_bits(leaf_id, predicate, begins, ends, rows, i)
            counters[BITS] += ends - begins
    counters[BITS] += rows.size


@inlined
def _set_bits(
    leaf_id: np.ndarray, predicate: int, begin: int, end: int, rows: np.ndarray, row: int
) -> None:
    """Set in *row* the bits of the ids at *begin* to *end* - 1.

    The ids of equal keys lie in their own order, so that many share a word with the one before,
    whose bit has to be in it first. Stretches apart from each other share fewer, and so are gone
    through by turns.
    """
    stretch = max(end - begin, 0) // _STRETCHES
    for place in range(begin, begin + stretch):
        for turn in range(_STRETCHES):
            _set_bit(leaf_id, predicate, place + turn * stretch, rows, row)
    for place in range(begin + _STRETCHES * stretch, end):
        _set_bit(leaf_id, predicate, place, rows, row)


@inlined
def _set_bit(leaf_id: np.ndarray, predicate: int, place: int, rows: np.ndarray, row: int) -> None:
    bit = np.uint64(leaf_id[predicate, place])
    rows[row, bit >> WORD_SHIFT] |= FIRST_BIT << (bit & BIT_MASK)


class CssHashSegment(_CssSegment):
    """CSS-trees whose results are intersected by a hash table of the ids of the shortest one."""

    def _intersect(
        self, places: PlaceRanges, counters: np.ndarray, *, enumerate: bool
    ) -> ProbeResult:
        table = np.empty(1 << _table_bits(len(self)), self._leaf_id.dtype)
        scratch = _HashTable(table, np.empty(len(table), np.int16))
        step = partial(_probe_hash, self._leaf_id, self.first, places, scratch)
        most = places.shortest(len(self))
        return find_matches(step, len(most), enumerate=enumerate, most=most, counters=counters)


class _HashTable(NamedTuple):
    """Ids by open addressing, and for each how many further predicates it satisfies."""

    entry: np.ndarray
    agreed: np.ndarray


@kernel
def _table_bits(entries: int) -> int:
    """Return the logarithm of the slots of a hash table at most half full of *entries*."""
    bits = 1
    while (1 << bits) < 2 * entries:
        bits += 1
    return bits


@kernel
def _first_slot(entry: int, bits: int) -> int:
    mixed = (np.uint64(entry) * INCREMENT) >> np.uint64(WORD_BITS - bits)
    return int(np.int64(mixed))


@kernel
def _insert(table: np.ndarray, bits: int, entry: int, counters: np.ndarray) -> int:
    """Insert an id that is not there yet; return its slot."""
    slot = _first_slot(entry, bits)
    while table[slot] != _EMPTY:
        counters[COMPARISONS] += 1
        slot = (slot + 1) & ((1 << bits) - 1)
    table[slot] = entry
    counters[INSERTS] += 1
    return slot


@kernel
def _look_up(table: np.ndarray, bits: int, entry: int, counters: np.ndarray) -> int:
    """Return the slot of an id, or -1."""
    slot = _first_slot(entry, bits)
    while table[slot] != _EMPTY:
        counters[COMPARISONS] += 1
        if table[slot] == entry:
            return slot
        slot = (slot + 1) & ((1 << bits) - 1)
    counters[COMPARISONS] += 1
    return -1


@inlined
def _agrees(table: _HashTable, bits: int, entry: int, step: int, counters: np.ndarray) -> bool:
    """Return whether an id satisfied all predicates before number *step*; then it does this one."""
    slot = _look_up(table.entry, bits, entry, counters)
    if slot < 0 or table.agreed[slot] != step - 1:
        return False
    table.agreed[slot] = step
    return True


@kernel
def _probe_one(
    leaf_id: np.ndarray,
    first: int,
    places: PlaceRanges,
    probe: int,
    built: int,
    table: _HashTable,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Hash predicate *built*'s result and look the others' up."""
    predicates, n = leaf_id.shape
    window = window_in(first, n, places.start[probe], places.stop[probe])
    bits, count, total, listed = 0, 0, np.uint64(0), buffer.listed[0]
    keep_ids = len(buffer.match_id) > 0
    for step in range(predicates):
        # The predicate that is built comes first, the others follow in their own order.
        predicate = built if step == 0 else step - 1 if step <= built else step
        stretch = stretch_of(places, predicate, probe)
        if step == 0:
            length = stretch.end - stretch.begin
            bits = _table_bits(n - length if stretch.negated else length)
            for slot in range(1 << bits):
                table.entry[slot] = _EMPTY
            counters[BITS] += (table.entry.itemsize << bits) // _WORD_BYTES
        for part in range(2):
            begins, ends = satisfying(stretch, part, n)
            for place in range(begins, ends):
                entry = int(leaf_id[predicate, place])
                if predicates > 1 and step == 0:
                    table.agreed[_insert(table.entry, bits, entry, counters)] = 0
                    continue
                if step > 0 and not _agrees(table, bits, entry, step, counters):
                    continue
                if step == predicates - 1 and window[0] <= entry < window[1]:
                    position = first + entry
                    total += splitmix64(position)
                    if keep_ids:
                        buffer.match_id[listed + count] = position
                    count += 1
    add_total(buffer, probe, count, total)


@kernel
def _probe_hash(
    leaf_id: np.ndarray,
    first: int,
    places: PlaceRanges,
    table: _HashTable,
    row: int,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Probe from *row* on; see `joins.matches.ProbeStep`."""
    predicates, n = leaf_id.shape
    for probe in range(row, len(places.start)):
        window = window_in(first, n, places.start[probe], places.stop[probe])
        if window[0] >= window[1]:
            continue
        built, length = 0, n + 1
        for predicate in range(predicates):
            size = places.end[predicate, probe] - places.begin[predicate, probe]
            if places.negated[predicate]:
                size = n - size
            if size < length:
                built, length = predicate, size
        if not has_room(buffer, length):
            return probe
        _probe_one(leaf_id, first, places, probe, built, table, buffer, counters)
    return len(places.start)
