"""The interface of an engine, what a run of it came to, and the streams that all of them read.

An engine says whether it can evaluate a query, runs it, and returns what was measured. The streams
of a comparison are written once, so that every engine reads the same files. Engines that are no
part of joinsim, in SQL or Polars' expressions, state the joins that `spark_bridge.sql.statement`
makes of a query. To all of them a stream is a table of ``id``, ``ts`` in nanoseconds, and its join
fields ``f0``, ``f1`` and so on. (Spark's own statement is `spark_bridge.sql.native`.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from actors.feed import StreamData, StreamFile
from joins.batch import Batch, Schema
from scenarios.plan import Plan
from scenarios.tables import write_segments
from spark_bridge.engines import Totals
from spark_bridge.sql.statement import ProbeSide, predicate_sql

STEP_ROWS = 500_000
"""Tuples that an engine inside Spark takes at a time, and that a file of a stream has: a step takes
some tenths of a second, whatever it contains, and its tuples are in memory at once."""


@dataclass(frozen=True, kw_only=True)
class EngineResult:
    """What one run on an engine came to.

    Attributes
    ----------
    totals
        The pairs that it found.
    start_seconds
        For the engine's own start: its session or its processes, and the compilation of kernels.
    wall_seconds
        From the prepared files to results that are counted, or on disk where pairs are written,
        all in between included, of an engine that works trigger by trigger its first too. The check
        of the results is not included.
    steady_tps
        Of engines that work trigger by trigger, tuples a second after the first trigger.
    latency_ms
        Percentiles, of engines that measure them.
    shuffled_bytes
        Bytes that travelled between operators, as the engine counts them.
    memory_bytes
        Peak resident memory of its processes, added up.
    note
        Remark for the reader.
    """

    totals: Totals
    start_seconds: float
    wall_seconds: float
    steady_tps: float | None = None
    latency_ms: Mapping[str, float | None] | None = None
    shuffled_bytes: int | None = None
    memory_bytes: int | None = None
    note: str | None = None


class Engine(ABC):
    """One engine.

    Attributes
    ----------
    name
        As on the command line.
    package
        The Python package that it comes with.
    install
        How to get it where it is missing.
    """

    name: str
    package: ClassVar[str]
    install: ClassVar[str]

    def version(self) -> str | None:
        """Return its version; None when it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    def cannot(self, plan: Plan) -> str | None:
        """Return why it cannot evaluate *plan*; None when it can."""
        return None

    @abstractmethod
    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Evaluate *plan*; what is written goes into *directory*.

        Raise :exc:`EngineFailed` with the engine's own message.
        """


class PairEngine(Engine):
    """An engine that joins a stream with itself, or two streams."""

    def cannot(self, plan: Plan) -> str | None:
        """Refuse joins of more than two streams."""
        streams = plan.query.streams
        if len(streams) <= 2:
            return None
        return f"joins a stream with itself or two streams; the query has {', '.join(streams)}"


def with_own_streams(plan: Plan, folder: Path) -> Plan:
    """Return *plan* over copies of its streams in *folder*: only the rows and fields it joins."""
    files = tuple(_copy(file, folder / file.schema.stream) for file in plan.files)
    return replace(plan, files=files)


def read_whole(file: StreamData) -> Batch:
    """Return a whole stream."""
    return Batch.concat([Batch.empty(file.schema), *file.batches()])


def column_name(schema: Schema, field: str) -> str:
    """Return what a *field* of a stream is called in all statements."""
    return f"f{list(schema.fields).index(field)}"


def file_columns(schema: Schema) -> dict[str, str]:
    """Return the columns of a prepared stream that are read: name in the file to name here."""
    return {"id": "id", "ts": "ts"} | {field: column_name(schema, field) for field in schema.fields}


def side_predicates(
    side: ProbeSide, schemas: Sequence[Schema], *, nan_is_greatest: bool = True
) -> list[str]:
    """Return the predicates of *side* in SQL, between a table ``p`` that probes and one ``m``."""
    return [
        predicate_sql(
            condition,
            f"p.{column_name(schemas[side.probing], condition.probe_field)}",
            f"m.{column_name(schemas[side.stored], condition.stored_field)}",
            nan_is_greatest=nan_is_greatest,
        )
        for condition in side.conditions
    ]


def quote(text: str) -> str:
    """Return *text* as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def pair_totals(pairs: pa.Table) -> Totals:
    """Return the totals of a table with the columns ``probe_id`` and ``match_id``."""
    return Totals.of_pairs(*(pairs[name].to_numpy() for name in ("probe_id", "match_id")))


def _copy(file: StreamData, folder: Path) -> StreamFile:
    tuples = read_whole(file)
    by_name = {"id": tuples.id, "ts": tuples.ts, **tuples.fields}
    rows = pa.table({name: pa.array(np.asarray(values)) for name, values in by_name.items()})
    return write_segments(file.schema, rows, folder.absolute(), STEP_ROWS)
