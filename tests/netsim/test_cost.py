"""Cost profiles: integer sums, and files that are wrong."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from joins.work import COUNTERS, Work
from netsim.cost import COSTS, PROFILES, CostProfile, load_profile


def test_every_counter_of_work_costs_something_in_the_default_profile() -> None:
    profile = load_profile()
    for counter in COUNTERS:
        assert profile.work_ns(Work(**{counter: 10**6})) > 0, counter


def test_costs_are_whole_nanoseconds_of_the_exact_sum() -> None:
    profile = load_profile()
    work = Work(comparisons=3, matches=1)
    assert profile.work_ns(work) == (3 * profile.comparison_ps + profile.match_ps) // 1000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("message_ps = 1", "missing"),
        ("surprise_ps = 1", "surprise_ps"),
    ],
)
def test_a_profile_file_that_is_wrong_is_named_with_its_keys(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as raised:
        load_profile(path)
    assert str(path) in str(raised.value)
    assert "a cost profile has the keys name, message_ps" in str(raised.value)


UNITS = "".join(f"{cost} = 1\n" for cost in COSTS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("structures = 5", "structures is 5: it must be a table, or the name of a profile"),
        ("[structures]\nlike = 5", "structures.like is 5: it must be the name of a profile"),
        ("[structures]\nhash = 3", "structures.hash is 3: it must be a table, or the name of one"),
        ("memory = 3", "memory is 3: it must be a table"),
        ("operators = 3", "operators is 3: it must be a table"),
        ("transport = [1]", r"transport is \[1\]: it must be a table"),
        ("[operators]\nhash_join = 4", "operators.hash_join is 4: it must be a table"),
        (
            "[operators.hash_join]\njoiner = 4",
            "operators.hash_join.joiner is 4: it must be a table",
        ),
        ("name = 5", "name is 5: it must be text"),
    ],
)
def test_a_key_of_another_kind_is_named_with_what_it_must_be(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f"{text}\n{UNITS}" if text[0] != "[" else f"{UNITS}{text}\n")
    with pytest.raises(ValueError, match=f"^{path}: {message}"):
        load_profile(path)


def test_a_profile_that_is_not_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"name = '\xff'")
    with pytest.raises(ValueError, match=f"^{path}: it is not in UTF-8"):
        load_profile(path)


def test_profiles_that_have_each_other_s_prices_are_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one.toml", tmp_path / "two.toml"
    one.write_text(f"{UNITS}[structures]\nlike = '{two}'\n")
    two.write_text(f"structures = '{one}'\n{UNITS}")
    with pytest.raises(ValueError, match=f"^{two}: structures are like those of {one}, .* its own"):
        load_profile(one)


def test_a_negative_or_broken_cost_is_refused() -> None:
    values: dict[str, Any] = dict.fromkeys((f.name for f in fields(CostProfile)), 1)
    for wrong in (-1, 0.5):
        with pytest.raises(ValueError, match=r"bit_ps is .* whole number of picoseconds"):
            CostProfile(**values | {"name": "x", "bit_ps": wrong})


def test_a_file_with_a_broken_cost_or_that_is_no_toml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = (PROFILES / "default.toml").read_text()
    path.write_text(re.sub(r"(?m)^bit_ps = .*$", "bit_ps = -1", text))
    with pytest.raises(ValueError, match=f"{path}: bit_ps is -1; it must be a whole number"):
        load_profile(path)
    path.write_text("bit_ps = one\n")
    with pytest.raises(ValueError, match=f"{path}: .*line 1"):
        load_profile(path)


def test_an_unknown_profile_is_answered_with_those_there_are() -> None:
    with pytest.raises(
        ValueError, match="no cost profile 'fast': give a TOML file or one of default"
    ):
        load_profile("fast")


def test_patterns_of_one_engine_pay_alike_for_a_tuple() -> None:
    """Replicas of WindFlow's and threads of Scale-OIJ's both take one tuple after the other."""
    costs = load_profile("multicore").structures
    assert costs["interval_join.join"] == costs["interval_join.shared"]
    assert costs["interval_join.join"].call_ps == 0
    default = load_profile("default").structures
    assert costs["b_plus_tree.probe"] == default["b_plus_tree.probe"]


def test_profiles_in_which_something_is_free_differ_from_others_in_that_alone() -> None:
    default, threads = load_profile("default"), load_profile("multicore")
    free: dict[str, Any] = {"message_ps": 0, "row_ps": 0, "byte_ps": 0}
    for name, other in (("free_messages", default), ("free_pointers", threads)):
        assert load_profile(name) == replace(other, name=name, **free)
    calls = {name: replace(cost, call_ps=0) for name, cost in default.structures.items()}
    assert load_profile("free_calls") == replace(
        default, name="free_calls", structures=calls, **free
    )


def test_profiles_in_which_something_costs_more_differ_from_others_in_that_alone() -> None:
    default, threads = load_profile("default"), load_profile("multicore")
    merge = default.structures["order_arrays.permutation"]
    slow = {"order_arrays.permutation": replace(merge, call_ps=100_000_000_000)}
    assert load_profile("slow_merges") == replace(
        default, name="slow_merges", structures={**default.structures, **slow}
    )
    join = threads.structures["interval_join.join"]
    unit_ps = list(join.unit_ps)
    unit_ps[COUNTERS.index("matches")] = 30_000
    match_percents = (100,) * len(join.sizes)
    dear = replace(join, unit_ps=tuple(unit_ps), match_percents=match_percents)
    assert load_profile("priced_pairs") == replace(
        threads, name="priced_pairs", structures={**threads.structures, "interval_join.join": dear}
    )


def test_what_if_profiles_of_pim_trees_differ_from_shared_memory_in_one_price() -> None:
    shared = load_profile("shared_memory")
    even, slow, free = {}, {}, {}
    for name, price in shared.structures.items():
        if name in ("ibwj_pim_tree.join", "ibwj_im_tree.join"):
            even[name] = replace(price, copied_percents=(100,) * len(price.sizes))
        if name in ("ibwj_shared_bw_tree.join", "ibwj_shared_pim_tree.join"):
            unit_ps = list(price.unit_ps)
            unit_ps[COUNTERS.index("atomics")] = 200_000
            slow[name] = replace(price, unit_ps=tuple(unit_ps))
        trees = ("b_plus_tree", "im_tree", "pim_tree", "shared_pim_tree")
        if name in [f"ibwj_{tree}.join" for tree in trees]:
            unit_ps = list(price.unit_ps)
            unit_ps[COUNTERS.index("matches")] = 0
            free[name] = replace(price, unit_ps=tuple(unit_ps))
    expected = {"even_merges": (even, 2), "slow_atomics": (slow, 2), "free_matches": (free, 4)}
    for name, (changed, structures) in expected.items():
        assert len(changed) == structures
        prices = {**shared.structures, **changed}
        assert load_profile(name) == replace(shared, name=name, structures=prices)


def test_slow_matches_differ_from_rdma_in_what_a_match_costs_when_windows_are_probed() -> None:
    rdma = load_profile("rdma")
    slow = {}
    for name in ("rap_table.probe", "wib_tree.probe", "nested_loop.probe"):
        price = rdma.structures[name]
        unit_ps = list(price.unit_ps)
        unit_ps[COUNTERS.index("matches")] = 30_000
        match_percents = (100,) * len(price.sizes)
        slow[name] = replace(price, unit_ps=tuple(unit_ps), match_percents=match_percents)
    prices = {**rdma.structures, **slow}
    assert load_profile("slow_matches") == replace(rdma, name="slow_matches", structures=prices)


def test_a_price_of_calls_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "free.toml"
    text = (PROFILES / "free_calls.toml").read_text()
    path.write_text(text.replace("\ncall_ps = 0", "\ncall_ps = -1"))
    with pytest.raises(ValueError, match="call_ps: call_ps is -1; it must be a whole number"):
        load_profile(path)


def test_a_price_like_that_of_a_structure_there_is_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for cost in ('"interval_join.shraed"', '{ like = "interval_join.shraed" }'):
        path.write_text(f'[structures]\nlike = "default"\n"interval_join.join" = {cost}\n')
        with pytest.raises(ValueError, match=r"there is no structure 'interval_join\.shraed' in"):
            load_profile(path)
