"""What watching a run for broken invariants costs: the time of worlds watched, over that unwatched.

In the clock: a simulation, from building its actors to its whole files; processor time.

The worlds are drawn from a seed, of all topologies, with faults and crashes. They are run watched
and unwatched by turns, after one run of each that compiles its kernels.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from actors.hosting.inline import InlineHost
from actors.hosting.invariants import WatchingHost
from benchmarks.measure import Result, report
from scenarios.run import InlineHosting, simulate
from scenarios.worlds import World
from scenarios.worlds.fuzzing import world_number
from topologies import TOPOLOGIES

_WORLDS = 2 * len(TOPOLOGIES)
_REPEATS = 3


def measure() -> list[Result]:
    """Return the ratio over all worlds, one for each turn."""
    worlds = [world_number(number, 1, tuple(TOPOLOGIES)) for number in range(_WORLDS)]
    for world in worlds:
        _seconds(world, InlineHost)
    ratios = [
        sum(_seconds(world, _watching(world)) for world in worlds)
        / sum(_seconds(world, InlineHost) for world in worlds)
        for _ in range(_REPEATS)
    ]
    return [Result.of("watched, to unwatched", ratios, unit="x", target=2, at_least=False)]


def _watching(world: World) -> InlineHosting:
    skewed = any(fault["kind"] == "skew" for fault in world.faults)
    return partial(WatchingHost, lossy=world.lossy, skewed=skewed)


def _seconds(world: World, host: InlineHosting) -> float:
    with TemporaryDirectory() as folder:
        plan = world.plan(Path(folder))
        start = time.process_time()
        simulate(plan, Path(folder), pairs=False, inline_host=host)
        return time.process_time() - start


if __name__ == "__main__":
    report("invariants", measure())
