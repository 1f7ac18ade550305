"""Fuzzing: worlds drawn one after the other, run, judged and counted; what fails is made small.

A world that failed is in a file, and can be run again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import NonNegativeInt, PositiveInt

from actors.hosting.invariants import WatchingHost
from actors.protocol import Progress
from actors.whole_files import at_home, check_can_be_made, write_text, writing
from joins.errors import JoinsimError
from joins.queries.parser import parse_query
from joins.queries.query import QueryError
from netsim.outcome import Outcome
from scenarios.config import MAX_SEED, NetworkConfig
from scenarios.formatting import format_many
from scenarios.observer import SILENT, Line, Observer
from scenarios.run import FinishedRun, execute
from scenarios.run_directory import RUNS
from scenarios.scenario_files import ConfigError
from scenarios.subprocesses import process_pool
from scenarios.worlds import Recording, World, WorldStream, read_recording
from scenarios.worlds.drawing import draw_world, with_recovery
from topologies import TOPOLOGIES, Named, registered_names

_REPORTS_MAX = 500
"""A world has some thousand events; one that reports its progress so often, after some thousand
events each time, will not end."""

_EXACT_OF_TEN = 8
"""Worlds of ten that must be exact; the others may be of variants, transports and guarantees that
promise less."""

_WORLDS_OF_A_TASK = 8

_REPORTS = 50
"""Lines of progress at the most."""

TRIES_MAX = 300
"""Worlds that are tried, by default: most failures are small after a hundred."""

_FEATURES = ("recovery", "network", "feeding", "parameters")
_OPTIONAL = ("faults", *_FEATURES, "sink", "segment_rows")


class EndlessRunError(Exception):
    """A run that goes on and on."""


@dataclass(frozen=True, kw_only=True)
class WorldTrial(Recording):
    """What became of one world; a failure has its kind before a colon, and then the words."""

    expected: int = 0
    messages: int = 0
    """Pairs that the oracle expects, and messages between actors."""
    happened: Counter[str] = field(default_factory=Counter)
    """Faults by kind, restarts and snapshots, as they happened."""

    @property
    def kind(self) -> str:
        """The kind of failure."""
        return (self.failure or "").partition(":")[0]


def try_world(world: World, **how: Any) -> WorldTrial:
    """Run a world and judge it; *how* are arguments of `World.run`.

    Raise :exc:`JoinsimError` where the world cannot be.
    """
    with TemporaryDirectory(prefix="joinsim-world-") as folder:
        plan = world.plan(Path(folder), **how)
        hosts: list[WatchingHost] = []

        def watching(*arguments: Any, **options: Any) -> WatchingHost:
            skewed = any(fault["kind"] == "skew" for fault in world.faults)
            hosts.append(WatchingHost(*arguments, lossy=world.lossy, skewed=skewed, **options))
            return hosts[-1]

        try:
            finished = execute(
                plan, Path(folder), rehearsal=False, line=_ReportLimit(), inline_host=watching
            )
            for host in hosts:
                host.finish()
        except Exception as error:  # whatever it is, the world that shows it is wanted
            return WorldTrial(world=world, failure=f"{type(error).__name__}: {error}")
        return WorldTrial(
            world=world,
            digest=finished.outcome.digest,
            failure=failure_of(finished, lossy=world.lossy),
            expected=finished.verdict.expected,
            messages=finished.outcome.messages,
            happened=_happened(finished.outcome),
        )


def failure_of(finished: FinishedRun, *, lossy: bool = False) -> str | None:
    """Describe why a run fails; None if it passes.

    A *lossy* one may lack pairs or have them twice, but may have none that does not satisfy the
    query. Of a variant that claims no exactness not even that is asked: SPO-Join without its hash
    table has such pairs in runs without faults.
    """
    if lossy:
        system = finished.plan.topology
        right = system.claims_exact(finished.plan.parameters) or finished.approximated
        wrong = finished.verdict.wrong if right else 0
        pairs = format_many(wrong, "pair does", "pairs do")
        return f"spurious: {pairs} not satisfy the query" if wrong else None
    for check in finished.verdict.checks:
        if check.passed is False:
            return f"{check.name}: {check.detail}"
    return None


def _happened(outcome: Outcome) -> Counter[str]:
    happened = Counter(outcome.injected.counts if outcome.injected else {})
    if recovered := outcome.recovered:
        happened += Counter(
            crash=recovered.crashes, restart=recovered.restarts, snapshot=recovered.snapshots
        )
    return happened


class _ReportLimit(Line):
    """Ends a run that does not end, by the reports of its progress."""

    def __init__(self) -> None:
        self._reports = count(1)

    def on_run(self, at: Progress, seconds: float) -> None:
        """Raise :exc:`EndlessRunError` once there are too many."""
        if next(self._reports) > _REPORTS_MAX:
            raise EndlessRunError(f"the run has not ended after {at.now_ns / 1e9:g} virtual s")


def world_number(number: int, seed: int, topologies: Sequence[str]) -> World:
    """Return a world of a fuzzing run: a function of its number, the seed and the topologies."""
    rng = np.random.default_rng([seed, number])
    exact = bool(rng.integers(10) < _EXACT_OF_TEN)
    world = draw_world(rng, TOPOLOGIES[topologies[number % len(topologies)]], exact=exact)
    return with_recovery(rng, world, exact=exact) if rng.integers(2) else world


@dataclass(kw_only=True)
class Fuzzed:
    """What was run, and what failed.

    Attributes
    ----------
    seed, topologies
        What the worlds were drawn from.
    worlds, tuples, pairs, messages
        How many there were; *pairs* are those that the oracle expects.
    without_pairs
        Worlds in which no pair was expected.
    coverage
        Topology and kind of query to the worlds of it.
    features
        What worlds turned on, to how many did.
    happened
        Kind of fault, restarts and snapshots, to how often there was one.
    happened_in
        Topology and what happened to the worlds of it.
    failures
        The failing worlds, made small.
    files
        Where these were written.

    Examples
    --------
    >>> import joinsim as js
    >>> fuzzed = js.fuzz(3, topologies=["nested_loop"])
    >>> fuzzed.worlds, fuzzed.topologies, fuzzed.failures, fuzzed.files
    (3, ('nested_loop',), [], [])
    """

    seed: int
    topologies: tuple[str, ...]
    worlds: int = 0
    tuples: int = 0
    pairs: int = 0
    messages: int = 0
    without_pairs: int = 0
    coverage: Counter[tuple[str, str]] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    happened_in: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[WorldTrial] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    def count(self, trial: WorldTrial) -> None:
        """Add a trial to the counts."""
        self.worlds += 1
        self.tuples += trial.world.tuples
        self.pairs += trial.expected
        self.messages += trial.messages
        self.without_pairs += not trial.expected
        self.coverage[trial.world.topology, kind_of_query(trial.world.query)] += 1
        self.features.update(features_of(trial.world))
        self.happened.update(trial.happened)
        self.happened_in.update((trial.world.topology, what) for what in +trial.happened)

    @property
    def summary(self) -> dict[str, Any]:
        """Everything but the worlds as plain data, as ``--json`` prints it."""
        numbers = ("seed", "worlds", "tuples", "pairs", "messages", "without_pairs")
        return {name: getattr(self, name) for name in numbers} | {
            "coverage": self._by_topology(self.coverage),
            "happened_in": self._by_topology(self.happened_in),
            "features": dict(sorted(self.features.items())),
            "happened": dict(sorted(self.happened.items())),
            "failures": [
                {"topology": one.world.topology, "failure": one.failure, "file": str(file)}
                for one, file in zip(self.failures, self.files, strict=True)
            ],
        }

    def _by_topology(self, counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
        return {
            name: {kind: count for (of, kind), count in counts.items() if of == name}
            for name in self.topologies
        }


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
    OutputError
        The folder cannot be written to.

    Examples
    --------
    >>> import joinsim as js
    >>> fuzzed = js.fuzz(4, topologies=["nested_loop", "split_join"])
    >>> fuzzed.worlds, fuzzed.failures
    (4, [])
    """
    if seed > MAX_SEED:
        raise ConfigError(f"seed = {seed}: 0 to {MAX_SEED} is allowed")
    folder = RUNS / "fuzz" if out is None else at_home(out)
    check_can_be_made(folder)  # a world that failed after hours is not to be lost
    names = tuple(registered_names(topologies)) or tuple(TOPOLOGIES)
    fuzzed = Fuzzed(seed=seed, topologies=names)
    run = partial(_trial, seed=seed, topologies=names)
    with observer.points(worlds) as line, _mapped(processes) as mapped:
        for number, trial in enumerate(mapped(run, range(worlds))):
            fuzzed.count(trial)
            if trial.failure is not None:
                smallest = shrink_trial(trial)
                fuzzed.failures.append(smallest)
                with writing(folder):
                    folder.mkdir(parents=True, exist_ok=True)
                fuzzed.files.append(folder / f"world-{number}.json")
                write_text(fuzzed.files[-1], f"{smallest}\n")
            if fuzzed.worlds % ceil(worlds / _REPORTS) == 0 and fuzzed.worlds < worlds:
                line.on_point(fuzzed.worlds, f"{len(fuzzed.failures)} failed")
    return fuzzed


