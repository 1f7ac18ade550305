"""Live runs whose processes are lost: what comes out is what would have, once."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting import saved_run
from actors.hosting.live.live_run import LiveSystem
from actors.hosting.live.post import Measured, moment_ns
from actors.hosting.live.recovery import EpochEntry, RecoveringRun, SnapshotPart, serve
from actors.hosting.mesh import MemberLostError, Mesh
from actors.hosting.processes import RayUnavailableError
from actors.protocol import FEEDBACK, ActorSpec
from tests.actors.meshes import LostError, Mortal, labels, meshes
from tests.actors.test_live import PORTS, Bouncer, Wall
from tests.toys import Recorder, Sender, Worker

Kills = list[tuple[int, int]]

BRIEF = 3


def run_killed(
    specs: dict[str, ActorSpec],
    wiring: Any,
    homes: dict[str, int],
    kills: Kills,
    *,
    room: int = 4,
    interval_ns: int = 1,
) -> tuple[RecoveringRun, Measured, list[Any], np.ndarray]:
    """Run a system, killing processes; return the run, what was measured, emitted, and traced."""
    collected: list[Any] = []
    with (
        pytest.MonkeyPatch.context() as patch,
        Mortal(labels(max(homes.values()) + 1), kills) as processes,
    ):
        patch.setattr(saved_run, "_PAUSE_FACTOR", 0)  # a snapshot whenever one is due

        def start() -> Mortal:
            if run.losses:
                processes.restart()
            return processes

        run = RecoveringRun(
            start,
            LiveSystem(specs=specs, wiring=wiring, seed=1, homes=homes, room=room, codes=PORTS),
            lost=LostError,
            interval_ns=interval_ns,
            collect=collected.extend,
        )
        measured = run.run(lambda count: None)
    traced = [one for one in collected if isinstance(one, np.ndarray)]
    emitted = [one for one in collected if not isinstance(one, np.ndarray)]
    return run, measured, emitted, np.concatenate([np.empty((0, 13), np.int64), *traced])


def pipeline(count: int, gap_ns: int = 0) -> tuple[dict[str, ActorSpec], Any]:
    """Return two sources, two workers of which one is drawn for each parcel, and a recorder.

    One of the sources ends soon, before most snapshots.
    """
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": count, "gap_ns": gap_ns}),
        "brief": ActorSpec(actor=Sender, arguments={"count": BRIEF}),
        "router": ActorSpec(actor=Worker, arguments={"port": "on"}),
        "w0": ActorSpec(actor=Worker, arguments={"port": "on"}),
        "w1": ActorSpec(actor=Worker, arguments={"port": "on"}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {
        "source": {"out": ("router",)},
        "brief": {"out": ("router",)},
        "router": {"on": ("w0", "w1")},
        "w0": {"on": ("recorder",)},
        "w1": {"on": ("recorder",)},
        "recorder": {},
    }
    return specs, wiring


kills_drawn = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    homes=st.lists(st.integers(0, 2), min_size=6, max_size=6),
    kills=kills_drawn,
    room=st.integers(1, 3),
)
def test_every_parcel_comes_once(homes: list[int], kills: Kills, room: int) -> None:
    specs, wiring = pipeline(150)
    whereabouts = dict(zip(specs, homes, strict=True))
    _, measured, emitted, rows = run_killed(specs, wiring, whereabouts, kills, room=room)
    assert Counter(number for _, number, _, _ in emitted) == Counter([*range(150), *range(BRIEF)])
    assert all(total == sum(range(number % 7)) for _, number, _, total in emitted)
    # Counts and trace go back with the actors.
    assert measured.tuples == 150 + BRIEF
    assert measured.messages == measured.received == 3 * measured.tuples
    sender, receiver, _, seq = rows[:, :4].T
    assert len(rows) == 4 * measured.tuples + 2
    assert max(Counter(zip(sender, receiver, seq, strict=True)).values()) == 1


@settings(max_examples=40, deadline=None)
@given(
    bounces=st.integers(0, 4),
    homes=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    kills=kills_drawn,
)
def test_actors_that_answer_each_other_end_after_a_loss_too(
    bounces: int, homes: list[int], kills: Kills
) -> None:
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": 60}),
        "wall": ActorSpec(actor=Wall),
        "bouncer": ActorSpec(actor=Bouncer, arguments={"bounces": bounces}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {
        "source": {"out": ("wall",)},
        "wall": {"out": ("bouncer",)},
        "bouncer": {FEEDBACK: ("wall",), "on": ("recorder",)},
        "recorder": {},
    }
    _, measured, emitted, _ = run_killed(
        specs, wiring, dict(zip(specs, homes, strict=True)), kills, room=2
    )
    assert sorted(number for _, number, _, _ in emitted) == list(range(60))
    assert measured.received == 60 * (2 * bounces + 3)


HOMES = {"source": 0, "brief": 0, "router": 1, "w0": 0, "w1": 1, "recorder": 1}


def test_a_run_goes_on_from_its_last_snapshot_and_not_from_the_beginning() -> None:
    specs, wiring = pipeline(100, gap_ns=2_000_000)
    run, _, emitted, rows = run_killed(specs, wiring, HOMES, [(20, 1)], interval_ns=10_000_000)
    assert (run.losses, len(emitted)) == (1, 100 + BRIEF)
    assert run.snapshots > 1
    assert run.snapshot_bytes > 0
    # Had the source begun anew, what it did before the loss would have been discarded. The driver
    # has a few frames a snapshot, so that its twentieth comes several intervals after the start.
    assert rows[rows[:, 1] == 0][:, 11].min() < 30_000_000


def test_a_run_without_a_snapshot_begins_anew() -> None:
    specs, wiring = pipeline(50)
    run, _, emitted, _ = run_killed(specs, wiring, HOMES, [(2, 0)], interval_ns=10**12)
    assert (run.losses, run.snapshots, len(emitted)) == (1, 0, 50 + BRIEF)


def test_results_wait_for_the_snapshot_behind_them() -> None:
    specs, wiring = pipeline(40, gap_ns=1_000_000)
    run, _, emitted, _ = run_killed(specs, wiring, HOMES, [], interval_ns=5_000_000)
    assert (run.losses, len(emitted)) == (0, 40 + BRIEF)
    assert run.snapshots > 0


def test_processes_that_are_lost_again_and_again_end_the_run() -> None:
    specs, wiring = pipeline(1_000)
    with pytest.raises(RayUnavailableError, match="loss number 4 since the last snapshot"):
        run_killed(specs, wiring, HOMES, [(3, 0)] * 4, interval_ns=10**12)


def test_a_snapshot_that_another_process_begins_early_goes_on_to_the_end() -> None:
    """The other one's marker is there before this process knows that the run has begun."""
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": 5}),
        "recorder": ActorSpec(actor=Recorder),
    }
    system = LiveSystem(
        specs=specs,
        wiring={"source": {"out": ("recorder",)}, "recorder": {}},
        seed=1,
        homes={"source": 0, "recorder": 0},
        room=4,
        codes=PORTS,
    )

    def run(mesh: Mesh) -> None:
        with suppress(MemberLostError), mesh:
            serve(mesh, system)

    part: SnapshotPart | None = None
    for attempt in range(2):
        mine, other, driver = meshes(2)
        server = Thread(target=run, args=(mine,))
        with other, driver:
            if attempt == 0:
                other.send(0, 1)
                while not mine.waiting:
                    time.sleep(0.001)
            server.start()
            driver.send(0, [moment_ns(), part])
            news: list[Any] = []
            while not any(isinstance(one, Measured) for one in news):
                received = driver.receive(10)
                assert received, "it has come to a standstill"
                news.append(received[1])
        part = next((one for one in news if isinstance(one, SnapshotPart)), None)
        server.join()
        assert attempt or part
    emitted = [one.entry for one in news if isinstance(one, EpochEntry)]
    assert sum(len(entry) for entry in emitted if isinstance(entry, list)) == 5
