"""The bit arrays of a PO-Join probe (SPO-Join, section 3.4, Figure 5), as kernels.

Everything here works on places, not on keys: a predicate's range of values has become a range of
places in that predicate's order, and place i of the lead order is what bit i stands for.

Figure 5 sets, for one predicate's range, the bits at the permutation's places, and reads the bits
over the other predicate's range. Where the range holds more than half the tuples, its complement is
filled instead, and the bits mean the opposite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.bit_array import bits_between
from joins.indexes.immutable.segment_probes import Output, Probes
from joins.machine.compiling import kernel
from joins.machine.instructions import trailing_zeros

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
    """

    position: np.ndarray
    mixed: np.ndarray
    to_lead: np.ndarray
    from_lead: np.ndarray


@kernel
def _flip(
    to_lead: np.ndarray, other: int, begin: int, end: int, scratch: np.ndarray, row: int
) -> None:
    """Flip the bits of the tuples between two places of another order."""
    for place in range(np.uint64(begin), np.uint64(end)):
        bit = np.uint64(to_lead[other, place])
        scratch[row, bit >> _WORD_SHIFT] ^= _ONE << (bit & _BIT_MASK)


@kernel
def fill_cost(begin: int, end: int, tuples: int) -> int:
    """Return how many bits a range takes to fill: its own or its complement's."""
    return min(end - begin, tuples - (end - begin))


@kernel
def fill_words(
    sealed: Sealed,
    probes: Probes,
    predicate: int,
    probe: int,
    words: tuple[int, int],
    scratch: np.ndarray,
    row: int,
) -> int:
    """Set the words of *scratch* row to what satisfies *predicate*; return bits touched."""
    n = len(sealed.position)
    other = predicate - 1
    begin, end = probes.begin[predicate, probe], probes.end[predicate, probe]
    complement = end - begin > n - (end - begin)
    background = _ALL if complement != probes.negated[predicate] else np.uint64(0)
    for word in range(np.uint64(words[0]), np.uint64(words[1])):
        scratch[row, word] = background
    # Flips outside the words in use do no harm: the next probe overwrites a word before reading it.
    if complement:
        _flip(sealed.to_lead, other, 0, begin, scratch, row)
        _flip(sealed.to_lead, other, end, n, scratch, row)
    else:
        _flip(sealed.to_lead, other, begin, end, scratch, row)
    return words[1] - words[0] + fill_cost(begin, end, n)


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
