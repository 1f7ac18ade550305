"""Every topology of the registry keeps to its contract, on random runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from joinsim.checks import Check, check_topology
from tests.properties.families import examples_of
from topologies import TOPOLOGIES

EXAMPLES = {"its answer is exactly right": 100, "listing pairs changes nothing": 15}
OTHERS, SPO_JOIN = 10, 20


def contract() -> Iterator[Check]:
    for name, topology in TOPOLOGIES.items():
        for place, check in enumerate(check_topology(name)):
            begins = (n for text, n in EXAMPLES.items() if check.name.startswith(text))
            examples = next(begins, SPO_JOIN if name == "spo_join" else OTHERS)
            checks = list(check_topology(name, examples=examples_of(topology, examples)))
            yield pytest.param(checks[place], id=f"{name}: {check.name}")  # type: ignore[misc]


@pytest.mark.parametrize("check", list(contract()))
def test_it_keeps_to_its_contract(check: Check) -> None:
    check()
