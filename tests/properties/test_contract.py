"""Every topology of the registry keeps to its contract, on random runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from functools import cache

import pytest

from joinsim import checks
from joinsim.checks import Check, check_topology
from tests.properties.families import examples_of
from topologies import TOPOLOGIES

EXAMPLES = {"its answer is exactly right": 100, "listing pairs changes nothing": 15}
OTHERS, SPO_JOIN = 10, 20
ELSEWHERE = pytest.mark.xdist_group("elsewhere")
"""The checks that share the processes below."""


def contract() -> Iterator[Check]:
    for name, topology in TOPOLOGIES.items():
        for place, check in enumerate(check_topology(name)):
            begins = (n for text, n in EXAMPLES.items() if check.name.startswith(text))
            examples = next(begins, SPO_JOIN if name == "spo_join" else OTHERS)
            tried = list(check_topology(name, examples=examples_of(topology, examples)))
            group = [ELSEWHERE] if check.name.startswith("other processes") else []
            yield pytest.param(  # type: ignore[misc]
                tried[place], id=f"{name}: {check.name}", marks=group
            )


@pytest.fixture(scope="module", autouse=True)
def one_process_answers_for_all_systems() -> Iterator[None]:
    """Ask the same other process about every system, one for each seed of hashes.

    Starting one takes seconds. How a check starts its own is tested beside `joinsim.checks`.
    """
    start = checks._elsewhere
    with ExitStack() as started, pytest.MonkeyPatch.context() as patch:
        process = cache(lambda seed: started.enter_context(start(seed)))
        patch.setattr(checks, "_elsewhere", lambda seed: nullcontext(process(seed)))
        yield


@pytest.mark.parametrize("check", list(contract()))
def test_it_keeps_to_its_contract(check: Check) -> None:
    check()
