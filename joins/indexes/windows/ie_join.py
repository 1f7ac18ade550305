"""Batch IE-Join over a window: sorted anew for every batch of probes (Khayyat et al., 2017).

IE-Join relates tuples by two inequalities. It sorts both sides by both of them and links the orders
by permutation and offset arrays. Then it goes through the probes in the order of the second
inequality: a bit is set for each stored tuple that satisfies it as the order comes to it, and stays
set, and the bits are read from where the first inequality's offset points.

A probe here has ranges rather than inequalities, and any number of them. Two give the inequalities:

- the first one bounds the reading. Both its ends are places in one order, so one stretch of bits
  satisfies both;
- one end of the second one (of the first again, if it is alone) bounds the bits set: the end that
  restrains more probes. Bits only ever get set, so the order can have but one end.

All that remains, further predicates, ``!=`` and the other end of the second range, is checked on
the bits that are read; so is the window of the probe.

Left out are the bitmap over chunks of the bit array, since words of 64 bits are passed over whole,
and the parallel and incremental forms.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from joins.bit_array import FIRST_BIT, WORD_BITS, bits_between, words_for, words_of
from joins.codes import GREATEST
from joins.indexes.immutable.order_arrays import offset, permutation
from joins.indexes.index import Ranges, in_range
from joins.indexes.windows.window_tuples import WindowIndex, WindowTuples
from joins.machine.compiling import kernel
from joins.machine.instructions import trailing_zeros
from joins.matches import MatchBuffer, ProbeResult, add_match, find_matches, has_room, order_by_row
from joins.work import BITS, COMPARISONS, NO_WORK, Work


class Sorted(NamedTuple):
    """The arrays of one batch; n stored tuples, m probes."""

    place: np.ndarray
    """int64, places of the stored tuples in the order that is read."""
    set_order: np.ndarray
    """Per stored tuple in the order that is set the bit it sets: the permutation array."""
    read_begin: np.ndarray
    read_end: np.ndarray
    """Per probe the bits that are read."""
    probe: np.ndarray
    """int64, the probes in the order that is set."""
    set_end: np.ndarray
    """For each of them how many stored tuples of that order have their bits set: the offset
    array."""
    checked: np.ndarray
    """int64, predicates to check on what is read."""


class IeJoin(WindowIndex):
    """A window's tuples as they come; everything else is made for a batch of probes and dropped."""

    searches_all = True

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Find matches as `Index.probe` says."""
        tuples = self._tuples
        located, counters = tuples.locate(ranges)
        batch, sorting = _sort(tuples, located)
        bits = np.zeros(words_for(len(self)), np.uint64)
        step = partial(_sweep, batch, bits, tuples.keys, tuples.positions, located)
        most = located.stop - located.start
        result = find_matches(step, len(most), enumerate=enumerate, most=most, counters=counters)
        listed = result.match_id
        if listed is not None:
            listed = order_by_row(listed, batch.probe, result.count[batch.probe], result.count)
        return replace(result, match_id=listed, work=sorting + result.work)


def _sort(tuples: WindowTuples, probes: Ranges) -> tuple[Sorted, Work]:
    """Sort the window and the probes by both inequalities and relate the orders."""
    window = slice(tuples.begin, tuples.end)
    ranged = np.flatnonzero(~probes.negated)
    reading, setting = (ranged[0], ranged[min(1, len(ranged) - 1)]) if len(ranged) else (0, 0)
    set_keys, bound, is_whole = _one_end(tuples.keys[setting, window], probes, setting)
    checked = set(range(len(tuples.keys))) - {reading, setting}
    if probes.negated[setting] or not (is_whole or setting == reading):
        checked.add(setting)

    read_keys, read_order, read_work = _argsort(tuples.keys[reading, window])
    set_keys, set_order, set_work = _argsort(set_keys)
    bits, permutation_work = permutation(read_order, set_order, first=0)
    bound, probe_order, probe_work = _argsort(bound)
    set_end, offset_work = _offset_past(bound, set_keys)
    read_begin, read_end, range_work = _read_ranges(read_keys, probes, reading)
    batch = Sorted(
        read_order + tuples.begin,
        bits,
        read_begin,
        read_end,
        probe_order,
        set_end,
        np.array(sorted(checked), np.int64),
    )
    works = (set_work, permutation_work, probe_work, offset_work, range_work)
    return batch, sum(works, read_work)


def _one_end(
    keys: np.ndarray, probes: Ranges, predicate: int
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Return keys and bounds such that key <= bound is one end of the predicate's ranges.

    Also return whether that end is all there is: the other one restrains no probe. A negated
    predicate bounds nothing. This choice is not charged: IE-Join knows its operators beforehand.
    """
    if probes.negated[predicate] or not len(keys):
        return keys, np.full(len(probes.start), GREATEST), True
    low, high = probes.low[predicate], probes.high[predicate]
    by_low, by_high = np.sum(low > keys.min()), np.sum(high < keys.max())
    if by_low > by_high:
        return ~keys, ~low, not by_high  # the complement turns the order of int64 around
    return keys, high, not by_low


