"""Probing sorted runs with a block of probes in the order of what they look for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.sorted_array import AT_ONCE, rebound_all
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import prefetch_entry
from joins.machine.lanes import lanes_less
from joins.machine.memory import LINE
from joins.window_join.batches.run_stacks import (
    BASE,
    BEGIN,
    CHUNK,
    CHUNK_SHIFT,
    ENTRIES,
    HALF,
    HELD,
    PLACE,
    RUNS_MAX,
    Stacks,
    greatest_word,
    is_narrow,
    least_word,
    line,
    place_at,
)
from joins.window_join.batches.seen_lanes import FEW, UNSEEN, seen_beside, seen_in_words
from joins.work import COMPARISONS, MATCHES

BLOCK = 256
"""Probes per block: what is known of them stays in the first cache."""
_AHEAD = 16
"""Probes whose chunks are on their way: asking for all at once would lose most requests."""
_LISTED_MOST = 1024
"""Entries on a block's list when those of a long range do not wait there any more."""

LOW, HIGH, WINDOW, ROW = range(4)
"""What a probe asks for, a column each: its range, as `stored_key` returns it, the two places that
its window is between, in one word, and the row at which it is answered."""


class Block(NamedTuple):
    """A block of probes in the order of *low*.

    Attributes
    ----------
    low, number
        int64, the least key that each looks for, and the row of all that it asks for.
    begins
        int64, shape (`RUNS_MAX`, `BLOCK`): the chunk of each run in which its range begins, as the
        first entry of that chunk.
    seen
        int64, from 1 on: the entries in range of one probe after the other, each its place or
        `UNSEEN`; and 0 ahead of them.
    ends
        int64, shape (`BLOCK` + 1): where those of each probe end in *seen*, and ahead of them where
        the first begin.
    """

    low: np.ndarray
    number: np.ndarray
    begins: np.ndarray
    seen: np.ndarray
    ends: np.ndarray


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
    for run in range(stacks.state[side, HELD]):
        begin, begins = stacks.runs[side, run, BEGIN], block.begins[run]
        first = begin >> CHUNK_SHIFT
        chunks = (stacks.runs[side, run, ENTRIES] + CHUNK - 1) >> CHUNK_SHIFT
        samples = line(stacks.samples, side, first, first + chunks)
        rebound_all(samples, chunks, block.low, 0, probes, begins, counters)
        for i in range(np.uint64(probes)):
            # The first sample that is not less is that of the next chunk.
            begins[i] = begin + (max(begins[i] - 1, 0) << CHUNK_SHIFT)
        counters[COMPARISONS] += probes * (CHUNK + FEW) // AT_ONCE


@inlined
def _ask_for(stacks: Stacks, side: int, chunk: int) -> None:
    for entry in range(chunk, chunk + CHUNK, LINE):
        prefetch_entry(stacks.words, side, entry)


@kernel
def count_block(
    stacks: Stacks,
    side: int,
    asked: np.ndarray,
    block: Block,
    probes: int,
    count: np.ndarray,
    fingerprint: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Count the matches of *probes* probes whose chunks are known, in all runs.

    Probe after probe goes through all runs, for that is when the chunks of the next ones arrive.
    """
    base, held, total, to = stacks.state[side, BASE], stacks.state[side, HELD], 0, 1
    for i in range(probes):
        for run in range(held):
            _ask_for(stacks, side, block.begins[run, min(i + _AHEAD, probes - 1)])
        asks = asked[np.uint64(block.number[i])]
        low, high = least_word(stacks, asks[LOW]), greatest_word(stacks, asks[HIGH])
        start = asks[WINDOW] >> HALF
        places = (asks[WINDOW] & PLACE) - start
        first, matches, mixed = to, 0, np.uint64(0)
        for run in range(held):
            chunk = block.begins[run, i]
            at = chunk + lanes_less(stacks.words, side, chunk, low)
            in_range, seen = _list_few(stacks, side, at, high, start, places, block.seen, to)
            to, matches = to + in_range, matches + seen
            while in_range == FEW and at + FEW < _end_of(stacks, side, run):
                at += FEW
                in_range, seen = _list_few(stacks, side, at, high, start, places, block.seen, to)
                to, matches = to + in_range, matches + seen
                if to > _LISTED_MOST:
                    _mix_listed(base, block.seen, first, to)
                    for listed in range(first, to):
                        mixed += np.uint64(block.seen[listed])
                    to = first
        row = np.uint64(asks[ROW])
        count[row], fingerprint[row] = matches, mixed
        block.ends[i + 1] = to
        total += matches
    counters[MATCHES] += total
    _add_fingerprints(asked, block, probes, base, fingerprint)


@inlined
def _end_of(stacks: Stacks, side: int, run: int) -> int:
    """Return where a run ends: behind it nothing is seen."""
    return int(stacks.runs[side, run, BEGIN] + stacks.runs[side, run, ENTRIES])


@inlined
def _mix_listed(base: int, seen: np.ndarray, begin: int, end: int) -> None:
    """Put in the stead of places what their positions are mixed to, and 0 for `UNSEEN`."""
    for i in range(np.uint64(begin), np.uint64(end)):
        mixed = splitmix64(base + seen[i])
        seen[i] = np.int64(mixed) if seen[i] != UNSEEN else 0


@inlined
def _add_fingerprints(
    asked: np.ndarray, block: Block, probes: int, base: int, fingerprint: np.ndarray
) -> None:
    """Add the fingerprints of what is listed.

    Most of the `FEW` entries that a probe looks at are none of its own, so only those listed are
    mixed. The sum of a probe is the difference of two sums from the first on: how many it has no
    branch would guess.
    """
    seen, end = block.seen, block.ends[probes]
    _mix_listed(base, seen, 1, end)
    so_far = 0
    for i in range(np.uint64(1), np.uint64(end)):
        so_far += seen[i]
        seen[i] = so_far
    for i in range(np.uint64(probes)):
        row = np.uint64(asked[np.uint64(block.number[i]), ROW])
        mixed = seen[block.ends[i + np.uint64(1)] - 1] - seen[block.ends[i] - 1]
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
) -> tuple[np.int64, np.int64]:
    """List those of the `FEW` entries from *at* on that are in range, and return how many.

    Return also how many of them a probe sees.
    """
    if is_narrow(stacks):
        return seen_in_words(stacks.words, side, at, high, start, places, seen, to)
    return seen_beside(stacks.words, stacks.places, side, at, high, start, places, seen, to)


@kernel
def list_block(
    stacks: Stacks,
    side: int,
    asked: np.ndarray,
    block: Block,
    probes: int,
    match_id: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Write the matches of *probes* probes whose chunks are known, from ``begins[row]`` on."""
    for i in range(probes):
        asks = asked[block.number[i]]
        low, high = least_word(stacks, asks[LOW]), greatest_word(stacks, asks[HIGH])
        start, stop = asks[WINDOW] >> HALF, asks[WINDOW] & PLACE
        to = begins[asks[ROW]]
        for run in range(stacks.state[side, HELD]):
            chunk = block.begins[run, i]
            at = chunk + lanes_less(stacks.words, side, chunk, low)
            end = stacks.runs[side, run, BEGIN] + stacks.runs[side, run, ENTRIES]
            while at < end and stacks.words[side, at] <= high:
                place = place_at(stacks, side, at)
                if start <= place < stop:
                    match_id[to] = stacks.state[side, BASE] + place
                    to += 1
                at += 1
