"""A query in Flink SQL, its windows stated as bounds on event time.

Flink lets go of state in a stream-stream join only where it joins within an interval of event
time, to the millisecond. So each side gets a clock of its own: the time of a tuple in milliseconds,
or for windows by count its position, a millisecond each. The interval of clocks is as wide as the
window can be; the exact bounds are conditions beside it.

Buckets as long as the window, which make an equality of it (`looking`), take a fifth more processor
time here, and half as much again where the window is short: Flink joins tuple by tuple anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from actors.feed import StreamFile
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.queries.conditions import Condition
from scenarios.engines.looking import Looking
from scenarios.engines.streams import column

_NS_PER_MS = 1_000_000
_TYPES = {"int64": "BIGINT", "float64": "DOUBLE"}


@dataclass(frozen=True)
class Side:
    """A stream as one side of a join.

    Attributes
    ----------
    name
        What the table is called.
    schema
        The stream's fields.
    path
        Its file.
    """

    name: str
    schema: Schema
    path: Path

    def create(self) -> str:
        """Return the statement that makes the table known."""
        fields = [
            f"{column(self.schema, field)} {_TYPES[dtype]}"
            for field, dtype in self.schema.fields.items()
        ]
        columns = ["id BIGINT", "ts BIGINT", "at BIGINT", "mixed BIGINT", "clock BIGINT", *fields]
        return (
            f"CREATE TABLE {self.name} ({', '.join(_quoted(columns))}, "
            "tick AS TO_TIMESTAMP_LTZ(`clock`, 3), "
            "WATERMARK FOR tick AS tick - INTERVAL '1' SECOND) "
            f"WITH ({_files(self.path)})"
        )


def write_side(batch: Batch, at: np.ndarray, *, by_time: bool, path: Path) -> None:
    """Write a stream in its order, *at* being each tuple's number to the join.

    Flink reads one file in order; of several it says nothing when it drops what is late.
    """
    clock = at // _NS_PER_MS if by_time else at
    columns = {"id": batch.id, "ts": batch.ts, "at": at, "mixed": mix(batch.id).view(np.int64)}
    columns |= {"clock": clock, **batch.fields}
    table = pa.table({name: _text(np.asarray(values)) for name, values in columns.items()})
    csv.write_csv(table, path, csv.WriteOptions(include_header=False, quoting_style="none"))


def read(file: StreamFile) -> Batch:
    """Return a whole stream."""
    return Batch.concat([Batch.empty(file.schema), *file.batches()])


def numbers(looking: Looking, streams: Sequence[Batch]) -> tuple[np.ndarray, np.ndarray]:
    """Return for *looking* each probing tuple's own number, and each stored one's."""
    probing, stored = streams[looking.probing], streams[looking.stored]
    if looking.at == "preceding":
        at = stored.ts.searchsorted(probing.ts, "right" if looking.ties_precede else "left")
    else:
        at = getattr(probing, looking.at)
    return at, getattr(stored, looking.key)


def joined(looking: Looking, probing: Side, stored: Side) -> str:
    """Return ``FROM ... WHERE ...`` of the pairs of *looking*: probing ``p``, stored ``m``."""
    slid = f"MOD(MOD(p.`at`, {looking.slide}) + {looking.slide}, {looking.slide})"
    low, high = looking.below - looking.slide + 1, looking.above
    if looking.key == "ts":  # milliseconds are rounded down on both sides
        low, high = low // _NS_PER_MS - 1, -(-high // _NS_PER_MS) + 1
    conditions = [
        *(_states(condition, probing.schema, stored.schema) for condition in looking.conditions),
        f"m.tick BETWEEN p.tick {_interval(low)} AND p.tick {_interval(high)}",
        f"m.`at` BETWEEN p.`at` - {slid} + ({looking.below}) AND p.`at` + ({looking.above})",
        *(["m.id < p.id"] if looking.earlier else []),
    ]
    return f"FROM {probing.name} p, {stored.name} m WHERE {' AND '.join(conditions)}"


def written(joins: Sequence[str], folder: Path) -> tuple[str, str]:
    """Return what makes a table of pairs in *folder*, and what fills it."""
    pairs = " UNION ALL ".join(f"SELECT p.id, m.id {one}" for one in joins)
    create = f"CREATE TABLE found (probe_id BIGINT, match_id BIGINT) WITH ({_files(folder)})"
    return create, f"INSERT INTO found {pairs}"


def counted(joins: Sequence[str]) -> str:
    """Return what counts all pairs, a row for a day of the clock that has any.

    Beside the count stands their checksum, added up as machines do: sums wrap. Without days each
    change of the count would be a row to pass on to Python, which took most of the time.
    """
    pairs = " UNION ALL ".join(
        f"SELECT p.tick AS tick, p.mixed * m.mixed AS mixed {one}" for one in joins
    )
    return f"SELECT COUNT(*), SUM(mixed) FROM ({pairs}) GROUP BY TUMBLE(tick, INTERVAL '1' DAY)"


def _states(condition: Condition, probe: Schema, stored: Schema) -> str:
    p = f"p.`{column(probe, condition.probe_field)}`"
    m = f"m.`{column(stored, condition.stored_field)}`"
    whole = condition.dtype == "int64"
    if not whole:
        p, m = f"CAST({p} AS DOUBLE)", f"CAST({m} AS DOUBLE)"
    holds = condition.operator.sql(m, p, whole=whole, wide="DECIMAL(20, 0)")
    # Keys are compared bit by bit, by which NaN equals itself.
    return f"{holds} AND {m} <= {p}" if condition.operator.is_equality and not whole else holds


def _interval(ms: int) -> str:
    """Return ``+ INTERVAL ...`` or ``- INTERVAL ...``."""
    seconds, rest = divmod(abs(ms), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    span = f"{days} {hours:02}:{minutes:02}:{seconds:02}.{rest:03}"
    return f"{'-' if ms < 0 else '+'} INTERVAL '{span}' DAY TO SECOND(3)"


def _quoted(columns: Sequence[str]) -> list[str]:
    """Quote names: some are words of SQL."""
    return [f"`{name}` {kind}" for name, _, kind in (one.partition(" ") for one in columns)]


def _files(path: Path) -> str:
    where = path.resolve().as_uri().replace("'", "''")
    return f"'connector' = 'filesystem', 'path' = '{where}', 'format' = 'csv'"


def _text(values: np.ndarray) -> pa.Array:
    """Return a column as Java reads it, without zeros below zero: keys are compared bit by bit."""
    if values.dtype != np.float64:
        return pa.array(values)
    text = pc.cast(pa.array(values + 0.0), pa.string())
    for ours, java in (("nan", "NaN"), ("inf", "Infinity")):
        text = pc.replace_substring(text, ours, java)
    return text
