"""What the data of a query are like: rates, skew, duplicates, disorder, and sampled selectivity.

`with_hot_key` makes them more skewed than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from joins.oracle.match import clear_unsatisfied
from joins.queries.conditions import Field
from joins.queries.interval import TIME_FIELD
from joins.queries.query import JoinQuery
from scenarios.formatting import format_many, format_value
from scenarios.tables import IN_MEMORY, ROW, TableStream, as_table
from spark_bridge.prepared import PreparedStream

_SAMPLE = 1_000
"""Tuples of each side that are compared for the selectivity: a million pairs."""
_SEED = 1
_HOT_SHARE = 0.5
_ROW_NUMBERS_NS = 1_000
"""Tuples that are no further apart than this have row numbers for event times, not a clock's."""


@dataclass(frozen=True, kw_only=True)
class StreamStatistics:
    """What one stream is like."""

    name: str
    tuples: int
    """Its name, and how many tuples it has."""
    rate_tps: float | None
    """Tuples per second of event time; None where its times are not those of a clock."""
    key: str | None
    """The field that an equality of the query compares; None where there is none."""
    keys: int | None
    top_share: float | None
    """Distinct values of the key, and the share of tuples that have the most frequent one."""
    duplicates: float
    """Share of the tuples that are equal to an earlier one in time and all join fields."""
    disorder: float | None
    """Share of the tuples that came behind one of a later event time; None where the order in which
    they came is not known."""

    def __str__(self) -> str:
        rate = "" if self.rate_tps is None else f", {format_value(self.rate_tps)} a second"
        words = [f"{self.name}: {format_many(self.tuples, 'tuple')}{rate}"]
        if self.keys is not None and self.top_share is not None:
            values = f"{format_many(self.keys, 'value')} of {self.key}"
            words.append(f"{values}, the commonest {self.top_share:.1%}")
        words.append(f"{self.duplicates:.1%} equal to an earlier tuple in time and join fields")
        if self.disorder is not None:
            words.append(f"{self.disorder:.1%} out of time order")
        return ", ".join(words)


@dataclass(frozen=True, kw_only=True)
class DataStatistics:
    """What the streams are like, and the share of their pairs that satisfies the predicates.

    *selectivity* is None of a join of more than two streams.
    """

    streams: tuple[StreamStatistics, ...]
    selectivity: float | None

    @property
    def rate_tps(self) -> int | None:
        """Tuples per second of all streams together; None where a stream has no rate."""
        rates = [one.rate_tps for one in self.streams]
        known = [rate for rate in rates if rate is not None]
        return max(1, round(sum(known))) if len(known) == len(rates) else None

    def __str__(self) -> str:
        pairs = "" if self.selectivity is None else f"; {self.selectivity:.3%} of pairs match"
        return "; ".join(map(str, self.streams)) + pairs


def data_statistics(
    query: JoinQuery, streams: Sequence[PreparedStream], rows: int | None
) -> DataStatistics:
    """Return what the first *rows* tuples of each stream of *query* are like."""
    tables = [as_table(stream, stream.name).slice(0, rows or stream.rows) for stream in streams]
    return DataStatistics(
        streams=tuple(
            _statistics(stream.name, table, query.fields(place), key_of(query, place))
            for place, (stream, table) in enumerate(zip(streams, tables, strict=True))
        ),
        selectivity=_selectivity(query, tables),
    )


def key_of(query: JoinQuery, stream: int) -> str | None:
    """Return the first field of a stream that the query compares with ``=``; None without."""
    for predicate in query.predicates:
        if predicate.operator.is_equality:
            for side in predicate.fields:
                if side.stream == stream:
                    return side.name
    return None


def _statistics(
    name: str, table: pa.Table, fields: Sequence[str], key: str | None
) -> StreamStatistics:
    ts = table[TIME_FIELD].to_numpy()
    tuples = len(ts)
    span_ns = int(ts[-1] - ts[0]) if tuples else 0
    counts = np.unique(table[key].to_numpy(), return_counts=True)[1] if key else None
    columns = list(dict.fromkeys([TIME_FIELD, *fields]))
    distinct = table.select(columns).group_by(columns, use_threads=False).aggregate([])
    disorder = None
    if ROW in table.column_names and ROW not in fields:  # else a join field is in its place
        came = np.argsort(table[ROW].to_numpy(), kind="stable")
        times = ts[came]
        disorder = float((times < np.maximum.accumulate(times)).mean())
    return StreamStatistics(
        name=name,
        tuples=tuples,
        rate_tps=tuples / span_ns * 1e9 if span_ns > tuples * _ROW_NUMBERS_NS else None,
        key=key,
        keys=None if counts is None else len(counts),
        top_share=None if counts is None else float(counts.max() / tuples),
        duplicates=1 - len(distinct) / tuples,
        disorder=disorder,
    )


def _selectivity(query: JoinQuery, tables: Sequence[pa.Table]) -> float | None:
    if len(tables) > 2:
        return None
    rng = np.random.default_rng(_SEED)
    newer, older = (
        table.take(rng.integers(0, len(table), _SAMPLE)) for table in (tables[0], tables[-1])
    )
    return match_share(query, newer, older)


def match_share(query: JoinQuery, newer: pa.Table, older: pa.Table) -> float:
    """Return the share of all pairs of *newer* and *older* tuples that satisfy the predicates.

    The *newer* are of the first stream, the *older* of the second, or both of the only one.
    """

    def value(field: Field) -> np.ndarray:
        is_newer = field.role == 1 if query.is_self_join else field.stream == 0
        values: np.ndarray = (newer if is_newer else older)[field.name].to_numpy()
        return values[:, None] if is_newer else values

    matched = np.ones((len(newer), len(older)), bool)
    clear_unsatisfied(matched, query.predicates, value)
    return float(matched.mean()) if matched.size else 0.0


def with_hot_key(query: JoinQuery, stream: PreparedStream, place: int) -> PreparedStream:
    """Return *stream* with one value of its key in half of its tuples; as it is without a key."""
    key = key_of(query, place)
    if key is None:
        return stream
    table = as_table(stream, stream.name)
    values = table[key].to_numpy().copy()
    hot = np.random.default_rng(_SEED).random(len(values)) < _HOT_SHARE
    values[hot] = 0  # in all streams one and the same
    table = table.set_column(table.schema.get_field_index(key), key, pa.array(values))
    if isinstance(stream, TableStream):
        return replace(stream, table=table)
    table = table.drop_columns("id")  # tuples are numbered as they are read
    known = vars(stream) | {"path": IN_MEMORY}
    return TableStream(**known, table=table, source=table, order=np.arange(len(values)))
