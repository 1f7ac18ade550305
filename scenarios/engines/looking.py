"""A query as engines with integers and hash joins evaluate it best: buckets as long as the window.

Stored tuples are put into buckets by position or time; each probing tuple looks into the two that
its window touches. That makes a window an equality, beside which the exact bounds are tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from joins.batch import Schema
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery


@dataclass(frozen=True, kw_only=True)
class Looking:
    """What tuples of one stream see of the stored ones.

    They see a key from ``at - at mod slide + below`` to ``at + above``, both seen.

    Attributes
    ----------
    probing, stored
        Places of the streams in the query.
    at
        A probing tuple's own number: its ``ts``, its ``id``, or how many stored tuples precede it.
    ties_precede
        Whether a stored tuple of the same time precedes.
    key
        The stored tuple's: ``ts``, or ``id``, its position.
    slide, below, above
        The bounds.
    length
        Of a bucket.
    earlier
        Whether a stored tuple must have the smaller id as well: times alone do not tell.
    conditions
        The predicates.
    """

    probing: int
    stored: int
    at: Literal["ts", "id", "preceding"]
    ties_precede: bool
    key: Literal["ts", "id"]
    slide: int
    below: int
    above: int
    length: int
    earlier: bool
    conditions: tuple[Condition, ...]


def lookings(query: JoinQuery, schemas: Sequence[Schema]) -> list[Looking]:
    """Return what each probing stream of *query*, of one stream or two, sees."""
    if query.interval:
        return [_within_interval(query, schemas)]
    return [_through_window(query, schemas, probing) for probing in range(len(query.streams))]


def _within_interval(query: JoinQuery, schemas: Sequence[Schema]) -> Looking:
    reach = query.reach
    return Looking(
        probing=reach.base,
        stored=query.stored_stream(reach.base),
        at="ts",
        ties_precede=True,
        key="ts",
        slide=1,
        below=reach.lower_ns,
        above=reach.upper_ns,
        length=max(1, reach.upper_ns - reach.lower_ns),
        earlier=False,
        conditions=query.conditions(reach.base, schemas),
    )


def _through_window(query: JoinQuery, schemas: Sequence[Schema], probing: int) -> Looking:
    stored = query.stored_stream(probing)
    window, alone, ties_precede = query.windows[stored], probing == stored, stored < probing
    precise, by_count = window.semantics == "precise", window.kind == "count"
    before = -1 if by_count or precise or stored > probing else 0
    return Looking(
        probing=probing,
        stored=stored,
        at="ts" if not by_count else "id" if alone else "preceding",
        ties_precede=ties_precede,
        key="id" if by_count else "ts",
        slide=1 if precise else window.slide,
        below=-window.length if precise else window.slide - window.length,
        above=before,
        length=window.length,
        earlier=alone and not by_count,
        conditions=query.conditions(probing, schemas),
    )
