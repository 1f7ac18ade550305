"""What an engine is to a comparison: whether it can evaluate a query, and what its run came to."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamFile
from joins.batch import Schema
from joins.queries.query import JoinQuery
from scenarios.engines import streams
from scenarios.engines.processes import alone
from scenarios.plan import Plan
from spark_bridge.sql.statement import ProbeSide, probe_sides
from spark_bridge.totals import Totals


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run on an engine came to.

    Attributes
    ----------
    totals
        The pairs that it found.
    wall_seconds
        From the start of the query, reading the streams included, to its end; starting the engine
        itself is not included.
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
    def run(self, plan: Plan, directory: Path) -> Measured:
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


class EmbeddedEngine(PairEngine):
    """A Python library, which evaluates a query in a process of its own, on all cores."""

    install = "pip install 'joinsim[engines]'"

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Count the matches of each tuple, or write all pairs where the plan asks for them."""
        out = directory / "found.parquet" if plan.config.pairs else None
        measured, peak_bytes = alone(type(self).join, plan.query, plan.files, out)
        return replace(measured, memory_bytes=peak_bytes)

    @classmethod
    def join(
        cls, query: JoinQuery, files: Sequence[StreamFile], out: Path | None = None
    ) -> Measured:
        """Evaluate *query* over *files*; with *out* write all pairs there instead of counting."""
        import_module(cls.package)
        start = time.perf_counter()
        schemas = [file.schema for file in files]
        tables = [streams.table(file) for file in files]
        counts = cls.evaluate(probe_sides(query, schemas), tables, schemas, out)
        seconds = time.perf_counter() - start
        if out:
            totals = streams.pair_totals(pq.read_table(out))
        else:
            totals = sum((Totals.of_counts(*columns) for columns in counts), Totals())
        return Measured(totals=totals, wall_seconds=seconds)

    @staticmethod
    @abstractmethod
    def evaluate(
        sides: Sequence[ProbeSide],
        tables: Sequence[pa.Table],
        schemas: Sequence[Schema],
        out: Path | None,
    ) -> Sequence[Sequence[np.ndarray]]:
        """Evaluate the joins *sides* between *tables* (see `streams.table`).

        Return for each join its matches as columns ``probe_id, count, fingerprint``; with *out*
        write all pairs there, as ``probe_id, match_id``, and return nothing.
        """
