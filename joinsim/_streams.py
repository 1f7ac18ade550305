"""Streams for runs: raw files prepared by Spark, and synthetic ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import NonNegativeInt, PositiveInt

from actors.whole_files import at_home

if TYPE_CHECKING:
    from scenarios.synthetic import SyntheticStream
    from spark_bridge.prepared import PreparedStream


def prepare(
    files: str | Path | Sequence[str | Path],
    *,
    name: str | None = None,
    time: str | None = None,
    arrival: str | None = None,
    fields: Sequence[str] = (),
    where: str | None = None,
    rows: PositiveInt | None = None,
    out: str | Path = "prepared",
    progress: Callable[[str, int, int], None] | None = None,
) -> PreparedStream:
    r"""Turn raw files into a typed, validated, ordered, numbered stream, by Spark.

    Use it for CSV files and for data larger than memory; `run` takes tables and Parquet files as
    they are. A stream whose files and options are those it was last prepared from is left as it is.

    Parameters
    ----------
    files
        Raw CSV or Parquet files of one stream.
    name
        The stream's name; by default that of the first file.
    time
        The column of the event time, or an expression of it in SQL; or ``rows``, the number of the
        row, from 0. By default ``ts``, else the first column of timestamps.
    arrival
        The order in which tuples arrive: a column of times, or ``rows``, the order of the rows. By
        default they arrive in the order of event time.
    fields
        Join fields: a row in which one of them is not valid is rejected.
    where
        Condition on the rows to take, in SQL.
    rows
        Take only this many rows, the first in time.
    out
        Folder that receives the stream's folder.
    progress
        Is called with a stage, the number of stages done, and how many there are.

    Raises
    ------
    DataError
        A file, an option or the folder is not usable, or every row was rejected.
    EngineUnavailable
        Spark is needed and cannot start: it needs Java 17 or newer.
    OutputError
        There is no room on the disk.

    Examples
    --------
    >>> import pathlib, tempfile, joinsim as js
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "trips.csv")
    ...     _ = file.write_text("pickup,distance\n2026-01-01,3.5\n2026-01-02,\n")
    ...     trips = js.prepare(file, time="pickup", fields=["distance"], out=f"{folder}/prepared")
    ...     trips.rows, trips.rejected
    (1, 1)
    """
    from joins.queries.conditions import prepared_name
    from spark_bridge.pipeline.pipeline import prepare as prepare_by_spark
    from spark_bridge.pipeline.raw_source import RawSource

    fields = [prepared_name(one) for one in fields]
    paths = tuple(map(at_home, (files,) if isinstance(files, (str, Path)) else files))
    source = RawSource(
        name=name or (paths[0].name.split(".")[0] if paths else "") or "stream",
        paths=paths,
        time=time,
        arrival=arrival,
        fields=tuple(fields),
        where=where,
        rows=rows,
        codes={one: one for one in fields},
    )
    (stream,) = prepare_by_spark(source, at_home(out), progress=progress)
    return stream


def synthetic(
    rows: PositiveInt, fields: Mapping[str, str], *, seed: NonNegativeInt = 1, **settings: Any
) -> SyntheticStream:
    """Describe a synthetic stream: the same tuples on every machine.

    Parameters
    ----------
    rows
        Number of tuples.
    fields
        Field name to distribution, as ``uniform(0, 100)`` or ``zipf(1.1, 1000)``.
    seed
        Of the first field; each further one has the next.
    settings
        Its timing: ``every``, the event time between one tuple and the next (1 ms), and ``start``,
        that of the first (0); in ns, or as texts such as ``"2 ms"``.

    Raises
    ------
    ConfigError
        A distribution or a setting does not exist, or a number is out of range.

    Examples
    --------
    >>> import joinsim as js
    >>> stream = js.synthetic(1_000, {"x": "uniform(0, 100)"}, seed=7)
    >>> sorted(stream.columns())
    ['ts', 'x']
    """
    from scenarios.scenario_files import validate
    from scenarios.synthetic import SyntheticStream

    values = {"rows": rows, "fields": dict(fields), "seed": seed, **settings}
    return validate(SyntheticStream, values, where="synthetic")