def _read_ranges(
    keys: np.ndarray, probes: Ranges, predicate: int
) -> tuple[np.ndarray, np.ndarray, Work]:
    """Return for each probe where its range begins and ends in sorted *keys*; negated: all."""
    begin, end = np.zeros(len(probes.start), np.int64), np.full(len(probes.start), len(keys))
    if probes.negated[predicate]:
        return begin, end, NO_WORK
    low, by_low, low_work = _argsort(probes.low[predicate])
    high, by_high, high_work = _argsort(probes.high[predicate])
    begin[by_low], begin_work = offset(low, keys)
    end[by_high], end_work = _offset_past(high, keys)
    return begin, end, low_work + high_work + begin_work + end_work


def _argsort(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, Work]:
    """Return *values* sorted, their order, and n log2 n comparisons and n moves, as merges take."""
    order = np.argsort(values, kind="stable")
    n = len(values)
    return values[order], order, Work(comparisons=n * max(n - 1, 0).bit_length(), moves=n)


def _offset_past(bounds: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, Work]:
    """Return for each of sorted *bounds* the place of the first sorted key that is greater."""
    last = bounds == GREATEST
    array, work = offset(np.where(last, bounds, bounds + 1), keys)
    return np.where(last, len(keys), array), work


@kernel
def _sweep(
    batch: Sorted,
    bits: np.ndarray,
    keys: np.ndarray,
    positions: np.ndarray,
    probes: Ranges,
    row: int,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Probe from *row* on, rows being probes in the order that is set; see `ProbeStep`."""
    is_set = batch.set_end[row - 1] if row > 0 else 0
    for i in range(row, len(batch.probe)):
        probe = batch.probe[i]
        start, stop = probes.start[probe], probes.stop[probe]
        if not has_room(buffer, stop - start):
            return i
        for k in range(is_set, batch.set_end[i]):
            bit = batch.set_order[k]
            bits[bit >> 6] |= FIRST_BIT << np.uint64(bit & 63)
        counters[BITS] += batch.set_end[i] - is_set
        is_set = batch.set_end[i]
        begin, end = batch.read_begin[probe], batch.read_end[probe]
        if begin >= end or start >= stop:
            continue
        words = words_of(begin, end)
        for word in range(words[0], words[1]):
            left = bits[word] & bits_between(word, begin, end)
            counters[BITS] += 1
            while left != 0:
                place = batch.place[word * WORD_BITS + trailing_zeros(left)]
                left &= left - FIRST_BIT
                counters[COMPARISONS] += 1
                wanted = start <= place and place < stop
                for predicate in batch.checked:
                    if wanted:
                        counters[COMPARISONS] += 1
                        wanted = in_range(probes, predicate, probe, keys[predicate, place])
                if wanted:
                    add_match(buffer, probe, positions[place])
    return len(batch.probe)
