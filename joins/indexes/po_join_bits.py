"""The bit arrays of a PO-Join probe (SPO-Join, section 3.4, Figure 5), as kernels.

Everything here works on places, not on keys: a predicate's range of values has become a range of
places in that predicate's order, and place i of the lead order is what bit i stands for.

Figure 5 sets, for one predicate's range, the bits at the permutation's places, and reads the bits
over the other predicate's range. Setting takes time linear in the segment. It is made short by bit
arrays prepared at the seal: bitmap c has the bits of the first c·every tuples in the other order
set. A range is the difference of two such prefixes, and each prefix is the nearest bitmap with at
most every/2 bits flipped. With the two bitmaps that need no memory to speak of, none and all of the
segment, this is Figure 5 itself, filling a range or its complement, whichever is shorter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.bit_array import bits_between
from joins.machine import kernel, trailing_zeros

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE = np.uint64(1)
_WORD_BITS = 64
_WORD_SHIFT = np.uint64(6)
_BIT_MASK = np.uint64(63)


class Sealed(NamedTuple):
    """The arrays of a segment that a probe reads; n tuples, p predicates.

    Attributes
    ----------
    position
        int64, stream positions in lead order.
    mixed
        uint64, ``splitmix64(position)``: a match then costs a load and an addition.
    to_lead
        int32, shape (p - 1, n): permutation arrays, place in another order to place in lead order.
    from_lead
        int32, shape (p - 1, n): their inverses.
    bitmap
        uint64, shape (p - 1, bitmaps, words): see the module's text; the last has all n tuples.
    """

    position: np.ndarray
    mixed: np.ndarray
    to_lead: np.ndarray
    from_lead: np.ndarray
    bitmap: np.ndarray


class Probes(NamedTuple):
    """The probes of one call; m probes, p predicates.

    Attributes
    ----------
    begin, end
        int64, shape (p, m): ranges of places in each predicate's order.
    negated
        bool, a predicate each: the range is what must not match.
    start, stop
        int64, positions from start[i] to stop[i] - 1 are in probe i's window.
    """

    begin: np.ndarray
    end: np.ndarray
    negated: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class Output(NamedTuple):
    """Where the matches go: per probe, and in a list of ids (of no length when only counted)."""

    matches: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray


@kernel
def fill_bitmaps(to_lead: np.ndarray, every: int, bitmap: np.ndarray) -> None:
    """Fill in the prefix bitmaps of each permutation; *bitmap* is zero before."""
    n = to_lead.shape[1]
    for other in range(len(to_lead)):
        for c in range(1, bitmap.shape[1]):
            for word in range(bitmap.shape[2]):
                bitmap[other, c, word] = bitmap[other, c - 1, word]
            for place in range((c - 1) * every, min(c * every, n)):
                bit = np.uint64(to_lead[other, place])
                bitmap[other, c, bit >> _WORD_SHIFT] |= _ONE << (bit & _BIT_MASK)


@kernel
def nearest_bitmap(place: int, every: int, n: int) -> tuple[int, int]:
    """Return the prefix bitmap nearest to the first *place* tuples, and how many it holds."""
    c = place // every
    below = c * every
    above = min(below + every, n)
    if place - below <= above - place:
        return c, below
    return c + 1, above


@kernel
def _flip(
    to_lead: np.ndarray, other: int, begin: int, end: int, scratch: np.ndarray, row: int
) -> int:
    """Flip the bits of the tuples between two places of another order; return how many."""
    if begin > end:
        begin, end = end, begin
    for place in range(np.uint64(begin), np.uint64(end)):
        bit = np.uint64(to_lead[other, place])
        scratch[row, bit >> _WORD_SHIFT] ^= _ONE << (bit & _BIT_MASK)
    return end - begin


@kernel
def fill_words(
    sealed: Sealed,
    probes: Probes,
    predicate: int,
    probe: int,
    every: int,
    words: tuple[int, int],
    scratch: np.ndarray,
    row: int,
) -> int:
    """Set the words of *scratch* row to what satisfies *predicate*; return bits touched."""
    n = len(sealed.position)
    other = predicate - 1
    begin, end = probes.begin[predicate, probe], probes.end[predicate, probe]
    c_begin, held_begin = nearest_bitmap(begin, every, n)
    c_end, held_end = nearest_bitmap(end, every, n)
    flip_all = _ALL if probes.negated[predicate] else np.uint64(0)
    bitmap = sealed.bitmap
    for word in range(np.uint64(words[0]), np.uint64(words[1])):
        scratch[row, word] = bitmap[other, c_begin, word] ^ bitmap[other, c_end, word] ^ flip_all
    bits = words[1] - words[0]
    # Flips outside the words in use do no harm: the next probe overwrites a word before reading it.
    bits += _flip(sealed.to_lead, other, held_begin, begin, scratch, row)
    bits += _flip(sealed.to_lead, other, held_end, end, scratch, row)
    return bits


@kernel
def read_words(
    sealed: Sealed,
    begin: int,
    end: int,
    window: tuple[int, int],
    scratch: np.ndarray,
    listed: int,
    output: Output,
    probe: int,
) -> int:
    """Report the bits set from place *begin* to *end* of the lead order; return ids listed."""
    total = np.uint64(0)
    found = 0
    keep_ids = len(output.match_id) > 0
    whole = window[0] >= window[1]
    for word in range(begin >> 6, (end + _WORD_BITS - 1) >> 6):
        left = scratch[0, np.uint64(word)] & bits_between(word, begin, end)
        while left != 0:
            place = np.uint64(word * _WORD_BITS + trailing_zeros(left))
            left &= left - _ONE
            position = sealed.position[place]
            if whole or window[0] <= position < window[1]:
                total += sealed.mixed[place]
                if keep_ids:
                    output.match_id[np.uint64(listed + found)] = position
                found += 1
    output.matches[probe] += found
    output.fingerprint[probe] += total
    return listed + found if keep_ids else 0
