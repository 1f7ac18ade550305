"""One body of tests, every host: where actors live changes nothing."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.hosting.inline import InlineHost
from actors.hosting.mesh import MemberLostError, Mesh
from actors.hosting.process_host import ProcessHost, Shard, read_answer
from actors.hosting.processes import EACH, label_processes, pack
from actors.hosting.ray_cluster import ray
from actors.hosting.ray_processes import RayProcesses
from actors.protocol import ActorError, ActorSpec, Host, Wiring
from netsim.network import full_mesh
from tests.actors.meshes import Threads, labels, meshes
from tests.netsim.simulate import Simulated, link, simulate
from tests.toys import Parcel, Recorder, Sender, Worker
from topologies import find_topology
from topologies.actor_graph import ActorGraph
from topologies.spo_join import SpoJoinParameters


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


def run_on(
    host: Host | None,
    system_: tuple[dict[str, ActorSpec], Wiring],
    path: Path,
    seed: int,
    spread_ns: int,
) -> Simulated:
    specs, wiring = system_
    mesh = full_mesh(specs, link(2_000, kind="uniform", spread_ns=spread_ns))
    return simulate(specs, wiring, path=path, network=mesh, seed=seed, host=host, inbox_messages=4)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    seed=st.integers(0, 2**32 - 1),
    senders=st.integers(1, 3),
    workers=st.integers(1, 4),
    processes=st.integers(1, 3),
    gap_ns=st.integers(0, 3_000),
    spread_ns=st.integers(0, 2_000),
)
def test_other_processes_and_inline_have_one_digest_and_one_output(
    tmp_path: Path,
    seed: int,
    senders: int,
    workers: int,
    processes: int,
    gap_ns: int,
    spread_ns: int,
) -> None:
    check_one_digest(
        Threads(labels(processes)), tmp_path, seed, senders, workers, gap_ns, spread_ns
    )


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_ray_and_inline_have_one_digest_and_one_output(
    ray_running: None, tmp_path: Path, processes: int
) -> None:
    check_one_digest(RayProcesses(labels(processes)), tmp_path, 7, 2, 4, 1_000, 900)


def test_processes_serve_one_run_after_another(ray_running: None, tmp_path: Path) -> None:
    def pids_of_a_run(count: int, *, reuse: bool = True) -> list[int]:
        processes = RayProcesses(labels(count), reuse=reuse)
        pids = processes.everywhere(os.getpid)
        check_one_digest(processes, tmp_path, 7, 2, 4, 1_000, 900)
        return pids

    first = pids_of_a_run(2)
    assert pids_of_a_run(2) == first
    other = pids_of_a_run(1)
    assert not set(other) & set(first)
    assert pids_of_a_run(1, reuse=False) != other


def send_exempt_objects(mesh: Mesh) -> None:
    mesh.send(mesh.driver, gc.get_freeze_count())
    with suppress(MemberLostError):
        mesh.receive()  # until the driver leaves


def test_garbage_collection_in_a_run_passes_over_what_was_loaded_before_it(
    ray_running: None,
) -> None:
    with RayProcesses(labels(1)) as processes:
        processes.serve(send_exempt_objects)
        received = processes.receive(60)
        assert received is not None
        assert received[1] > 10_000


def test_processes_of_a_run_that_failed_serve_no_other(ray_running: None) -> None:
    pids = []
    for _ in range(2):
        with suppress(ZeroDivisionError), RayProcesses(labels(1), reuse=True) as processes:
            pids += processes.everywhere(os.getpid)
            raise ZeroDivisionError
    assert pids[0] != pids[1]


def test_a_process_that_was_killed_while_it_was_idle_is_replaced(ray_running: None) -> None:
    with RayProcesses(labels(2), reuse=True) as processes:
        pids = processes.everywhere(os.getpid)
    killed = psutil.Process(pids[0])
    killed.kill()
    killed.wait(timeout=10)
    with RayProcesses(labels(2), reuse=True) as processes:
        assert not set(processes.everywhere(os.getpid)) & set(pids)


def test_a_process_that_is_stopped_is_ended_soon(ray_running: None) -> None:
    """Another one has to wait for its core; Ray's own default is five seconds."""
    with RayProcesses(labels(1)) as processes:
        (pid,) = processes.everywhere(os.getpid)
        process = psutil.Process(pid)
        process.suspend()
    process.wait(timeout=4)


def check_one_digest(
    processes: Any,
    tmp_path: Path,
    seed: int,
    senders: int,
    workers: int,
    gap_ns: int,
    spread_ns: int,
) -> None:
    actors = system(senders, workers, gap_ns)
    inline = run_on(None, actors, tmp_path / "inline.parquet", seed, spread_ns)
    homes = pack({n: n[0] for n in actors[0]}, {n: n for n in actors[0]}, processes.count)
    with processes:
        host = ProcessHost(processes, *actors, seed, homes=homes)
        elsewhere = run_on(host, actors, tmp_path / "elsewhere.parquet", seed, spread_ns)
    assert elsewhere.outcome.digest == inline.outcome.digest
    assert elsewhere.emitted == inline.emitted


