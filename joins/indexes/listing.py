"""How a probe's matches are counted, fingerprinted and listed, in memory that is bounded.

How many matches there are is known only when they are found. Ids go into buffers of a fixed size,
one after the other; a probe is begun only where all the tuples it can see would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from joins.found import Found
from joins.hashing import splitmix64
from joins.indexes.immutable.segment_probes import Output, new_output
from joins.machine.compiling import kernel
from joins.work import COUNTERS, NO_WORK, Work

_IDS_MAX = 1 << 25  # Ids per buffer: 256 MiB of address space, paged in by use.

Answer = Callable[[int, int, Output, np.ndarray], tuple[int, int]]
"""Answers probes from a row on, listing ids from a place of the buffer on, as long as they are sure
to fit; counts its work in the array. Returns the row and the place that it came to."""


def find_all(answer: Answer, most: np.ndarray, *, enumerate: bool) -> Found:
    """Answer all probes; *most* is how many matches each has at the most."""
    m = len(most)
    counters = np.zeros(len(COUNTERS), np.int64)
    size = min(int(most.sum()), max(_IDS_MAX, int(most.max(initial=0)))) if enumerate else 0
    output = new_output(m)._replace(match_id=np.empty(size, np.int64))
    buffers: list[np.ndarray] = []
    row = listed = 0
    while row < m:
        if enumerate and listed + most[row] > size:
            buffers.append(output.match_id[:listed])
            output = output._replace(match_id=np.empty(size, np.int64))
            listed = 0
        row, listed = answer(row, listed, output, counters)
    buffers.append(output.match_id[:listed])
    match_id = buffers[0] if len(buffers) == 1 else np.concatenate(buffers)
    return Found(
        count=output.matches,
        fingerprint=output.fingerprint,
        match_id=match_id if enumerate else None,
        work=Work.from_counters(counters) + Work(matches=int(output.matches.sum())),
    )


def add_up(parts: Sequence[Found]) -> Found:
    """Return what the same probes found in several structures, at least one, taken together."""
    count = np.sum([part.count for part in parts], axis=0)
    listed = [part.match_id for part in parts if part.match_id is not None]
    match_id = None
    if listed:
        rows = np.tile(np.arange(len(count)), len(parts))
        counts = np.concatenate([part.count for part in parts])
        match_id = by_row(np.concatenate(listed), rows, counts, count)
    return Found(
        count=count,
        fingerprint=np.add.reduce([part.fingerprint for part in parts]),
        match_id=match_id,
        work=sum((part.work for part in parts), NO_WORK),
    )


def by_row(
    match_id: np.ndarray, rows: np.ndarray, counts: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Bring listed ids into the order of rows.

    *match_id* holds counts[0] ids of row rows[0], then counts[1] of row rows[1] and so on; *count*
    is how many each row has in all.
    """
    ordered = np.empty_like(match_id)
    _place_rows(match_id, rows, counts, np.cumsum(count) - count, ordered)
    return ordered


@kernel
def report(position: int, probe: int, listed: int, output: Output) -> int:
    """Add a match to *output*; return the place of the next id."""
    output.matches[probe] += 1
    output.fingerprint[probe] += splitmix64(position)
    if len(output.match_id) > 0:
        output.match_id[listed] = position
        listed += 1
    return listed


@kernel
def fits(most: int, listed: int, output: Output) -> bool:
    """Tell whether so many more ids are sure to fit, or need not be listed."""
    size = len(output.match_id)
    return size == 0 or listed + most <= size


@kernel
def _place_rows(
    match_id: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    cursor: np.ndarray,
    ordered: np.ndarray,
) -> None:
    taken = 0
    for i in range(len(rows)):
        to = cursor[rows[i]]
        for k in range(counts[i]):
            ordered[to + k] = match_id[taken + k]
        cursor[rows[i]] += counts[i]
        taken += counts[i]
