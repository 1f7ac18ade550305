from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.results import Sink
from joins.errors import OutputError
from scenarios.report.topology_drawing import (
    BOX_HEIGHT,
    Box,
    TopologyLayout,
    draw_topology,
    lay_out,
    operator_depths,
)
from scenarios.scenario_files import ConfigError
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph

"""A drawing does not ask what an actor does."""


@st.composite
def graphs(draw: st.DrawFn, *, pes_most: int = 5) -> ActorGraph:
    """Draw any graph of operators, with cycles and wires among the PEs of one operator."""
    counts = draw(st.lists(st.integers(1, pes_most), min_size=1, max_size=6))
    graph = ActorGraph()
    pes = [
        [graph.add(f"op{i}", f"op{i}.{pe}", Sink) for pe in range(count)]
        for i, count in enumerate(counts)
    ]
    operator = st.integers(0, len(counts) - 1)
    for a, b, port in draw(
        st.lists(st.tuples(operator, operator, st.sampled_from("pqr")), unique=True, max_size=9)
    ):
        for sender in pes[a]:
            graph.connect(sender, port, *[pe for pe in pes[b] if pe != sender])
    return graph


def box_of(layout: TopologyLayout, actor: str) -> Box:
    (box,) = [box for box in layout.boxes if actor in box.actors]
    return box


@given(graphs())
def test_every_actor_has_one_box_and_boxes_do_not_overlap(graph: ActorGraph) -> None:
    layout = lay_out(graph)
    assert sorted(actor for box in layout.boxes for actor in box.actors) == sorted(graph)
    for a, b in combinations(layout.boxes, 2):
        beside = a.right < b.left or b.right < a.left
        assert beside or abs(a.y - b.y) > BOX_HEIGHT


@given(graphs())
def test_a_channel_can_be_followed_along_wires_from_its_sender_to_its_receiver(
    graph: ActorGraph,
) -> None:
    layout = lay_out(graph)
    for sender, receiver, port in graph.edges(data="port"):
        wires = [wire for wire in layout.wires if (sender, receiver, port) in wire.channels]
        start, end = box_of(layout, sender), box_of(layout, receiver)
        assert {wire.port for wire in wires} == {port}
        assert wires[0].points[0][0] == start.right
        assert abs(wires[0].points[0][1] - start.y) < BOX_HEIGHT / 2
        assert all(a.points[-1] == b.points[0] for a, b in pairwise(wires))
        assert [wire.arrives for wire in wires] == [False] * (len(wires) - 1) + [True]
        same_operator = start.role == end.role
        assert wires[-1].points[-1][0] == (end.right if same_operator else end.left)
        assert abs(wires[-1].points[-1][1] - end.y) < BOX_HEIGHT / 2


@given(graphs())
def test_wires_that_skip_a_column_cross_no_box_in_it(graph: ActorGraph) -> None:
    layout = lay_out(graph)
    for wire in layout.wires:
        for (x0, y0, _), (x1, y1, _) in pairwise(wire.points):
            for box in layout.boxes if y0 == y1 else ():
                inside = min(x0, x1) < box.left and box.right < max(x0, x1)
                assert not (inside and abs(box.y - y0) < BOX_HEIGHT / 2)


