"""A prepared stream: what is in it, its files, and how it is replaced as a whole.

Layout of ``<out>/<name>/``: ``segments/part-00000.parquet`` and so on in stream order, nothing else
in that folder; ``codes-<field>.parquet`` (``code``, ``value``) for a join field of text, of which
the segments have the codes; ``rejected/part-*.parquet`` if rows were rejected; ``stream.json``.

A segment has the columns ``id`` (int64, the tuple's position in the stream), ``ts`` (int64, event
time in ns, ascending), ``_arrival`` and ``_place`` (int64) where the order of arrival is recorded,
and the source's own columns, among them the join fields: each is int64 or finite float64 (see
`join_dtype`), without nulls.

A stream is built in a hidden folder next to its place and then renamed, so that it appears whole or
not at all. A lock per stream, which the system releases when its owner dies, distinguishes a folder
that is being built from one that was left behind. Nothing here needs Spark.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import re
import reprlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from actors.feed import ARRIVAL, PLACE
from actors.result_files import part_files
from actors.whole_files import force_to_disk, require_utf8, write_text, writing
from joins.batch import Schema
from joins.codes import GREATEST, LEAST
from joins.errors import DataError

FORMAT = 2
"""Version of the layout; a stream of another version is prepared anew."""

SUMMARY, SEGMENTS, REJECTED = "stream.json", "segments", "rejected"
ROW_GROUP_ROWS = 65_536  # what a reader with bounded memory reads of a column at a time
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
_INT64 = re.compile(r"tinyint|smallint|int|bigint|boolean|bool|u?int(8|16|32|64)|decimal.*\b0\)")
_FLOAT64 = re.compile(r"float|double|(half)?float(16|32|64)?|decimal.*")


def join_dtype(kind: str) -> str | None:
    """Return the dtype of a join field made of numbers of type *kind*: ``int64`` or ``float64``.

    *kind* is a type's name in Spark or Arrow. Booleans are 0 and 1; a decimal without fraction
    digits is an integer. The result is None for types that are not numbers.
    """
    if _INT64.fullmatch(kind):
        return "int64"
    return "float64" if _FLOAT64.fullmatch(kind) else None


def rounding_notes(field: str, kind: str) -> list[str]:
    """Return a note on a join *field* of type *kind* whose values may not be kept digit by digit.

    Those are decimals with fraction digits: 0.3 - 0.2 is not 0.1 once they are floats.
    """
    if kind.startswith("decimal") and join_dtype(kind) == "float64":
        return [f"join field {field}: {kind} as float64, which keeps 15 digits"]
    return []


@dataclass(kw_only=True)
class TimeOrder:
    """A stream's tuples in the order of their event times, as they are added."""

    rows: int = 0
    """How many there are."""
    first_ts: int = 0
    last_ts: int = 0
    """Event time of the first and the last, ns."""
    repeated: int = 0
    """How many have the time of the one before."""
    in_order: bool = True
    """Whether they were in this order in the source."""
    delays: tuple[int, int] | None = None
    """As of a `PreparedStream`."""

    def __post_init__(self) -> None:
        self._last = np.empty(0, np.int64), np.empty(0, np.int64)

    def add(self, ts: np.ndarray, places: np.ndarray, arrives: np.ndarray | None) -> None:
        """Add tuples: times, places in the source, and when they arrive, if that is recorded."""
        last_ts, last_place = self._last
        with_last = np.concatenate([last_ts, ts])
        self.repeated += int((with_last[1:] == with_last[:-1]).sum())
        with_last = np.concatenate([last_place, places])
        self.in_order &= bool((with_last[1:] > with_last[:-1]).all())
        if arrives is not None:
            late = arrives - ts
            least, most = self.delays or (GREATEST, LEAST)
            self.delays = min(least, int(late.min())), max(most, int(late.max()))
        self.first_ts = self.first_ts if self.rows else int(ts[0])
        self.last_ts = int(ts[-1])
        self.rows += len(ts)
        self._last = ts[-1:], places[-1:]

    @property
    def notes(self) -> list[str]:
        """Notes on tuples that were sorted, and on times that repeat."""
        notes = []
        if not self.in_order and self.delays is None:
            notes.append("input was not in time order: sorted; arrival = rows feeds it as it is")
        if self.repeated:
            times = "timestamp" if self.repeated == 1 else "timestamps"
            notes.append(f"{self.repeated:,} {times} repeated: kept, ordered by source row")
        return notes


