"""PanJoin's graph, and parameters that do not go together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from actors.feed import Disorder
from actors.source import Feeding
from joins.queries.parser import parse_query
from topologies import TOPOLOGIES
from topologies.panjoin import PanJoinParameters, PanJoinTopology
from topologies.topology import TopologyError

PANJOIN = PanJoinTopology()


def build(window: str = "SLIDE INTERVAL '10' ON '40'", **parameters: Any) -> Any:
    query = parse_query(f"SELECT * FROM R, S WHERE R.v = S.v WINDOW AS ({window})")
    return PANJOIN.build(PANJOIN.sketch(query), PanJoinParameters(**parameters))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"subwindow": 8, "partitions": 9}, "partitions = 9: .* of 8 tuples has at most 8"),
        ({"partitions": 11}, "partitions = 11: a subwindow of 10 tuples has at most 10"),
        ({"sigma": 1.0}, "sigma = 1.0: must be above 1"),
        ({"subwindow": 8, "batch_count": 9}, "batch_count = 9: .* at most 8 tuples"),
        ({"subwindow": 8, "buffer": 9}, "buffer = 9: .* at most 8 tuples"),
        ({"device": "accelerator"}, "results 'manager' .not 'sink'."),
        (
            {"device": "accelerator", "results": "manager", "structure": "auto"},
            "structure must be 'bi_sort' .not 'auto'.",
        ),
    ],
)
def test_sizes_that_do_not_go_together_are_refused(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(TopologyError, match=message):
        build(**parameters)


@pytest.mark.parametrize(
    "parameters",
    [
        {"workers": 0},
        {"device": "gpu"},
        {"threads": 0},
        {"structure": "heap"},
        {"results": "nowhere"},
        {"size": 3},
    ],
)
def test_values_that_mean_nothing_are_refused_by_name(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(parameters))):
        PanJoinParameters(**parameters)


@pytest.mark.parametrize(
    ("parameters", "notes"),
    [
        ({"buffer": 4}, ()),
        ({"buffer": 4, "structure": "auto", "sigma": 1.5}, ()),
        ({"structure": "rap_table", "sigma": 1.5}, ()),
        (
            {"buffer": 4, "structure": "rap_table"},
            ("buffer = 4: a RaP-Table does not depend on it",),
        ),
        (
            {"buffer": 4, "structure": "wib_tree"},
            ("buffer = 4: a WiB+-Tree does not depend on it",),
        ),
        ({"sigma": 1.5}, ("sigma = 1.5: a BI-Sort does not depend on it",)),
    ],
)
def test_a_size_that_the_structure_does_not_have_is_noted(
    parameters: dict[str, Any], notes: tuple[str, ...]
) -> None:
    assert PANJOIN.notes(PANJOIN.example(), PanJoinParameters(**parameters)) == notes


@pytest.mark.parametrize(
    ("query", "parameters", "message"),
    [
        ("SELECT * FROM T WHERE T.v1 < T.v2", {}, "two streams out of order, not one with itself"),
        ("SELECT * FROM R, S WHERE R.v = S.v", {"results": "manager"}, "set results = 'sink'"),
    ],
)
def test_out_of_order_what_cannot_be_is_refused(
    query: str, parameters: dict[str, Any], message: str
) -> None:
    parsed = parse_query(f"{query} WINDOW AS (SLIDE INTERVAL '1 s' ON '4 s')")
    disordered = Feeding(disorder=Disorder(delay_ns=1))
    with pytest.raises(TopologyError, match=message):
        PANJOIN.build(
            replace(PANJOIN.sketch(parsed), feeding=disordered), PanJoinParameters(**parameters)
        )


@pytest.mark.parametrize(
    ("name", "window", "message"),
    [
        ("panjoin", "SLIDE INTERVAL '1' ON '4'", "has the tuples that came last"),
        ("split_join", "SLIDE INTERVAL '1 s' ON '4 s'", "split_join takes the order of arrival"),
    ],
)
def test_disorder_is_refused_where_the_order_of_arrival_decides(
    name: str, window: str, message: str
) -> None:
    topology = TOPOLOGIES[name]
    query = parse_query(f"SELECT * FROM R, S WHERE R.v = S.v WINDOW AS ({window})")
    disordered = Feeding(disorder=Disorder(delay_ns=1))
    with pytest.raises(TopologyError, match=message):
        topology.build(
            replace(topology.sketch(query), feeding=disordered), topology.parameters_type()
        )


def test_by_default_a_subwindow_is_a_slide_or_a_sixteenth_of_the_window() -> None:
    for window, capacity, stretch_ns in (
        ("SLIDE INTERVAL '10' ON '40'", 10, None),
        ("SLIDE INTERVAL '1' ON '160'", 10, None),
        ("SLIDE INTERVAL '1' ON '1000000000000'", 1 << 24, None),
        ("SLIDE INTERVAL '1 ns' ON '160 ns'", 65_536, 10),
    ):
        manager = build(window).specs["manager"].arguments
        assert [shape.capacity for shape in manager["shapes"]] == [capacity] * 2
        assert [rule.stretch_ns for rule in manager["rules"]] == [stretch_ns] * 2


def test_workers_are_wired_to_the_manager_alone_and_results_go_where_they_should() -> None:
    for results, sender in (("sink", "worker.1"), ("manager", "manager")):
        wiring = build(workers=2, prefilters=3, results=results).wiring
        assert wiring["manager"]["worker"] == ("worker.0", "worker.1")
        assert wiring["worker.1"]["feedback"] == ("manager",)
        assert wiring[sender]["sink"] == (f"sink.{sender}",)
        assert wiring["spreader"]["prefilter"] == ("prefilter.0", "prefilter.1", "prefilter.2")
        assert wiring["prefilter.2"] == {"manager": ("manager",)}


def test_an_accelerator_is_each_workers_own() -> None:
    specs = build(workers=2, device="accelerator", results="manager").specs
    assert all(specs[f"worker.{i}"].arguments["accelerator"] is not None for i in range(2))
    assert build().specs["worker.0"].arguments["accelerator"] is None