@given(st.permutations(range(6)), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_without_cycles_an_operator_stands_right_of_all_that_feed_it(
    names: list[int], wires: set[tuple[int, int]]
) -> None:
    graph = ActorGraph()
    for name in sorted(names):
        graph.add(f"r{name}", f"a{name}", Sink)
    for a, b in sorted(wires):
        if a < b:  # in the order of a permutation: any graph without cycles
            graph.connect(f"a{names[a]}", "out", f"a{names[b]}")
    depths = operator_depths(graph)
    for a, b in graph.edges():
        assert depths[f"r{b[1:]}"] > depths[f"r{a[1:]}"]
    for role, depth in depths.items():
        feeding = [depths[f"r{a[1:]}"] for a, b in graph.edges() if f"r{b[1:]}" == role]
        assert depth == max(feeding, default=-1) + 1


@given(graphs(pes_most=60), st.integers(6, 60))
def test_there_are_never_more_boxes_than_allowed_and_only_large_operators_collapse(
    graph: ActorGraph, boxes_max: int
) -> None:
    layout = lay_out(graph, boxes_max=boxes_max)
    assert len(layout.boxes) <= boxes_max
    assert bool(layout.collapsed) == (len(graph) > boxes_max)
    counts = {group.role: group.count for group in layout.groups}
    kept = [count for role, count in counts.items() if role not in layout.collapsed]
    assert all(counts[role] >= max(kept, default=0) for role in layout.collapsed)


@settings(max_examples=15, deadline=None)
@given(graphs())
def test_any_graph_can_be_drawn(
    tmp_path_factory: pytest.TempPathFactory, graph: ActorGraph
) -> None:
    path = tmp_path_factory.mktemp("drawing") / "graph.svg"
    draw_topology(graph, "A graph", path)
    assert set(graph) <= words(path)


def words(path: Path) -> set[str]:
    """Return the texts of an SVG."""
    texts = ET.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return {"".join(text.itertext()).strip() for text in texts}


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_the_drawing_of_a_topology_names_its_pes_operators_ports_and_title(
    name: str, tmp_path: Path
) -> None:
    topology = TOPOLOGIES[name]
    graph = topology.build(topology.example(), topology.parameters_type())
    path = tmp_path / "topology.svg"
    draw_topology(graph, topology.title, path)
    drawn = words(path)
    assert topology.title in drawn
    owners = dict.fromkeys(graph.nodes[owner]["role"] for owner in graph.partitions.values())
    assert (f"results stay at the PEs of {', '.join(owners)}" in drawn) == bool(owners)
    graph = graph.without_partitions()
    assert set(graph) <= drawn
    assert {port for _, _, port in graph.edges(data="port")} <= drawn
    roles = [role for _, role in graph.nodes(data="role")]
    assert {
        role if roles.count(role) == 1 else f"{role} × {roles.count(role)}" for role in roles
    } <= drawn


def small() -> ActorGraph:
    graph = ActorGraph()
    graph.add("<source & co>", "a$_1$", Sink)
    graph.add("sink", "b", Sink)
    graph.connect("a$_1$", "out", "b")
    return graph


@pytest.mark.parametrize(
    ("suffix", "begin"), [(".svg", b"<svg"), (".PNG", b"\x89PNG"), (".pdf", b"%PDF")]
)
def test_the_suffix_decides_the_format_and_the_same_drawing_is_the_same_file(
    suffix: str, begin: bytes, tmp_path: Path
) -> None:
    first, second = tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"
    draw_topology(small(), "Title", first)
    draw_topology(small(), "Title", second)
    assert first.read_bytes().startswith(begin)
    if suffix != ".pdf":  # fonts get names of their own each time
        assert first.read_bytes() == second.read_bytes()


def test_odd_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    draw_topology(small(), "50 % $x$ & more", tmp_path / "odd.svg")
    assert {"a$_1$", "<source & co>", "50 % $x$ & more"} <= words(tmp_path / "odd.svg")


def test_machines_are_named_where_pes_share_them(tmp_path: Path) -> None:
    graph = ActorGraph()
    for i in range(3):
        graph.add("pe", f"pe.{i}", Sink, site=f"node.{i % 2}")
    draw_topology(graph, "", tmp_path / "shared.svg")
    assert {"on node.0", "on node.1"} <= words(tmp_path / "shared.svg")


def test_operators_that_share_a_box_are_named_below_the_drawing(tmp_path: Path) -> None:
    graph = ActorGraph()
    for i in range(90):
        graph.add("pe", f"pe.{i}", Sink)
    draw_topology(graph, "", tmp_path / "many.svg")
    drawn = " ".join(words(tmp_path / "many.svg"))
    assert "90 PEs" in drawn
    assert "the PEs of pe share one box" in drawn


@pytest.mark.parametrize("name", ["drawing.jpg", "drawing"])
def test_another_suffix_is_refused_with_those_allowed(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.pdf, \.svg, \.png") as raised:
        draw_topology(small(), "", tmp_path / name)
    assert name in str(raised.value)
    assert not (tmp_path / name).exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "drawing.png"
    with pytest.raises(OutputError, match=re.escape(f"cannot write to {path}: No such file")):
        draw_topology(small(), "", path)
