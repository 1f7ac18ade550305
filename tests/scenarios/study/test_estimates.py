"""Intervals of what several seeds came to, against published values and the definition."""

from __future__ import annotations

from math import inf

import pytest

from scenarios.study.estimates import Estimate


def test_the_interval_of_the_mean_is_students() -> None:
    """Five values of mean 3 and standard deviation √2.5: t of 4 degrees of freedom is 2.776."""
    low, high = Estimate((1.0, 2.0, 3.0, 4.0, 5.0)).interval
    half = 2.7764451 * (2.5 / 5) ** 0.5
    assert [low, high] == pytest.approx([3 - half, 3 + half])


def test_the_interval_of_a_share_is_wilsons_where_that_is_wider() -> None:
    """Wilson (1927): of no failure in 10 the interval reaches from 0.722 to 1."""
    all_right = Estimate((1.0, 1.0), counted=10)
    assert list(all_right.interval) == pytest.approx([0.7225, 1.0], abs=1e-4)
    apart = Estimate((0.5, 1.0), counted=1_000_000)
    assert apart.interval == (0.0, 1.0), "the seeds differ by more than a million tuples do"


def test_seeds_that_agree_have_no_interval() -> None:
    same = Estimate((7.0, 7.0, 7.0))
    assert same.is_constant
    assert same.interval == (7.0, 7.0)
    assert str(same) == "7 ="
    assert not Estimate((7.0,)).is_constant
    assert str(Estimate((7.0,))) == "7"


def test_a_ratio_is_that_of_each_seed() -> None:
    ratio = Estimate((2.0, 40.0)).with_(Estimate((1.0, 20.0)), lambda a, b: a / b)
    assert ratio.samples == (2.0, 2.0)


def test_what_is_infinite_with_some_seeds_may_be_anything() -> None:
    assert Estimate((inf, 1.0)).interval == (-inf, inf)
    assert Estimate((inf, inf)).interval == (inf, inf)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate((12_000.0, 12_500.0, 13_000.0)), "12.5 k ± 1.24 k"),
        (Estimate((0.9, 0.9, 0.9), counted=1000), "0.9 (0.88 to 0.917)"),
    ],
)
def test_a_person_reads_the_mean_and_how_sure_it_is(estimate: Estimate, text: str) -> None:
    assert str(estimate) == text
