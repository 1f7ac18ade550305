"""A query without a topology runs on one that fits it; one that does not fit names the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from actors.feed import Disorder
from actors.source import Feeding
from joins.queries.parser import parse_query
from netsim.network import NetworkError, link_between
from scenarios.formatting import by_reason
from scenarios.plan import Plan, choose, make_plan, name_others
from scenarios.preparation import prepare_tables
from scenarios.scenario_files import ConfigError, build, change
from scenarios.tables import TableStream

WINDOW = "WINDOW AS (SLIDE INTERVAL '1 s' ON '10 s')"
TWO_WINDOWS = "WINDOW A AS (SLIDE INTERVAL '1' ON '2'), B AS (SLIDE INTERVAL '1' ON '3')"
WITHIN = "B.ts BETWEEN A.ts - INTERVAL '1 s' AND A.ts"
KEYED = f"A, B WHERE A.k = B.k AND {WITHIN}"
QUERY = f"SELECT * FROM A, B WHERE A.k = B.k {WINDOW}"


def plan_of(
    topology: str,
    settings: Mapping[str, Any],
    *,
    rows: int = 6,
    each_ns: int = 1,
    on_prepare: Callable[[], object] = lambda: None,
) -> Plan:
    """Return the plan of the keyed query over two streams of so many tuples."""
    query = parse_query(QUERY)
    table = {"ts": np.arange(rows) * each_ns, "k": np.arange(rows) % 7}
    streams = [{"table": "t"}] * 2
    values = {"name": "small", "query": QUERY, "topology": topology, "streams": streams}

    def prepare(*_: Any) -> tuple[TableStream, ...]:
        on_prepare()
        return prepare_tables(query, [table, table], [None, None])

    return make_plan(change(build(values, where="test"), settings), prepare=prepare)


@pytest.mark.parametrize(
    ("query", "system"),
    [
        (f"A, B WHERE A.k = B.k AND A.x < B.x {WINDOW}", "hash_join"),
        (f"A, B WHERE A.x < B.x {WINDOW}", "panjoin"),
        ("A, B WHERE A.x < B.x WINDOW AS (SLIDE INTERVAL '1' ON '99')", "join_matrix"),
        ("A, B WHERE A.x < B.x WINDOW AS (SLIDE INTERVAL '1' ON '9999')", "panjoin"),
        ("A WHERE A.x1 < A.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9999')", "panjoin"),
        (KEYED, "kp_oij"),
        (f"A, B WHERE {WITHIN}", "dp_oij"),
        (f"A, B, C WHERE A.k = B.k AND B.x < C.x {WINDOW}", "semijoin"),
        (f"A, B WHERE A.x < B.x {TWO_WINDOWS}", "ibwj"),
    ],
)
def test_the_query_decides_which_system_it_runs_on(query: str, system: str) -> None:
    topology, why = choose(parse_query(f"SELECT * FROM {query}"), Feeding(), {})
    assert topology.name == system
    assert why.startswith(f"no topology was named: {system} is taken, because ")


def test_parameters_and_disorder_leave_only_the_systems_that_take_them() -> None:
    query = parse_query(f"SELECT * FROM A, B WHERE A.x < B.x {WINDOW}")
    assert choose(query, Feeding(), {"po_join_pes": 3})[0].name == "spo_join"
    assert choose(query, Feeding(disorder=Disorder(delay_ns=5)), {})[0].name == "panjoin"
    with pytest.raises(ConfigError, match=r"po_join_pe: .* did you mean 'po_join_pes'"):
        choose(query, Feeding(), {"po_join_pe": 3})


def test_a_system_that_cannot_names_those_that_can() -> None:
    def named(topology: str) -> str:
        fields = {"k": "uniform(0, 9)"}
        streams = [{"synthetic": {"rows": 9, "seed": seed, "fields": fields}} for seed in (1, 9)]
        values = {"name": "keyed", "query": f"SELECT * FROM {KEYED}", "streams": streams}
        return name_others(build(values | {"topology": topology}, where="test"))

    assert "kp_oij" in named("spo_join")
    assert "hash_join" not in named("spo_join")
    assert named("kp_oij") == ""


@pytest.mark.parametrize(
    ("parameters", "notes"),
    [
        ({"plan": "greedy"}, ()),
        ({}, ("bloom = True: a plan that is not searched for does not depend on it",)),
    ],
)
def test_notes_are_on_parameters_as_they_were_set(
    parameters: dict[str, str], notes: tuple[str, ...]
) -> None:
    """A search has its plan take its own place among the parameters."""
    settings = {"parameters": parameters | {"bloom": True}}
    plan = plan_of("semijoin", settings, rows=60, each_ns=10**8)
    assert plan.parameters.plan != "greedy"
    assert plan.notes == notes


@pytest.mark.parametrize(
    ("settings", "noted"),
    [
        ({}, False),
        ({"processes": 3}, True),
        ({"processes": "each"}, True),
        ({"processes": 3, "network.sites": "processes"}, False),
        ({"processes": 3, "backend": "ray"}, False),
    ],
)
def test_processes_that_an_inline_run_does_not_have_are_noted(
    settings: dict[str, Any], noted: bool
) -> None:
    plan = plan_of("hash_join", settings)
    assert any(note.startswith("processes = ") for note in plan.notes) == noted


@pytest.mark.parametrize(
    ("measured", "noted"),
    [
        ([2, 12], []),
        ([2, 13], ["measured = [2, 13]: there are only 12 arrivals"]),
        ([12, 13], ["measured = [12, 13]: there are only 12 arrivals, so nothing is measured"]),
    ],
)
def test_arrivals_that_are_to_be_measured_and_do_not_come_are_noted(
    measured: list[int], noted: list[str]
) -> None:
    plan = plan_of("hash_join", {"measured": measured})
    assert [note for note in plan.notes if note.startswith("measured")] == noted


def test_links_between_processes_are_named_by_them_and_known_before_data_is_read() -> None:
    def planned(*ends: str) -> Plan:
        links = [{"a": ends[0], "b": ends[1], "latency": "7 ms"}]
        network = {"sites": "processes", "links": links}
        settings = {"processes": 2, "network": network}
        return plan_of("hash_join", settings, on_prepare=lambda: prepared.append(None))

    prepared: list[None] = []
    link = link_between(planned("process.0", "process.1").network, "process.0", "process.1")
    assert link
    assert link.latency.mean_ns == 7_000_000
    assert len(prepared) == 1
    with pytest.raises(NetworkError, match=r"there is no site 'source'; there are process\.0, "):
        planned("source", "process.1")
    assert len(prepared) == 1


def test_a_reason_is_given_once_with_all_of_its_systems() -> None:
    why = "joins over windows"
    reasons = {"a": f"a {why}", "a, fast": f"a {why}", "b, fast": f"b {why}", "c": "no data"}
    assert by_reason(reasons) == {"joins over windows": ["a", "b, fast"], "no data": ["c"]}
