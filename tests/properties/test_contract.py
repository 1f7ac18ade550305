"""Every topology of the registry keeps to its contract, on random runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from joinsim.checks import Check, check_topology
from topologies import TOPOLOGIES
from topologies.handshake_join import HandshakeJoin
from topologies.interval_join import IntervalJoinTopology
from topologies.window_join import WindowJoin

EXAMPLES = {"its answer is exactly right": 100, "listing pairs changes nothing": 15}
OTHERS, SPO_JOIN = 10, 20
_SHARE_OF_ALIKE = 0.4
"""Topologies that share their actors test these for each other: fewer examples of each will do."""


def contract() -> Iterator[Check]:
    for name, topology in TOPOLOGIES.items():
        alike = isinstance(topology, HandshakeJoin | WindowJoin | IntervalJoinTopology)
        for place, check in enumerate(check_topology(name)):
            begins = (n for text, n in EXAMPLES.items() if check.name.startswith(text))
            examples = next(begins, SPO_JOIN if name == "spo_join" else OTHERS)
            share = round(examples * (_SHARE_OF_ALIKE if alike else 1))
            checks = list(check_topology(name, examples=share))
            yield pytest.param(checks[place], id=f"{name}: {check.name}")  # type: ignore[misc]


@pytest.mark.parametrize("check", list(contract()))
def test_it_keeps_to_its_contract(check: Check) -> None:
    check()