def _trial(number: int, seed: int, topologies: Sequence[str]) -> WorldTrial:
    world = world_number(number, seed, topologies)
    try:
        return try_world(world)
    except JoinsimError as error:  # drawn as it should not have been
        return WorldTrial(world=world, failure=f"{type(error).__name__}: {error}")


@contextmanager
def _mapped(processes: int) -> Iterator[Callable[..., Iterator[WorldTrial]]]:
    if processes == 1:
        yield map
        return
    with process_pool(processes) as pool:
        yield partial(pool.map, chunksize=_WORLDS_OF_A_TASK)


def kind_of_query(text: str) -> str:
    """Return what kind of join a query is: of how many streams, within what windows."""
    query = parse_query(text)
    if query.interval is not None:
        return "interval"
    streams = "self" if query.is_self_join else str(len(query.streams))
    return f"{streams} {'+'.join(sorted({window.kind for window in query.windows}))}"


def features_of(world: World) -> list[str]:
    """Return what a world turns on: keys that are set, of its network, feeding and the like."""
    features = [
        f"{section}.{key}"
        for section in ("network", "feeding")
        for key in getattr(world, section)
        if key not in ("preset", "batch_rows")
    ]
    preset = world.network.get("preset", NetworkConfig.model_fields["preset"].default)
    features += [f"preset {preset}", f"{world.sink} sinks"]
    if world.segment_rows is not None:
        features.append("streams in files")
    if world.parameters:
        features.append("parameters")
    features += [f"fault {kind}" for kind in dict.fromkeys(row["kind"] for row in world.faults)]
    if world.recovery:
        features.append(f"guarantee {world.recovery.get('guarantee', 'exactly_once')}")
    return features


