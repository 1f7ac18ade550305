"""Matches inverted: from what each probe found to which probes found each match."""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import kernel
from joins.matches import ProbeResult


def invert(
    probe_id: np.ndarray, result: ProbeResult, *, enumerate: bool
) -> tuple[np.ndarray, ProbeResult]:
    """Return which tuples were matches, and for each of them the probes that found it.

    One pass over the matches into a place for each tuple, with no sorting: what probes see lies
    within a window, so that places are no more than its tuples.

    Parameters
    ----------
    probe_id
        int64, the probing tuples.
    result
        What they found, a row for each of them, with the matches listed.
    enumerate
        List the probes too.

    Returns
    -------
    match_id
        int64, the tuples that were found, ascending.
    inverted
        A row for each of them; its "matches" are ids of *probe_id*, in their order. The work is
        that of *result*.
    """
    assert result.match_id is not None  # they were listed
    match_id = result.match_id
    begin = int(match_id.min()) if len(match_id) else 0
    places = int(match_id.max()) + 1 - begin if len(match_id) else 0
    count, sums = np.zeros(places, np.int64), np.zeros(places, np.uint64)
    _count(probe_id, result.count, match_id, begin, count, sums)
    seen = np.flatnonzero(count)
    listed = None
    if enumerate:
        listed = np.empty(len(match_id), np.int64)
        _list(probe_id, result.count, match_id, begin, np.cumsum(count) - count, listed)
    inverted = ProbeResult(
        count=count[seen], fingerprint=sums[seen], match_id=listed, work=result.work
    )
    return seen + begin, inverted


@kernel
def _count(
    probe_id: np.ndarray,
    matches: np.ndarray,
    match_id: np.ndarray,
    begin: int,
    count: np.ndarray,
    sums: np.ndarray,
) -> None:
    at = 0
    for i in range(len(matches)):
        mixed = splitmix64(probe_id[i])
        for _ in range(matches[i]):
            place = match_id[at] - begin
            count[place] += 1
            sums[place] += mixed
            at += 1


@kernel
def _list(
    probe_id: np.ndarray,
    matches: np.ndarray,
    match_id: np.ndarray,
    begin: int,
    room: np.ndarray,
    listed: np.ndarray,
) -> None:
    """Put every probe into the next *room* of each tuple that it found."""
    at = 0
    for i in range(len(matches)):
        for _ in range(matches[i]):
            place = match_id[at] - begin
            listed[room[place]] = probe_id[i]
            room[place] += 1
            at += 1
