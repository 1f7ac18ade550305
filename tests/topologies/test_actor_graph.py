"""A port's receivers are indexed in the order in which they were connected."""

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
