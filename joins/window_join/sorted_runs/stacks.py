"""Stacks of sorted runs: one run above the other, a stack for each side of a join.

The oldest run is at the bottom. A new batch becomes the run on top, and neighbours are merged by
their sizes; merging two sets the upper one aside and fills the room from its end, so that no second
stack is needed. Each run begins at a chunk of `CHUNK` entries and has a chunk or more of the
greatest word behind it. The first key of every chunk is sampled: a search goes through the samples,
which stay in the cache, and then through one chunk.

An entry is one word, its key above its place: one comparison orders it, and one read is enough to
match it. Once a key is too great for that, words are keys, and places are beside them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.indexes.sorted_array import SortedRun, merge
from joins.machine.compiling import inlined, kernel, part_of
from joins.machine.lanes import LANES, choose_lanes, load_lanes, merge_lanes, store_lanes
from joins.machine.memory import aligned
from joins.state import storable
from joins.work import COMPARISONS, MOVES

CHUNK = LANES
CHUNK_SHIFT = CHUNK.bit_length() - 1
RUNS_MAX = 64

PLACES_MOST = 2**31 - 1
"""Places are less than this, and those behind a run are not."""
KEYS_MOST = 2**31 - 1
"""Keys that share a word with their place are between this and its negative, both excluded: they
represent all beyond."""

SPREAD = 1.25
"""Entries per one that has not expired, at which all runs are merged: every entry read is a line of
memory, and windows of 2^20 tuples are about what the cache has room for."""

HALF = 32
PLACE = (1 << HALF) - 1


@storable
class Stacks(NamedTuple):
    """The runs of all sides, a row per side."""

    words: np.ndarray
    """int64, entries in key order within a run."""
    places: np.ndarray
    """int32, the places of entries whose words are keys; else no columns."""
    samples: np.ndarray
    """int32, the first key of every chunk; int64 when words are keys."""
    begin: np.ndarray
    entries: np.ndarray
    oldest: np.ndarray
    """int64, shape (sides, `RUNS_MAX`), the oldest run first: where it begins, how many entries it
    has, and its least position."""
    runs: np.ndarray
    """int64, runs of each side."""
    base: np.ndarray
    """int64, the position that a side's places are counted from."""
    horizon: np.ndarray
    """int64, the position below which all of a side have expired."""


class UpperRun(NamedTuple):
    """The upper one of two runs while they are merged."""

    words: np.ndarray
    places: np.ndarray
    """A row each, as in `Stacks`."""
    carried: np.ndarray
    """int64, shape (1, `LANES`): working memory for `merge_words`."""


def make_stacks(sides: int, room: int, *, narrow: bool) -> Stacks:
    """Return empty stacks with room for *room* entries, and two more chunks per run, each."""
    chunks = room // CHUNK + 2 * RUNS_MAX + 1
    return Stacks(
        aligned((sides, chunks * CHUNK)),
        aligned((sides, 0 if narrow else chunks * CHUNK), "int32"),
        aligned((sides, chunks), "int32" if narrow else "int64"),
        *np.zeros((3, sides, RUNS_MAX), np.int64),
        *np.zeros((3, sides), np.int64),
    )


def with_room(stacks: Stacks, room: int, *, narrow: bool) -> Stacks:
    """Return the same runs with more room; *narrow* words may become keys, not the reverse."""
    more = make_stacks(len(stacks.words), room, narrow=narrow)
    for name in ("begin", "entries", "oldest", "runs", "base", "horizon"):
        getattr(more, name)[:] = getattr(stacks, name)
    used = stacks.words.shape[1]
    if narrow == is_narrow(stacks):
        more.words[:, :used] = stacks.words
        more.places[:, :used] = stacks.places
    else:
        more.words[:, :used] = stacks.words >> HALF
        more.places[:, :used] = stacks.words & PLACE
    _finish_runs(more)
    return more


def move_base(stacks: Stacks, side: int) -> None:
    """Count the places of a side from the position before the horizon on, which no probe sees.

    Everything that has expired gets that place.
    """
    base = stacks.horizon[side] - 1
    shift = base - stacks.base[side]
    stacks.base[side] = base
    if is_narrow(stacks):
        words = stacks.words[side]
        words[:] = words & ~PLACE | np.maximum((words & PLACE) - shift, 0)
    else:
        places = stacks.places[side]
        places[:] = np.maximum(places.astype(np.int64) - shift, 0)
    _finish_runs(stacks)


