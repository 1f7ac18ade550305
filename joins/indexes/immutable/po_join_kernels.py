"""The probe of one PO-Join segment (SPO-Join, section 3.4, Algorithm 4), as kernels.

A probe is answered by bit arrays (see `joins.indexes.immutable.po_join_bits`) or, when one of its
ranges is so short that this costs less, by looking up that range's tuples in the other orders one
by one.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.immutable.po_join_bits import Sealed, fill_cost, fill_words, read_words
from joins.indexes.immutable.segment_probes import Output, Probes
from joins.machine.compiling import kernel
from joins.work import BITS, COMPARISONS, MATCHES

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_WORD_BITS = 64

# What the two ways to answer cost, in quarters of a nanosecond, measured on 100,000 random tuples.
_LOOKUP_COST = 3  # one tuple of a short range, per other predicate
_FLIP_COST = 2  # one bit of a bit array
_WORD_COST = 1  # one word filled or read


@kernel
def _probe_bits(
    sealed: Sealed,
    probes: Probes,
    probe: int,
    window: tuple[int, int],
    scratch: np.ndarray,
    listed: int,
    output: Output,
    counters: np.ndarray,
) -> int:
    """Answer one probe by bit arrays; return the ids listed."""
    n = len(sealed.position)
    predicates = len(probes.begin)
    begin, end = probes.begin[0, probe], probes.end[0, probe]
    words = begin >> 6, (end + _WORD_BITS - 1) >> 6
    if probes.negated[0]:
        words = 0, (n + _WORD_BITS - 1) >> 6
    span = words[1] - words[0]
    if predicates == 1:
        for word in range(words[0], words[1]):
            scratch[0, word] = _ALL
    for predicate in range(1, predicates):
        row = min(predicate - 1, 1)
        counters[BITS] += fill_words(sealed, probes, predicate, probe, words, scratch, row)
        if row == 1:
            for word in range(np.uint64(words[0]), np.uint64(words[1])):
                scratch[0, word] &= scratch[1, word]
            counters[BITS] += span
    counters[BITS] += span
    if not probes.negated[0]:
        return read_words(sealed, begin, end, window, scratch, listed, output, probe)
    listed = read_words(sealed, 0, begin, window, scratch, listed, output, probe)
    return read_words(sealed, end, n, window, scratch, listed, output, probe)


@kernel
def _keep_inside(
    from_lead: np.ndarray,
    other: int,
    begin: int,
    end: int,
    negated: bool,
    candidates: np.ndarray,
    count: int,
) -> int:
    """Keep the candidates whose place in another order (-1: the lead) is in a range; count them."""
    kept = 0
    # No branch on what is found: half of them would be guessed wrong, at six times the cost.
    for i in range(np.uint64(count)):
        place = candidates[i]
        rank = np.int64(place) if other < 0 else np.int64(from_lead[other, np.uint64(place)])
        candidates[np.uint64(kept)] = place
        kept += int(((begin <= rank) & (rank < end)) ^ negated)
    return kept


@kernel
def _probe_shortest(
    sealed: Sealed,
    probes: Probes,
    probe: int,
    shortest: int,
    window: tuple[int, int],
    candidates: np.ndarray,
    listed: int,
    output: Output,
    counters: np.ndarray,
) -> int:
    """Answer one probe by looking up the tuples of its shortest range; return the ids listed."""
    begin, end = probes.begin[shortest, probe], probes.end[shortest, probe]
    count = end - begin
    for i in range(np.uint64(count)):
        place = np.uint64(begin) + i
        candidates[i] = place if shortest == 0 else sealed.to_lead[shortest - 1, place]
    for predicate in range(len(probes.begin)):
        if predicate != shortest:
            counters[COMPARISONS] += count
            count = _keep_inside(
                sealed.from_lead,
                predicate - 1,
                probes.begin[predicate, probe],
                probes.end[predicate, probe],
                probes.negated[predicate],
                candidates,
                count,
            )
    total = np.uint64(0)
    found = 0
    keep_ids = len(output.match_id) > 0
    whole = window[0] >= window[1]
    for i in range(np.uint64(count)):
        place = np.uint64(candidates[i])
        position = sealed.position[place]
        if whole or window[0] <= position < window[1]:
            total += sealed.mixed[place]
            if keep_ids:
                output.match_id[np.uint64(listed + found)] = position
            found += 1
    output.matches[probe] += found
    output.fingerprint[probe] += total
    return listed + found if keep_ids else 0


@kernel
def _bits_cost(probes: Probes, probe: int, n: int) -> int:
    """Return what `_probe_bits` would cost, in tuples looked up."""
    begin, end = probes.begin[0, probe], probes.end[0, probe]
    words = ((n if probes.negated[0] else end - begin) >> 6) + 1
    cost = words * _WORD_COST
    for predicate in range(1, len(probes.begin)):
        begin, end = probes.begin[predicate, probe], probes.end[predicate, probe]
        cost += fill_cost(begin, end, n) * _FLIP_COST
        cost += words * _WORD_COST
    return cost


@kernel
def probe_segment(
    sealed: Sealed,
    first: int,
    probes: Probes,
    row: int,
    listed_max: int,
    scratch: np.ndarray,
    candidates: np.ndarray,
    output: Output,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Answer probes from *row* on while their matches are sure to fit into the list of ids.

    *output* counts are zero before. Return the row it came to and the ids listed.
    """
    n = len(sealed.position)
    listed = 0
    keep_ids = len(output.match_id) > 0
    for probe in range(row, probes.begin.shape[1]):
        seen_from = max(probes.start[probe], first)
        seen_to = min(probes.stop[probe], first + n)
        if seen_from >= seen_to:
            continue
        # No window at all is spelled as an empty one: the segment is inside it as a whole.
        window = (0, 0) if seen_to - seen_from == n else (seen_from, seen_to)
        shortest, length = -1, n
        for predicate in range(len(probes.begin)):
            size = probes.end[predicate, probe] - probes.begin[predicate, probe]
            if not probes.negated[predicate] and (shortest < 0 or size < length):
                shortest, length = predicate, size
        if length == 0:
            continue
        if keep_ids and listed + length > listed_max:
            return probe, listed
        others = len(probes.begin) - 1
        if shortest >= 0 and length * others * _LOOKUP_COST <= _bits_cost(probes, probe, n):
            listed = _probe_shortest(
                sealed, probes, probe, shortest, window, candidates, listed, output, counters
            )
        else:
            listed = _probe_bits(sealed, probes, probe, window, scratch, listed, output, counters)
        counters[MATCHES] += output.matches[probe]
    return probes.begin.shape[1], listed
