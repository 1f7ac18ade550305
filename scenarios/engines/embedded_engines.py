"""DuckDB and Polars: libraries that join whole tables, each in a process of its own.

They read the prepared files by themselves, on all cores, and count the pairs or write them to one
Parquet file. There the clock stops; the answer is checked afterwards.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamFile
from joins.batch import Schema
from joins.hashing import mix
from joins.queries.query import JoinQuery
from scenarios.engines import statements
from scenarios.engines.engine import Measured, PairEngine
from scenarios.engines.processes import peak_bytes, run_alone
from scenarios.engines.streams import pair_totals
from scenarios.plan import Plan
from spark_bridge.errors import EngineFailed
from spark_bridge.sql.statement import ProbeSide, probe_sides
from spark_bridge.totals import Totals


class Joins(NamedTuple):
    """What a query comes to: joins of *files*, one for each stream that probes.

    Not *windowed*, every tuple of one stream sees every tuple of the other.
    """

    sides: Sequence[ProbeSide]
    files: Sequence[StreamFile]
    schemas: Sequence[Schema]
    windowed: bool


class EmbeddedEngine(PairEngine):
    """A Python library, on all cores.

    Parameters
    ----------
    threads
        Run it on so many threads instead.
    """

    install = "pip install 'joinsim[engines]'"

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Count the pairs, or write them where the plan asks for them."""
        out = directory / "found.parquet" if plan.config.pairs else None
        return run_alone(self.join, plan.query, plan.stored_files, out)[0]

    def join(
        self,
        query: JoinQuery,
        files: Sequence[StreamFile],
        out: Path | None = None,
        *,
        sides: Sequence[int] | None = None,
        windowed: bool = True,
    ) -> Measured:
        """Evaluate *query* over *files*, in this process.

        Parameters
        ----------
        out
            Receives all pairs; by default they are counted.
        sides
            Which streams probe; by default all that the query says.
        windowed
            Whether the query's window counts; without, every tuple sees every other.

        Raise :exc:`EngineFailed` where it counts otherwise the second time.
        """
        schemas = [file.schema for file in files]
        every = probe_sides(query, schemas)
        chosen = every if sides is None else [side for side in every if side.probing in sides]
        joins = Joins(chosen, files, schemas, windowed)
        began_s = time.perf_counter()
        engine = self._start()
        started_s = time.perf_counter()
        counted = self._evaluate(engine, joins, out)
        ended_s = time.perf_counter()
        memory_bytes = peak_bytes(os.getpid())
        if out is not None:
            totals = pair_totals(pq.read_table(out))
        else:
            tables = [_with_mixed_ids(file) for file in files]
            columns = self._matches(engine, joins, tables)
            totals = sum((Totals.of_counts(*one) for one in columns), Totals())
            if totals.pairs != counted:
                raise EngineFailed(f"it counted {counted:,} pairs, and then {totals.pairs:,}")
        return Measured(
            totals=totals,
            start_seconds=started_s - began_s,
            wall_seconds=ended_s - started_s,
            memory_bytes=memory_bytes,
        )

    @abstractmethod
    def _start(self) -> Any:
        """Import the library, and return what it needs to run."""

    @abstractmethod
    def _evaluate(self, engine: Any, joins: Joins, out: Path | None) -> int:
        """Read the files and count the pairs of *joins*, or write them to *out*."""

    @abstractmethod
    def _matches(
        self, engine: Any, joins: Joins, tables: Sequence[pa.Table]
    ) -> list[list[np.ndarray]]:
        """Return for each join its matches in *tables*: ``probe_id, count, fingerprint``."""


class DuckDB(EmbeddedEngine):
    """DuckDB, as a library."""

    name = package = "duckdb"

    def _start(self) -> Any:
        import duckdb

        return duckdb.connect(config={"threads": self._threads} if self._threads else {})

    def _evaluate(self, engine: Any, joins: Joins, out: Path | None) -> int:
        engine.execute("SET preserve_insertion_order = false").fetchall()
        for place, file in enumerate(joins.files):
            engine.execute(statements.duckdb_table(f"s{place}", file)).fetchall()
        sides, schemas, windowed = joins.sides, joins.schemas, joins.windowed
        if out is not None:
            pairs = statements.duckdb_pairs(sides, schemas, windowed=windowed)
            target = str(out).replace("'", "''")
            engine.execute(f"COPY ({pairs}) TO '{target}' (FORMAT parquet)").fetchall()
            return 0
        sources = (statements.duckdb_join(side, schemas, windowed=windowed) for side in sides)
        return sum(engine.execute(f"SELECT count(*) {one}").fetchall()[0][0] for one in sources)

    def _matches(
        self, engine: Any, joins: Joins, tables: Sequence[pa.Table]
    ) -> list[list[np.ndarray]]:
        for place, table in enumerate(tables):
            engine.register("arrow", table)
            engine.execute(f"CREATE OR REPLACE TABLE s{place} AS SELECT * FROM arrow").fetchall()
            engine.unregister("arrow")
        found = []
        for side in joins.sides:
            statement = statements.duckdb_counts(side, joins.schemas, windowed=joins.windowed)
            columns = engine.execute(statement).fetchnumpy()
            found.append([np.asarray(columns[n]) for n in ("probe_id", "count", "fingerprint")])
        return found


class Polars(EmbeddedEngine):
    """Polars, as a library, on its streaming engine."""

    name = package = "polars"

    def _start(self) -> Any:
        if self._threads:
            os.environ["POLARS_MAX_THREADS"] = str(self._threads)  # read when it is imported
        import polars as pl

        return pl

    def _evaluate(self, engine: Any, joins: Joins, out: Path | None) -> int:
        joined = self._join(joins, [statements.polars_frame(file) for file in joins.files])
        if out is not None:
            pairs = engine.concat([one.select(probe_id="p_id", match_id="m_id") for one in joined])
            pairs.sink_parquet(out, engine="streaming", compression="snappy")
            return 0
        return sum(one.select(engine.len()).collect(engine="streaming").item() for one in joined)

    def _matches(
        self, engine: Any, joins: Joins, tables: Sequence[pa.Table]
    ) -> list[list[np.ndarray]]:
        frames = [engine.LazyFrame(engine.from_arrow(table)) for table in tables]
        counts = [
            one.group_by("p_id")
            .agg(count=engine.len().cast(engine.Int64), fingerprint=engine.col("m_mixed").sum())
            .collect(engine="streaming")
            for one in self._join(joins, frames)
        ]
        return [[column.to_numpy() for column in one.get_columns()] for one in counts]

    def _join(self, joins: Joins, frames: Sequence[Any]) -> list[Any]:
        return [
            statements.polars_join(side, frames, joins.schemas, windowed=joins.windowed)
            for side in joins.sides
        ]


def _with_mixed_ids(file: StreamFile) -> pa.Table:
    """Return a stream as statements name its columns, with ``mixed``, ``splitmix64(id)``."""
    columns = statements.columns(file.schema)
    rows = pa.concat_tables(
        pq.read_table(path, columns=list(columns)) for path in statements.segments(file)
    )
    rows = rows.rename_columns(list(columns.values()))
    return rows.append_column("mixed", pa.array(mix(rows["id"].to_numpy())))