@inlined
def is_narrow(stacks: Stacks) -> bool:
    """Return whether words contain places too."""
    return bool(stacks.places.shape[1] == 0)


@inlined
def stored_key(stacks: Stacks, key: int) -> int:
    """Return *key*, or for one beyond all keys that can be stored the next beyond them."""
    return min(max(key, -KEYS_MOST), KEYS_MOST) if is_narrow(stacks) else key


@inlined
def least_word(stacks: Stacks, key: int) -> int:
    """Return the least word that an entry of a key can have."""
    return key << HALF if is_narrow(stacks) else key


@inlined
def greatest_word(stacks: Stacks, key: int) -> int:
    """Return the greatest word that an entry of a key can have."""
    return key << HALF | PLACE if is_narrow(stacks) else key


@inlined
def place_at(stacks: Stacks, side: int, i: int) -> int:
    """Return the place of an entry."""
    if is_narrow(stacks):
        return int(stacks.words[side, i] & PLACE)
    return int(stacks.places[side, i])


@part_of
def part_of_row(columns: np.ndarray, side: int, begin: int, end: int) -> np.ndarray:
    """Return part of a side's row as the one row of a matrix; of no columns, none."""
    part = columns[side, begin:end]
    return part.reshape((1, len(part)))


@inlined
def run_end(stacks: Stacks, side: int, run: int) -> int:
    """Return where the entries of a run end."""
    return int(stacks.begin[side, run] + stacks.entries[side, run])


@inlined
def _chunks_end(stacks: Stacks, side: int, run: int) -> int:
    """Return where the chunks of a run end, those behind its last entry included."""
    return ((run_end(stacks, side, run) + CHUNK - 1) & ~(CHUNK - 1)) + CHUNK


@kernel
def stack_top(stacks: Stacks, side: int) -> int:
    """Return where the next run would begin."""
    runs = stacks.runs[side]
    return _chunks_end(stacks, side, runs - 1) if runs else 0


@kernel
def _finish_run(stacks: Stacks, side: int, run: int) -> None:
    """Fill up a run's last chunks and sample it."""
    begin, end = stacks.begin[side, run], run_end(stacks, side, run)
    for i in range(end, _chunks_end(stacks, side, run)):
        stacks.words[side, i] = GREATEST
        if not is_narrow(stacks):
            stacks.places[side, i] = PLACES_MOST
    for chunk in range(begin >> CHUNK_SHIFT, (end + CHUNK - 1) >> CHUNK_SHIFT):
        word = stacks.words[side, chunk << CHUNK_SHIFT]
        stacks.samples[side, chunk] = word >> HALF if is_narrow(stacks) else word


@kernel
def _finish_runs(stacks: Stacks) -> None:
    """Fill up and sample all runs of all sides."""
    for side in range(len(stacks.runs)):
        for run in range(stacks.runs[side]):
            _finish_run(stacks, side, run)


# Storing a run.


@kernel
def store_run(
    stacks: Stacks,
    side: int,
    upper: UpperRun,
    new: int,
    oldest: int,
    ratio: int,
    counters: np.ndarray,
) -> None:
    """Store *new* entries, the first of which arrived at position *oldest*.

    They are merged downwards while the run below has at most *ratio* times their number, and with
    all runs when there are more than `SPREAD` times as many entries as have not expired.
    """
    total = new
    for run in range(stacks.runs[side]):
        total += stacks.entries[side, run]
    overfull = total > SPREAD * (oldest + new - stacks.horizon[side])
    entries, is_stored = new, False
    while stacks.runs[side] > is_stored:
        below = stacks.runs[side] - 1 - is_stored
        if not overfull and stacks.entries[side, below] > ratio * entries:
            break
        if is_stored:
            _pop(stacks, side, upper)
            counters[MOVES] += entries
        _drop_expired(stacks, side, below, counters)
        _merge_into(stacks, side, below, upper, entries, counters)
        entries, is_stored = stacks.entries[side, below], True
    if not is_stored:
        _push(stacks, side, upper, new, oldest)
        counters[MOVES] += new
    _finish_run(stacks, side, stacks.runs[side] - 1)


@kernel
def _copy(source: np.ndarray, begin: int, target: np.ndarray, to: int, count: int) -> None:
    for i in range(count):
        target[to + i] = source[begin + i]


