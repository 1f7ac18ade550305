"""What every structure of a subwindow does with the tuples it finds, as kernels.

A structure knows a tuple by its place in the subwindow (its position less the subwindow's first)
and by the code of the field it is indexed by. Once that field's range holds, the tuple must still
lie in the probe's window and satisfy the further predicates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import inlined, kernel
from joins.work import COMPARISONS, COUNTERS, MATCHES, Work


class Probes(NamedTuple):
    """Probes in the order of their values, as codes; m probes, r further predicates.

    Attributes
    ----------
    low, high
        int64, ranges of the indexed field, both ends inclusive.
    negated
        Whether what lies outside the range is wanted.
    start, stop
        int64, stream positions that each probe sees, *stop* exclusive.
    filter_low, filter_high
        int64, shape (r, m): ranges of the further predicates' fields.
    filter_negated
        bool, shape (r,).
    """

    low: np.ndarray
    high: np.ndarray
    negated: bool
    start: np.ndarray
    stop: np.ndarray
    filter_low: np.ndarray
    filter_high: np.ndarray
    filter_negated: np.ndarray


class Stored(NamedTuple):
    """What a subwindow holds beside its structure.

    Attributes
    ----------
    first
        Stream position of its first tuple.
    size
        Tuples it holds.
    columns
        int64, shape (r, capacity): codes of the further predicates' fields, by place.
    """

    first: int
    size: int
    columns: np.ndarray


class Output(NamedTuple):
    """Where matches go.

    Attributes
    ----------
    matches, fingerprint
        Added to per probe, unless matches are listed.
    at
        int64, where in the list each probe's next match goes.
    match_id
        int64, the list; of no length when matches are counted.
    """

    matches: np.ndarray
    fingerprint: np.ndarray
    at: np.ndarray
    match_id: np.ndarray


def new_output(probes: int) -> Output:
    """Return an output that counts."""
    nothing = np.empty(0, np.int64)
    return Output(np.zeros(probes, np.int64), np.zeros(probes, np.uint64), nothing, nothing)


def listing(output: Output) -> Output:
    """Return an output that lists, row by row, the matches that *output* has counted."""
    ends = np.cumsum(output.matches)
    total = int(ends[-1]) if len(ends) else 0
    return output._replace(at=ends - output.matches, match_id=np.empty(total, np.int64))


def new_counters() -> np.ndarray:
    """Return counters for a kernel, all zero."""
    return np.zeros(len(COUNTERS), np.int64)


def work_of(counters: np.ndarray) -> Work:
    """Return what a kernel counted."""
    return Work.from_counters(counters)


@inlined
def is_whole(probes: Probes, stored: Stored, row: int) -> bool:
    """Return whether every tuple of the subwindow that a range finds is a match."""
    return (
        probes.start[row] <= stored.first
        and stored.first + stored.size <= probes.stop[row]
        and len(probes.filter_negated) == 0
    )


@inlined
def sees_nothing(probes: Probes, stored: Stored, row: int) -> bool:
    """Return whether the subwindow lies outside the probe's window."""
    return probes.stop[row] <= stored.first or probes.start[row] >= stored.first + stored.size


@inlined
def _accepts(probes: Probes, stored: Stored, row: int, place: int, counters: np.ndarray) -> bool:
    """Return whether the tuple at *place* is in the window and satisfies the other predicates."""
    position = stored.first + place
    if position < probes.start[row] or position >= probes.stop[row]:
        return False
    for other in range(len(probes.filter_negated)):
        value = stored.columns[other, place]
        inside = probes.filter_low[other, row] <= value <= probes.filter_high[other, row]
        counters[COMPARISONS] += 1
        if inside == probes.filter_negated[other]:
            return False
    return True


@inlined
def _report(
    position: int, row: int, output: Output, count: int, total: np.uint64
) -> tuple[int, np.uint64]:
    if len(output.match_id) == 0:
        return count + 1, total + splitmix64(position)
    output.match_id[output.at[row]] = position
    output.at[row] += 1
    return count + 1, total


@inlined
def _settle(row: int, output: Output, count: int, total: np.uint64, counters: np.ndarray) -> None:
    counters[MATCHES] += count
    if len(output.match_id) == 0:
        output.matches[row] += count
        output.fingerprint[row] += total


@kernel
def take_all(
    places: np.ndarray,
    line: int,
    begin: int,
    end: int,
    probes: Probes,
    stored: Stored,
    row: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Report ``places[line, begin:end]``, whose indexed field is known to fit, for probe *row*."""
    count, total = 0, np.uint64(0)
    whole = is_whole(probes, stored, row)
    for i in range(np.uint64(begin), np.uint64(end)):
        place = np.int64(places[line, i])
        if whole or _accepts(probes, stored, row, place, counters):
            count, total = _report(stored.first + place, row, output, count, total)
    _settle(row, output, count, total, counters)


@kernel
def take_fitting(
    keys: np.ndarray,
    places: np.ndarray,
    line: int,
    size: int,
    wanted: bool,
    probes: Probes,
    stored: Stored,
    row: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Report those of ``places[line, :size]`` whose key is in the range (or not, if not *wanted*).

    The keys are in no order.
    """
    count, total = 0, np.uint64(0)
    low, high = probes.low[row], probes.high[row]
    whole = is_whole(probes, stored, row)
    for i in range(np.uint64(size)):
        key = keys[line, i]
        if ((low <= key) & (key <= high)) == wanted:
            place = np.int64(places[line, i])
            if whole or _accepts(probes, stored, row, place, counters):
                count, total = _report(stored.first + place, row, output, count, total)
    counters[COMPARISONS] += size
    _settle(row, output, count, total, counters)
