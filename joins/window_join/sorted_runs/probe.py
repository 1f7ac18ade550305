"""Probing sorted runs with a block of probes in the order of what they look for."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba.types import UniTuple, int64, intp

from joins.hashing import splitmix64
from joins.indexes.sorted_array import AT_ONCE, rebound_all
from joins.machine.compiling import ARRAY, CodeEmitter, inlined, instruction, kernel
from joins.machine.instructions import address, prefetch_entry
from joins.machine.lanes import lanes_from, lanes_less, load_vector, repeat
from joins.machine.memory import LINE
from joins.window_join.sorted_runs.stacks import (
    CHUNK,
    CHUNK_SHIFT,
    HALF,
    PLACE,
    RUNS_MAX,
    Stacks,
    greatest_word,
    is_narrow,
    least_word,
    part_of_row,
    place_at,
    run_end,
)
from joins.work import COMPARISONS, MATCHES

BLOCK = 256
"""Probes per block: their columns stay in the first cache."""
FEW = 8
"""Entries that are looked at without a branch; no more than a chunk has."""
UNSEEN = -1
"""In place of the place of an entry that is in a probe's range and not in its window."""
_AHEAD = 16
"""Probes whose chunks are prefetched: prefetching all at once would lose most requests."""
_LISTED_MOST = 1024
"""Entries on a block's list from which on those of a long range do not wait there any more."""

REQUEST = np.dtype([("low", "i8"), ("high", "i8"), ("window", "i8"), ("row", "i8")])
"""What a probe asks for: its range, as `stored_key` returns it; its window, the two places that it
is between in one word; and the row at which it is answered. Probes are in another order than their
requests, so that the four are in one cache line."""


class Block(NamedTuple):
    """A block of probes in the order of *low*."""

    low: np.ndarray
    number: np.ndarray
    """int64, the least key that each looks for, and which request it is."""
    begins: np.ndarray
    """int64, shape (`RUNS_MAX`, `BLOCK`): the chunk of each run in which its range begins, as the
    first entry of that chunk."""
    seen: np.ndarray
    """int64, from 1 on: the entries in range of one probe after the other, each its place or
    `UNSEEN`; and 0 ahead of them."""
    ends: np.ndarray
    """int64, shape (`BLOCK` + 1): where those of each probe end in *seen*, and ahead of them where
    the first begin."""


def make_block() -> Block:
    """Return room for a block."""
    low, number = np.empty((2, BLOCK), np.int64)
    begins = np.empty((RUNS_MAX, BLOCK), np.int64)
    seen = np.empty(_LISTED_MOST + (begins.size + 2) * FEW, np.int64)
    seen[0] = 0
    return Block(low, number, begins, seen, np.ones(BLOCK + 1, np.int64))


@kernel
def find_chunks(stacks: Stacks, side: int, block: Block, probes: int, counters: np.ndarray) -> None:
    """Fill in where the ranges of *probes* probes begin."""
    for run in range(stacks.runs[side]):
        begin, begins = stacks.begin[side, run], block.begins[run]
        first = begin >> CHUNK_SHIFT
        chunks = (stacks.entries[side, run] + CHUNK - 1) >> CHUNK_SHIFT
        samples = part_of_row(stacks.samples, side, first, first + chunks)
        rebound_all(samples, chunks, block.low, 0, probes, begins, counters)
        for i in range(probes):
            # The first sample that is not less is that of the next chunk.
            begins[i] = begin + (max(begins[i] - 1, 0) << CHUNK_SHIFT)
        counters[COMPARISONS] += probes * (CHUNK + FEW) // AT_ONCE


@inlined
def _prefetch_chunk(stacks: Stacks, side: int, chunk: int) -> None:
    for entry in range(chunk, chunk + CHUNK, LINE):
        prefetch_entry(stacks.words, side, entry)


