"""A run that is killed at any message, whatever else goes wrong in it, goes on to its outcome."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actors.hosting.saved_run import SavedRun, SavingHost
from actors.protocol import Progress, Reply
from joins.errors import JoinsimError
from netsim.outcome import Outcome
from scenarios import run as running
from scenarios.observer import Line
from scenarios.run import simulate
from scenarios.run_directory import read_results
from scenarios.worlds import World, WorldStream
from scenarios.worlds.drawing import draw_world, with_recovery
from scenarios.worlds.fuzzing import EndlessRunError
from tests.actors.meshes import use_threads
from tests.properties.families import examples_of
from topologies import TOPOLOGIES

WORLDS = 4
_NEVER = 1 << 60
REPORTS_MAX = 100
"""Reports of progress, one every 4,096 events, of a world that ends."""


class KilledError(Exception):
    """Stands for the end of this very process."""


@dataclass
class Death:
    """At which message a run is killed, and those that actors have had: some are lost before."""

    at: int | None = None
    messages: list[int] = field(default_factory=list)


@pytest.fixture
def death(monkeypatch: pytest.MonkeyPatch) -> Death:
    """Have runs that save themselves be killed."""
    death = Death()

    class Killed(SavingHost):
        def submit(
            self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
        ) -> Reply | None:
            if ticket == death.at:
                raise KilledError
            death.messages.append(ticket)
            return super().submit(ticket, actor, sender, port, handle, now)

    monkeypatch.setattr(running, "SavingHost", Killed)
    return death


class SavedOften(SavedRun):
    """Saves itself every so many messages."""

    def __init__(self, folder: Path, every: int) -> None:
        super().__init__(folder, every_s=0)
        self._asked, self._every = count(1), every

    @property
    def due(self) -> bool:
        return next(self._asked) % self._every == 0


class Limit(Line):
    """Ends a run that goes on and on."""

    def __init__(self) -> None:
        self._reports = count()

    def on_run(self, at: Progress, seconds: float) -> None:
        if next(self._reports) > REPORTS_MAX:
            raise EndlessRunError("it goes on and on")


def ended(world: World, folder: Path, every: int, **settings: Any) -> tuple[Outcome, int]:
    """Go on with a world; return what became of it, and the messages answered from disk."""
    plan = world.plan(folder, **settings)
    folder.mkdir(parents=True, exist_ok=True)
    with SavedOften(folder / "saved", every) as disk:
        return simulate(plan, folder, pairs=False, line=Limit(), disk=disk).outcome, disk.answered


def draw(topology: str, number: int) -> tuple[np.random.Generator, World]:
    """Draw a world, with crashes in three of four, and return with what to draw more."""
    rng = np.random.default_rng([number, 31])
    world = draw_world(rng, TOPOLOGIES[topology])
    return rng, with_recovery(rng, world) if number % 4 else world


def check(
    rng: np.random.Generator, world: World, death: Death, folder: Path, **settings: Any
) -> tuple[Outcome, int]:
    """Kill a world at two random messages, one after the other, and compare what it came to.

    Those are its outcome and its results: a verdict is of nothing else. Return the outcome, and how
    many messages were answered from disk; raise :exc:`JoinsimError` where the undisturbed world
    does not end well.
    """
    death.at, death.messages = None, []
    whole, _ = ended(world, folder / "whole", _NEVER, **settings)
    messages = sorted(death.messages)
    every = 1 + len(messages) // int(rng.integers(2, 12))
    for place in sorted(rng.integers(0, len(messages), 2).tolist()):
        death.at = messages[place]
        with pytest.raises(KilledError):
            ended(world, folder / "killed", every, **settings)
    death.at = None
    gone_on, answered = ended(world, folder / "killed", every, **settings)
    assert gone_on == whole
    assert read_results(folder / "killed") == read_results(folder / "whole")
    return gone_on, answered


@pytest.mark.parametrize("topology", list(TOPOLOGIES))
def test_any_world_that_is_killed_goes_on_to_its_outcome(
    topology: str, death: Death, tmp_path: Path
) -> None:
    checked = answered = 0
    worlds = examples_of(TOPOLOGIES[topology], 2 * WORLDS)
    for number in range(worlds):
        with suppress(JoinsimError):
            answered += check(*draw(topology, number), death, tmp_path / str(number))[1]
            checked += 1
    assert checked >= worlds // 2
    assert answered > 0


def test_a_run_whose_actors_fail_without_a_transport_goes_on_to_its_outcome(
    death: Death, tmp_path: Path
) -> None:
    """What is sent to them then is no message that an actor answers."""
    stream = WorldStream(list(range(60)), [1.0] * 60, [1] * 60)
    world = World(
        topology="split_join",
        query="SELECT * FROM R, S WHERE R.x = S.x WINDOW AS (SLIDE INTERVAL '1' ON '5')",
        streams=(stream, stream),
        network={"transport": "none"},
        feeding={"batch_rows": 2},
        faults=[{"kind": "reorder", "rate": 0.3, "delay": 1_000_000, "receiver": "joiner.1"}],
    )
    whole, _ = ended(world, tmp_path / "whole", _NEVER)
    assert whole.injected
    assert list(whole.injected.failed) == ["joiner.1"]
    death.at = max(death.messages)
    with pytest.raises(KilledError):
        ended(world, tmp_path / "killed", 10)
    death.at = None
    gone_on, answered = ended(world, tmp_path / "killed", 10)
    assert answered > 0
    assert gone_on == whole


@pytest.mark.parametrize("topology", ["spo_join", "kp_oij", "handshake_join"])
def test_worlds_in_other_processes_go_on_to_their_outcome(
    topology: str, death: Death, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_threads(monkeypatch)
    answered = restarts = 0
    for number in range(WORLDS):
        rng, world = draw(topology, number)
        reliable = {key: value for key, value in world.network.items() if key != "transport"}
        world = dataclasses.replace(world, network=reliable)
        with suppress(JoinsimError):
            outcome, repeated = check(
                rng, world, death, tmp_path / str(number), backend="ray", processes=2
            )
            answered += repeated
            restarts += outcome.recovered.restarts if outcome.recovered else 0
    assert answered > 0
    assert restarts > 0
