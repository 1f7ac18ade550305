"""One body of tests, every host: where actors live changes nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.hosting.inline import InlineHost
from actors.hosting.ray_host import RayHost, pack
from actors.hosting.shard import KEPT, Shard
from actors.protocol import ActorError, ActorSpec, Host, Wiring
from netsim.network import full_mesh
from tests.netsim.simulate import Simulated, link, simulate
from tests.toys import Recorder, Sender, Worker


def system(senders: int, workers: int, gap_ns: int) -> tuple[dict[str, ActorSpec], Wiring]:
    names = [f"w{i}" for i in range(workers)]
    specs = {
        f"s{i}": ActorSpec(actor=Sender, arguments={"count": 15, "gap_ns": gap_ns * (i + 1)})
        for i in range(senders)
    }
    wiring: dict[str, dict[str, tuple[str, ...]]] = {name: {"out": tuple(names)} for name in specs}
    for i, name in enumerate(names):
        specs[name] = ActorSpec(actor=Worker, arguments={"comparisons": 700 * i, "port": "on"})
        wiring[name] = {"on": ("r0", "r1")}
    for name in ("r0", "r1"):
        specs[name] = ActorSpec(actor=Recorder)
        wiring[name] = {}
    return specs, wiring


def run_on(host: Host | None, system_: tuple, path: Path, seed: int, spread_ns: int) -> Simulated:
    specs, wiring = system_
    mesh = full_mesh(specs, link(2_000, kind="uniform", spread_ns=spread_ns))
    return simulate(specs, wiring, path=path, network=mesh, seed=seed, host=host, inbox_messages=4)


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**32 - 1),
    senders=st.integers(1, 3),
    workers=st.integers(1, 4),
    processes=st.integers(1, 2),
    gap_ns=st.integers(0, 3_000),
    spread_ns=st.integers(0, 2_000),
)
def test_ray_and_inline_have_one_digest_and_one_output(
    ray_running: None,
    tmp_path: Path,
    seed: int,
    senders: int,
    workers: int,
    processes: int,
    gap_ns: int,
    spread_ns: int,
) -> None:
    actors = system(senders, workers, gap_ns)
    inline = run_on(None, actors, tmp_path / "inline.parquet", seed, spread_ns)
    with RayHost(
        *actors, seed, homes=pack({name: name[0] for name in actors[0]}, processes)
    ) as host:
        on_ray = run_on(host, actors, tmp_path / "ray.parquet", seed, spread_ns)
    assert on_ray.outcome.digest == inline.outcome.digest
    assert on_ray.emitted == inline.emitted


def test_a_fault_in_a_ray_process_is_told_as_inline_tells_it(
    ray_running: None, tmp_path: Path
) -> None:
    specs = {
        "a": ActorSpec(actor=Sender, arguments={"count": 1}),
        "w": ActorSpec(actor=Worker, arguments={"port": "nowhere"}),
    }
    actors = (specs, {"a": {"out": ("w",)}, "w": {}})
    told = []
    for host in (InlineHost(*actors, 1), RayHost(*actors, 1, homes={"a": 0, "w": 1})):
        with pytest.raises(ActorError) as raised:
            simulate(*actors, path=tmp_path / "trace.parquet", host=host)
        told.append(str(raised.value))
    assert told[0] == told[1]
    assert told[0].startswith("w failed on a message from a")


def test_a_payload_leaves_its_shard_only_for_another_and_is_kept_only_until_it_is_read() -> None:
    specs, wiring = system(senders=1, workers=2, gap_ns=0)
    homes = dict.fromkeys(specs, 0) | {"w1": 1}
    shard = Shard(0, homes, specs, wiring, 1)
    ((_, reply),), bundle = shard.receive([(0, "s0", "s0", "start", None, 0)], [])
    (sent,) = reply.sends
    serial, place = sent.handle
    assert sent.receivers == ("w0", "w1")
    assert [parcel.number for parcel in bundle] == [0]
    assert place == 0
    assert serial in shard._kept
    shard.receive([(1, "w0", "s0", "out", (KEPT, serial), 5)], [])
    # The worker has passed it on to a recorder of its own shard; the original is gone.
    assert serial not in shard._kept


def test_packing_deals_every_operator_out_evenly_and_keeps_neighbours_together() -> None:
    roles = {f"join{i}": "join" for i in range(10)} | {"sink": "sink"}
    homes = pack(roles, 3)
    joiners = [homes[f"join{i}"] for i in range(10)]
    assert joiners == sorted(joiners)
    assert np.bincount(joiners).tolist() == [4, 3, 3]
    assert homes["sink"] == 0
