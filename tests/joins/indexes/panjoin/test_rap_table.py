"""The splitter adjustment: balanced parts after few rounds, whatever the distribution."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.panjoin.rap_table import Histogram, RapTable, adjust_splitters, even_splitters


def fill(keys: np.ndarray, partitions: int, splitters: np.ndarray | None) -> RapTable:
    table = RapTable(len(keys), partitions, 1.25, "int64", splitters)
    order = np.argsort(keys, kind="stable")
    table.insert(keys[order], order.astype(np.int32))
    return table


def test_it_counts_from_the_least_value_of_a_partition() -> None:
    """Figure 3's histogram: the second of four parts ends three fifths into the third partition."""
    count = np.array([2, 3, 5, 6])
    least, greatest = np.array([0, 10, 20, 30]), np.array([9, 19, 29, 39])
    # Tuple 4 is the second of three in [10, 19], 8 the third of five in [20, 29], 12 the second of
    # six in [30, 39].
    assert adjust_splitters(Histogram(count, least, greatest)).tolist() == [16, 25, 33]


@given(data=st.data(), partitions=st.integers(1, 20))
def test_splitters_ascend_and_stay_among_the_values(data: st.DataObject, partitions: int) -> None:
    bounds = np.iinfo(np.int64)
    values = st.integers(-5, 5) | st.sampled_from([bounds.min, bounds.max, bounds.max - 1])
    keys = np.array(data.draw(st.lists(values, min_size=1, max_size=60)))
    table = fill(keys, partitions, None)
    assert table.histogram.tuples.sum() == len(keys)
    splitters = table.sampled
    assert splitters is not None
    assert len(splitters) == partitions - 1
    assert (np.diff(splitters.astype(object)) >= 0).all()
    assert all(keys.min() <= s <= keys.max() for s in splitters)


@pytest.mark.parametrize("partitions", [64, 1024])
@pytest.mark.parametrize("shape", ["uniform", "normal", "two modes", "rank-size"])
def test_three_adjustments_balance_common_distributions(shape: str, partitions: int) -> None:
    """Section V-A1: within three rounds the parts are as even as they get."""
    rng = np.random.default_rng(1)
    keys = {
        "uniform": rng.random(200_000),
        "normal": rng.normal(0.5, 0.01, 200_000),
        "two modes": np.concatenate([rng.normal(m, 0.01, 100_000) for m in (0.2, 0.9)]),
        "rank-size": rng.lognormal(0, 1.5, 200_000) / 1e3,
    }[shape]
    keys = (keys.clip(0, 1) * 2**32).astype(np.int64)
    splitters: np.ndarray | None = even_splitters(0, 2**32, partitions)
    errors = []
    for _ in range(4):
        table = fill(keys, partitions, splitters)
        errors.append(
            np.abs(table.histogram.tuples - 200_000 / partitions).mean() * partitions / 200_000
        )
        splitters = table.sampled
    assert errors[3] < 0.2
    assert errors[3] <= errors[0]


@pytest.mark.parametrize(("partitions", "digits"), [(256, 4), (2_048, 3), (4_096, 3)])
def test_tails_as_heavy_as_those_of_views_take_no_more_rounds_than_digits(
    partitions: int, digits: int
) -> None:
    """A round parts what is in a P-th of a range: with 256 parts, 32 bits may take four rounds.

    The paper finds three; with how many partitions, it does not say.
    """
    rng = np.random.default_rng(1)
    splitters: np.ndarray | None = even_splitters(-(2**31), 2**31, partitions)
    errors = []
    for _ in range(7):
        # Half of YouTube's videos have 2,710 views at most, a hundredth 3.4 million and more.
        views = rng.lognormal(np.log(2_710), 3.3, 100_000).clip(0, 2**31 - 1).astype(np.int64)
        table = fill(views, partitions, splitters)
        errors.append(np.abs(table.histogram.tuples * partitions / len(views) - 1).mean())
        splitters = table.sampled
    assert errors[digits] <= min(errors) + 0.05
    assert errors[digits - 3] > min(errors) + 0.5


@pytest.mark.parametrize("partitions", [16, 256])
def test_the_worst_case_of_figure_4_ends_after_as_many_rounds_as_the_values_have_digits(
    partitions: int,
) -> None:
    keys = 2**32 // partitions ** np.arange(40, dtype=np.float64)
    keys = np.unique(keys.astype(np.int64))
    splitters: np.ndarray | None = even_splitters(0, 2**32, partitions)
    rounds = 0
    while True:
        table = fill(keys, partitions, splitters)
        if table.histogram.tuples.max() <= -(-2 * len(keys) // partitions) + 1:
            break
        splitters = table.sampled
        rounds += 1
        assert rounds <= np.ceil(32 / np.log2(partitions))