def shrink_trial(trial: WorldTrial) -> WorldTrial:
    """Return the smallest trial found that fails as *trial* does."""
    smallest = trial

    def fails(world: World) -> bool:
        nonlocal smallest
        try:
            again = try_world(world)
        except JoinsimError:  # no world
            return False
        if again.kind == trial.kind:
            smallest = again
        return again.kind == trial.kind

    shrink(trial.world, fails)
    return smallest


def shrink(world: World, fails: Callable[[World], bool], *, tries: int = TRIES_MAX) -> World:
    """Return the smallest world found that *fails* as *world* does.

    Features are left out, predicates dropped, streams halved, and numbers made small, as long as
    one of these still fails; at most *tries* worlds are tried.
    """
    smaller = _smaller(world)
    for _ in range(tries):
        candidate = next(smaller, None)
        if candidate is None:
            break
        if fails(candidate):
            world = candidate
            smaller = _smaller(world)
    return world


def _smaller(world: World) -> Iterator[World]:
    """Yield worlds that are a little simpler, those first that leave out most."""
    yield from _without_features(world)
    yield from _with_fewer_tuples(world)
    yield from _with_fewer_predicates(world)
    yield from _with_smaller_numbers(world)


def _without_features(world: World) -> Iterator[World]:
    plain = World(topology=world.topology, query=world.query, streams=world.streams)
    for name in _OPTIONAL:
        if getattr(world, name) != (default := getattr(plain, name)):
            yield replace(world, **{name: default})
    for at in range(len(world.faults)):
        yield replace(world, faults=world.faults[:at] + world.faults[at + 1 :])
    for name in _FEATURES:
        for key in (values := getattr(world, name)):
            yield _with_values(world, name, {k: v for k, v in values.items() if k != key})


def _with_fewer_tuples(world: World) -> Iterator[World]:
    """Leave out half of a stream, then quarters of it, down to single tuples."""
    longest = max((len(stream.ts) for stream in world.streams), default=0)
    size = (longest + 1) // 2
    while size:
        for place, stream in enumerate(world.streams):
            for begin in range(0, len(stream.ts), size):
                left = _without(stream, begin, begin + size)
                yield _with_stream(world, place, left)
        size //= 2


def _with_fewer_predicates(world: World) -> Iterator[World]:
    query = parse_query(world.query)
    for dropped in query.predicates:
        rest = tuple(one for one in query.predicates if one is not dropped)
        text = str(replace(query, predicates=rest)).replace("\n", " ")
        try:
            parse_query(text)
        except QueryError:  # one is needed, or a key
            continue
        yield replace(world, query=text)


def _with_smaller_numbers(world: World) -> Iterator[World]:
    for name in _FEATURES:
        for key, value in (values := getattr(world, name)).items():
            if type(value) is int and value > 1:
                for less in dict.fromkeys((1, value // 2, value - 1)):
                    yield _with_values(world, name, values | {key: less})
    for place, stream in enumerate(world.streams):
        rows = len(stream.ts)
        if any(stream.x):
            yield _with_stream(world, place, replace(stream, x=[0.0] * rows))
        if any(stream.y):
            yield _with_stream(world, place, replace(stream, y=[0] * rows))


def _with_values(world: World, section: str, values: dict[str, Any]) -> World:
    changes: dict[str, Any] = {section: values}
    return replace(world, **changes)


def _with_stream(world: World, place: int, stream: WorldStream) -> World:
    streams = list(world.streams)
    streams[place] = stream
    return replace(world, streams=tuple(streams))


def _without(stream: WorldStream, begin: int, end: int) -> WorldStream:
    return WorldStream(
        **{name: column[:begin] + column[end:] for name, column in vars(stream).items()}
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
