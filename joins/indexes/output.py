"""What kernels find that list matches one after the other, in a list that may run out of room."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import inlined


class Output(NamedTuple):
    """What is found: a row per probing tuple, and the matches' positions one after the other.

    Attributes
    ----------
    matches, fingerprint
        int64 and uint64, their number and fingerprint, see `joins.found.Found`.
    match_id
        int64, filled as far as it has room.
    listed
        int64, one number: how many matches were listed, or would have been had there been room.
    """

    matches: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray
    listed: np.ndarray


def new_output(rows: int, room: int) -> Output:
    """Return an output of *rows* probing tuples with room for *room* matches, nothing found yet."""
    return Output(
        np.zeros(rows, np.int64),
        np.zeros(rows, np.uint64),
        np.empty(room, np.int64),
        np.zeros(1, np.int64),
    )


def with_more_room(output: Output) -> Output:
    """Return *output* with room for twice as many matches."""
    longer = np.empty(2 * len(output.match_id), np.int64)
    longer[: len(output.match_id)] = output.match_id
    return output._replace(match_id=longer)


@inlined
def give(output: Output, row: int, position: int) -> None:
    """Report a match."""
    output.matches[row] += 1
    output.fingerprint[row] += splitmix64(position)
    listed = output.listed[0]
    if listed < len(output.match_id):
        output.match_id[listed] = position
    output.listed[0] = listed + 1


@inlined
def has_found_room(output: Output, row: int, listed: int) -> bool:
    """Tell whether all matches of *row* are in the list, which held *listed* before it.

    If not, nothing is left of them: the row is to be probed again when there is more room.
    """
    if output.listed[0] <= len(output.match_id):
        return True
    output.listed[0] = listed
    output.matches[row] = 0
    output.fingerprint[row] = 0
    return False
