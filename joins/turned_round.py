"""Matches turned round: from what probes found to what found each match."""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import kernel
from joins.matches import ProbeResult


def turn_round(
    probe_id: np.ndarray, found: ProbeResult, *, enumerate: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return which tuples were found, and by whom.

    One pass over the matches into a place for each tuple, with no sorting: what probes see lies
    within a window, so that places are no more than its tuples.

    Parameters
    ----------
    probe_id
        int64, the probing tuples.
    found
        What they found, a row for each of them, listed.
    enumerate
        List who found them.

    Returns
    -------
    tuple
        The ids found, int64 in ascending order; by how many (int64), the wrapping sum of
        ``splitmix64`` of their ids (uint64), and these ids (int64) of the first row, then of the
        second, ..., in the order of the probes; None when only counted.
    """
    match_id = found.match_id
    assert match_id is not None  # they were listed
    begin = int(match_id.min()) if len(match_id) else 0
    places = int(match_id.max()) + 1 - begin if len(match_id) else 0
    count, sums = np.zeros(places, np.int64), np.zeros(places, np.uint64)
    _count(probe_id, found.count, match_id, begin, count, sums)
    seen = np.flatnonzero(count)
    listed = None
    if enumerate:
        listed = np.empty(len(match_id), np.int64)
        _list(probe_id, found.count, match_id, begin, np.cumsum(count) - count, listed)
    return seen + begin, count[seen], sums[seen], listed


@kernel
def _count(
    probe_id: np.ndarray,
    found: np.ndarray,
    match_id: np.ndarray,
    begin: int,
    count: np.ndarray,
    sums: np.ndarray,
) -> None:
    at = 0
    for i in range(len(found)):
        mixed = splitmix64(probe_id[i])
        for _ in range(found[i]):
            place = match_id[at] - begin
            count[place] += 1
            sums[place] += mixed
            at += 1


@kernel
def _list(
    probe_id: np.ndarray,
    found: np.ndarray,
    match_id: np.ndarray,
    begin: int,
    room: np.ndarray,
    listed: np.ndarray,
) -> None:
    """Put every probe into the next *room* of each tuple that it found."""
    at = 0
    for i in range(len(found)):
        for _ in range(found[i]):
            place = match_id[at] - begin
            listed[room[place]] = probe_id[i]
            room[place] += 1
            at += 1
