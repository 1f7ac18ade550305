"""A column of a table as numbers: int64 or float64, and which of its rows are not valid, and why.

Dates, timestamps, durations and times of day are in nanoseconds; texts are times in ISO 8601, as
the Spark pipeline reads them in CSV files, or become codes (`TextCodes`). What is wrong with a
whole column is raised without its name, which the caller knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from actors.protocol import NS_PER_S
from joins.errors import DataError
from spark_bridge.pipeline.values import NS_PER_UNIT

Numbers = tuple[np.ndarray, dict[str, np.ndarray]]
"""Values, and by reason which rows are not valid, whose values mean nothing."""

_NOT_ORDERED = (
    "cannot be compared so; text can with = and != alone, and a time needs timestamps, dates, "
    "texts as 2024-03-01T09:30:00+02:00 of the years 1678 to 2261, or nanoseconds"
)
_OVERFLOWS = "overflows int64"
_WHOLE_DECIMAL = pa.decimal256(76, 0)


def decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with a value per row, of a type of which Arrow takes and casts rows.

    Not of such a type are columns that store equal values once, and Polars' texts, which are views.
    """
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return decode(pc.run_end_decode(column))
    if pa.types.is_dictionary(kind):
        values = _without_views(kind.value_type)
        chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, values)
    plain = _without_views(kind)
    return column if plain == kind else column.cast(plain)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type, or what is within it, without views of texts and bytes."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_views(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_without_views(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_views(kind.value_type))
    return kind


def read_texts(column: pa.Array | pa.ChunkedArray) -> Any:
    """Return the texts of a decoded column; None where it has none.

    Raise :exc:`DataError` for a row that is not UTF-8: Arrow takes what a file says for text as it
    is, whatever its bytes.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    raw = column.cast(pa.large_binary())
    try:
        return raw.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        for row, value in enumerate(raw.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                raise DataError(
                    f"row {row} is {value!r}, which is not text in UTF-8; encode it so, or leave "
                    "the row out"
                ) from None
        raise


def read_numbers(column: pa.ChunkedArray) -> Numbers:
    """Return a decoded column as int64 or float64.

    Raise :exc:`DataError` where it is of neither numbers nor times.
    """
    column = column.combine_chunks()
    kind = column.type
    invalid = {"is null": _mask(pc.is_null(column))}
    if (texts := read_texts(column)) is not None:
        values, wrong = _moments(texts)
    elif pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and kind.scale > 0):
        # Arrow makes 0.30000000000000004 of the decimal 0.3, and 0.3 of its text.
        floats = column if pa.types.is_floating(kind) else column.cast(pa.string())
        values = floats.cast(pa.float64()).fill_null(0.0).to_numpy()
        wrong = {"is NaN": np.isnan(values), "is infinite": np.isinf(values)}
    else:
        is_number = pa.types.is_primitive(kind) or pa.types.is_decimal(kind)
        if pa.types.is_interval(kind) or not (is_number or pa.types.is_null(kind)):
            raise DataError(f"{kind} {_NOT_ORDERED}")
        values, wrong = _as_int64(column)
    return values, invalid | wrong


def read_whole_numbers(column: pa.ChunkedArray) -> Numbers:
    """Return a decoded column as int64, in which fractions are not valid."""
    values, invalid = read_numbers(column)
    if values.dtype == np.int64:
        return values, invalid
    if pa.types.is_decimal(column.type):  # of which floats have 15 digits
        column = column.combine_chunks()
        floor = pc.floor(column)
        fraction = _mask(pc.not_equal(column, floor))
        whole, outside = _as_int64(floor)
    else:
        finite = np.where(np.isfinite(values), values, 0.0)
        fraction = finite % 1 != 0
        beyond = (finite < -(2.0**63)) | (finite >= 2.0**63)
        whole, outside = np.where(beyond, 0.0, finite).astype(np.int64), {_OVERFLOWS: beyond}
    return whole, invalid | outside | {"is not a whole number of nanoseconds": fraction}


def _as_int64(column: pa.Array) -> Numbers:
    """Return whole numbers and times as int64."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    elif pa.types.is_time(column.type):
        column = column.cast(pa.time64("ns"))
    kind = column.type
    is_moment = pa.types.is_timestamp(kind)
    ns = NS_PER_UNIT[kind.unit] if is_moment or pa.types.is_duration(kind) else 1
    if pa.types.is_decimal(kind):
        column = column.cast(_WHOLE_DECIMAL)
        most, least = (pa.scalar(Decimal(n), _WHOLE_DECIMAL) for n in (2**63 - 1, -(2**63)))
    elif pa.types.is_uint64(kind):
        most, least = pa.scalar(2**63 - 1, kind), pa.scalar(0, kind)
    else:
        column = column.cast(pa.int64())
        if ns == 1:
            return column.fill_null(0).to_numpy(zero_copy_only=False), {}
        most, least = pa.scalar((2**63 - 1) // ns), pa.scalar(-(2**63 // ns))
    beyond = pc.or_(pc.greater(column, most), pc.less(column, least))
    fitting = pc.if_else(beyond, pa.scalar(None, column.type), column).cast(pa.int64())
    values = fitting.fill_null(0).to_numpy(zero_copy_only=False) * ns
    why = "is outside of the years 1677 to 2262" if is_moment else _OVERFLOWS
    return values.astype(np.int64, copy=False), {why: _mask(beyond)}


def _mask(rows: pa.Array) -> np.ndarray:
    """Return booleans for numpy, in which null is false."""
    mask: np.ndarray = rows.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    return mask


_ISO_8601 = (
    r"^\s*(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<part>\d{0,9})\d*)?)?"
    r"\s*(?:Z|UTC|(?P<sign>[+-])(?P<zone_hour>\d{1,2})(?::?(?P<zone_minute>\d{2}))?)?)?)?\s*$"
)
_ZONE_NAME = r":\d\d(\.\d+)?\s*[A-Z][A-Za-z]+(/\w+)*\s*$"
_LIMITS = (
    ("month", 1, 12), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59),
    ("zone_hour", 0, 18), ("zone_minute", 0, 59), ("year", 1678, 2261),
)  # fmt: skip
"""Of the parts of a time in int64 nanoseconds, the least and the most."""


