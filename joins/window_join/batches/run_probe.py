"""Probing sorted runs with a block of probes in the order of what they look for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.panjoin.rebound import AT_ONCE, rebound_all
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import prefetch_entry
from joins.machine.lanes import lanes_less
from joins.window_join.batches.run_stacks import (
    BASE,
    BEGIN,
    CHUNK,
    CHUNK_SHIFT,
    ENTRIES,
    HELD,
    RUNS_MAX,
    Stacks,
    greatest_word,
    is_narrow,
    least_word,
    line,
    place_at,
)
from joins.window_join.batches.seen_lanes import FEW, seen_beside, seen_in_words
from joins.work import COMPARISONS, MATCHES

BLOCK = 256
"""Probes per block: what is known of them stays in the first cache."""
_AHEAD = 8
"""Probes whose chunks are on their way: asking for all at once would lose most requests."""
_CACHE_LINE = 8


class Block(NamedTuple):
    """A block of probes in the order of *low*.

    Attributes
    ----------
    low, high
        int64, the keys that each looks for, as `stored_key` returns them.
    start, stop
        int64, the places that it sees.
    row
        int64, where it is answered.
    begins
        int64, shape (`RUNS_MAX`, `BLOCK`): the chunk of each run in which its range begins, as the
        first entry of that chunk.
    """

    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    row: np.ndarray
    begins: np.ndarray


def make_block() -> Block:
    """Return room for a block."""
    low, high, start, stop, row = np.empty((5, BLOCK), np.int64)
    return Block(low, high, start, stop, row, np.empty((RUNS_MAX, BLOCK), np.int64))


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
    for entry in range(chunk, chunk + CHUNK, _CACHE_LINE):
        prefetch_entry(stacks.words, side, entry)


@kernel
def count_block(
    stacks: Stacks,
    side: int,
    block: Block,
    probes: int,
    count: np.ndarray,
    fingerprint: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Count the matches of *probes* probes whose chunks are known, in all runs.

    Probe after probe goes through all runs, for that is when the chunks of the next ones arrive.
    """
    base, held = stacks.state[side, BASE], stacks.state[side, HELD]
    total = np.uint64(0)
    for i in range(probes):
        for run in range(held):
            _ask_for(stacks, side, block.begins[run, min(i + _AHEAD, probes - 1)])
        low, high = least_word(stacks, block.low[i]), greatest_word(stacks, block.high[i])
        start, places = block.start[i], block.stop[i] - block.start[i]
        matches, mixed = np.uint64(0), np.uint64(0)
        for run in range(held):
            chunk = block.begins[run, i]
            at = chunk + lanes_less(stacks.words, side, chunk, low)
            seen = _seen_from(stacks, side, at, high, base, start, places)
            matches, mixed = matches + seen[0], mixed + seen[1]
            if stacks.words[side, at + FEW - 1] <= high:
                at += FEW
                end = stacks.runs[side, run, BEGIN] + stacks.runs[side, run, ENTRIES]
                while at < end and stacks.words[side, at] <= high:
                    # Behind the range, or the run, nothing is seen.
                    seen = _seen_from(stacks, side, at, high, base, start, places)
                    matches, mixed = matches + seen[0], mixed + seen[1]
                    at += FEW
        row = np.uint64(block.row[i])
        count[row], fingerprint[row] = matches, mixed
        total += matches
    counters[MATCHES] += np.int64(total)


@inlined
def _seen_from(
    stacks: Stacks, side: int, at: int, high: int, base: int, start: int, places: int
) -> tuple[np.uint64, np.uint64]:
    """Return how many of the `FEW` entries from *at* on a probe sees, and their fingerprint."""
    if is_narrow(stacks):
        return seen_in_words(stacks.words, side, at, high, base, start, places)
    return seen_beside(stacks.words, stacks.places, side, at, high, base, start, places)


@kernel
def list_block(
    stacks: Stacks,
    side: int,
    block: Block,
    probes: int,
    match_id: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Write the matches of *probes* probes whose chunks are known, from ``begins[row]`` on."""
    for i in range(probes):
        low, high = least_word(stacks, block.low[i]), greatest_word(stacks, block.high[i])
        to = begins[block.row[i]]
        for run in range(stacks.state[side, HELD]):
            chunk = block.begins[run, i]
            at = chunk + lanes_less(stacks.words, side, chunk, low)
            end = stacks.runs[side, run, BEGIN] + stacks.runs[side, run, ENTRIES]
            while at < end and stacks.words[side, at] <= high:
                place = place_at(stacks, side, at)
                if block.start[i] <= place < block.stop[i]:
                    match_id[to] = stacks.state[side, BASE] + place
                    to += 1
                at += 1
