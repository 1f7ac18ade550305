"""Probing a prefix grid (see `joins.indexes.immutable.prefix_grid`), as kernels."""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.immutable.prefix_grid_build import Grid
from joins.indexes.immutable.prefix_grid_cut import count_rectangle, list_rectangle
from joins.indexes.immutable.segment_probes import Output, Probes, satisfying, window_in
from joins.machine.compiling import kernel
from joins.work import COMPARISONS, MATCHES


@kernel
def _side(
    probes: Probes, axis: int, probe: int, part: int, window: tuple[int, int], tuples: int
) -> tuple[int, int]:
    """Return part 0 or 1 of what a probe asks for on one axis."""
    if axis == len(probes.begin):
        # One predicate alone: positions are the other axis.
        return satisfying(window[0], window[1], False, part, tuples)
    begin, end = probes.begin[axis, probe], probes.end[axis, probe]
    return satisfying(begin, end, probes.negated[axis], part, tuples)


@kernel
def _count(
    grid: Grid,
    probes: Probes,
    probe: int,
    window: tuple[int, int],
    first: int,
    counters: np.ndarray,
) -> tuple[int, np.uint64]:
    """Count the points that both axes allow."""
    n = len(grid.to_lead)
    count = 0
    total = np.uint64(0)
    for i in range(2):
        x = _side(probes, 0, probe, i, window, n)
        for j in range(2):
            y = _side(probes, 1, probe, j, window, n)
            if x[0] < x[1] and y[0] < y[1]:
                more, hashes = count_rectangle(grid, x, y, first, counters)
                count, total = count + more, total + hashes
    return count, total


@kernel
def _list(
    grid: Grid,
    probes: Probes,
    probe: int,
    window: tuple[int, int],
    first: int,
    out: np.ndarray,
    listed: int,
    counters: np.ndarray,
) -> int:
    """List the points that both axes allow; return how many are listed then."""
    n = len(grid.to_lead)
    for i in range(2):
        x = _side(probes, 0, probe, i, window, n)
        for j in range(2):
            y = _side(probes, 1, probe, j, window, n)
            if x[0] < x[1] and y[0] < y[1]:
                listed = list_rectangle(grid, x, y, first, out, listed, counters)
    return listed


@kernel
def _test_candidates(
    grid: Grid,
    probes: Probes,
    probe: int,
    window: tuple[int, int],
    first: int,
    candidates: np.ndarray,
    counters: np.ndarray,
) -> int:
    """List the ids that satisfy everything, by testing the fewest candidates; return how many."""
    source = -1
    count = _count(grid, probes, probe, window, first, counters)[0]
    for predicate in range(2, len(probes.begin)):
        length = probes.end[predicate, probe] - probes.begin[predicate, probe]
        if length < count and not probes.negated[predicate]:
            source, count = predicate, length
    if source < 0:
        count = _list(grid, probes, probe, window, 0, candidates, 0, counters)
    else:
        begin = np.uint64(probes.begin[source, probe])
        for i in range(np.uint64(count)):
            candidates[i] = grid.id[source, begin + i]
    for predicate in range(len(grid.place)):
        if predicate == source or (source < 0 and predicate < 2):
            continue
        begin, end = probes.begin[predicate, probe], probes.end[predicate, probe]
        counters[COMPARISONS] += count
        kept = 0
        for i in range(np.uint64(count)):
            place = grid.place[predicate, np.uint64(candidates[i])]
            candidates[np.uint64(kept)] = candidates[i]
            kept += int(((begin <= place) & (place < end)) ^ probes.negated[predicate])
        count = kept
    counters[COMPARISONS] += count
    kept = 0
    for i in range(np.uint64(count)):
        entry = candidates[i]
        candidates[np.uint64(kept)] = entry
        kept += int((window[0] <= entry) & (entry < window[1]))
    return kept


@kernel
def _axes_suffice(probes: Probes, window: tuple[int, int], tuples: int) -> bool:
    """Return whether a probe asks for nothing that is not one of the two axes."""
    predicates = len(probes.begin)
    return predicates == 1 or (predicates == 2 and window[1] - window[0] == tuples)


@kernel
def count_rows(
    grid: Grid,
    first: int,
    probes: Probes,
    candidates: np.ndarray,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Fill in the count and the fingerprint of every probe; they are zero before."""
    n = len(grid.to_lead)
    for probe in range(len(probes.start)):
        window = window_in(first, n, probes.start[probe], probes.stop[probe])
        if window[0] >= window[1]:
            continue
        if _axes_suffice(probes, window, n):
            count, total = _count(grid, probes, probe, window, first, counters)
        else:
            count = _test_candidates(grid, probes, probe, window, first, candidates, counters)
            total = np.uint64(0)
            for i in range(np.uint64(count)):
                total += splitmix64(first + candidates[i])
        output.matches[probe] = count
        output.fingerprint[probe] = total
        counters[MATCHES] += count


@kernel
def list_rows(
    grid: Grid,
    first: int,
    probes: Probes,
    candidates: np.ndarray,
    output: Output,
    counters: np.ndarray,
) -> None:
    """List the matches of every probe; the list is as long as all their counts."""
    n = len(grid.to_lead)
    listed = 0
    for probe in range(len(probes.start)):
        if output.matches[probe] == 0:
            continue
        window = window_in(first, n, probes.start[probe], probes.stop[probe])
        if _axes_suffice(probes, window, n):
            listed = _list(grid, probes, probe, window, first, output.match_id, listed, counters)
        else:
            count = _test_candidates(grid, probes, probe, window, first, candidates, counters)
            for i in range(np.uint64(count)):
                output.match_id[np.uint64(listed) + i] = first + candidates[i]
            listed += count
