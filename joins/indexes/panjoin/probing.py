"""Probes of several subwindows: their values as codes, and what they find in all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.indexes.columns import window_columns
from joins.indexes.panjoin.answering import (
    Output,
    Probes,
    listing,
    new_counters,
    new_output,
    work_of,
)
from joins.indexes.panjoin.codes import encode_range
from joins.indexes.panjoin.subwindow import Subwindow
from joins.indexes.panjoin.threads import in_threads
from joins.matches import ProbeResult


def encode_probes(
    dtypes: Sequence[str],
    low: Sequence[np.ndarray],
    high: Sequence[np.ndarray],
    *,
    negated: Sequence[bool],
    start: np.ndarray | None = None,
    stop: np.ndarray | None = None,
) -> Probes:
    """Return probes as the structures take them.

    They are answered fastest in ascending order of the first predicate's ends, and rightly in any.

    Parameters
    ----------
    dtypes
        Per predicate the dtype of its ends.
    low, high
        Per predicate the least and greatest value that satisfy it, a row per probe, both inclusive.
    negated
        Per predicate whether values *outside* the range satisfy it.
    start, stop
        int64, probe i sees stored positions start[i] to stop[i] - 1; None sees all.
    """
    ends = [
        encode_range(*ends, f"predicate {i}")
        for i, ends in enumerate(zip(low, high, dtypes, strict=True))
    ]
    count = len(ends[0][0])
    start, stop = window_columns(start, stop, count)
    others = np.empty((2, len(ends) - 1, count), np.int64)
    for i, (least, most) in enumerate(ends[1:]):
        others[0, i], others[1, i] = least, most
    flags = np.array(list(negated), np.bool_)
    return Probes(*ends[0], bool(flags[0]), start, stop, others[0], others[1], flags[1:])


def probe_subwindows(
    subwindows: Sequence[Subwindow], probes: Probes, *, enumerate: bool = False, threads: int = 1
) -> ProbeResult:
    """Find for every probe the matches in any of *subwindows*.

    A thread takes its share of the probes through all of them: threads wake up once, not once per
    subwindow.
    """
    held = [subwindow for subwindow in subwindows if len(subwindow)]

    def add_matches(output: Output) -> np.ndarray:
        def answer(begin: int, end: int) -> np.ndarray:
            counters = new_counters()
            for subwindow in held:
                counters += subwindow.answer(probes, begin, end, output)
            return counters

        return in_threads(answer, len(probes.low), threads)

    output = new_output(len(probes.low))
    counters = add_matches(output)
    match_id = None
    if enumerate:
        listed = listing(output)
        match_id = listed.match_id
        if len(match_id):  # a list of no length would count them again
            add_matches(listed)
    return ProbeResult(
        count=output.matches,
        fingerprint=output.fingerprint,
        match_id=match_id,
        work=work_of(counters),
    )
