"""The contract's checks fail where a topology breaks the contract."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from pydantic import PositiveInt, TypeAdapter

from actors.protocol import START, Actor, ActorSpec, Context, Message
from actors.window_join import Places, RoundRobinRouting
from joins.batch import Batch
from joins.work import Work
from joinsim.checks import PeakHost, check_topology
from joinsim.starter import my_join
from scenarios.worlds import Recording
from topologies.actor_graph import ActorGraph
from topologies.topology import Job
from topologies.window_join import Layout, NestedLoopTopology, PeParameters, WindowJoinTopology


@dataclass(frozen=True, kw_only=True)
class ProbeOnlyWhereStored(RoundRobinRouting):
    """Misses every pair whose tuples are stored at different PEs."""

    def probes_at(self, stream: int, batch: Batch) -> Places:
        return self.stored_at(stream, batch)


class Lossy(WindowJoinTopology[PeParameters]):
    name = "lossy"
    title = "Loses pairs"
    paper = "None"
    parameters_type = PeParameters

    def lay_out(self, job: Job, parameters: PeParameters) -> Layout:
        routing = ProbeOnlyWhereStored(sides=(range(2),) * 2)
        return Layout(routing=routing, joiners={"joiner": 2}, index="nested_loop")


class Endless(NestedLoopTopology):
    name = "endless"

    def assemble(self, job: Job, parameters: Any) -> ActorGraph:
        graph = super().assemble(job, parameters)
        graph.connect("sink", "again", "source")
        return graph


def test_a_graph_in_which_nothing_begins_is_found() -> None:
    checks = {check.name: check for check in check_topology(Endless)}
    with pytest.raises(AssertionError, match="no actor feeds the streams in"):
        checks["its graph can be built"]()


def test_actors_that_could_wait_for_each_other_are_found() -> None:
    """Which pairs would be lost depends on how full their inboxes are."""
    checks = {check.name: check for check in check_topology(Endless, examples=1)}
    with pytest.raises(AssertionError, match="-> sink -> source"):
        checks["no actors wait for room at each other"]()


def test_lost_pairs_are_found() -> None:
    checks = {check.name: check for check in check_topology(Lossy, examples=30)}
    checks["its graph can be built"]()
    with pytest.raises(AssertionError, match="in the world") as error:
        checks["its answer is exactly right"]()
    shown = str(error.value).partition("in the world\n")[2]
    assert TypeAdapter(Recording).validate_json(shown).world.tuples <= 4


class Timed(my_join.NestedLoopJoiner):
    """Asks how late it is outside."""

    def receive(self, message: Message, context: Context) -> None:
        context.charge(Work(comparisons=time.perf_counter_ns() % 100_000))
        super().receive(message, context)


@pytest.mark.parametrize("name", ["listing pairs", "actors restored"])
def test_what_depends_on_more_than_the_seed_is_told_so(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(my_join, "NestedLoopJoiner", Timed)
    checks = check_topology(my_join.MyJoin, examples=2)
    (check,) = (one for one in checks if one.name.startswith(name))
    with pytest.raises(AssertionError, match=r"another trace, or no two runs .* context\.now"):
        check()


@dataclass(frozen=True, kw_only=True)
class Halved(PeParameters):
    """Parameters.

    Attributes
    ----------
    share
        From 1 on.
    """

    share: PositiveInt = 0


def test_a_default_that_is_not_allowed_is_found() -> None:
    topology = type("WithHalved", (my_join.MyJoin,), {"parameters_type": Halved, "name": "halved"})
    with pytest.raises(AssertionError, match=r"a default is not allowed: .* share = 0: "):
        next(check_topology(topology))()


def test_tuples_that_never_expire_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "what it stores is bounded by its windows, not by its streams"
    (check,) = (one for one in check_topology("nested_loop", examples=1) if one.name == name)
    check()
    monkeypatch.setattr("actors.window_join.expire", lambda *arguments: None)
    with pytest.raises(AssertionError, match="while it receives 2400"):
        check()


class Hoarding(Actor):
    """Stores 80 bytes more with each message, and drops all with the fourth."""

    state = ("stored",)

    def __init__(self) -> None:
        self.stored: list[np.ndarray] = []

    def receive(self, message: Message, context: Context) -> None:
        self.stored = [] if len(self.stored) == 3 else [*self.stored, np.zeros(10)]


def test_what_an_actor_stores_in_between_counts_too() -> None:
    host = PeakHost({"a": ActorSpec(actor=Hoarding)}, {"a": {}}, 1)
    for ticket in range(100):
        host.submit(ticket, "a", "a", START, None, ticket)
    assert host.state_bytes() == {"a": 240}


class Hashed(my_join.NestedLoopJoiner):
    """Does work that depends on the hash of a text."""

    def receive(self, message: Message, context: Context) -> None:
        context.charge(Work(comparisons=hash(context.name) % 1_000))
        super().receive(message, context)


class Ordered(my_join.NestedLoopJoiner):
    """Does work that depends on the order of a set."""

    def receive(self, message: Message, context: Context) -> None:
        first = next(iter({f"key {number}" for number in range(9)}))
        context.charge(Work(comparisons=int(first[4:])))
        super().receive(message, context)


class HashedJoin(my_join.MyJoin):
    name = "hashed_join"
    joiner: type[Actor] = Hashed

    def assemble(self, job: Job, parameters: Any) -> ActorGraph:
        graph = super().assemble(job, parameters)
        for _, node in graph.nodes(data=True):
            if node["spec"].actor is my_join.NestedLoopJoiner:
                node["spec"] = replace(node["spec"], actor=self.joiner)
        return graph


class OrderedJoin(HashedJoin):
    name = "ordered_join"
    joiner = Ordered


@pytest.mark.parametrize("topology", [HashedJoin, OrderedJoin])
def test_what_differs_from_process_to_process_is_found(topology: Any) -> None:
    *_, check = check_topology(topology, examples=2)
    with pytest.raises(AssertionError, match=r"in another process .* the order of a set"):
        check()


def test_what_other_processes_cannot_import_is_not_run_there() -> None:
    class Local(my_join.MyJoin):
        name = "local"

    named = [check.name for check in check_topology(my_join.MyJoin)]
    assert [check.name for check in check_topology(Local)] == named[:-1]
