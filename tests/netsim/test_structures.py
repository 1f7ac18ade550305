"""Prices of structures: integers, interpolated by size and tuples, and read as they are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.work import Step, Work
from netsim.cost import StructureCost, load_profile

COST = StructureCost(
    sizes=(64, 1024, 16384),
    rows=(1, 32),
    percents=((80, 40), (100, 60), (300, 160)),
    copied_percents=(100, 100, 50),
    match_percents=(10, 100, 200),
    call_ps=2_000_000,
    row_ps=5_000,
    unit_ps=(100, 200, 300, 400, 500, 600, 700),
)


def work_percent(size: int, rows: int) -> int:
    return COST.percents_at(size, rows).work


def test_a_step_costs_its_call_its_tuples_and_its_units() -> None:
    work = Work(comparisons=1, inserts=2, moves=3, bits=4, bytes_copied=5, matches=6, atomics=7)
    units = 100 + 2 * 200 + 3 * 300 + 4 * 400 + 5 * 500 + 6 * 600 + 7 * 700
    assert COST.work_ps(Step("x", 1, 1024), work) == 2_000_000 + 5_000 + units
    assert COST.work_ps(Step("x", 32, 16384), Work()) == (2_000_000 + 32 * 5_000) * 160 // 100
    assert COST.work_ps(Step("x", 0, 1024), work) == units
    assert COST.work_ps(Step("x", 0, 16384), Work(bytes_copied=2, matches=3)) == 500 + 3_600
    assert COST.work_ps(Step("x", 1, 1024), work, calls=3) == 3 * 2_005_000 + units


def test_percents_are_interpolated_by_logarithms_and_stay_beyond_the_table() -> None:
    assert [work_percent(size, 1) for size in (64, 256, 1024, 4096, 16384)] == [
        80, 90, 100, 200, 300,
    ]  # fmt: skip
    assert work_percent(1, 1) == work_percent(0, 0) == 80
    assert work_percent(1 << 30, 1 << 20) == 160
    # Half way between 1 and 32 tuples by powers of 2, the mean of both.
    assert work_percent(1024, 6) in range(77, 83)


@given(size=st.integers(0, 1 << 24), rows=st.integers(0, 1 << 12))
def test_a_percent_lies_between_those_of_the_table(size: int, rows: int) -> None:
    assert 40 <= work_percent(size, rows) <= 300
    assert work_percent(size, rows) <= work_percent(2 * size, rows)


@pytest.mark.parametrize("sizes", [(1000, 1010, 16384), (64, 16384, 1024), (0, 64, 1024)])
def test_sizes_that_do_not_ascend_or_are_too_near_to_tell_apart_are_refused(
    sizes: tuple[int, ...],
) -> None:
    with pytest.raises(ValueError, match=r"sizes are \[.*\]; they must ascend from 1 or more"):
        replace(COST, sizes=sizes)


def profile_with(tmp_path: Path, lines: str) -> Path:
    path = tmp_path / "mine.toml"
    units = "\n".join(f"{k} = {v}" for k, v in vars(load_profile()).items() if k.endswith("_ps"))
    path.write_text(f'{units}\n[structures."hash.probe"]\n{lines}')
    return path


def test_a_unit_that_a_structure_does_not_price_has_the_profiles_price(tmp_path: Path) -> None:
    table = "sizes = [8]\nrows = [1]\npercents = [[100]]\ncall_ps = 1\nrow_ps = 2\nmatch_ps = 3\n"
    profile = load_profile(profile_with(tmp_path, table))
    cost = profile.structures["hash.probe"]
    assert cost.unit_ps == (*profile.unit_ps[:5], 3, profile.unit_ps[6])
    assert StructureCost.read(cost.written(profile.unit_ps), profile.unit_ps) == cost


def test_a_profile_has_the_prices_that_the_one_it_is_like_has_now(tmp_path: Path) -> None:
    table = "sizes = [8]\nrows = [1]\npercents = [[100]]\nrow_ps = 2\nmatch_ps = 3\n"
    other = profile_with(tmp_path, f"{table}call_ps = 1\n")
    units = other.read_text().partition("[structures")[0]
    like = tmp_path / "like.toml"
    like.write_text(f'structures = "{other}"\n{units}')
    assert load_profile(like).structures["hash.probe"].call_ps == 1
    other.write_text(other.read_text().replace("call_ps = 1", "call_ps = 23"))
    assert load_profile(like).structures["hash.probe"].call_ps == 23


def test_a_profile_and_an_operation_have_the_prices_that_they_do_not_state(tmp_path: Path) -> None:
    like = tmp_path / "like.toml"
    like.write_text(
        'row_ps = 7\n[structures]\nlike = "default"\n'
        '[structures."hash.probe"]\nlike = "hash.insert"\ncall_ps = 23\n'
    )
    default = load_profile()
    dear = replace(default.structures["hash.insert"], call_ps=23)
    assert load_profile(like) == replace(
        default, name="like", row_ps=7, structures={**default.structures, "hash.probe": dear}
    )


def test_only_steps_that_were_measured_have_prices_of_their_own() -> None:
    profile = replace(load_profile(), structures={"hash.probe": COST})
    work = Work(comparisons=1_000, matches=30)
    known, unknown = Step("hash.probe", 1, 1024), Step("hash.expire", 1, 1024)
    priced_ns = (2_000_000 + 5_000 + 100_000 + 30 * 600) // 1000
    assert profile.steps_ns([(known, work)], Work()) == priced_ns
    assert profile.steps_ns([(unknown, work)], Work()) == profile.work_ns(work)
    assert profile.steps_ns([(known, work), (unknown, work)], work) == (
        priced_ns + profile.work_ns(work + work)
    )


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rows = [1]\npercents = [[1]]\ncall_ps = 1\nrow_ps = 1", "sizes"),
        ("sizes = [8, 4]\nrows = [1]\npercents = [[1], [1]]\ncall_ps = 1\nrow_ps = 1", "ascend"),
        ("sizes = [8]\nrows = [1, 2]\npercents = [[1]]\ncall_ps = 1\nrow_ps = 1", "an entry"),
        ("sizes = [8]\nrows = [1]\npercents = [[1]]\ncall_ps = 0.5\nrow_ps = 1", "call_ps is 0.5;"),
        (
            "sizes = [8]\nrows = [1, 2]\npercents = [[1, -1]]\ncall_ps = 1\nrow_ps = 1",
            r"percents\[0\]\[1\] is -1; it must be a whole number, 0 or more",
        ),
        (
            "sizes = [8]\nrows = [1]\npercents = [[1]]\ncall_ps = 1\nrow_ps = 1\nmove_ps = 0.5",
            "move_ps is 0.5; it must be a whole number of picoseconds",
        ),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, lines: str, said: str) -> None:
    with pytest.raises(ValueError, match=rf"mine.toml: structures.hash.probe: .*{said}"):
        load_profile(profile_with(tmp_path, lines))
