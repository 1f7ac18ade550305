"""Storing a sorted run on a stack: neighbours are merged by their sizes.

Merging two neighbours sets the upper one aside and fills the room from its end, so no second stack
is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.sorted_array import SortedRun, merge
from joins.machine.compiling import kernel
from joins.window_join.batches.run_merge import merge_words
from joins.window_join.batches.run_stacks import (
    BASE,
    BEGIN,
    ENTRIES,
    HELD,
    HORIZON,
    OLDEST,
    Stacks,
    finish_run,
    is_narrow,
    line,
    place_at,
    stack_top,
)
from joins.work import MOVES


class Upper(NamedTuple):
    """The upper one of two runs; one row each of words and, unless they hold them, places.

    *carried* is working memory for `merge_words`.
    """

    words: np.ndarray
    places: np.ndarray
    carried: np.ndarray


@kernel
def _copy(source: np.ndarray, begin: int, target: np.ndarray, to: int, count: int) -> None:
    for i in range(np.uint64(count)):
        target[np.uint64(to) + i] = source[np.uint64(begin) + i]


@kernel
def _lay(stacks: Stacks, side: int, upper: Upper, new: int, oldest: int) -> None:
    """Lay *new* entries on a stack, as a run."""
    begin, run = stack_top(stacks, side), stacks.state[side, HELD]
    _copy(upper.words[0], 0, stacks.words[side], begin, new)
    if not is_narrow(stacks):
        _copy(upper.places[0], 0, stacks.places[side], begin, new)
    stacks.runs[side, run, BEGIN] = begin
    stacks.runs[side, run, ENTRIES] = new
    stacks.runs[side, run, OLDEST] = oldest
    stacks.state[side, HELD] = run + 1


@kernel
def _lift(stacks: Stacks, side: int, upper: Upper) -> None:
    """Take the run on top off its stack."""
    run = stacks.state[side, HELD] - 1
    begin, entries = stacks.runs[side, run, BEGIN], stacks.runs[side, run, ENTRIES]
    _copy(stacks.words[side], begin, upper.words[0], 0, entries)
    if not is_narrow(stacks):
        _copy(stacks.places[side], begin, upper.places[0], 0, entries)
    stacks.state[side, HELD] = run


@kernel
def _drop_expired(stacks: Stacks, side: int, run: int, counters: np.ndarray) -> None:
    """Close up a run over its entries below the horizon."""
    begin, entries = stacks.runs[side, run, BEGIN], stacks.runs[side, run, ENTRIES]
    horizon = stacks.state[side, HORIZON]
    if stacks.runs[side, run, OLDEST] >= horizon:
        return
    first = horizon - stacks.state[side, BASE]
    kept = np.uint64(begin)
    for i in range(np.uint64(begin), np.uint64(begin + entries)):
        # Written in any case, and overwritten by the next when it has expired: no branch.
        place = place_at(stacks, side, i)
        stacks.words[side, kept] = stacks.words[side, i]
        if not is_narrow(stacks):
            stacks.places[side, kept] = place
        kept += np.uint64(place >= first)
    stacks.runs[side, run, ENTRIES] = np.int64(kept) - begin
    stacks.runs[side, run, OLDEST] = horizon
    counters[MOVES] += entries


@kernel
def _merge_into(
    stacks: Stacks, side: int, run: int, upper: Upper, new: int, counters: np.ndarray
) -> None:
    """Merge *new* entries into the run on top."""
    begin, held = stacks.runs[side, run, BEGIN], stacks.runs[side, run, ENTRIES]
    end = begin + held + new
    words, places = line(stacks.words, side, begin, end), line(stacks.places, side, begin, end)
    if is_narrow(stacks):
        merge_words(words, places, held, upper.words, new, upper.carried, counters)
    else:
        older = SortedRun(words, places, held)
        merge(older, SortedRun(upper.words, upper.places, new), counters)
    stacks.runs[side, run, ENTRIES] = held + new


@kernel
def store(
    stacks: Stacks,
    side: int,
    upper: Upper,
    new: int,
    oldest: int,
    ratio: int,
    spread: float,
    counters: np.ndarray,
) -> None:
    """Store *new* entries, the first of which arrived at position *oldest*.

    They are merged downwards while the run below has at most *ratio* times their number, and with
    all runs when there are more than *spread* times as many entries as have not expired.
    """
    total = new
    for run in range(stacks.state[side, HELD]):
        total += stacks.runs[side, run, ENTRIES]
    overfull = total > spread * (oldest + new - stacks.state[side, HORIZON])
    entries, is_stored = new, False
    while stacks.state[side, HELD] > is_stored:
        below = stacks.state[side, HELD] - 1 - is_stored
        if not overfull and stacks.runs[side, below, ENTRIES] > ratio * entries:
            break
        if is_stored:
            _lift(stacks, side, upper)
            counters[MOVES] += entries
        _drop_expired(stacks, side, below, counters)
        _merge_into(stacks, side, below, upper, entries, counters)
        entries, is_stored = stacks.runs[side, below, ENTRIES], True
    if not is_stored:
        _lay(stacks, side, upper, new, oldest)
        counters[MOVES] += new
    finish_run(stacks, side, stacks.state[side, HELD] - 1)
