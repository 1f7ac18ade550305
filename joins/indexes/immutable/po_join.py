"""PO-Join, the immutable component's index: one sealed epoch of one stream (SPO-Join, 3.3-3.4).

A `PoJoinSegment` stores the tuples that the mutable component had gathered when it was merged: per
predicate the sorted keys, the tuples' positions in the order of the lead predicate (the first), and
for every further predicate the permutation array that leads from its order to the lead's.

A probe works on places, not on keys: a predicate's range of values has become a range of places in
that predicate's order, and place i of the lead order is what bit i represents. Figure 5 sets, for
one predicate's range, the bits at the permutation's places, and reads the bits over the other
predicate's range. Where the range has more than half the tuples, its complement is filled instead,
and the bits mean the opposite. When one of its ranges is so short that this costs less, the probe
looks up that range's tuples in the other orders one by one.

Left out: the lock of Algorithm 4, because a segment never changes. Its threads, which deal segments
to cores, are `joins.indexes.immutable.segment.probe_all`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from joins.bit_array import (
    ALL_BITS,
    BIT_MASK,
    FIRST_BIT,
    WORD_BITS,
    WORD_SHIFT,
    bits_between,
    words_for,
    words_of,
)
from joins.hashing import mix
from joins.indexes.immutable.segment import ImmutableSegment, PlaceRanges, stretch_of
from joins.indexes.range_search import Within, filter_candidates
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import trailing_zeros
from joins.matches import MatchBuffer, ProbeResult, add_total, find_matches, has_room
from joins.work import BITS, COMPARISONS, Work

# What the two ways to answer cost, in quarters of a nanosecond, measured on 100,000 random tuples.
_LOOKUP_COST = 3  # one tuple of a short range, per other predicate
_FLIP_COST = 2  # one bit of a bit array
_WORD_COST = 1  # one word filled or read


class SealedArrays(NamedTuple):
    """The arrays of a segment that a probe reads; n tuples, p predicates."""

    position: np.ndarray
    """int64, stream positions in lead order."""
    mixed: np.ndarray
    """uint64, ``splitmix64(position)``: a match then costs a load and an addition."""
    to_lead: np.ndarray
    """int32, shape (p - 1, n): permutation arrays, place in another order to place in lead
    order."""
    from_lead: np.ndarray
    """int32, shape (p - 1, n): their inverses."""


class ProbeScratch(NamedTuple):
    """Working memory of a probe: two bit arrays over the lead order, and places of candidates."""

    bits: np.ndarray
    candidates: np.ndarray


class PoJoinSegment(ImmutableSegment):
    """One epoch's tuples, sorted by every predicate's field and linked by permutation arrays."""

    def _seal(self) -> Work:
        others, n = self.to_lead.shape
        from_lead = np.empty_like(self.to_lead)
        for other in range(others):
            from_lead[other][self.to_lead[other]] = np.arange(n, dtype=from_lead.dtype)
        self._sealed = SealedArrays(self.lead, mix(self.lead), self.to_lead, from_lead)
        return Work(moves=others * n, bytes_copied=sum(key.nbytes for key in self.keys))

    def _intersect(
        self, places: PlaceRanges, counters: np.ndarray, *, enumerate: bool
    ) -> ProbeResult:
        n, most = len(self), places.shortest(len(self))
        scratch = ProbeScratch(np.empty((2, words_for(n)), np.uint64), np.empty(n, np.int64))
        step = partial(_probe, self._sealed, self.first, places, scratch)
        return find_matches(step, len(most), enumerate=enumerate, most=most, counters=counters)


@kernel
def _probe(
    sealed: SealedArrays,
    first: int,
    places: PlaceRanges,
    scratch: ProbeScratch,
    row: int,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Probe from *row* on; see `joins.matches.ProbeStep`."""
    n = len(sealed.position)
    others = len(places.begin) - 1
    for probe in range(row, len(places.start)):
        seen_from = max(places.start[probe], first)
        seen_to = min(places.stop[probe], first + n)
        if seen_from >= seen_to:
            continue
        window = (0, 0) if seen_to - seen_from == n else (seen_from, seen_to)
        shortest, length = -1, n
        for predicate in range(len(places.begin)):
            size = places.end[predicate, probe] - places.begin[predicate, probe]
            if not places.negated[predicate] and (shortest < 0 or size < length):
                shortest, length = predicate, size
        if length == 0:
            continue
        if not has_room(buffer, length):
            return probe
        if shortest >= 0 and length * others * _LOOKUP_COST <= _bits_cost(places, probe, n):
            _probe_shortest(
                sealed, places, probe, shortest, window, scratch.candidates, buffer, counters
            )
        else:
            _probe_bits(sealed, places, probe, window, scratch, buffer, counters)
    return len(places.start)


@kernel
def _bits_cost(places: PlaceRanges, probe: int, n: int) -> int:
    """Return what `_probe_bits` would cost, in tuples looked up."""
    begin, end = places.begin[0, probe], places.end[0, probe]
    words = ((n if places.negated[0] else end - begin) >> 6) + 1
    cost = words * _WORD_COST
    for predicate in range(1, len(places.begin)):
        begin, end = places.begin[predicate, probe], places.end[predicate, probe]
        cost += _fill_cost(begin, end, n) * _FLIP_COST
        cost += words * _WORD_COST
    return cost


