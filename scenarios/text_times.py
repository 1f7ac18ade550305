"""Texts as times, without Spark: ISO 8601, as the Spark pipeline reads it in CSV files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TIME = (
    r"^\s*(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<part>\d{1,9}))?)?"
    r"\s*(?:Z|UTC|(?P<sign>[+-])(?P<zone_hour>\d{1,2})(?::?(?P<zone_minute>\d{2}))?)?)?\s*$"
)
_ZONE_NAME = r":\d\d(\.\d+)?\s*[A-Z][A-Za-z]+(/\w+)*\s*$"
_LIMITS = (
    ("month", 1, 12), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59),
    ("zone_hour", 0, 18), ("zone_minute", 0, 59), ("year", 1678, 2261),
)  # fmt: skip
"""Of a time in int64 nanoseconds."""
_S = 1_000_000_000


def read_times(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return *texts* as int64 nanoseconds since 1970, and which of them are times.

    A text without a zone is in UTC. What is no time has the value 0.
    """
    parts = pc.extract_regex(texts, _TIME)
    number = {name: _whole(parts, name) for name in (
        "year", "month", "day", "hour", "minute", "second", "zone_hour", "zone_minute",
    )}  # fmt: skip
    valid = pc.is_valid(parts).to_numpy(zero_copy_only=False)
    for name, least, most in _LIMITS:
        valid &= (number[name] >= least) & (number[name] <= most)
    months = np.where(valid, (number["year"] - 1970) * 12 + number["month"] - 1, 0).astype("M8[M]")
    first, following = months.astype("M8[D]"), (months + 1).astype("M8[D]")
    valid &= (number["day"] >= 1) & (number["day"] <= (following - first).astype(np.int64))
    days = first.astype(np.int64) + number["day"] - 1
    east = pc.equal(pc.struct_field(parts, "sign"), "-").fill_null(False)
    sign = np.where(east.to_numpy(zero_copy_only=False), -1, 1)
    zone = sign * (number["zone_hour"] * 3600 + number["zone_minute"] * 60)
    seconds = number["hour"] * 3600 + number["minute"] * 60 + number["second"] - zone
    nanos = _whole(parts, "part", digits=9)
    return np.where(valid, (days * 86_400 + seconds) * _S + nanos, 0), valid


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
