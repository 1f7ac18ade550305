"""How SQL engines state a query: its windows as bounds and buckets, its predicates as text.

A query of two streams is two joins, in each of which the tuples of one stream probe those of the
other; an interval join is one, as is a join of a stream with itself. `probe_sides` returns them
with everything that an engine needs, so that engines differ only in the grammar of their joins.
To all of them a stream is a table of the columns that `table_columns` names.

*Buckets.* Stored tuples are put into buckets as long as the window, by position or time; each
probing tuple looks into the two that its window touches. That makes the window an equality, which
engines evaluate by hashing and in parallel; the exact bounds are tested beside it.

*Predicates.* They mean what IEEE arithmetic means, also where an engine orders NaN above all other
numbers. Their operators are spelled in `joins.queries.conditions`, for all engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from joins.batch import Schema
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery


@dataclass(frozen=True, kw_only=True)
class ProbeSide:
    """The join of one probing stream with the stream that it probes.

    A probing tuple sees the stored tuples whose *key* lies from ``at - at mod slide + below`` to
    ``at + above``, both ends included.
    """

    probing: int
    stored: int
    """Positions of the two streams in the query."""
    at: Literal["ts", "id", "preceding"]
    """A probing tuple's own number: its ``ts``, its ``id``, or ``preceding``, how many stored
    tuples arrived before it."""
    ties_precede: bool
    """Whether a stored tuple of the same time arrived before it."""
    key: Literal["ts", "id"]
    """A stored tuple's number: ``ts``, or ``id``, its position."""
    slide: int
    below: int
    above: int
    """The bounds, in ns or in tuples."""
    length: int
    """Of a bucket, in the same unit."""
    by_id: bool
    """Whether a stored tuple must have the smaller id as well: equal times do not order them."""
    conditions: tuple[Condition, ...]
    """The predicates, as a probing tuple sees them, between fields as `table_columns` names
    them."""

    @property
    def least(self) -> int:
        """The lowest that *key* minus *at* can be, wherever *at* is in its slide."""
        return self.below - self.slide + 1

    def predicates(self, probe: str, stored: str, *, nan_is_greatest: bool = True) -> list[str]:
        """Return the predicates in SQL, between columns that begin with *probe* and *stored*.

        With *nan_is_greatest* the engine orders NaN above all numbers and equal to itself, as
        DuckDB and Spark do. Without, it compares as Java does, except that keys of a join are equal
        where their bits are, as in Flink.
        """
        return [
            _predicate(one, probe + one.probe_field, stored + one.stored_field, nan_is_greatest)
            for one in self.conditions
        ]


def table_columns(schema: Schema) -> dict[str, str]:
    """Return the columns of a stream in statements, ``id``, ``ts``, ``f0``, ``f1`` and so on.

    Each is mapped to the column of a prepared stream that it is.
    """
    return {"id": "id", "ts": "ts"} | {
        f"f{place}": field for place, field in enumerate(schema.fields)
    }


def probe_sides(query: JoinQuery, schemas: Sequence[Schema]) -> list[ProbeSide]:
    """Return the joins that make up *query*, which is of one stream or two."""
    if query.interval:
        return [_within_interval(query, schemas)]
    return [_through_window(query, schemas, probing) for probing in range(len(query.streams))]


def _within_interval(query: JoinQuery, schemas: Sequence[Schema]) -> ProbeSide:
    interval = query.bound_interval
    return ProbeSide(
        probing=interval.base,
        stored=query.stored_stream(interval.base),
        at="ts",
        ties_precede=True,
        key="ts",
        slide=1,
        below=interval.lower_ns,
        above=interval.upper_ns,
        length=max(1, interval.upper_ns - interval.lower_ns),
        by_id=False,
        conditions=_conditions(query, interval.base, schemas),
    )


def _through_window(query: JoinQuery, schemas: Sequence[Schema], probing: int) -> ProbeSide:
    stored = query.stored_stream(probing)
    window, alone = query.windows[stored], probing == stored
    precise, by_count = window.semantics == "precise", window.kind == "count"
    return ProbeSide(
        probing=probing,
        stored=stored,
        at="ts" if not by_count else "id" if alone else "preceding",
        ties_precede=stored < probing,
        key="id" if by_count else "ts",
        slide=1 if precise else window.slide,
        below=-window.length if precise else window.slide - window.length,
        above=-1 if by_count or precise or stored > probing else 0,
        length=window.length,
        by_id=alone and not by_count,
        conditions=_conditions(query, probing, schemas),
    )


def _conditions(query: JoinQuery, probing: int, schemas: Sequence[Schema]) -> tuple[Condition, ...]:
    probes, stores = (
        {field: column for column, field in table_columns(schemas[stream]).items()}
        for stream in (probing, query.stored_stream(probing))
    )
    return tuple(
        replace(one, probe_field=probes[one.probe_field], stored_field=stores[one.stored_field])
        for one in query.conditions(probing, schemas)
    )


def _predicate(condition: Condition, probe: str, stored: str, nan_is_greatest: bool) -> str:
    whole = condition.dtype == "int64"
    if not whole:
        probe, stored = f"CAST({probe} AS DOUBLE)", f"CAST({stored} AS DOUBLE)"
    holds = condition.operator.sql(stored, probe, whole=whole)
    if whole:
        return holds
    if nan_is_greatest:
        missing = f"(isnan({stored}) OR isnan({probe}))"
        return f"({holds} {'OR' if condition.operator.negated else 'AND NOT'} {missing})"
    return f"({holds} AND {stored} <= {probe})" if condition.operator.is_equality else holds


def sql_name(name: str) -> str:
    """Return *name* as Spark and Flink spell a column of exactly that name."""
    return "`" + name.replace("`", "``") + "`"
