"""Worlds drawn at random, run and judged; and worlds in files, run again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import NonNegativeInt, PositiveInt

from scenarios.config import MAX_SEED
from scenarios.observer import SILENT, Observer
from scenarios.run_directory import RUNS
from scenarios.scenario_files import ConfigError
from scenarios.worlds import fuzzing
from scenarios.worlds.fuzzing import Fuzzed, WorldTrial, try_world
from scenarios.worlds.world import Recording, read_recording
from topologies import Named

_FOLDER = "fuzz"
_REPORTS = 50
"""Lines of progress at the most."""


def fuzz(
    worlds: PositiveInt = 1000,
    *,
    seed: NonNegativeInt = 1,
    topologies: Named | Sequence[Named] = (),
    processes: PositiveInt = 1,
    out: str | Path | None = None,
    observer: Observer = SILENT,
) -> Fuzzed:
    """Draw worlds at random, run each, and judge its answer.

    A world is a small run: a query, tuples, a topology with its parameters, a network, an order of
    arrival, faults and crashes. One that breaks what it promises is made small, and written to a
    file for `replay`.

    Parameters
    ----------
    worlds
        How many to run.
    seed
        The same seed has the same worlds.
    topologies
        The systems, in turn; by default all.
    processes
        Processes to share the work among. The worlds are the same with any number.
    out
        Folder for failing worlds; by default ``runs/fuzz``. It is made when one fails.
    observer
        Shows progress; by default nothing is shown.

    Raises
    ------
    TopologyError
        There is no topology of that name.

    Examples
    --------
    >>> import joinsim as js
    >>> fuzzed = js.fuzz(4, topologies=["nested_loop", "split_join"])
    >>> fuzzed.worlds, fuzzed.failures
    (4, [])
    """
    if seed > MAX_SEED:
        raise ConfigError(f"seed = {seed}: 0 to {MAX_SEED} is allowed")
    folder = RUNS / _FOLDER if out is None else Path(out)
    with observer.points(worlds) as line:

        def on_trial(so_far: Fuzzed) -> None:
            if so_far.worlds % math.ceil(worlds / _REPORTS) == 0 and so_far.worlds < worlds:
                line.on_point(so_far.worlds, f"{len(so_far.failures)} failed")

        return fuzzing.fuzz(
            worlds,
            seed=seed,
            topologies=topologies,
            processes=processes,
            directory=folder,
            on_trial=on_trial,
        )


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """A world that was run again.

    Attributes
    ----------
    recording
        What its file says: the world, the digest of its run, and what was wrong with it.
    trial
        What became of it now.

    Examples
    --------
    >>> import json, tempfile, joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '4')"
    >>> stream = {"ts": [1, 2], "x": [0.5, 0.1], "y": [1, 2]}
    >>> world = {"topology": "nested_loop", "query": query, "streams": [stream]}
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     json.dump({"world": world}, file)
    ...     file.flush()
    ...     replayed = js.replay(file.name)
    >>> replayed.same, replayed.trial.failure, replayed.summary["tuples"]
    (None, None, 2)
    """

    recording: Recording
    trial: WorldTrial

    @property
    def same(self) -> bool | None:
        """Whether the run has the digest of the file; None where that has none."""
        expected = self.recording.digest
        return None if expected is None else self.trial.digest == expected

    @property
    def summary(self) -> dict[str, Any]:
        """Everything but the world as plain data, as ``--json`` prints it."""
        return {
            "topology": self.trial.world.topology,
            "tuples": self.trial.world.tuples,
            "digest": self.trial.digest,
            "same_digest": self.same,
            "failure": self.trial.failure,
            "recorded_failure": self.recording.failure,
        }


def replay(file: str | Path) -> Replayed:
    """Run the world in a file again.

    Parameters
    ----------
    file
        What `fuzz` wrote of a failing world.

    Raises
    ------
    JoinsimError
        The file does not describe a world, or its world cannot be run; names what is wrong.

    Examples
    --------
    >>> import json, tempfile, joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '4')"
    >>> stream = {"ts": [1, 2], "x": [0.5, 0.1], "y": [1, 2]}
    >>> world = {"topology": "nested_loop", "query": query, "streams": [stream]}
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write(json.dumps({"world": world, "failure": "oracle: 1 missing"}))
    ...     file.flush()
    ...     replayed = js.replay(file.name)
    >>> print(replayed.recording.failure, "then, now", replayed.trial.failure)
    oracle: 1 missing then, now None
    """
    recording = read_recording(Path(file))
    return Replayed(recording=recording, trial=try_world(recording.world))