@kernel
def _probe_bits(
    sealed: SealedArrays,
    places: PlaceRanges,
    probe: int,
    window: tuple[int, int],
    scratch: ProbeScratch,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Answer one probe by bit arrays."""
    n = len(sealed.position)
    predicates = len(places.begin)
    begin, end = places.begin[0, probe], places.end[0, probe]
    words = words_of(0, n) if places.negated[0] else words_of(begin, end)
    span = words[1] - words[0]
    if predicates == 1:
        for word in range(words[0], words[1]):
            scratch.bits[0, word] = ALL_BITS
    for predicate in range(1, predicates):
        row = min(predicate - 1, 1)
        counters[BITS] += _fill_words(sealed, places, predicate, probe, words, scratch, row)
        if row == 1:
            for word in range(words[0], words[1]):
                scratch.bits[0, word] &= scratch.bits[1, word]
            counters[BITS] += span
    counters[BITS] += span
    if places.negated[0]:
        _read_words(sealed, 0, begin, window, scratch, probe, buffer)
        begin, end = end, n
    _read_words(sealed, begin, end, window, scratch, probe, buffer)


@kernel
def _flip(
    to_lead: np.ndarray, other: int, begin: int, end: int, scratch: ProbeScratch, row: int
) -> None:
    """Flip the bits of the tuples between two places of another order."""
    for place in range(begin, end):
        bit = np.uint64(to_lead[other, place])
        scratch.bits[row, bit >> WORD_SHIFT] ^= FIRST_BIT << (bit & BIT_MASK)


@kernel
def _fill_cost(begin: int, end: int, tuples: int) -> int:
    """Return how many bits a range takes to fill: its own or its complement's."""
    return min(end - begin, tuples - (end - begin))


@kernel
def _fill_words(
    sealed: SealedArrays,
    places: PlaceRanges,
    predicate: int,
    probe: int,
    words: tuple[int, int],
    scratch: ProbeScratch,
    row: int,
) -> int:
    """Set the words of *scratch* row to what satisfies *predicate*; return bits touched."""
    n = len(sealed.position)
    other = predicate - 1
    begin, end = places.begin[predicate, probe], places.end[predicate, probe]
    complement = end - begin > n - (end - begin)
    background = ALL_BITS if complement != places.negated[predicate] else np.uint64(0)
    for word in range(words[0], words[1]):
        scratch.bits[row, word] = background
    # Flips outside the words in use do no harm: the next probe overwrites a word before reading it.
    if complement:
        _flip(sealed.to_lead, other, 0, begin, scratch, row)
        _flip(sealed.to_lead, other, end, n, scratch, row)
    else:
        _flip(sealed.to_lead, other, begin, end, scratch, row)
    return words[1] - words[0] + _fill_cost(begin, end, n)


@inlined
def _is_seen(position: int, window: tuple[int, int]) -> bool:
    """Return whether a position is in the window; (0, 0) is one around the whole epoch."""
    return window[0] >= window[1] or window[0] <= position < window[1]


@kernel
def _read_words(
    sealed: SealedArrays,
    begin: int,
    end: int,
    window: tuple[int, int],
    scratch: ProbeScratch,
    probe: int,
    buffer: MatchBuffer,
) -> None:
    """Add the tuples whose bits are set from place *begin* to *end* of the lead order."""
    total = np.uint64(0)
    count, listed = 0, buffer.listed[0]
    keep_ids = len(buffer.match_id) > 0
    words = words_of(begin, end)
    for word in range(words[0], words[1]):
        left = scratch.bits[0, word] & bits_between(word, begin, end)
        while left != 0:
            place = word * WORD_BITS + trailing_zeros(left)
            left &= left - FIRST_BIT
            position = sealed.position[place]
            if _is_seen(position, window):
                total += sealed.mixed[place]
                if keep_ids:
                    buffer.match_id[listed + count] = position
                count += 1
    add_total(buffer, probe, count, total)


@kernel
def _probe_shortest(
    sealed: SealedArrays,
    places: PlaceRanges,
    probe: int,
    shortest: int,
    window: tuple[int, int],
    candidates: np.ndarray,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Answer one probe by looking up the tuples of its shortest range."""
    begin, end = places.begin[shortest, probe], places.end[shortest, probe]
    candidate_count = end - begin
    for i in range(candidate_count):
        place = begin + i
        candidates[i] = place if shortest == 0 else sealed.to_lead[shortest - 1, place]
    for predicate in range(len(places.begin)):
        if predicate != shortest:
            counters[COMPARISONS] += candidate_count
            begin, end, negated = stretch_of(places, predicate, probe)
            within = Within(begin, end - 1, negated)
            candidate_count = filter_candidates(
                candidates, candidate_count, sealed.from_lead, predicate - 1, within
            )
    total = np.uint64(0)
    count, listed = 0, buffer.listed[0]
    keep_ids = len(buffer.match_id) > 0
    for i in range(candidate_count):
        place = candidates[i]
        position = sealed.position[place]
        if _is_seen(position, window):
            total += sealed.mixed[place]
            if keep_ids:
                buffer.match_id[listed + count] = position
            count += 1
    add_total(buffer, probe, count, total)
