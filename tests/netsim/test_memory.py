"""Waiting for memory: read from a profile, longer where cores work side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.protocol import Actor, ActorSpec, Context, Message
from joins.work import Step, Work
from netsim.cost import Memory, StructureCost, load_profile
from netsim.network import full_mesh
from tests.netsim.simulate import MESSAGE_NS, PROFILE, link, simulate
from tests.toys import Sender

MEMORY = Memory(
    cores=2,
    sizes=(1 << 14, 1 << 20, 1 << 26),
    wait_ps=(1_500, 10_000, 100_000),
    read_ps=(400, 3_000, 30_000),
    apart_percents=(100, 110, 160),
    same_percents=(100, 100, 130),
)
COST = StructureCost(
    sizes=(64, 1 << 14, 1 << 20),
    rows=(1, 1024),
    percents=((100, 80), (120, 90), (300, 200)),
    copied_percents=(100, 100, 100),
    match_percents=(50, 100, 150),
    call_ps=1_000_000,
    row_ps=10_000,
    unit_ps=(100,) * 7,
    tuple_bytes=32,
)


@pytest.mark.parametrize(
    ("nbytes", "cores", "same", "percent"),
    [
        (1 << 10, 2, False, 100),
        (1 << 20, 2, False, 110),
        (1 << 25, 2, False, 160),
        (1 << 40, 2, False, 160),
        (1 << 25, 1, False, 100),
        (1 << 25, 4, False, 280),
        (1 << 25, 2, True, 130),
    ],
)
def test_a_wait_is_longer_beside_others(nbytes: int, cores: int, same: bool, percent: int) -> None:
    assert MEMORY.percent_of_wait(nbytes, cores, same=same) == percent


def test_no_wait_is_longer_than_that_for_the_farthest_memory() -> None:
    """Two cores fill the last cache together; eight cannot do more than miss it."""
    cliff = replace(MEMORY, apart_percents=(100, 400, 100))
    assert cliff.percent_of_wait(1 << 20, 2) == 400
    assert cliff.percent_of_wait(1 << 20, 8) == 1_000
    assert cliff.percent_of_wait(1 << 26, 8) == 100


def test_only_the_part_above_the_least_takes_longer() -> None:
    beside = COST.on_cores(2, MEMORY, same=False)
    # 32 bytes a tuple: 2 KiB, 512 KiB, 32 MiB.
    assert beside.percents == ((100, 80), (100 + 20 * 110 // 100, 80 + 10 * 110 // 100), (420, 272))
    assert beside.match_percents == (50, 50 + 50 * 110 // 100, 50 + 100 * 160 // 100)
    expected = replace(beside, percents=COST.percents, match_percents=COST.match_percents)
    assert expected == COST


def test_a_core_alone_costs_what_the_profile_says() -> None:
    profile = replace(load_profile(), memory=MEMORY)
    assert profile.on_cores(1) is profile
    unmeasured = replace(profile, memory=None)
    assert unmeasured.on_cores(8) is unmeasured
    shared = profile.on_cores(2, same=True)
    assert shared.structures.keys() == profile.structures.keys()
    assert shared.on_cores(1) is shared


class Prober(Actor):
    """Probes a structure of 2^20 tuples once."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        context.charge(Work(), Step("x.probe", 1, 1 << 20))


@pytest.mark.parametrize(("at_work", "percent"), [(1, 300), (2, 420)])
def test_cores_that_are_at_work_take_memory_from_each_other(
    tmp_path: Path, at_work: int, percent: int
) -> None:
    probers = ["p0", "p1"]
    run = simulate(
        {"a": ActorSpec(actor=Sender, arguments={"count": 1, "nbytes": 0})}
        | dict.fromkeys(probers, ActorSpec(actor=Prober, arguments={})),
        {"a": {"out": tuple(probers[:at_work]), "idle": tuple(probers[at_work:])}}
        | {name: {} for name in probers},
        path=tmp_path / "trace.parquet",
        network=full_mesh(["x", "y"], link(1_000), cores=2),
        placement={"a": "x"} | dict.fromkeys(probers, "y"),
        profile=replace(PROFILE, memory=MEMORY, structures={"x.probe": COST}),
    )
    arrived_ns = MESSAGE_NS + 1_000
    call_ns = (COST.call_ps + COST.row_ps) * percent // 100 // 1000
    assert run.outcome.virtual_ns == arrived_ns + MESSAGE_NS + call_ns


@pytest.mark.parametrize(
    "wrong",
    [
        {"cores": 0},
        {"sizes": ()},
        {"sizes": (3, 2, 1)},
        {"wait_ps": (1, 2)},
        {"same_percents": (100, 100, -1)},
        {"read_ps": (1, 2, 3.5)},
    ],
)
def test_a_table_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(MEMORY, **wrong)


def test_a_profile_reads_back_its_memory() -> None:
    values = {name: list(v) if isinstance(v, tuple) else v for name, v in vars(MEMORY).items()}
    assert Memory.read(values) == MEMORY