def test_a_fault_in_a_ray_process_is_reported_as_inline_reports_it(
    ray_running: None, tmp_path: Path
) -> None:
    specs = {
        "a": ActorSpec(actor=Sender, arguments={"count": 1}),
        "w": ActorSpec(actor=Worker, arguments={"port": "nowhere"}),
    }
    actors = (specs, {"a": {"out": ("w",)}, "w": {}})
    messages = []
    with RayProcesses(labels(2)) as processes:
        on_ray = ProcessHost(processes, *actors, 1, homes={"a": 0, "w": 1})
        for host in (InlineHost(*actors, 1), on_ray):
            with pytest.raises(ActorError) as raised:
                simulate(*actors, path=tmp_path / "trace.parquet", host=host)
            messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert messages[0].startswith("w failed on a message from a")


def test_a_payload_goes_where_it_will_be_read_and_is_kept_only_until_it_is() -> None:
    specs, wiring = system(senders=1, workers=2, gap_ns=0)
    homes = dict.fromkeys(specs, 0) | {"w1": 1}
    here, there, driver = meshes(2)
    with here, there, driver:
        shard = Shard(here, homes, specs, wiring, 1)

        def run() -> None:
            with suppress(MemberLostError):
                shard.run()

        thread = threading.Thread(target=run)
        thread.start()
        driver.send(0, [(0, "s0", "s0", "start", None, 0)])
        received: Any = driver.receive(10)
        ticket, reply, peak = read_answer(received[1])
        (sent,) = reply.sends
        assert ticket == 0
        assert peak > 0
        assert sent.receivers == ("w0", "w1")
        _, ((serial, payload, readers),) = there.receive(10) or (0, ((0, 0, 0),))
        assert (sent.handle, readers) == (serial, 1)  # of process 0
        assert isinstance(payload, Parcel)
        assert sent.handle in shard._unread
        driver.send(0, [(1, "w0", "s0", "out", sent.handle, 5)])
        driver.receive(10)
        # The worker has passed it on to a recorder of its own shard; the original is gone.
        assert sent.handle not in shard._unread
    thread.join(10)
    assert not thread.is_alive()


def test_packing_deals_operators_out_in_turns_and_keeps_sites_whole() -> None:
    roles = {f"join{i}": "join" for i in range(10)} | {"sink": "sink", "helper": "helper"}
    sites = {name: name for name in roles} | {"helper": "join4"}
    homes = pack(roles, sites, 3)
    assert [homes[f"join{i}"] for i in range(6)] == [0, 1, 2, 0, 1, 2]
    assert homes["helper"] == homes["join4"]
    assert homes["sink"] == 2  # the others hold four actors each, or five


def test_packing_puts_actors_with_much_to_do_into_different_processes() -> None:
    roles = {f"join{i}": "join" for i in range(4)}
    sites = {name: name for name in roles}
    homes = pack(roles, sites, 2, loads={"join0": 2.0, "join2": 1.5, "join1": 0.25, "join3": 0.25})
    assert homes["join0"] != homes["join2"]
    assert homes["join1"] == homes["join3"] == homes["join2"]


def test_packing_spreads_sites_that_hold_a_bit_of_everything() -> None:
    roles = {"source": "source", "router": "router", "join0": "join", "sink": "sink"}
    sites = {"source": "a", "router": "b", "join0": "c", "sink": "d"}
    assert sorted(pack(roles, sites, 2).values()) == [0, 0, 1, 1]


def spo_join_graph() -> ActorGraph:
    system = find_topology("spo_join")
    job = replace(system.example(), sink="single")
    return system.build(job, SpoJoinParameters())


def test_ray_lists_processes_by_the_classes_and_the_names_of_their_actors(
    ray_running: None,
) -> None:
    """As `ray list actors` shows them: what lives there, in a namespace of the run."""
    graph = spo_join_graph()
    shown = label_processes("spo_join", graph.specs, graph.homes(EACH) | {"sink": 0})[:3]
    with RayProcesses(shown, run="spo-q3", cores=0) as processes:
        named = ray.util.list_named_actors(all_namespaces=True)
        listed = {one["name"] for one in named if one["namespace"] == processes.namespace}
        table = ray._private.state.state.actor_table(None, None, None)
        kinds = {one["Name"]: one["ActorClassName"] for one in table.values()}
    assert processes.namespace.startswith("spo-q3-")
    assert listed == {"spo_join/source+sink", "spo_join/router", "spo_join/predicate.0.0"}
    assert kinds["spo_join/source+sink"] == "Source+Sink"
    assert kinds["spo_join/router"] == "Router"
    assert kinds["spo_join/predicate.0.0"] == "PredicatePE"


def test_each_actor_has_a_process_of_its_own_and_packed_ones_are_named_after_the_first() -> None:
    graph = spo_join_graph()
    each = label_processes("spo_join", graph.specs, graph.homes(EACH))
    assert [label.name for label in each] == [f"spo_join/{name}" for name in graph]
    assert "PoJoinPE" in {label.kind for label in each}
    (packed,) = label_processes("spo_join", graph.specs, graph.homes(1))
    assert packed.kind == "Source+Router+PredicatePE+LogicalPE+3 more"
    assert packed.name == (
        f"spo_join/source+router+predicate.0.0+predicate.1.0+{len(graph) - 4} more"
    )
