"""The first message in which two runs differ.

The rows of a trace are in the order in which messages and timers were served. Two runs with one
digest have the same rows; of others this finds the first that differs, reading both traces a batch
at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import NonNegativeInt

from joins.errors import DataError
from netsim.trace import COLUMNS, READ_ROWS
from scenarios.run_directory import RUN_RECORD, TRACE, read_json, why_no_run

AROUND = 10
"""Rows that are shown before and after the first that differs."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Where two runs differ.

    Attributes
    ----------
    runs
        The two directories.
    row
        Number of the first row of the traces that differs, counted from 0; None where all are
        equal.
    columns
        In what it differs; none where one trace has ended.
    first
        Number of the first row of *rows*.
    rows
        Rows of either trace around it, with the trace's columns.
    settings
        Keys of the configuration that differ, with both values.

    Examples
    --------
    >>> import joinsim as js
    >>> streams = {"T": js.synthetic(60, {"x": "uniform(1, 9)"})}
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> runs = [js.run(query, streams, topology="split_join", pes=pes) for pes in (2, 3)]
    >>> found = js.diff(runs[0].directory, runs[1].directory)
    >>> found.same, ("parameters.pes", 2, 3) in found.settings
    (False, True)
    """

    runs: tuple[Path, Path]
    row: int | None
    columns: tuple[str, ...]
    first: int
    rows: tuple[pa.Table, pa.Table]
    settings: tuple[tuple[str, Any, Any], ...]

    @property
    def same(self) -> bool:
        """Whether both runs served the same messages at the same virtual times."""
        return self.row is None

    def __repr__(self) -> str:
        return "\n".join([*settings_lines(self), place_line(self)])


def settings_lines(difference: Difference) -> list[str]:
    """Return a line for each key of the configuration that differs."""
    first, second = difference.runs
    return [f"{key}: {a!r} in {first}, {b!r} in {second}" for key, a, b in difference.settings]


def place_line(difference: Difference) -> str:
    """Return in words where the traces differ."""
    row = difference.row
    if row is None:
        return "both runs served the same messages at the same virtual times"
    if difference.columns:
        return f"the first difference is in row {row:,}: {', '.join(difference.columns)}"
    ended = [difference.first + rows.num_rows <= row for rows in difference.rows]
    return f"{difference.runs[ended.index(True)]} has no row {row:,}: it ended before"


def diff(
    run_a: str | PathLike[str], run_b: str | PathLike[str], *, around: NonNegativeInt = AROUND
) -> Difference:
    """Return the first message in which two runs differ, with rows *around* it.

    *run_a* and *run_b* are runs, or directories that runs have written. Raise :exc:`DataError`
    where one of them has no trace that can be read, or a ``run.json`` that is damaged.

    Examples
    --------
    >>> import joinsim as js
    >>> streams = {"T": js.synthetic(60, {"x": "uniform(1, 9)"})}
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> one, same, other = (
    ...     js.run(query, streams, topology="split_join", seed=seed, network={"jitter": "1 ms"})
    ...     for seed in (1, 1, 2)
    ... )
    >>> js.diff(one, same).same, js.diff(one, other.directory).same
    (True, False)
    """
    a, b = Path(run_a), Path(run_b)
    row, columns = _first_difference(_batches(a), _batches(b))
    first = max(0, (row or 0) - around)
    stop = first if row is None else row + around + 1
    return Difference(
        runs=(a, b),
        row=row,
        columns=columns,
        first=first,
        rows=(_rows_between(a, first, stop), _rows_between(b, first, stop)),
        settings=_different_settings(_settings(a), _settings(b)),
    )


def _batches(run: Path) -> Iterator[pa.RecordBatch]:
    path = run / TRACE
    if not path.is_file():
        raise DataError(why_no_run(run, TRACE))
    try:
        with pq.ParquetFile(path) as file:
            absent = [name for name in COLUMNS if name not in file.schema_arrow.names]
            if absent:
                raise DataError(
                    f"{path} is no trace that this version writes: it has no {', '.join(absent)}"
                )
            yield from file.iter_batches(READ_ROWS, columns=list(COLUMNS))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read: {error}") from None


def _first_difference(
    batches_a: Iterator[pa.RecordBatch], batches_b: Iterator[pa.RecordBatch]
) -> tuple[int | None, tuple[str, ...]]:
    """Return the first row that differs, and in which columns."""
    a, b, row = next(batches_a, None), next(batches_b, None), 0
    while a is not None and b is not None:
        rows = min(a.num_rows, b.num_rows)
        unequal = np.array([_unequal(a[c][:rows], b[c][:rows]) for c in COLUMNS])
        differing = np.flatnonzero(unequal.any(axis=0))
        if len(differing):
            at = int(differing[0])
            return row + at, tuple(compress(COLUMNS, unequal[:, at]))
        row += rows
        a = a[rows:] if a.num_rows > rows else next(batches_a, None)
        b = b[rows:] if b.num_rows > rows else next(batches_b, None)
    return (None if a is b else row), ()


def _unequal(a: pa.Array, b: pa.Array) -> np.ndarray:
    """Return where two columns differ: each batch of names has a dictionary of its own."""
    if pa.types.is_dictionary(a.type):
        a, b = a.dictionary_decode(), b.dictionary_decode()
    found: np.ndarray = pc.not_equal(a, b).to_numpy(zero_copy_only=False)
    return found


def _rows_between(run: Path, first: int, stop: int) -> pa.Table:
    """Return the rows of a trace from *first* to before *stop*, as far as there are any."""
    parts, at = [], 0
    for batch in _batches(run):
        parts.append(batch[max(0, first - at) : max(0, stop - at)])
        at += batch.num_rows
        if at >= stop:
            break
    names = pa.schema([(c, pa.string() if c in COLUMNS[:3] else pa.int64()) for c in COLUMNS])
    tables = [pa.Table.from_batches([part]).cast(names) for part in parts]
    return pa.concat_tables(tables) if tables else names.empty_table()


def _different_settings(a: dict[str, Any], b: dict[str, Any]) -> tuple[tuple[str, Any, Any], ...]:
    """Return the keys of two configurations that differ; none where one is not written."""
    keys = dict.fromkeys([*a, *b]) if a and b else {}
    return tuple((key, a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key))


def _settings(run: Path) -> dict[str, Any]:
    """Return a run's configuration, sections flattened to dotted keys."""
    path = run / RUN_RECORD
    try:
        configuration = read_json(path)["configuration"]
        return dict(_flat("", dict(configuration)))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        raise DataError(
            f"{path} is damaged: it is no JSON object with a configuration; run it again"
        ) from None


def _flat(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, inner)
    else:
        yield prefix, value
