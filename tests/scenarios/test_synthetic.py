from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from scenarios.config import RunConfig
from scenarios.synthetic import SyntheticStream

MASK = 2**64 - 1


def splitmix64(z: int) -> int:
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream(rows: int = 4000, **fields: str) -> SyntheticStream:
    return SyntheticStream(rows=rows, seed=11, fields=fields)


def test_whole_numbers_are_those_of_the_mix_written_in_plain_integers() -> None:
    columns = stream(50, D="uniform(1, 74999)", F="uniform(1, 74999)").columns()
    for name, seed in (("D", 11), ("F", 12)):
        expected = [splitmix64((seed << 48) ^ i) % 74_999 + 1 for i in range(50)]
        assert columns[name].tolist() == expected


def test_event_times_are_as_far_apart_as_said() -> None:
    values = {"rows": 4, "fields": {"a": "uniform(0, 9)"}, "every": "2 ms", "start": "501 us"}
    said = SyntheticStream.model_validate(values)
    assert said.columns()["ts"].tolist() == [501_000, 2_501_000, 4_501_000, 6_501_000]


def test_the_greatest_seed_leaves_seeds_for_further_fields() -> None:
    fields = {"a": "uniform(0, 99)", "b": "uniform(0, 99)"}
    columns = SyntheticStream(rows=5, seed=2**15 - 1, fields=fields).columns()
    assert columns["b"].tolist() == [splitmix64((2**15 << 48) ^ i) % 100 for i in range(5)]


def test_a_longer_stream_begins_with_the_shorter_one() -> None:
    fields = {"a": "normal(0, 1)", "b": "opposed(a, 0.1)", "c": "gamma(3, 2)", "d": "zipf(1.1, 50)"}
    short, long = stream(100, **fields).columns(), stream(300, **fields).columns()
    for name, values in short.items():
        assert values.tolist() == long[name][:100].tolist()


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.05, 0.25, 0.5])
def test_opposed_fields_match_as_often_as_said(rate: float) -> None:
    columns = stream(3000, X="normal(10, 3)", Y=f"opposed(X, {rate})").columns()
    x, y = columns["X"], columns["Y"]
    both = (x[:, None] > x) & (y[:, None] < y)
    assert both.sum() / (3000 * 2999) == pytest.approx(rate, abs=0.012)


@pytest.mark.parametrize("skew", [0.1, 0.2, 0.35, 0.5])
def test_the_self_similar_distribution_repeats_its_skew_within_the_frequent_values(
    skew: float,
) -> None:
    values = stream(20_000, k=f"self_similar(10000, {skew})").columns()["k"]
    first = values[values < 10_000 * skew]
    assert len(first) / 20_000 == pytest.approx(1 - skew, abs=0.02)
    assert (first < 10_000 * skew**2).mean() == pytest.approx(1 - skew, abs=0.02)
    assert (values.min() >= 0, values.max() < 10_000) == (True, True)


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("uniform(0, 9)", 4.5, 2.872),
        ("real(2, 4)", 3, 0.577),
        ("normal(5, 2)", 5, 2),
        ("gamma(3, 2)", 6, 3.464),
        ("skewed(0, 49, 4)", 9.5, 13.3),
    ],
)
def test_distributions_have_their_mean_and_spread(text: str, mean: float, deviation: float) -> None:
    values = stream(40_000, a=text).columns()["a"]
    assert values.mean() == pytest.approx(mean, rel=0.05)
    assert values.std() == pytest.approx(deviation, rel=0.05)


def test_ranks_of_a_zipf_field_are_as_frequent_as_their_weights() -> None:
    values = stream(60_000, a="zipf(1, 4)").columns()["a"]
    shares = np.bincount(values, minlength=4) / len(values)
    assert shares == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.01)


