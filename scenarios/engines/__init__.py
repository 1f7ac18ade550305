"""Real engines on one query: the interface of one, and the streams that all of them read.

An engine says whether it can evaluate a query, runs it, and returns what was measured. The streams
of a comparison are written once, so that every engine reads the same files. Engines that are no
part of joinsim, in SQL or Polars' expressions, state the joins that `spark_bridge.sql.statement`
makes of a query.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from actors.feed import StreamData, StreamFile
from joins.batch import Batch
from scenarios.plan import Plan
from scenarios.tables import write_segments
from spark_bridge.engines import EngineResult, Totals
from spark_bridge.sql.statement import table_columns

STEP_ROWS = 500_000
"""Tuples that an engine inside Spark takes at a time, and that a file of a stream has: a step takes
some tenths of a second, whatever it contains, and its tuples are in memory at once."""


class Engine(ABC):
    """One engine."""

    name: str
    """As on the command line."""
    package: ClassVar[str]
    """The Python package that it comes with."""
    install: ClassVar[str]
    """How to get it where it is missing."""

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


def read_columns(file: StreamData) -> dict[str, np.ndarray]:
    """Return a whole stream by columns, as statements name them."""
    tuples = read_whole(file)
    own = {"id": tuples.id, "ts": tuples.ts, **tuples.fields}
    return {name: own[field] for name, field in table_columns(file.schema).items()}


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