@kernel
def count_block(
    stacks: Stacks,
    side: int,
    requests: np.ndarray,
    block: Block,
    probes: int,
    count: np.ndarray,
    fingerprint: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Count the matches of *probes* probes whose chunks are known, in all runs.

    Probe after probe goes through all runs, for that is when the chunks of the next ones arrive.
    """
    base, runs, total, to = stacks.base[side], stacks.runs[side], 0, 1
    for i in range(probes):
        for run in range(runs):
            _prefetch_chunk(stacks, side, block.begins[run, min(i + _AHEAD, probes - 1)])
        request = requests[block.number[i]]
        low, high = least_word(stacks, request.low), greatest_word(stacks, request.high)
        start = request.window >> HALF
        places = (request.window & PLACE) - start
        first, matches, mixed = to, 0, np.uint64(0)
        for run in range(runs):
            chunk = block.begins[run, i]
            at = chunk + lanes_less(stacks.words, side, chunk, low)
            in_range, seen = _list_few(stacks, side, at, high, start, places, block.seen, to)
            to, matches = to + in_range, matches + seen
            while in_range == FEW and at + FEW < run_end(stacks, side, run):
                at += FEW
                in_range, seen = _list_few(stacks, side, at, high, start, places, block.seen, to)
                to, matches = to + in_range, matches + seen
                if to > _LISTED_MOST:
                    _mix_listed(base, block.seen, first, to)
                    for listed in range(first, to):
                        mixed += np.uint64(block.seen[listed])
                    to = first
        row = request.row
        count[row], fingerprint[row] = matches, mixed
        block.ends[i + 1] = to
        total += matches
    counters[MATCHES] += total
    _add_fingerprints(requests, block, probes, base, fingerprint)


@inlined
def _mix_listed(base: int, seen: np.ndarray, begin: int, end: int) -> None:
    """Replace places by the hashes of their positions, and `UNSEEN` by 0."""
    for i in range(begin, end):
        mixed = splitmix64(base + seen[i])
        seen[i] = np.int64(mixed) if seen[i] != UNSEEN else 0


@inlined
def _add_fingerprints(
    requests: np.ndarray, block: Block, probes: int, base: int, fingerprint: np.ndarray
) -> None:
    """Add the fingerprints of what is listed.

    Most of the `FEW` entries that a probe looks at are none of its own, so only those listed are
    hashed. The sum of a probe is the difference of two sums from the first on: how many it has no
    branch predicts.
    """
    seen, end = block.seen, block.ends[probes]
    _mix_listed(base, seen, 1, end)
    so_far = 0
    for i in range(1, end):
        so_far += seen[i]
        seen[i] = so_far
    for i in range(probes):
        row = requests[block.number[i]].row
        mixed = seen[block.ends[i + 1] - 1] - seen[block.ends[i] - 1]
        fingerprint[row] += np.uint64(mixed)


@inlined
def _list_few(
    stacks: Stacks,
    side: int,
    at: int,
    high: int,
    start: int,
    places: int,
    seen: np.ndarray,
    to: int,
) -> tuple[int, int]:
    """List those of the `FEW` entries from *at* on that are in range, and return how many.

    Return also how many of them a probe sees.
    """
    counts: tuple[int, int]
    if is_narrow(stacks):
        counts = seen_in_words(stacks.words, side, at, high, start, places, seen, to)
    else:
        counts = seen_beside(stacks.words, stacks.places, side, at, high, start, places, seen, to)
    return counts


@kernel
def list_block(
    stacks: Stacks,
    side: int,
    requests: np.ndarray,
    block: Block,
    probes: int,
    match_id: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Write the matches of *probes* probes whose chunks are known, from ``begins[row]`` on."""
    for i in range(probes):
        request = requests[block.number[i]]
        low, high = least_word(stacks, request.low), greatest_word(stacks, request.high)
        start, stop = request.window >> HALF, request.window & PLACE
        to = begins[request.row]
        for run in range(stacks.runs[side]):
            chunk = block.begins[run, i]
            at = chunk + lanes_less(stacks.words, side, chunk, low)
            end = run_end(stacks, side, run)
            while at < end and stacks.words[side, at] <= high:
                place = place_at(stacks, side, at)
                if start <= place < stop:
                    match_id[to] = stacks.base[side] + place
                    to += 1
                at += 1


# Which of a few entries a probe sees, as vector instructions: how many entries belong to a short
# range no branch predicts, so `FEW` are looked at for each probe, all at once. Like
# `joins.machine.instructions` these functions check no bounds.

_WORDS = ir.VectorType(ir.IntType(64), FEW)
_COUNTS = UniTuple(int64, 2)


@instruction(_COUNTS, ARRAY, intp, intp, int64, int64, int64, ARRAY, intp)
def seen_in_words(
    emit: CodeEmitter,
    words: Any,
    side: Any,
    at: Any,
    high: Any,
    start: Any,
    places: Any,
    seen: Any,
    to: Any,
) -> Any:
    """Return how many entries from ``words[side, at]`` on are in a range, and how many are seen.

    In range are words that are at most *high*; of these a probe sees the ones of *places* places
    from *start* on. ``seen[to : to + FEW]`` becomes the places of entries, or `UNSEEN`; those in
    range come first. A word contains its place.
    """
    entries = load_vector(emit, *lanes_from(emit, address(emit, words, side, at), FEW))
    place = emit.builder.and_(entries, _constant(PLACE))
    return _list_seen(emit, entries, place, (high, start, places), seen, to)


@instruction(_COUNTS, ARRAY, ARRAY, intp, intp, int64, int64, int64, ARRAY, intp)
def seen_beside(
    emit: CodeEmitter,
    words: Any,
    beside: Any,
    side: Any,
    at: Any,
    high: Any,
    start: Any,
    places: Any,
    seen: Any,
    to: Any,
) -> Any:
    """Do the same where ``beside[side, at]`` is the place of ``words[side, at]``."""
    entries, place = (
        load_vector(emit, *lanes_from(emit, address(emit, rows, side, at), FEW))
        for rows in (words, beside)
    )
    place = emit.builder.sext(place, _WORDS)
    return _list_seen(emit, entries, place, (high, start, places), seen, to)


def _list_seen(
    emit: CodeEmitter, entries: Any, place: Any, bounds: tuple[Any, Any, Any], seen: Any, to: Any
) -> Any:
    """Emit how many entries are in range and how many are seen, and write down their places.

    *bounds* are the greatest word, and the first place and the number of those in the window.
    """
    builder = emit.builder
    high, start, places = (repeat(emit, value, _WORDS) for value in bounds)
    in_range = builder.icmp_signed("<=", entries, high)
    # Seen as unsigned, a place before the first is beyond the last one.
    in_window = builder.icmp_unsigned("<", builder.sub(place, start), places)
    is_seen = builder.and_(in_range, in_window)
    target, _ = lanes_from(emit, builder.gep(seen.data, [to]), FEW)
    builder.store(builder.select(is_seen, place, _constant(UNSEEN)), target, 8)
    counts = [
        builder.zext(builder.ctpop(builder.bitcast(bits, ir.IntType(FEW))), ir.IntType(64))
        for bits in (in_range, is_seen)
    ]
    return emit.context.make_tuple(builder, _COUNTS, counts)


def _constant(value: int) -> Any:
    """Return a vector of equal entries."""
    return ir.Constant(_WORDS, [value] * FEW)