@kernel
def _push(stacks: Stacks, side: int, upper: UpperRun, new: int, oldest: int) -> None:
    """Put *new* entries on top of a stack, as a run."""
    begin, run = stack_top(stacks, side), stacks.runs[side]
    _copy(upper.words[0], 0, stacks.words[side], begin, new)
    if not is_narrow(stacks):
        _copy(upper.places[0], 0, stacks.places[side], begin, new)
    stacks.begin[side, run] = begin
    stacks.entries[side, run] = new
    stacks.oldest[side, run] = oldest
    stacks.runs[side] = run + 1


@kernel
def _pop(stacks: Stacks, side: int, upper: UpperRun) -> None:
    """Take the run on top off its stack."""
    run = stacks.runs[side] - 1
    begin, entries = stacks.begin[side, run], stacks.entries[side, run]
    _copy(stacks.words[side], begin, upper.words[0], 0, entries)
    if not is_narrow(stacks):
        _copy(stacks.places[side], begin, upper.places[0], 0, entries)
    stacks.runs[side] = run


@kernel
def _drop_expired(stacks: Stacks, side: int, run: int, counters: np.ndarray) -> None:
    """Close up a run over its entries below the horizon."""
    begin, entries = stacks.begin[side, run], stacks.entries[side, run]
    horizon = stacks.horizon[side]
    if stacks.oldest[side, run] >= horizon:
        return
    first = horizon - stacks.base[side]
    to = begin
    for i in range(begin, begin + entries):
        # Written in any case, and overwritten by the next when it has expired: no branch.
        place = place_at(stacks, side, i)
        stacks.words[side, to] = stacks.words[side, i]
        if not is_narrow(stacks):
            stacks.places[side, to] = place
        to += place >= first
    stacks.entries[side, run] = to - begin
    stacks.oldest[side, run] = horizon
    counters[MOVES] += entries


@kernel
def _merge_into(
    stacks: Stacks, side: int, run: int, upper: UpperRun, new: int, counters: np.ndarray
) -> None:
    """Merge *new* entries into the run on top."""
    begin, entries = stacks.begin[side, run], stacks.entries[side, run]
    end = begin + entries + new
    words = part_of_row(stacks.words, side, begin, end)
    places = part_of_row(stacks.places, side, begin, end)
    older, newer = SortedRun(words, places, entries), SortedRun(upper.words, upper.places, new)
    if is_narrow(stacks):
        merge_words(older, newer, upper.carried, counters)
    else:
        merge(older, newer, counters)
    stacks.entries[side, run] = entries + new


@kernel
def merge_words(
    older: SortedRun, newer: SortedRun, carried: np.ndarray, counters: np.ndarray
) -> None:
    """Merge the words of *newer* into those of *older*, in place from the greatest down.

    Of the two, the one with the greater last word yields its last `LANES` words: what is carried
    and these contain the `LANES` greatest of all that is left, which go to the end, and the others
    are carried on. Each step waits only for the one before it in the network, not for a branch
    mispredicted, so that it costs a third of what `merge` does where the two are about as long.
    What is left when one of them has less than a vector is for `merge`.

    Parameters
    ----------
    older, newer
        int64 keys and no places; *older* has room for both.
    carried
        Working memory, int64, shape (1, `LANES`).
    counters
        A word moved by the network is counted as a move and a comparison.
    """
    words, new_words, places = older.keys, newer.keys, older.places
    i, j = older.size, newer.size
    if i >= LANES and j >= LANES:
        j -= LANES
        lanes = load_lanes(new_words, 0, j)
        while i >= LANES and j >= LANES:
            is_older = words[0, i - 1] > new_words[0, j - 1]
            following = choose_lanes(
                is_older, load_lanes(words, 0, i - LANES), load_lanes(new_words, 0, j - LANES)
            )
            lanes, greatest = merge_lanes(lanes, following)
            # What is left of the older words ends at i, and what is carried makes room above it.
            store_lanes(greatest, words, 0, i + j)
            i -= LANES * is_older
            j -= LANES * (not is_older)
        store_lanes(lanes, carried, 0, 0)
        moved = older.size + newer.size - (i + j + LANES)
        counters[MOVES] += moved
        counters[COMPARISONS] += moved
        merge(SortedRun(words, places, i), SortedRun(carried, places, LANES), counters)
        i += LANES
    merge(SortedRun(words, places, i), SortedRun(new_words, places, j), counters)
