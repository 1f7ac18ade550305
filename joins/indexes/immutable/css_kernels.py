"""Intersecting the leaves of several CSS-trees by the ids they hold, as kernels.

*leaf_id* has a row per predicate: the ids in the order of its keys, counted from the epoch's first.
"""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.immutable.segment_probes import Output, Probes, satisfying, window_in
from joins.machine.compiling import inlined, kernel
from joins.work import BITS, COMPARISONS, INSERTS, MATCHES

_WORD_BITS, _WORD_BYTES = 64, 8
_ONE = np.uint64(1)
_WORD_SHIFT = np.uint64(6)
_BIT_MASK = np.uint64(63)
_STRETCHES = np.uint64(4)

_EMPTY = -1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: neighbouring ids go far apart.


@kernel
def fill_rows(
    leaf_id: np.ndarray,
    probes: Probes,
    predicate: int,
    row: int,
    rows: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Set in *rows*, zero before, what satisfies *predicate*, for the probes from *row* on."""
    n = leaf_id.shape[1]
    for i in range(len(rows)):
        begin, end = probes.begin[predicate, row + i], probes.end[predicate, row + i]
        for part in range(2):
            begins, ends = satisfying(begin, end, probes.negated[predicate], part, n)
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
    stretch = np.uint64(max(end - begin, 0)) // _STRETCHES
    for place in range(np.uint64(begin), np.uint64(begin) + stretch):
        for turn in range(_STRETCHES):
            _set_bit(leaf_id, predicate, place + turn * stretch, rows, row)
    for place in range(np.uint64(begin) + _STRETCHES * stretch, np.uint64(end)):
        _set_bit(leaf_id, predicate, place, rows, row)


@inlined
def _set_bit(
    leaf_id: np.ndarray, predicate: int, place: np.uint64, rows: np.ndarray, row: int
) -> None:
    bit = np.uint64(leaf_id[predicate, place])
    rows[row, bit >> _WORD_SHIFT] |= _ONE << (bit & _BIT_MASK)


@kernel
def table_bits(entries: int) -> int:
    """Return the logarithm of the slots of a hash table at most half full of *entries*."""
    bits = 1
    while (1 << bits) < 2 * entries:
        bits += 1
    return bits


@kernel
def _first_slot(entry: int, bits: int) -> np.int64:
    return np.int64((np.uint64(entry) * _GOLDEN) >> np.uint64(_WORD_BITS - bits))


@kernel
def _insert(table: np.ndarray, bits: int, entry: int, counters: np.ndarray) -> int:
    """Insert an id that is not there yet; return its slot."""
    slot = _first_slot(entry, bits)
    while table[np.uint64(slot)] != _EMPTY:
        counters[COMPARISONS] += 1
        slot = (slot + 1) & ((1 << bits) - 1)
    table[np.uint64(slot)] = entry
    counters[INSERTS] += 1
    return slot


@kernel
def _look_up(table: np.ndarray, bits: int, entry: int, counters: np.ndarray) -> int:
    """Return the slot of an id, or -1."""
    slot = _first_slot(entry, bits)
    while table[np.uint64(slot)] != _EMPTY:
        counters[COMPARISONS] += 1
        if table[np.uint64(slot)] == entry:
            return slot
        slot = (slot + 1) & ((1 << bits) - 1)
    counters[COMPARISONS] += 1
    return -1


@kernel
def _report(
    entry: int, first: int, window: tuple[int, int], probe: int, listed: int, output: Output
) -> int:
    """Add a match to the output if it is in the window; return the ids listed."""
    if entry < window[0] or entry >= window[1]:
        return listed
    position = first + entry
    output.matches[probe] += 1
    output.fingerprint[probe] += splitmix64(position)
    if len(output.match_id) == 0:
        return 0
    output.match_id[np.uint64(listed)] = position
    return listed + 1


@kernel
def _probe_one(
    leaf_id: np.ndarray,
    first: int,
    probes: Probes,
    probe: int,
    built: int,
    window: tuple[int, int],
    table: np.ndarray,
    agreed: np.ndarray,
    listed: int,
    output: Output,
    counters: np.ndarray,
) -> int:
    """Hash predicate *built*'s result and look the others' up; return the ids listed."""
    predicates, n = leaf_id.shape
    bits = 0
    for step in range(predicates):
        # The predicate that is built comes first, the others follow in their own order.
        predicate = built if step == 0 else step - 1 if step <= built else step
        begin, end = probes.begin[predicate, probe], probes.end[predicate, probe]
        negated = probes.negated[predicate]
        if step == 0:
            bits = table_bits(n - (end - begin) if negated else end - begin)
            for slot in range(1 << bits):
                table[slot] = _EMPTY
            counters[BITS] += (table.itemsize << bits) // _WORD_BYTES
        for part in range(2):
            begins, ends = satisfying(begin, end, negated, part, n)
            for place in range(np.uint64(begins), np.uint64(ends)):
                entry = np.int64(leaf_id[predicate, place])
                if predicates == 1:
                    listed = _report(entry, first, window, probe, listed, output)
                elif step == 0:
                    agreed[np.uint64(_insert(table, bits, entry, counters))] = 0
                else:
                    slot = _look_up(table, bits, entry, counters)
                    if slot >= 0 and agreed[np.uint64(slot)] == step - 1:
                        agreed[np.uint64(slot)] = step
                        if step == predicates - 1:
                            listed = _report(entry, first, window, probe, listed, output)
    counters[MATCHES] += output.matches[probe]
    return listed


@kernel
def probe_hash(
    leaf_id: np.ndarray,
    first: int,
    probes: Probes,
    row: int,
    listed_max: int,
    table: np.ndarray,
    agreed: np.ndarray,
    output: Output,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Answer probes from *row* on while their matches are sure to fit into the list of ids.

    *output* counts are zero before. Return the row it came to and the ids listed.
    """
    predicates, n = leaf_id.shape
    listed = 0
    for probe in range(row, probes.begin.shape[1]):
        window = window_in(first, n, probes.start[probe], probes.stop[probe])
        if window[0] >= window[1]:
            continue
        built, length = 0, n + 1
        for predicate in range(predicates):
            size = probes.end[predicate, probe] - probes.begin[predicate, probe]
            if probes.negated[predicate]:
                size = n - size
            if size < length:
                built, length = predicate, size
        if len(output.match_id) > 0 and listed + length > listed_max:
            return probe, listed
        listed = _probe_one(
            leaf_id,
            first,
            probes,
            probe,
            built,
            window,
            table,
            agreed,
            listed,
            output,
            counters,
        )
    return probes.begin.shape[1], listed
