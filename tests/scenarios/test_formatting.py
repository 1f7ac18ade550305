from __future__ import annotations

import tomllib

import pytest

from scenarios.formatting import (
    format_bytes,
    format_count,
    format_duration,
    format_ms,
    format_rate,
    format_toml,
    format_value,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (float("-inf"), "-∞"),
        (0, "0"),
        (0.01234, "0.0123"),
        (999, "999"),
        (999.6, "1 k"),
        (999_600, "1 M"),
        (1_000, "1 k"),
        (-2_500, "-2.5 k"),
        (12_345_678, "12.3 M"),
        (4e9, "4 G"),
    ],
)
def test_a_value_has_three_digits_and_a_letter_for_its_size(value: float | None, text: str) -> None:
    assert format_value(value) == text


def test_quantities_have_units_of_their_size() -> None:
    assert [format_bytes(n) for n in (0, 999, 999_600, 5e12)] == ["0 B", "999 B", "1 MB", "5 TB"]
    assert [format_duration(ns) for ns in (0, 12_345, 2e9)] == ["0 s", "12.3 µs", "2 s"]
    assert [format_ms(ms) for ms in (0.01234, 999.6, 1234.5)] == ["0.0123", "1,000", "1,234"]
    assert [format_rate(tps) for tps in (1, 2_000)] == ["1 tuple/s", "2,000 tuples/s"]
    assert (format_count(1_234_567), format_count(0.5, 3)) == ("1,234,567", "0.500")


@pytest.mark.parametrize("name", ["a\x7fb", "a\x1bb", 'a"b', "\N{GRINNING FACE}", "a\\b"])
def test_any_name_is_written_as_toml_that_is_read_again(name: str) -> None:
    value = {name: [name, {"inner": name}]}
    assert tomllib.loads(f"value = {format_toml(value)}") == {"value": value}


def test_what_is_missing_is_a_dash() -> None:
    assert {format(None) for format in (format_bytes, format_count, format_ms)} == {"–"}
    assert format_duration(None) == "–"