def _moments(texts: pa.Array) -> Numbers:
    """Return *texts* as int64 nanoseconds.

    Raise :exc:`DataError` where most of them are no times, or one names its time zone in words.
    """
    values, valid = read_times(texts)
    if zoned := zone_name(texts):
        raise DataError(
            f"{zoned!r} names its time zone in words; write its offset, as in "
            "2024-03-01T09:30:00+02:00, or pass a column of timestamps"
        )
    wrong = ~valid & _mask(pc.is_valid(texts))
    if wrong.any() and valid.sum() <= wrong.sum():
        first = int(np.flatnonzero(wrong)[0])
        raise DataError(f"text {_NOT_ORDERED}; row {first} is {texts[first].as_py()!r}")
    return values, {"is not a timestamp": wrong}


def read_times(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return *texts* as int64 nanoseconds since 1970, and which of them are times.

    A text without a zone is in UTC. What is no time has the value 0.
    """
    parts = pc.extract_regex(texts, _ISO_8601)
    number = {name: _whole(parts, name) for name in (
        "year", "month", "day", "hour", "minute", "second", "zone_hour", "zone_minute",
    )}  # fmt: skip
    valid = _mask(pc.is_valid(parts))
    for name, least, most in _LIMITS:
        valid &= (number[name] >= least) & (number[name] <= most)
    months = np.where(valid, (number["year"] - 1970) * 12 + number["month"] - 1, 0).astype("M8[M]")
    first, following = months.astype("M8[D]"), (months + 1).astype("M8[D]")
    valid &= (number["day"] >= 1) & (number["day"] <= (following - first).astype(np.int64))
    days = first.astype(np.int64) + number["day"] - 1
    sign = np.where(_mask(pc.equal(pc.struct_field(parts, "sign"), "-")), -1, 1)
    zone = sign * (number["zone_hour"] * 3600 + number["zone_minute"] * 60)
    seconds = number["hour"] * 3600 + number["minute"] * 60 + number["second"] - zone
    nanos = _whole(parts, "part", digits=9)
    return np.where(valid, (days * 86_400 + seconds) * NS_PER_S + nanos, 0), valid


def zone_name(texts: pa.Array) -> str | None:
    """Return the first of *texts* that names its time zone in words, which `read_times` refuses."""
    named = texts.filter(pc.match_substring_regex(texts, _ZONE_NAME))
    named = named.filter(pc.invert(pc.match_substring_regex(named, r"UTC\s*$")))
    return str(named[0]) if len(named) else None


def _whole(parts: pa.StructArray, name: str, digits: int = 1) -> np.ndarray:
    """Return a part of each text as a number, 0 where it has none; *digits* after a point."""
    text = pc.utf8_rpad(pc.struct_field(parts, name).fill_null(""), digits, "0")
    whole: np.ndarray = text.cast(pa.int64()).to_numpy()
    return whole


@dataclass(frozen=True)
class TextCodes:
    """The codes of fields that are compared: the places of their distinct texts, sorted."""

    texts: pa.Array
    digest: str

    @classmethod
    def of(cls, fields: Mapping[tuple[str, str], pa.ChunkedArray | None]) -> TextCodes | None:
        """Return the codes of the texts of *fields*, by stream and name; None without any.

        Raise :exc:`DataError` naming a field that has no texts beside others that do.
        """
        if not any(column is not None for column in fields.values()):
            return None
        for (stream, name), column in fields.items():
            if column is None:
                raise DataError(
                    f"stream {stream!r}: join field {name!r} is compared with text and holds none "
                    "itself"
                )
        chunks = [chunk for column in fields.values() if column for chunk in column.chunks]
        distinct = pc.unique(pa.chunked_array(chunks, pa.string())).drop_null()
        ordered = distinct.take(pc.array_sort_indices(distinct))
        return cls(ordered, hashlib.sha256("\0".join(ordered.to_pylist()).encode()).hexdigest())

    def encode(self, column: pa.ChunkedArray) -> Numbers:
        """Return the codes of a column's texts."""
        codes = pc.index_in(column, self.texts).combine_chunks().fill_null(0)
        return codes.to_numpy().astype(np.int64), {"is null": pc.is_null(column).to_numpy()}