@dataclass(frozen=True, kw_only=True)
class PreparedStream:
    """One prepared stream.

    Attributes
    ----------
    name
        The stream's name.
    path
        Folder of its Parquet segments, which sort by name into stream order; absolute, so that it
        is found from any other folder.
    rows
        Number of tuples; their ``id`` runs from 0 to *rows* - 1.
    rejected
        Number of rejected rows, which are in the folder ``rejected`` next to the segments.
    rejected_reasons
        What was wrong, and how often; several things can be wrong with one row.
    schema
        The join fields and their dtypes.
    first_ts, last_ts
        Event time of the first and the last tuple, ns.
    notes
        Remarks on how it was prepared.
    time
        The column or expression that gave the event times; None: the column ``ts``, or none.
    delays
        How much later than their event times tuples arrive, ns, at the least and at the most, where
        their order of arrival is recorded (`actors.feed.Recorded`); None: it is that of time.
    codes
        Join fields of text, which are stored as codes, to the digest of their dictionary. Codes can
        be compared where it is the same.
    fingerprint
        Digest of the sources' bytes and the options: where it is equal, so is the stream.
    own_names
        The column that is the source's own ``id``, to how the source spells that.
    """

    name: str
    path: Path
    rows: int
    rejected: int
    rejected_reasons: Mapping[str, int]
    schema: Schema
    first_ts: int
    last_ts: int
    notes: tuple[str, ...]
    fingerprint: str
    time: str | None = None
    delays: tuple[int, int] | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    own_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """Names of its columns: ``id``, ``ts``, and those that it has of the source."""
        names = pq.read_schema(part_files(self.path)[0]).names
        return [name for name in names if name not in (ARRIVAL, PLACE)]

    @property
    def names(self) -> dict[str, str]:
        """Its columns to the names that queries have for them, see `names_of`."""
        return names_of(self.columns, self.own_names)

    def values(self, column: str) -> pa.ChunkedArray:
        """Return a column, in the order of the tuples; texts as texts, not as codes.

        Raise :exc:`DataError` where the column is damaged.
        """
        try:
            values = pq.read_table(part_files(self.path), columns=[column])[column]
            if column in self.codes:
                texts = pq.read_table(self.path.with_name(codes_file(column))).sort_by("code")
                values = texts["value"].take(values)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(
                f"{self.path}: column {column!r} is damaged: {reason}; prepare the stream again"
            ) from None
        if len(values) != self.rows:
            raise DataError(
                f"{self.path}: column {column!r} has {len(values)} values, and the stream "
                f"{self.rows} tuples; prepare the stream again"
            )
        return values


def names_of(columns: Iterable[str], own_names: Mapping[str, str]) -> dict[str, str]:
    """Return the *columns* of a stream to the names that queries have for them.

    A tuple's position is left out where the source has an ``id`` of its own.
    """
    names = {column: own_names.get(column, column) for column in columns}
    if own_names:
        del names["id"]
    return names


def codes_file(name: str) -> str:
    """Return the name of the file with the texts of join field *name*."""
    return f"codes-{quote(name, safe='')}.parquet"


def save_summary(stream: PreparedStream, folder: Path, **origin: Any) -> None:
    """Write ``stream.json`` of a *stream* whose segments are in *folder*.

    *origin* is recorded as it is: the sources and options that the stream was prepared from.
    """
    dtypes = stream.schema.fields
    columns: dict[str, dict[str, Any]] = {}
    for column in pq.read_schema(min((folder / SEGMENTS).glob("*.parquet"))):
        columns[column.name] = {"type": str(column.type), "join_field": column.name in dtypes}
        if column.name in dtypes:
            columns[column.name]["dtype"] = dtypes[column.name]
    written = {
        one.name: getattr(stream, one.name)
        for one in fields(stream)
        if one.name not in ("path", "schema", "fingerprint")
    }
    summary = {
        "format": FORMAT,
        **written,
        "join_fields": list(dtypes),
        "schema": columns,
        **origin,
        "fingerprint": stream.fingerprint,
    }
    write_text(folder / SUMMARY, json.dumps(summary, indent=2) + "\n")


class _Column(BaseModel):
    dtype: Literal["int64", "float64"] | None = None


