"""Texts are the times that Python's own parser says, whatever their zone and their neighbours."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from scenarios.columns import read_times, zone_name

TIMES = [
    "2024-03-01T09:30:00+02:00",
    "2024-03-01T09:30:00Z",
    "2024-03-01 09:30:00.123456",
    "2024-02-29",
    "2024-12-31T23:59:59.5-05:30",
    "1969-12-31T23:00:00",
]
NO_TIMES = ["", "x", "2023-02-29", "2024-13-01", "2024-03-01T25:00:00", "20240301", "2024", None]


def test_times_are_those_of_the_standard_library() -> None:
    values, valid = read_times(pa.array(TIMES))
    assert valid.all()
    for text, ns in zip(TIMES, values.tolist(), strict=True):
        moment = datetime.fromisoformat(text)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
        assert ns == since // timedelta(microseconds=1) * 1000


def test_digits_may_be_fewer_and_go_down_to_nanoseconds() -> None:
    """Those below are cut, and what is left out is 0, as in CSV files."""
    texts = [
        "2024-3-1 9:05",
        "2024-03-01T09:05:00.0000000019",
        "2024-03-01 09:05:00.",
        "2024-3-1 9",
    ]
    values, valid = read_times(pa.array(texts))
    assert valid.all()
    assert (values - values[0]).tolist() == [0, 1, 0, -300 * 10**9]


@pytest.mark.parametrize("place", range(len(NO_TIMES)))
def test_what_is_no_time_leaves_its_neighbours_as_they_are(place: int) -> None:
    values, valid = read_times(pa.array([TIMES[0], NO_TIMES[place], TIMES[1]]))
    assert valid.tolist() == [True, False, True]
    assert values[2] - values[0] == 2 * 3600 * 10**9


def test_a_zone_in_words_is_found() -> None:
    assert zone_name(pa.array([*TIMES, None])) is None
    assert zone_name(pa.array(["2024-03-01 09:30:00 UTC"])) is None
    named = "2024-03-01 09:30:00 Europe/Berlin"
    assert zone_name(pa.array([*TIMES, named])) == named


def test_years_beyond_nanoseconds_are_no_times() -> None:
    _, valid = read_times(pa.array(["1600-01-01", "2300-01-01"]))
    assert not np.any(valid)