def test_the_file_is_named_after_what_is_in_it(tmp_path: Path) -> None:
    one, other = stream(20, a="uniform(0, 9)"), stream(21, a="uniform(0, 9)")
    path = one.write(tmp_path)
    assert one.write(tmp_path) == path != other.write(tmp_path)
    table = pq.read_table(path)
    assert table.column_names == ["ts", "a"]
    assert table["a"].to_pylist() == one.columns()["a"].tolist()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"a": "uniform(1)"}, "is not a distribution"),
        ({"a": "poisson(1, 2)"}, "is not a distribution"),
        ({"a": "uniform(9, 1)"}, "must not be less"),
        ({"a": "normal(0, 0)"}, "above 0"),
        ({"a": "gamma(1.5, 2)"}, "whole shape"),
        ({"a": "opposed(b, 0.1)", "b": "normal(0, 1)"}, "before it"),
        ({"a": "opposed(b, 0.1)"}, r"a = opposed\(b, 0.1\): give the name of a normal field"),
        ({"a": "uniform(0, 1)", "b": "opposed(a, 0.1)"}, "normal field"),
        ({"a": "uniform(low, 9)"}, r"low is not a number from -2\^53 to 2\^53"),
        ({"a": "normal(0, 1)", "b": "opposed(a, often)"}, "often is not a number"),
        ({"ts": "uniform(0, 1)"}, "cannot be called"),
    ],
)
def test_what_cannot_be_drawn_is_refused(fields: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        stream(10, **fields)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"rows": 10**10 + 1}, "less than or equal"), ({"rows": 10**8, "every": "3600 s"}, "2262")],
)
def test_a_stream_without_an_end_in_sight_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        SyntheticStream(fields={"a": "uniform(0, 9)"}, **changed)


def test_a_stream_is_written_block_by_block(tmp_path: Path) -> None:
    said = stream(1000, a="normal(0, 1)", b="opposed(a, 0.1)", c="drifting(0, 1, 9, 90, 700)")
    with mock.patch("scenarios.synthetic._BLOCK_ROWS", 300):
        written = pq.read_table(said.write(tmp_path))
    for name, values in said.columns().items():
        assert written[name].to_numpy().tolist() == values.tolist()


def test_a_drifting_mean_stays_moves_steadily_and_stays() -> None:
    values = stream(18_000, x="drifting(5, 1, 40, 4000, 10000)").columns()["x"]
    assert values[:4000].mean() == pytest.approx(5, abs=0.1)
    assert values[14_000:].mean() == pytest.approx(45, abs=0.1)
    assert values[8500:9500].mean() == pytest.approx(25, abs=0.2)
    assert values[:4000].std() == pytest.approx(1, abs=0.05)
    with pytest.raises(ValidationError, match="deviation must be above 0"):
        stream(10, x="drifting(5, 0, 40, 1, 2)")


@pytest.mark.parametrize(("second", "refused"), [(11, True), (12, True), (10, True), (13, False)])
def test_two_streams_with_a_field_in_common_are_refused(second: int, refused: bool) -> None:
    """Field k has the seed s + k, so neighbouring seeds would join a field with its own copy."""
    fields = {"a": "uniform(0, 9)", "b": "uniform(0, 9)"}
    values = {
        "query": "SELECT R.id FROM R, S WHERE R.a < S.a WINDOW AS (SLIDE INTERVAL '1' ON '9')",
        "streams": [
            {"synthetic": {"rows": 9, "seed": seed, "fields": fields}} for seed in (11, second)
        ],
    }
    with pytest.raises(ValidationError, match="streams 1 and 2") if refused else nullcontext():
        RunConfig.model_validate(values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("uniform(1e400, 49)", "1e400"),
        ("uniform(0, 1e17)", "1e17"),
        ("normal(nan, 1)", "nan"),
        ("drifting(0, 1, -inf, 1, 1)", "-inf"),
        ("zipf(1, 1e12)", "n 1 to 10,000,000"),
        ("gamma(1e12, 1)", "a whole shape from 1 to 1,000"),
    ],
)
def test_numbers_that_no_stream_can_be_drawn_from_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SyntheticStream(rows=1, seed=1, fields={"f": text})