class _Summary(BaseModel):
    """What ``stream.json`` must have; its other keys are for people alone."""

    model_config = ConfigDict(strict=True)

    format: Literal[2]  # FORMAT
    name: str
    rows: int
    rejected: NonNegativeInt
    rejected_reasons: dict[str, NonNegativeInt]
    notes: tuple[str, ...]
    time: str | None = None
    delays: tuple[int, int] | None = None
    join_fields: tuple[str, ...]
    columns: dict[str, _Column] = Field(alias="schema")
    codes: dict[str, str] = {}
    own_names: dict[str, str] = {}
    first_ts: int
    last_ts: int
    fingerprint: str

    @property
    def fields(self) -> dict[str, str]:
        """The join fields and their dtypes."""
        return {name: str(self.columns[name].dtype) for name in self.join_fields}

    @model_validator(mode="after")
    def _check_consistent(self) -> Self:
        dtypes = {name: column.dtype for name, column in self.columns.items() if column.dtype}
        coded = [name for name in self.join_fields if dtypes.get(name) == "int64"]
        for name in self.join_fields:
            if name not in dtypes:
                raise ValueError(
                    f"join_fields names {name!r}, and schema has {', '.join(dtypes)} with a dtype"
                )
            if self.join_fields.count(name) > 1:
                raise ValueError(f"join_fields names {name!r} more than once")
        for name in self.codes:
            if name not in coded:
                raise ValueError(
                    f"codes names {name!r}, and the join fields of int64 are {', '.join(coded)}"
                )
        if self.first_ts > self.last_ts:
            raise ValueError(
                f"first_ts is {self.first_ts}, which is after last_ts, which is {self.last_ts}"
            )
        if self.delays and self.delays[0] > self.delays[1]:
            raise ValueError(f"delays is {self.delays}, and should be at the least, at the most")
        return self


