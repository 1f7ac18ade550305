"""B+-trees over a whole window, exact to the tuple: PIM-Tree's index-based window join (IBWJ).

Every tuple is inserted into a B+-tree per predicate, and deleted from it when it expires (PIM-Tree,
section 2.2.1). There a join has one predicate, and the leaves of a range are the answer. For
several, every tree marks its matches in a bit array over the window and the arrays are intersected,
as SPO-Join does it for its mutable component (section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from joins.bit_array import FIRST_BIT, WORD_BITS, bits_between, intersect, words_for, words_of
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import Ranges
from joins.indexes.windows.window_tuples import WindowIndex
from joins.machine.compiling import kernel
from joins.machine.instructions import trailing_zeros
from joins.matches import MatchBuffer, ProbeResult, add_match, find_matches, has_room
from joins.work import BITS, NO_WORK, Work

_MARKED_BYTES_MAX = 1 << 19
"""Bit arrays of one predicate that are marked at a time: they are still in the cache when they are
intersected and read."""


class WindowTree(WindowIndex):
    """A window's tuples in a B+-tree per predicate.

    A tree over one of several predicates contains serials of tuples (see `WindowTuples`), which are
    contiguous where positions need not be, so that bit arrays are no longer than the window.
    """

    state = ("_trees",)
    searches_all = True

    def __init__(self, predicates: int) -> None:
        super().__init__(predicates)
        self._trees = [BPlusTree() for _ in range(predicates)]

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert tuples into all trees; raise what `WindowTuples.append` raises."""
        work = self._tuples.append(columns, positions)
        end = self._tuples.end
        return self._update(BPlusTree.insert, end - len(positions), end) + work

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Find matches as `Index.probe` says."""
        located, counters = self._tuples.locate(ranges)
        if len(self._trees) == 1:
            result = self._trees[0].probe(ranges, enumerate=enumerate)
            return replace(result, work=Work.from_counters(counters) + result.work)
        marking = []
        at_a_time = max(1, _MARKED_BYTES_MAX // (8 * words_for(len(self)) + 1))

        def step(row: int, buffer: MatchBuffer, counters: np.ndarray) -> int:
            end = row
            while row == end < len(located.start):
                end = min(row + at_a_time, len(located.start))
                bits, work = self._mark(located, row, end)
                marking.append(work)
                row = _read(
                    bits, self._tuples.positions, self._tuples.begin, located, row, buffer, counters
                )
            return row

        most = located.stop - located.start
        result = find_matches(step, len(most), enumerate=enumerate, most=most, counters=counters)
        return replace(result, work=sum(marking, result.work))

    def expire(self, before: int) -> Work:
        """Delete positions less than *before* from all trees."""
        dropped, work = self._tuples.drop(before)
        begin = self._tuples.begin
        return self._update(BPlusTree.delete, begin - dropped, begin) + work

    def _update(self, operation: Any, begin: int, end: int) -> Work:
        """Insert or delete the tuples at places *begin* to *end* - 1."""
        tuples = self._tuples
        if len(self._trees) == 1:
            entries = tuples.positions[begin:end]
        else:
            entries = np.arange(begin, end) + tuples.shift
        works = (
            operation(tree, keys[begin:end], entries)
            for tree, keys in zip(self._trees, tuples.keys, strict=True)
        )
        return sum(works, NO_WORK)

    def _mark(self, probes: Ranges, row: int, stop: int) -> tuple[np.ndarray, Work]:
        """Return for probes *row* to *stop* - 1 a bit per tuple: whether it matches."""
        marked = [
            tree.mark(
                low[row:stop],
                high[row:stop],
                base=self._tuples.begin + self._tuples.shift,
                bits=len(self),
                negated=bool(negated),
            )
            for tree, low, high, negated in zip(
                self._trees, probes.low, probes.high, probes.negated, strict=True
            )
        ]
        bits, work = intersect([rows for rows, _ in marked])
        return bits, sum((cost for _, cost in marked), work)


@kernel
def _read(
    bits: np.ndarray,
    positions: np.ndarray,
    first: int,
    probes: Ranges,
    row: int,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Add the matches of the probes from *row* on, which *bits* has rows of.

    Bit 0 of a row stands for place *first*; bits outside the probe's window are passed over. Return
    the row it came to before the buffer was full.
    """
    for i in range(len(bits)):
        probe = row + i
        begin, end = probes.start[probe] - first, probes.stop[probe] - first
        if not has_room(buffer, end - begin):
            return probe
        words = words_of(begin, end)
        for word in range(words[0], words[1]):
            left = bits[i, word] & bits_between(word, begin, end)
            while left != 0:
                place = first + word * WORD_BITS + trailing_zeros(left)
                left &= left - FIRST_BIT
                add_match(buffer, probe, positions[place])
        counters[BITS] += words[1] - words[0]
    return row + len(bits)
