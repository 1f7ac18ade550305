"""The join attributes of a one-way join, and stored tuples hashed by them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.batch import Batch, Schema
from joins.indexes.index import Index, ranges_for
from joins.indexes.windows.window_indexes import WINDOW_INDEXES
from joins.matches import ProbeResult
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery
from joins.semijoins.joined import Joined
from joins.semijoins.operand import Operand
from joins.work import Work

_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, kw_only=True)
class JoinAttributes:
    """Where a one-way join compares the streams joined so far with the next one.

    Attributes
    ----------
    probe
        Join attributes of the streams so far, each once: position of the stream, and field. A
        partial tuple of theirs holds these.
    stored
        Join attributes of the next stream, each once. A partial tuple of it holds these.
    conditions
        The predicates, as combinations so far see the next stream.
    places
        Per predicate the places of its two sides in *probe* and *stored*.
    """

    probe: tuple[tuple[int, str], ...]
    stored: tuple[str, ...]
    conditions: tuple[Condition, ...]
    places: tuple[tuple[int, int], ...]

    @classmethod
    def between(
        cls, query: JoinQuery, known: Sequence[int], stored: int, schemas: Sequence[Schema]
    ) -> JoinAttributes:
        """Return the attributes that compare the streams *known* with stream *stored*.

        Raise :exc:`joins.queries.query.QueryError` naming a field that a stream does not have.
        """
        return cls._of(
            ((stream, condition.probe_field), condition.stored_field, condition)
            for stream in known
            for condition in query.conditions_between(stream, stored, schemas)
        )

    @classmethod
    def of_operands(
        cls, query: JoinQuery, known: Operand, stored: Operand, schemas: Sequence[Schema]
    ) -> JoinAttributes:
        """Return the attributes that compare two operands of a tree; *schemas* are the streams'."""
        return cls._of(
            ((known.number, known.field(a, c.probe_field)), stored.field(b, c.stored_field), c)
            for a in known.streams
            for b in stored.streams
            for c in query.conditions_between(a, b, schemas)
        )

    @classmethod
    def _of(cls, sides: Iterable[tuple[tuple[int, str], str, Condition]]) -> JoinAttributes:
        """Return the attributes of conditions, each with what it compares."""
        found = list(sides)
        probe = list(dict.fromkeys(near for near, _, _ in found))
        fields = list(dict.fromkeys(far for _, far, _ in found))
        return cls(
            probe=tuple(probe),
            stored=tuple(fields),
            conditions=tuple(condition for _, _, condition in found),
            places=tuple((probe.index(near), fields.index(far)) for near, far, _ in found),
        )

    @property
    def equalities(self) -> tuple[int, ...]:
        """Places of the predicates that are equalities."""
        return tuple(i for i, c in enumerate(self.conditions) if c.operator.is_equality)

    def of_joined(self, rows: Joined) -> tuple[np.ndarray, ...]:
        """Project combinations on their join attributes."""
        return tuple(rows.column(stream, field) for stream, field in self.probe)

    def of_stored(self, batch: Batch) -> tuple[np.ndarray, ...]:
        """Project tuples of the next stream on their join attributes."""
        return tuple(batch.fields[field] for field in self.stored)


class AttributeIndex:
    """Join attributes of the next stream by position, hashed where a predicate is an equality."""

    def __init__(self, attributes: JoinAttributes) -> None:
        self._attributes = attributes
        self._index = self._new()

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert partial tuples, a column per stored attribute; int64 positions ascend."""
        if not len(positions):
            return Work()
        return self._index.insert(
            [
                columns[stored].astype(condition.dtype, copy=False)
                for condition, (_, stored) in self._sides()
            ],
            positions,
        )

    def replace(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Hold these partial tuples and no others."""
        self._index = self._new()
        return self.insert(columns, positions)

    def probe(
        self,
        columns: Sequence[np.ndarray],
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
    ) -> ProbeResult:
        """Find for each row of partial tuples, a column per probe attribute, its matches.

        Row i sees positions start[i] to stop[i] - 1; without these all.
        """
        rows = len(columns[0])
        ranges = ranges_for(
            self._attributes.conditions,
            [columns[probe] for _, (probe, _) in self._sides()],
            np.full(rows, _INT64.min) if start is None else start,
            np.full(rows, _INT64.max) if stop is None else stop,
        )
        return self._index.probe(ranges, enumerate=True)

    def expire(self, before: int) -> Work:
        """Let go of positions less than *before*."""
        return self._index.expire(before)

    def snapshot(self) -> Any:
        """Return the index as it is kept."""
        return self._index

    def restore(self, index: Any) -> None:
        """Take over what `snapshot` returned."""
        self._index = index

    def _new(self) -> Index:
        kind = "hash" if self._attributes.equalities else "nested_loop"
        return WINDOW_INDEXES[kind](self._attributes.conditions)

    def _sides(self) -> zip[tuple[Condition, tuple[int, int]]]:
        return zip(self._attributes.conditions, self._attributes.places, strict=True)