def _explain(mistake: ErrorDetails) -> str:
    """Say which key of ``stream.json`` is wrong, what it is, and what is allowed."""
    key = ".".join(map(str, mistake["loc"]))
    if mistake["type"] == "missing":
        return f"{key} is missing"
    message = mistake["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if not key:  # of several keys, which the message names, or of the whole file
        return message
    return f"{key} is {reprlib.repr(mistake['input'])}: {message}"


def _damaged(folder: Path, why: str) -> DataError:
    return DataError(f"{folder / SUMMARY} is damaged ({why}); prepare the stream again")


def load_stream(folder: str | Path) -> PreparedStream:
    """Open a prepared stream: read its ``stream.json``, and check its segments' footers and ids.

    Raise :exc:`DataError` if *folder* has no prepared stream, one of another version, or segments
    that are not as ``stream.json`` says.
    """
    folder = Path(folder)
    require_utf8(folder, DataError)
    try:
        summary = _Summary.model_validate_json((folder / SUMMARY).read_bytes())
    except OSError as error:
        raise DataError(
            f"{folder} is not a prepared stream: {SUMMARY} cannot be read ({error.strerror})"
        ) from error
    except ValidationError as error:
        mistake = error.errors()[0]
        if mistake["loc"] == ("format",) and mistake["type"] != "missing":
            raise DataError(
                f"{folder} was prepared by another version (layout {mistake['input']}, this one "
                f"reads {FORMAT}); prepare it again"
            ) from None
        raise _damaged(folder, _explain(mistake)) from None
    for name in summary.codes:
        if not (folder / codes_file(name)).is_file():
            raise _damaged(folder, f"codes names {name!r}, and there is no {codes_file(name)}")
    stream = PreparedStream(
        path=folder.absolute() / SEGMENTS,
        schema=Schema(stream=summary.name, fields=summary.fields),
        **summary.model_dump(exclude={"format", "join_fields", "columns"}),
    )
    _check_footers(stream)
    return stream


def segment_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return a writer of a segment at *path*; who writes to it bounds the row groups."""
    # As differences, what rises: a fourth of the decoding, half of the bytes.
    rising = [
        column.name
        for column in schema
        if column.name in ("id", "ts", ARRIVAL, PLACE) or pa.types.is_timestamp(column.type)
    ]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=3,  # as Spark's: a tenth less than at Arrow's own, in the same time
        data_page_version="2.0",
        use_dictionary=[name for name in schema.names if name not in rising],
        column_encoding=dict.fromkeys(rising, "DELTA_BINARY_PACKED"),
    )


def _check_footers(stream: PreparedStream) -> None:
    """Check that the segments are there, with the columns, rows and times that they should have.

    Only the footers of the files are read, and the ids, which nothing reads later. What the other
    columns hold is checked as it is read.

    Raise :exc:`DataError` naming file and tuple.
    """
    arrival = (ARRIVAL, PLACE) if stream.delays else ()
    dtypes = dict.fromkeys(("id", "ts", *arrival), "int64") | dict(stream.schema.fields)
    rows = 0
    times: list[Any] = []
    for path in sorted(stream.path.glob("*.parquet")):
        try:
            with pq.ParquetFile(path) as file:
                _check_columns(file, path, dtypes)
                times += _extreme_times(file)
                for block in file.iter_batches(columns=["id"], use_threads=False):
                    ids = block["id"].to_numpy(zero_copy_only=False)
                    moved = np.flatnonzero(ids != np.arange(rows, rows + len(ids)))
                    if len(moved):
                        raise DataError(
                            f"{path}: the id of tuple {rows + int(moved[0])} is not its position; "
                            "give the raw data, whose rows are then numbered"
                        )
                    rows += len(ids)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{path} cannot be read: {error}; prepare the stream again") from None
    if rows != stream.rows or not rows:
        raise DataError(
            f"{stream.path}: {SUMMARY} names {stream.rows} tuples, and the segments have {rows}; "
            "prepare the stream again"
        )
    named = {"first_ts": stream.first_ts, "last_ts": stream.last_ts}
    found = {"first_ts": min(times), "last_ts": max(times)} if times else named
    for name, ts in found.items():
        if named[name] != ts:
            why = f"{name} is {named[name]}, and should be {ts}, as in the segments"
            raise _damaged(stream.path.parent, why)


def _check_columns(file: pq.ParquetFile, path: Path, dtypes: Mapping[str, str]) -> None:
    names = file.schema_arrow.names
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(
            f"{path}: column {twice[0]!r} comes more than once; prepare the stream again"
        )
    there = {column.name: str(column.type) for column in file.schema_arrow}
    for name, dtype in dtypes.items():
        kind = there.get(name, "missing")
        if join_dtype(kind) != dtype:
            raise DataError(
                f"{path}: column {name!r} is {kind}, and should be {dtype}; prepare the stream "
                "again"
            )


def _extreme_times(file: pq.ParquetFile) -> Iterator[Any]:
    """Yield the earliest and the latest event time of each part of *file* whose footer has them."""
    footer = file.metadata
    for part in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(part.column, range(part.num_columns)):
            known = column.statistics if column.path_in_schema == "ts" else None
            if known is not None and known.has_min_max:
                yield from (known.min, known.max)


@contextmanager
def building(out: Path, name: str) -> Iterator[Path]:
    """Lock stream *name* in *out* and yield an empty folder to build it in.

    What runs that were killed left behind is removed first; the folder is removed at the end unless
    it was published. Waits while another process builds the same stream.

    Raise :exc:`DataError` if *out* cannot be written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / f".{name}.lock").open("w")
    except OSError as error:
        raise DataError(
            f"{out} cannot be written to ({error.strerror}); name another output folder"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _recover(out, name)
        folder = Path(tempfile.mkdtemp(prefix=f".{name}.building-", dir=out))
        # mkdtemp is for its owner alone; a stream is readable by those who can read its neighbours.
        folder.chmod(out.stat().st_mode & 0o777)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def publish(built: Path, final: Path) -> None:
    """Move the folder *built* to *final*, replacing what is there, in one step where possible.

    Raise :exc:`OutputError` if that cannot be done.
    """
    with writing(final):
        force_to_disk(built)
        _replace(built, final)


def _replace(built: Path, final: Path) -> None:
    if not final.exists():
        built.rename(final)
        return
    if _exchange(built, final):
        shutil.rmtree(built, ignore_errors=True)
        return
    old = final.with_name(f".{final.name}.old")
    final.rename(old)
    built.rename(final)
    shutil.rmtree(old, ignore_errors=True)


def _recover(out: Path, name: str) -> None:
    old, final = out / f".{name}.old", out / name
    if old.exists() and not final.exists():
        old.rename(final)  # a run died between the two renames
    for left in (old, *out.glob(f".{name}.building-*")):
        shutil.rmtree(left, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two paths atomically; return False where the system has no such call."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    paths = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    return bool(rename(*paths, _RENAME_EXCHANGE) == 0)
