"""``joinsim plan``, from a person's side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from netsim.cost import PROFILES
from tests.end_to_end.conftest import Command, write_prepared

QUERY = """
SELECT * FROM A, B, C WHERE A.x = B.x AND B.x = C.x
WINDOW AS (SLIDE INTERVAL '1 ns' ON '2 s' PRECISE)
"""
SETTINGS = ("--set", "network.preset=wan")


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    """Three steady streams of uniform values, as options of the command line."""
    rng = np.random.default_rng(3)
    options = []
    for place, name in enumerate("ABC"):
        ts = np.arange(1200) * 20_000_000 + place * 1_000_000
        write_prepared(tmp_path / name, {"x": rng.integers(0, 20, 1200)}, ts=ts)
        options += ["--data", str(tmp_path / name)]
    return options


def test_a_plan_is_searched_for_explained_and_run(joinsim: Command, data: list[str]) -> None:
    said = joinsim(
        "plan", "--query", QUERY, *data, *SETTINGS, "--set", "delta=500 ms",
        "--set", "execution=delayed", "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    answer = said.json
    assert [line[:2] for line in answer["plan"]] == ["A:", "B:", "C:"]
    steps = answer["tables"][1]
    assert len(steps["rows"]) == 6  # two for each head
    assert steps["columns"][-6:] == ["SP-S", "SP-D", "SM-S1", "SM-S2", "SM-D1", "SM-D2"]
    for cost in answer["costs"]:
        assert cost["estimated"] == pytest.approx(cost["measured"], rel=0.1)


def test_a_plan_of_ones_own_is_costed(joinsim: Command, data: list[str]) -> None:
    own = "A: B SM-S1, C SP-S; B: C SP-S, A SP-D; C: B SP-D, A BLOOM-D"
    said = joinsim(
        "plan", "--query", QUERY, *data, *SETTINGS, "--set", f"plan={own}", "--no-simulate"
    )
    assert said.code == 0, said.err
    assert "C: B SP-D, A BLOOM-D" in said.out
    assert "exhaustive" in said.out


def test_a_plan_that_is_not_run_has_no_figure(joinsim: Command, data: list[str]) -> None:
    words = ["plan", "--query", QUERY, *data, *SETTINGS, "--no-simulate"]
    said = joinsim(*words, "--figure", "plan.pdf")
    assert (said.code, said.out) == (3, "")
    assert "--figure plan.pdf: it draws the run; leave out --no-simulate" in said.err


def test_a_tree_is_searched_for_and_explained(joinsim: Command, data: list[str]) -> None:
    said = joinsim(
        "plan", "--query", QUERY, *data, *SETTINGS, "--set", "plan=exhaustive-tree", "--json"
    )
    assert said.code == 0, said.err
    answer = said.json
    (tree,) = answer["plan"]
    assert tree.startswith("(")
    _, joins, searches = answer["tables"]
    assert [len(row[0].split(" ⋈ ")) for row in joins["rows"]] in ([1, 1, 1, 2], [1, 1, 2, 1])
    assert [row[0] for row in searches["rows"]] == [
        "this plan", "greedy", "greedy-tree", "exhaustive", "exhaustive-tree",
    ]  # fmt: skip
    assert searches["rows"][0][1:] == searches["rows"][-1][1:]
    for cost in answer["costs"]:
        assert cost["estimated"] == pytest.approx(cost["measured"], rel=0.1)


def test_plans_that_will_change_are_foreseen(joinsim: Command, data: list[str]) -> None:
    said = joinsim(
        "plan", "--query", QUERY, *data, *SETTINGS, "--set", "replan_every=20", "--no-simulate",
        "--set", "plan=A: B SM-D2, C SM-D2; B: A SM-D2, C SM-D2; C: B SM-D2, A SM-D2", "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    changes = said.json["tables"][-1]
    assert changes["title"] == "plans in force, looked at anew every 20 intervals"
    first, *others = changes["rows"]
    assert first[:2] == ["0", "4"]  # two epochs of 20 intervals of 100 ms
    assert "SM-D2" in first[2]
    assert others
    assert float(others[-1][4]) < float(first[4])


def test_a_system_that_plans_nothing_says_so(joinsim: Command, data: list[str]) -> None:
    said = joinsim("plan", "--query", QUERY, *data, "--topology", "hash_join")
    assert said.code == 3
    assert "hash_join has nothing to plan; the topology can be semijoin" in said.err


def test_a_survey_says_that_it_is_one(joinsim: Command) -> None:
    """It has no query of its own to plan for."""
    said = joinsim("plan", "semijoin-table3")
    assert said.code == 3
    assert "semijoin-table3 is a survey" in said.err
    assert "joinsim run semijoin-table3" in said.err


def test_window_joins_are_estimated_at_the_runs_prices_and_timed(
    joinsim: Command, data: list[str]
) -> None:
    query = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '100')"
    plan = ("plan", "--query", query, *data[:4], "--topology", "ibwj", "--json")
    said = joinsim(*plan)
    assert said.code == 0, said.err
    model, machine = said.json["tables"]
    predicted = {row[0]: row[-1] for row in model["rows"]}
    assert machine["columns"] == ["index", "estimated", "measured"]
    assert {row[0]: row[1] for row in machine["rows"]} == predicted
    assert all(float(row[2].replace(",", "")) > 0 for row in machine["rows"])
    assert said.json["costs"][0]["estimated"] == pytest.approx(
        float(predicted["this run"].replace(",", "")), abs=1
    )


def test_an_index_is_planned_at_its_own_prices(
    joinsim: Command, data: list[str], tmp_path: Path
) -> None:
    """In a profile where a B-chain's join costs next to nothing, it is the cheapest."""
    profile = tmp_path / "mine.toml"
    free = "sizes = [64]\nrows = [1]\npercents = [[0]]\ncall_ps = 0\nrow_ps = 0\n"
    text = (PROFILES / "shared_memory.toml").read_text().replace('structures = "default"\n', "")
    profile.write_text(
        f'{text}\n[structures]\nlike = "default"\n\n[structures."ibwj_b_chain.join"]\n{free}'
    )
    query = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '100')"
    said = joinsim(
        "plan", "--query", query, *data[:4], "--topology", "ibwj", "--no-simulate",
        "--set", f"profile={profile}", "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert said.json["plan"][1].startswith("cheapest: --set index=b_chain")


def test_without_a_run_nothing_is_timed(joinsim: Command, data: list[str]) -> None:
    query = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '100')"
    said = joinsim(
        "plan", "--query", query, *data[:4], "--topology", "ibwj", "--no-simulate", "--json"
    )
    assert said.code == 0, said.err
    assert len(said.json["tables"]) == 1


