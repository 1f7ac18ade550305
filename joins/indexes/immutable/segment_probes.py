"""What the kernels of all sealed segments share: probes as ranges of places, and where matches go.

Once the keys have been searched, a predicate's range of values is a range of places in that
predicate's order; what tells the structures apart is how they intersect such ranges.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from joins.machine.compiling import kernel
from joins.matches import ProbeResult
from joins.work import Work

_LISTED_MAX = 1 << 25  # Ids per chunk of an enumeration: 256 MiB of address space, paged in by use.


class Probes(NamedTuple):
    """The probes of one call; m probes, p predicates.

    Attributes
    ----------
    begin, end
        int64, shape (p, m): ranges of places in each predicate's order.
    negated
        bool, a predicate each: the range is what must not match.
    start, stop
        int64, positions from start[i] to stop[i] - 1 are in probe i's window.
    """

    begin: np.ndarray
    end: np.ndarray
    negated: np.ndarray
    start: np.ndarray
    stop: np.ndarray


class Output(NamedTuple):
    """Where the matches go: per probe, and in a list of ids (of no length when only counted)."""

    matches: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray


def new_output(probes: int) -> Output:
    """Return the output of as many *probes* that have found nothing yet."""
    return Output(np.zeros(probes, np.int64), np.zeros(probes, np.uint64), np.empty(0, np.int64))


@kernel
def window_in(first: int, tuples: int, start: int, stop: int) -> tuple[int, int]:
    """Return which of the tuples, counted from 0, are at positions *start* to *stop* - 1."""
    last = first + tuples
    # Clamped before subtracting: an unbounded window is the smallest and the largest int64.
    return min(max(start, first), last) - first, min(max(stop, first), last) - first


@kernel
def satisfying(begin: int, end: int, negated: bool, part: int, tuples: int) -> tuple[int, int]:
    """Return the places that satisfy a predicate, as the two stretches number 0 and 1.

    They are the range itself and an empty one, or what lies before and after a negated range.
    """
    if not negated:
        return (begin, end) if part == 0 else (end, end)
    return (0, begin) if part == 0 else (end, tuples)


def answer_in_chunks(
    probes: Probes,
    tuples: int,
    enumerate: bool,
    counters: np.ndarray,
    probe_rows: Callable[[int, int, Output], tuple[int, int]],
) -> ProbeResult:
    """Run a kernel that can only tell afterwards how much it lists, in chunks of bounded memory.

    ``probe_rows(row, listed_max, output)`` answers probes from *row* on while as many ids as the
    shortest of their ranges holds are sure to fit, and returns the row it came to and the ids
    listed.
    """
    output = new_output(len(probes.start))
    size = 0
    if enumerate:
        lengths = np.where(probes.negated[:, None], tuples, probes.end - probes.begin).min(axis=0)
        size = min(int(lengths.sum()), max(_LISTED_MAX, tuples))
    chunks: list[np.ndarray] = []
    row = 0
    while row < len(probes.start):
        output = output._replace(match_id=np.empty(size, np.int64))
        row, listed = probe_rows(row, size, output)
        chunks.append(output.match_id[:listed])
    match_id = None
    if enumerate:
        match_id = chunks[0] if len(chunks) == 1 else np.concatenate([output.match_id[:0], *chunks])
    return ProbeResult(
        count=output.matches,
        fingerprint=output.fingerprint,
        match_id=match_id,
        work=Work.from_counters(counters),
    )
