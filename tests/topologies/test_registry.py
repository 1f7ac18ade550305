"""Topologies of our own and of a user's: found by name or class, refused where a name collides."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from scenarios.config import RunConfig
from topologies import registry
from topologies.actor_graph import ActorGraph
from topologies.registry import RESERVED, TOPOLOGIES, Registry, find_topologies, find_topology
from topologies.topology import Job, Topology, TopologyError


@dataclass(frozen=True, kw_only=True)
class MyParameters:
    """Parameters of a system of one's own.

    Attributes
    ----------
    width
        Its width.
    """

    width: int = 1


class MyJoin(Topology[MyParameters]):
    name = "my_join"
    title = "A system of one's own"
    paper = "none"
    exact = True
    parameters_type = MyParameters

    def assemble(self, job: Job, parameters: MyParameters) -> ActorGraph:
        return ActorGraph()


@dataclass(frozen=True, kw_only=True)
class Rows:
    rows: int = 1


class TakesRows(MyJoin):
    parameters_type: Any = Rows


def test_reserved_names_are_the_keys_of_a_run() -> None:
    assert set(RunConfig.model_fields) == RESERVED


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_our_own_have_the_name_under_which_they_are_listed(name: str) -> None:
    assert TOPOLOGIES.check(TOPOLOGIES[name]).name == name


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_the_class_of_a_topology_is_named_after_it(name: str) -> None:
    topology = TOPOLOGIES[name]
    assert type(topology).__name__.lower() == f"{name.replace('_', '')}topology"
    assert topology.parameters_type.__name__.endswith("Parameters")


def test_looking_up_one_system_leaves_the_others_unimported() -> None:
    script = "import sys, topologies; topologies.find_topology('hash_join'); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    ).stdout.split()
    assert "topologies.window_join" in loaded
    assert not {"topologies.spo_join", "topologies.panjoin", "topologies.semijoin"} & set(loaded)


@pytest.mark.parametrize("name", ["rows", "query", "processes"])
def test_a_parameter_named_as_a_key_of_a_run_is_refused(name: str) -> None:
    parameters: Any = dataclass(type("P", (), {"__annotations__": {name: int}, name: 1}))
    system = type("Colliding", (MyJoin,), {"parameters_type": parameters})
    with pytest.raises(TopologyError, match=f"configuration, as {name}; those are backend, bind"):
        Registry().register(system)


def test_a_system_of_our_own_is_refused_as_a_users_is() -> None:
    with pytest.raises(TopologyError, match="configuration, as rows"):
        Registry({"my_join": f"{__name__}:TakesRows"})["my_join"]


def test_parameters_are_a_dataclass() -> None:
    system = type("Plain", (MyJoin,), {"parameters_type": dict})
    with pytest.raises(TopologyError, match="my_join: parameters_type must be a dataclass"):
        Registry().register(system)


@pytest.mark.parametrize(
    ("key", "allowed"), [("title", "a text"), ("paper", "a text"), ("exact", "True or False")]
)
def test_what_lists_and_verdicts_go_by_is_of_its_type(key: str, allowed: str) -> None:
    system = type("Odd", (MyJoin,), {key: None})
    with pytest.raises(TopologyError, match=f"my_join: {key} = None: {allowed} is allowed"):
        find_topology(system)


@pytest.mark.parametrize("name", ["../x", "a/b", "", "auto", "two words", "x" * 101, 3])
def test_a_name_that_is_no_name_of_a_folder_or_means_something_else_is_refused(name: Any) -> None:
    system = type("Odd", (MyJoin,), {"name": name})
    with pytest.raises(TopologyError, match=rf"Odd: name = {name!r}: 1 to 100 letters"):
        find_topology(system)


def test_a_class_is_a_topology_as_its_name_is() -> None:
    assert isinstance(find_topology(MyJoin), MyJoin)
    mine = MyJoin()
    assert find_topology(mine) is mine
    with pytest.raises(TopologyError, match="no topology is called 'my_join'"):
        find_topology("my_join")
    impostor = type("Impostor", (MyJoin,), {"name": "spo_join"})
    with pytest.raises(TopologyError, match=r"Impostor: a topology is called 'spo_join' already"):
        find_topology(impostor)


@pytest.mark.parametrize(
    ("topology", "mistake"),
    [
        (dict, r"<class 'dict'> is no topology: give the name of one, or a class derived from"),
        (5, "5 is no topology"),
        (Topology, "Can't instantiate abstract class"),
        (type("Plain", (Topology,), {"assemble": None}), "Plain lacks name, title, paper, exact"),
    ],
)
def test_what_is_no_topology_is_refused(topology: Any, mistake: str) -> None:
    with pytest.raises(TopologyError, match=mistake):
        find_topology(topology)
    with pytest.raises(TopologyError, match=mistake):
        find_topologies([topology])


def test_one_topology_is_as_good_as_a_list_of_it() -> None:
    for one in ("split_join", MyJoin, MyJoin()):
        assert [found.name for found in find_topologies(one)] == [getattr(one, "name", one)]


def test_two_classes_of_one_name_are_not_compared() -> None:
    other = type("Other", (MyJoin,), {})
    with pytest.raises(TopologyError, match="MyJoin and Other are both called 'my_join'"):
        find_topologies([MyJoin, "split_join", other])
    assert len(find_topologies([MyJoin, MyJoin()])) == 2


def test_a_registered_name_is_its_classes_alone() -> None:
    systems = Registry()
    assert systems.register(MyJoin) is systems["my_join"]
    with pytest.raises(TopologyError, match="a topology is called 'my_join' already"):
        systems.register(type("Other", (MyJoin,), {}))


def entries(monkeypatch: pytest.MonkeyPatch, value: str) -> Registry:
    def entry_points(*, group: str) -> list[EntryPoint]:
        return [EntryPoint("mine", value, group)] if group == "joinsim.topologies" else []

    monkeypatch.setattr(registry, "entry_points", entry_points)
    return Registry()


def test_an_installed_package_registers_its_topology(monkeypatch: pytest.MonkeyPatch) -> None:
    systems = entries(monkeypatch, f"{__name__}:MyJoin")
    assert list(systems) == ["my_join"]
    assert isinstance(entries(monkeypatch, f"{__name__}:MyJoin")["my_join"], MyJoin)


@pytest.mark.parametrize("value", ["nowhere:Join", "builtins:dict", "builtins"])
def test_an_entry_point_that_cannot_be_loaded_is_named(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TopologyError, match=rf"entry point mine = '{value}' .* cannot be loaded: "):
        list(entries(monkeypatch, value))


def test_an_entry_point_that_cannot_be_loaded_is_named_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    systems = entries(monkeypatch, "nowhere:Join")
    for _ in range(2):
        with pytest.raises(TopologyError, match="entry point mine"):
            list(systems)


def test_an_entry_point_that_ends_the_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends_at_import.py").write_text("raise SystemExit\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TopologyError, match=r"entry point mine .* cannot be loaded: SystemExit"):
        list(entries(monkeypatch, "ends_at_import:Join"))


def test_an_unknown_name_has_the_nearest_for_a_hint() -> None:
    with pytest.raises(TopologyError, match="'spojoin': did you mean 'spo_join'"):
        find_topology("spojoin")
