"""What is added to a graph, and connected, is in the order of the calls."""

from __future__ import annotations

from tests.toys import Recorder, Sender
from topologies.actor_graph import ActorGraph


def test_receivers_are_indexed_as_they_were_connected_however_many_at_a_time() -> None:
    graph = ActorGraph()
    graph.add("source", "s", Sender, count=1)
    for name in "abcd":
        graph.add("sink", name, Recorder)
    graph.connect("s", "other", "d")
    graph.connect("s", "out", "c", "b")
    graph.connect("s", "out", "a")
    graph.connect("s", "out", "d")
    assert graph.wiring["s"] == {"other": ("d",), "out": ("c", "b", "a", "d")}


def test_actors_without_a_site_share_the_machines_in_turns_whoever_comes_between() -> None:
    graph = ActorGraph(machines=2)
    for name, site in (("a", None), ("b", "own"), ("c", None), ("d", None)):
        graph.add("sink", name, Recorder, site=site)
    assert graph.placement == {"a": "node.0", "b": "own", "c": "node.1", "d": "node.0"}


def test_a_graph_prints_its_operators_their_receivers_and_where_results_are() -> None:
    graph = ActorGraph()
    graph.add("source", "s", Sender, count=1)
    workers = graph.add_each("worker", 5, Recorder)
    graph.connect("s", "out", *workers)
    graph.add_sink(*workers[3:])
    lines = repr(graph).splitlines()
    assert str(graph) == repr(graph)
    assert lines[1:] == [
        "source  s",
        "    out -> worker.0 .. worker.4 (5)",
        "worker  worker.0 .. worker.4 (5)",
        "    sink -> sink",
        "sink  sink",
    ]
    graph.partition_sinks()
    assert repr(graph).splitlines()[3:] == [lines[3], "    results stay here"]
