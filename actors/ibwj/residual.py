"""Predicates that the index knows nothing of: what it finds is checked against them."""

from __future__ import annotations

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.state import Stateful
from joins.work import Work

_PAIR_BYTES = 16
"""What is copied to compare two values: they are gathered from all over both streams."""


class Residual(Stateful):
    """Keeps the fields of the windows that the other predicates compare, and checks matches.

    Parameters
    ----------
    query, schemas
        The join.
    indexed
        The predicate that needs no check; None checks all.
    """

    state = ("_first", "_columns")

    def __init__(self, query: JoinQuery, schemas: tuple[Schema, ...], indexed: int | None) -> None:
        streams = range(len(query.streams))
        self._stored_stream = [query.stored_stream(stream) for stream in streams]
        self._conditions = [
            [one for place, one in enumerate(query.conditions(stream, schemas)) if place != indexed]
            for stream in streams
        ]
        self._first = [0] * len(streams)
        self._columns = [
            [np.empty(0, one.dtype) for one in self._conditions[self._stored_stream[stream]]]
            for stream in streams
        ]

    def __bool__(self) -> bool:
        return bool(self._conditions[0])

    def store(self, arrivals: Arrivals) -> None:
        """Store the fields of the next arrivals."""
        for stream, part in enumerate(arrivals.parts):
            conditions = self._conditions[self._stored_stream[stream]]
            self._columns[stream] = [
                np.concatenate([kept, part.fields[one.stored_field].astype(one.dtype, copy=False)])
                for kept, one in zip(self._columns[stream], conditions, strict=True)
            ]

    def check(self, probing: Batch, found: Matches) -> tuple[Matches, Work]:
        """Return the matches of *found* that hold of all predicates; it has their ids."""
        match_id = found.match_id
        assert match_id is not None
        row = np.repeat(np.arange(len(found)), found.count)
        stored = self._stored_stream[found.stream]
        holds = np.ones(len(row), bool)
        conditions = self._conditions[found.stream]
        for one, kept in zip(conditions, self._columns[stored], strict=True):
            probe = probing.fields[one.probe_field][row]
            holds &= one.holds(probe, kept[match_id - self._first[stored]])
        count = np.bincount(row[holds], minlength=len(found)).astype(np.int64)
        fingerprint = np.zeros(len(found), np.uint64)
        np.add.at(fingerprint, row[holds], mix(match_id[holds]))
        checked = Matches(
            stream=found.stream,
            probe_id=found.probe_id,
            count=count,
            fingerprint=fingerprint,
            match_id=match_id[holds],
        )
        compared = len(row) * len(conditions)
        return checked, Work(comparisons=compared, bytes_copied=compared * _PAIR_BYTES)

    def expire(self, horizon: tuple[int, ...]) -> None:
        """Let positions below the *horizon* of each stream go."""
        for stream, least in enumerate(horizon):
            gone = max(0, least - self._first[stream])
            self._first[stream] += gone
            # Copies, for a view would keep the expired part in memory.
            self._columns[stream] = [stored[gone:].copy() for stored in self._columns[stream]]
