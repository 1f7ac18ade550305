"""Sorted scans for wide windows and narrow predicates, where most pairs need no look.

A tuple can only satisfy ``=`` or a band with stored tuples whose value lies near its own. Those are
found in the sorted column, generously, and every one is then evaluated as the query is written: how
near exactly, is left to the evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from joins.batch import Batch
from joins.hashing import mix
from joins.matches import Matches
from joins.queries.query import JoinQuery

_CANDIDATES_AT_ONCE = 1 << 21
_GENEROUS = 1e-9
"""Share of the values by which a range is widened: more than any rounding moves its ends."""
_WORTH_IT = 16
"""Of how many pairs of the window one may be a candidate, at the most."""


def match_near(
    query: JoinQuery,
    probing: int,
    probes: Batch,
    stored: Batch,
    bounds: tuple[np.ndarray, np.ndarray],
    holds: Callable[[np.ndarray, np.ndarray], np.ndarray],
    enumerate_ids: bool,
) -> Iterator[Matches] | None:
    """Return the matches of *probes* in rows *bounds* of *stored*, or None if it does not pay.

    *holds* tells for pairs of rows, of *probes* and of *stored*, whether all predicates hold.
    """
    near = [p for p in query.predicates if p.operator == "=" or p.epsilon is not None]
    first, last = bounds
    if not near or not len(probes) or not len(stored):
        return None
    predicate = near[0]
    fields = {}
    for field in (predicate.left, predicate.right):
        is_probe = field.role == 1 if query.is_self_join else field.stream == probing
        fields[is_probe] = field.name
    values = stored.fields[fields[False]].astype(np.float64)
    order = np.argsort(values, kind="stable")
    probed = probes.fields[fields[True]].astype(np.float64)
    finite = np.isfinite(probed)
    middle = np.where(finite, probed, 0.0)
    epsilon = 0.0 if predicate.epsilon is None else float(predicate.epsilon)
    reach = epsilon + _GENEROUS * (np.abs(middle) + epsilon)
    begin = np.searchsorted(values[order], np.where(finite, middle - reach, -np.inf), "left")
    end = np.searchsorted(values[order], np.where(finite, middle + reach, np.inf), "right")
    if _WORTH_IT * int((end - begin).sum()) > int((last - first).sum()):
        return None
    return _check(probing, probes, stored, bounds, (order, begin, end), holds, enumerate_ids)


def _check(
    probing: int,
    probes: Batch,
    stored: Batch,
    bounds: tuple[np.ndarray, np.ndarray],
    candidates: tuple[np.ndarray, np.ndarray, np.ndarray],
    holds: Callable[[np.ndarray, np.ndarray], np.ndarray],
    enumerate_ids: bool,
) -> Iterator[Matches]:
    """Check the candidates *begin* to *end* of each probe in the *order* of their values."""
    order, begin, end = candidates
    first, last = bounds
    hashes = mix(stored.id)
    ends = np.cumsum(end - begin)
    parts = 1 + int(ends[-1]) // _CANDIDATES_AT_ONCE
    for rows in np.array_split(np.arange(len(probes)), parts):
        sizes = (end - begin)[rows]
        place = np.repeat(np.arange(len(rows)), sizes)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        match = order[begin[rows][place] + offset]
        probe = rows[place]
        seen = (match >= first[probe]) & (match < last[probe])
        place, match = place[seen], match[seen]
        found = holds(rows[place], match)
        place, match = place[found], match[found]
        fingerprint = np.zeros(len(rows), np.uint64)
        np.add.at(fingerprint, place, hashes[match])
        yield Matches(
            stream=probing,
            probe_id=probes.id[rows],
            count=np.bincount(place, minlength=len(rows)).astype(np.int64),
            fingerprint=fingerprint,
            match_id=stored.id[match[np.lexsort((match, place))]] if enumerate_ids else None,
        )
