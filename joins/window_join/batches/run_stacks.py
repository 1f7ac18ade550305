"""Where sorted runs lie: one above the other, a row of entries for each side of a join.

The oldest run is at the bottom. Each begins at a chunk of `CHUNK` entries and has a chunk or more
of the greatest word behind it. The first key of every chunk is sampled: a search goes through the
samples, which stay in the cache, and then through one chunk.

An entry is one word, its key above its place: one comparison orders it, and one read shows all
there is to know of it. Once a key is too great for that, words are keys, and places lie beside.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import inlined, kernel, part_of
from joins.machine.lanes import LANES
from joins.machine.memory import aligned

CHUNK = LANES
CHUNK_SHIFT = 4

BEGIN, ENTRIES, OLDEST = 0, 1, 2
"""Columns of `Stacks.runs`: where a run begins, its entries, and its least position."""
HELD, BASE, HORIZON = 0, 1, 2
"""Columns of `Stacks.state`: how many runs a side has, the position that places are counted from,
and the position below which all have expired."""
RUNS_MAX = 64

PLACES_MOST = 2**31 - 1
"""Places are less than this, and those that stand behind a run are not."""
KEYS_MOST = 2**31 - 1
"""Keys that share a word with their place lie between this and its negative, both excluded: they
stand for all beyond."""

HALF = 32
PLACE = (1 << HALF) - 1
_GREATEST = 2**63 - 1


class Stacks(NamedTuple):
    """The runs of all sides, a row per side.

    Attributes
    ----------
    words
        int64, entries in key order within a run.
    places
        int32, the places of entries whose words are keys; else no columns.
    samples
        int32, the first key of every chunk; int64 when words are keys.
    runs
        int64, shape (sides, `RUNS_MAX`, 3), oldest first, see `BEGIN`.
    state
        int64, see `HELD`.
    """

    words: np.ndarray
    places: np.ndarray
    samples: np.ndarray
    runs: np.ndarray
    state: np.ndarray


def make_stacks(sides: int, room: int, *, narrow: bool) -> Stacks:
    """Return empty stacks with room for *room* entries, and two more chunks per run, each."""
    chunks = room // CHUNK + 2 * RUNS_MAX + 1
    return Stacks(
        aligned((sides, chunks * CHUNK)),
        aligned((sides, 0 if narrow else chunks * CHUNK), "int32"),
        aligned((sides, chunks), "int32" if narrow else "int64"),
        np.zeros((sides, RUNS_MAX, 3), np.int64),
        np.zeros((sides, 3), np.int64),
    )


def grown(stacks: Stacks, room: int, *, narrow: bool) -> Stacks:
    """Return the same runs with more room; *narrow* words may become keys, not the reverse."""
    more = make_stacks(len(stacks.words), room, narrow=narrow)
    more.runs[:], more.state[:] = stacks.runs, stacks.state
    held = stacks.words.shape[1]
    if narrow == is_narrow(stacks):
        more.words[:, :held] = stacks.words
        more.places[:, :held] = stacks.places
    else:
        more.words[:, :held] = stacks.words >> HALF
        more.places[:, :held] = stacks.words & PLACE
    finish_runs(more)
    return more


def move_base(stacks: Stacks, side: int) -> None:
    """Count the places of a side from the position before the horizon on, where nothing sees them.

    All that has expired is put there.
    """
    base = stacks.state[side, HORIZON] - 1
    shift = base - stacks.state[side, BASE]
    stacks.state[side, BASE] = base
    if is_narrow(stacks):
        words = stacks.words[side]
        words[:] = words & ~PLACE | np.maximum((words & PLACE) - shift, 0)
    else:
        places = stacks.places[side]
        places[:] = np.maximum(places.astype(np.int64) - shift, 0)
    finish_runs(stacks)


@inlined
def is_narrow(stacks: Stacks) -> bool:
    """Return whether words hold places too."""
    return stacks.places.shape[1] == 0


@inlined
def stored_key(stacks: Stacks, key: int) -> int:
    """Return *key*, or instead of one beyond all keys that can be stored the next beyond them."""
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
def line(columns: np.ndarray, side: int, begin: int, end: int) -> np.ndarray:
    """Return part of a side's row as the one row of a matrix; of no columns, none."""
    part = columns[side, begin:end]
    return part.reshape((1, len(part)))


@inlined
def _run_end(stacks: Stacks, side: int, run: int) -> int:
    """Return where the chunks of a run end, those behind its last entry included."""
    end = stacks.runs[side, run, BEGIN] + stacks.runs[side, run, ENTRIES]
    return ((end + CHUNK - 1) & ~(CHUNK - 1)) + CHUNK


@kernel
def stack_top(stacks: Stacks, side: int) -> int:
    """Return where the next run would begin."""
    held = stacks.state[side, HELD]
    return _run_end(stacks, side, held - 1) if held else 0


@kernel
def finish_run(stacks: Stacks, side: int, run: int) -> None:
    """Fill up a run's last chunks and sample it."""
    begin, entries = stacks.runs[side, run, BEGIN], stacks.runs[side, run, ENTRIES]
    for i in range(begin + entries, _run_end(stacks, side, run)):
        stacks.words[side, i] = _GREATEST
        if not is_narrow(stacks):
            stacks.places[side, i] = PLACES_MOST
    for chunk in range(begin >> CHUNK_SHIFT, (begin + entries + CHUNK - 1) >> CHUNK_SHIFT):
        word = stacks.words[side, chunk << CHUNK_SHIFT]
        stacks.samples[side, chunk] = word >> HALF if is_narrow(stacks) else word


@kernel
def finish_runs(stacks: Stacks) -> None:
    """Fill up and sample all runs of all sides."""
    for side in range(len(stacks.state)):
        for run in range(stacks.state[side, HELD]):
            finish_run(stacks, side, run)