def test_the_time_of_several_threads_is_not_compared_and_the_plan_says_why(
    joinsim: Command, data: list[str]
) -> None:
    query = "SELECT * FROM A, B WHERE A.x = B.x WINDOW AS (SLIDE INTERVAL '1' ON '100')"
    plan = ("plan", "--query", query, *data[:4], "--topology", "ibwj", "--json")
    said = joinsim(*plan, "--set", "threads=2")
    assert said.code == 0, said.err
    assert said.json["costs"][0]["measured"] is None
    assert said.json["plan"][-1] == (
        "the run has 2 threads, whose time is not that of their work: it is not beside the "
        "estimate; --set threads=0 runs it on one"
    )
    alone = joinsim(*plan, "--set", "threads=0")
    assert alone.json["costs"][0]["measured"] > 0
    assert not any("threads" in line for line in alone.json["plan"])


def test_rates_of_streams_have_no_exponent(joinsim: Command, data: list[str]) -> None:
    said = joinsim(
        "plan", "--query", QUERY, *data, *SETTINGS, "--set", "feeding.rate_tps=300000",
        "--no-simulate", "--json",
    )  # fmt: skip
    assert said.code == 0, said.err
    streams, joins, _ = said.json["tables"]
    assert streams["rows"][0][1] == "100,000"
    assert not any("e+" in cell for row in [*streams["rows"], *joins["rows"]] for cell in row)
