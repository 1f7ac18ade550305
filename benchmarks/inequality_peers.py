"""The same inequality join by other means: numpy, DuckDB and Polars, one thread each.

DuckDB and Polars are measured where they are installed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.inequality_work import InequalityWork, Totals
from joins.hashing import mix

Run = Callable[[], Any]


class NumpyScan:
    """Sort the stored tuples by distance once; scan the prefix that each probe's distance gives."""

    def __init__(self, work: InequalityWork) -> None:
        order = np.argsort(work.stored[0], kind="stable")
        self._probes = work.probes
        self._distance, self._fare = work.stored[0][order], work.stored[1][order]
        self._id, self._mixed = order, mix(order)

    def count(self) -> Totals:
        """Count and fingerprint."""
        pairs, total = 0, 0
        ends = np.searchsorted(self._distance, self._probes[0], "left").tolist()
        for end, fare in zip(ends, self._probes[1].tolist(), strict=True):
            match = self._fare[:end] > fare
            pairs += int(np.count_nonzero(match))
            total += int(self._mixed[:end][match].sum(dtype=np.uint64))
        return Totals(pairs, total % (1 << 64))

    def materialise(self) -> np.ndarray:
        """List the stored ids of all pairs."""
        ends = np.searchsorted(self._distance, self._probes[0], "left").tolist()
        return np.concatenate(
            [
                self._id[:end][self._fare[:end] > fare]
                for end, fare in zip(ends, self._probes[1].tolist(), strict=True)
            ]
        )


def materialising_peers(work: InequalityWork) -> dict[str, tuple[Run, Callable[[Any], np.ndarray]]]:
    """Return by name how each peer that is installed computes all pairs.

    With it comes what turns its result into stored ids, which is not to be timed.
    """
    peers: dict[str, tuple[Run, Callable[[Any], np.ndarray]]] = {}
    if find_spec("duckdb"):
        peers["DuckDB"] = _duckdb(work), lambda columns: np.asarray(columns["stored"])
    if find_spec("polars"):
        peers["Polars"] = _polars(work), lambda table: table["stored"].to_numpy()
    return peers


def _columns(work: InequalityWork) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    (distance, fare), (d, f) = work.stored, work.probes
    stored = {"stored": np.arange(len(distance)), "distance": distance, "fare": fare}
    return stored, {"probe": np.arange(len(d)), "d": d, "f": f}


def _duckdb(work: InequalityWork) -> Run:
    import duckdb
    import pyarrow as pa

    stored, probes = (pa.table(columns) for columns in _columns(work))
    connection = duckdb.connect(config={"threads": 1})
    for name, table in (("stored_rows", stored), ("probe_rows", probes)):
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
        connection.unregister("arrow")
    query = "SELECT stored, probe FROM stored_rows, probe_rows WHERE distance < d AND fare > f"
    return lambda: connection.execute(query).fetchnumpy()


def _polars(work: InequalityWork) -> Run:
    os.environ["POLARS_MAX_THREADS"] = "1"  # Read when it is imported.
    import polars as pl

    stored, probes = (pl.DataFrame(columns).lazy() for columns in _columns(work))
    joined = stored.join_where(
        probes, pl.col("distance") < pl.col("d"), pl.col("fare") > pl.col("f")
    ).select("stored", "probe")
    return joined.collect
