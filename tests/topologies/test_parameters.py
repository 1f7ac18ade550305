"""What `joinsim show` says of parameters."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest
from pydantic import TypeAdapter

from topologies import TOPOLOGIES, find_topology
from topologies.parameters import describe
from topologies.topology import Pes


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_parameter_of_every_topology_has_a_meaning_of_its_own(name: str) -> None:
    """And its class documents nothing that cannot be set."""
    described = describe(find_topology(name))
    assert {one.name for one in described} == {
        field.name for field in fields(find_topology(name).parameters_type)
    }
    assert all(one.meaning.endswith(".") for one in described)
    assert len({one.meaning for one in described}) == len(described)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_defaults_are_described_as_they_would_be_set(name: str) -> None:
    """Setting every default as it is described changes nothing."""
    parameters_type = find_topology(name).parameters_type
    defaults = {one.name: one.default for one in describe(find_topology(name))}
    defaults = {name: value for name, value in defaults.items() if value not in ("none", "{}")}
    assert TypeAdapter(parameters_type).validate_python(defaults) == parameters_type()


@pytest.mark.parametrize(
    ("topology", "parameter", "allowed"),
    [
        ("panjoin", "workers", "1 to 10,000"),
        ("panjoin", "structure", "bi_sort, rap_table, wib_tree, auto"),
        ("panjoin", "collecting_time", "a time, such as '25 ms'"),
        ("hp_oij", "max_splitting", "1 to 10,000; or none"),
        ("ibwj", "merge_ratio", "above 0, up to 1; or none"),
        ("spo_join", "hash_table", "true, false"),
        ("semijoin", "kept", "a table; or none"),
    ],
)
def test_what_is_allowed_is_described_in_words(topology: str, parameter: str, allowed: str) -> None:
    """Ranges with their ends, choices by name, quantities as people write them."""
    (found,) = [one for one in describe(find_topology(topology)) if one.name == parameter]
    assert found.allowed == allowed


def test_an_inherited_parameter_has_the_meaning_its_base_gives() -> None:
    """HP-OIJ documents what is its own; replicas are every pattern's."""
    meanings = {one.name: one.meaning for one in describe(find_topology("hp_oij"))}
    assert meanings["replicas"] == "Replicas of the join."
    assert meanings["threshold"].startswith("θ: how far above the average")


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_rehearsal_has_few_pes(name: str) -> None:
    """With ten thousand it would take longer than many a run."""
    topology = find_topology(name)
    counts = [one.name for one in fields(topology.parameters_type) if one.type == "Pes"]
    many = topology.parameters_type(**dict.fromkeys(counts, 10_000))
    graph = topology.build(topology.example(), topology.in_miniature(many))
    assert len(graph) < 60


@pytest.mark.parametrize("hints", [(Pes, Pes | None, int), ("Pes", "Pes | None", "int")])
def test_a_rehearsal_of_a_users_system_has_few_pes(hints: tuple[Any, ...]) -> None:
    """Whether or not its module has its annotations evaluated."""
    annotations = dict(zip(("pes", "nodes", "rows"), hints, strict=True))
    body = {"__module__": __name__, "__annotations__": annotations}
    parameters: Any = dataclass(type("P", (), body))
    small = find_topology("hash_join").in_miniature(parameters(10_000, 10_000, 10_000))
    assert (small.pes, small.nodes, small.rows) == (4, 4, 10_000)


def test_a_rehearsal_looks_at_the_load_of_its_few_messages() -> None:
    """Else it would end before any key is split."""
    for name, parameter in (("hp_oij", "calibration_turns"), ("scale_oij", "schedule_messages")):
        topology = find_topology(name)
        small = topology.in_miniature(topology.parameters_type(**{parameter: 1000}))
        assert getattr(small, parameter) == 4
