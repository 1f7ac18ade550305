"""What every topology must satisfy, as checks that can be called one by one.

Our own tests run these checks on every registered topology. They run on random worlds: queries,
data, parameters, networks and arrival orders; one that fails is made small, and shown as
`joinsim replay` reads it.

Examples
--------
>>> import joinsim as js
>>> for check in js.checks.check_topology("nested_loop", examples=2):
...     check()
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
from pydantic import PositiveInt

from actors.hosting.inline import Cell, InlineHost
from actors.protocol import FEEDBACK, ActorSpec, Progress, Reply
from actors.result_files import pairs_path
from joins.state import array_bytes
from joinsim._arguments import check_arguments
from netsim.outcome import Outcome
from scenarios.config import RunConfig
from scenarios.formatting import format_many
from scenarios.observer import NO_LINE, Line
from scenarios.plan import make_parameters
from scenarios.run import execute, simulate
from scenarios.run_directory import read_results
from scenarios.scenario_files import ConfigError
from scenarios.subprocesses import process_pool
from scenarios.verdict.judge import judge
from scenarios.worlds import Recording, World, WorldStream
from scenarios.worlds.drawing import draw_worlds
from scenarios.worlds.fuzzing import failure_of, shrink
from topologies import Named, Topology, find_topology
from topologies.parameters import describe

__all__ = ["Check", "RestoringHost", "check_topology"]


@dataclass(frozen=True)
class Check:
    """One thing that must hold; call it: it raises :exc:`AssertionError` where it does not.

    Attributes
    ----------
    name
        What must hold, as a sentence.
    """

    name: str
    _run: Callable[[], None]

    def __call__(self) -> None:
        """Run it."""
        self._run()

    def __str__(self) -> str:
        return self.name


@check_arguments
def check_topology(topology: Named, *, examples: PositiveInt = 25) -> Iterator[Check]:
    """Yield the checks of a topology, the quick ones first.

    Parameters
    ----------
    topology
        A name, or a `Topology` of your own.
    examples
        Random runs per check.

    A topology that other processes can import, and not one that a script or a function defines, is
    also run in two of them.

    Examples
    --------
    >>> import joinsim as js
    >>> [check.name for check in js.checks.check_topology("split_join")][:2]
    ['parameters are documented and hide no key', 'its graph can be built']
    """
    system = find_topology(topology)

    def on_worlds(
        name: str, body: OnWorld, examples: int = examples, *, exact: bool = False
    ) -> Check:
        return Check(name, partial(_on_worlds, system, body, examples, exact=exact))

    yield Check("parameters are documented and hide no key", partial(_parameters, system))
    yield Check("its graph can be built", partial(_graph, system))
    yield Check("its actors can be built and restored", partial(_actors, system))
    yield on_worlds("no actors wait for room at each other", _circles)
    if system.exact:
        yield on_worlds("its answer is exactly right", _exact, exact=True)
    yield on_worlds("listing pairs changes nothing, and lists the pairs counted", _pairs)
    yield on_worlds(
        "what it stores is bounded by its windows, not by its streams",
        _bounded,
        max(1, examples // 10),
        exact=True,
    )
    yield on_worlds(
        "actors restored from their snapshots at every message, and messages that are shipped and "
        "cannot be written to, change nothing",
        _hardship,
    )
    if _is_found_elsewhere(type(system)):
        yield Check(
            "other processes, in which texts have other hashes, have the same trace",
            partial(_repeats_elsewhere, system, min(examples, _WORLDS_ELSEWHERE)),
        )


def _parameters(topology: Topology[Any]) -> None:
    described = {parameter.name: parameter for parameter in describe(topology)}
    for field in fields(topology.parameters_type):
        assert described[field.name].meaning, f"{field.name} has no meaning in the docstring"
        assert field.name not in RunConfig.model_fields, f"{field.name} is a key of every run"
    try:
        make_parameters(topology, vars(topology.parameters_type()))
    except ConfigError as error:
        raise AssertionError(f"a default is not allowed: {error}") from error


def _graph(topology: Topology[Any]) -> None:
    graph = topology.build(topology.example(), topology.parameters_type())
    wired = graph.wiring.items()
    fed = {name for _, ports in wired for receivers in ports.values() for name in receivers}
    assert set(graph) - fed, "no actor feeds the streams in: each receives from another"
    assert any(not any(ports.values()) for _, ports in wired), "no actor takes the results"


def _actors(topology: Topology[Any]) -> None:
    graph = topology.build(topology.example(), topology.parameters_type())
    for name, spec in graph.specs.items():
        cell = Cell(name, spec, graph.wiring, seed=1)
        cell.restore(cell.snapshot())


def _circles(topology: Topology[Any], world: World, folder: Path) -> None:
    """Look for channels that go round in a circle: a run could come to a standstill in them."""
    graph = world.plan(folder, topology=topology).graph(pairs=False)
    need_room = nx.DiGraph()
    need_room.add_edges_from(
        (sender, receiver)
        for sender, receiver, port in graph.edges(data="port")
        if port != FEEDBACK and sender != receiver
    )
    if not nx.is_directed_acyclic_graph(need_room):
        circle = [sender for sender, _ in nx.find_cycle(need_room)]
        raise AssertionError(
            f"messages go round {' -> '.join([*circle, circle[0]])}, where each may wait for "
            "room at the next: let one of them answer on FEEDBACK"
        )


_TRIES = 100
"""Worlds tried to make one that fails small."""


_HARDENED_MESSAGES = 1_000
"""Messages of a world at the most that is run the hard way too, which takes ms for each."""


OnWorld = Callable[[Topology[Any], World, Path], None]
"""What a check does on a world of a topology, in an empty folder."""


def _on_worlds(topology: Topology[Any], body: OnWorld, examples: int, *, exact: bool) -> None:
    """Run *body* on so many worlds of *topology*.

    Raise :exc:`AssertionError` with the smallest world found on which it raises as it did.
    """

    def outcome(world: World) -> Exception | None:
        with TemporaryDirectory() as folder:
            try:
                body(topology, world, Path(folder))
            except Exception as error:
                return error
        return None

    worlds = draw_worlds(topology, examples, exact=exact)
    failing = next(((world, error) for world in worlds if (error := outcome(world))), None)
    if failing:
        world, error = failing
        world = shrink(world, lambda one: type(outcome(one)) is type(error), tries=_TRIES)
        error = outcome(world) or error
        shown = Recording(world=world)
        raise AssertionError(f"{type(error).__name__}: {error}\nin the world\n{shown}") from error


def _exact(topology: Topology[Any], world: World, folder: Path) -> None:
    finished = world.run(folder, topology=topology)
    failure = failure_of(finished)
    assert finished.verdict.exact, failure or finished.verdict
    assert failure is None, failure


def _pairs(topology: Topology[Any], world: World, folder: Path) -> None:
    plan = world.plan(folder, topology=topology)
    listed = execute(plan.with_settings(pairs=True), _made(folder / "listed"), rehearsal=False)
    counting = _made(folder / "counted")
    outcome = simulate(plan, counting, pairs=False).outcome
    assert outcome.digest == listed.outcome.digest, (
        f"a run that lists pairs has another trace, {_NOT_REPEATABLE}"
    )
    # A replay, which would list its pairs where they are not as expected, is the run just made.
    counted, *_ = judge(plan, counting, outcome, lambda: listed.directory, None)
    listed_pairs = pq.read_table(pairs_path(listed.directory)).num_rows
    assert listed_pairs == counted.produced, (
        f"{format_many(listed_pairs, 'pair is', 'pairs are')} listed, "
        f"and {counted.produced:,} counted"
    )
    # Only the listed run's pairs are read back from disk.
    without = [replace(verdict, checks=[]) for verdict in (counted, listed.verdict)]
    assert without[0] == without[1], (
        "the run that lists pairs found others than the one that counts them"
    )
    found = [check.passed for check in listed.verdict.checks if check.name == "pairs"]
    assert found == [True], listed.verdict.checks


_NOT_REPEATABLE = (
    "or no two runs have the same: randomness comes from context.rng, time is context.now, and "
    "state is in the actor"
)


_SHORT, _LONG = 600, 2_400
"""Tuples of streams that fill the windows of worlds many times, and the short ones already what a
source reads at once."""
_GROWTH, _SLACK_BYTES = 3, 4_000
"""An actor's state may grow so much while its structures fill, or be so small. One that grows with
the stream grows four times."""
_LENGTHENED_MESSAGES = 20_000
"""Messages of a short run at the most, for a longer one to be tried too."""


def _bounded(topology: Topology[Any], world: World, folder: Path) -> None:
    def peaks(rows: int, line: Line) -> dict[str, int]:
        plan = _steady(world, rows).plan(folder, topology=topology)
        return simulate(plan, None, pairs=False, line=line, inline_host=PeakHost).state_bytes

    try:
        short = peaks(_SHORT, _MessageLimit(_LENGTHENED_MESSAGES))
    except _TooLongError:
        return
    for name, nbytes in peaks(_LONG, NO_LINE).items():
        before = short[name]
        assert nbytes <= max(_SLACK_BYTES, _GROWTH * before), (
            f"{name} stores up to {before:,} bytes while it receives {_SHORT} tuples of each "
            f"stream, and up to {nbytes:,} bytes while it receives {_LONG}"
        )


def _steady(world: World, rows: int) -> World:
    """Return the query and parameters of a world, with streams that go on and on, from files."""
    rng = np.random.default_rng(rows)
    streams = tuple(
        WorldStream(
            np.cumsum(rng.integers(0, 3, rows)).tolist(),
            (rng.integers(0, 40, rows) / 10).tolist(),
            rng.integers(0, 40, rows).tolist(),
        )
        for _ in world.streams
    )
    return World(
        topology=world.topology,
        query=world.query,
        parameters=world.parameters,
        streams=streams,
        feeding={"batch_rows": 10, "rate_tps": 1_000},
        segment_rows=100,
    )


def _hardship(topology: Topology[Any], world: World, folder: Path) -> None:
    """Compare the results and the digest of the trace: verdicts are of nothing else."""
    plan = world.plan(folder, topology=topology)

    def run(host: type[InlineHost]) -> tuple[Outcome, dict[str, bytes]]:
        directory = _made(folder / host.__name__)
        line = _MessageLimit(_HARDENED_MESSAGES)
        run = simulate(plan, directory, pairs=False, line=line, inline_host=host)
        return run.outcome, read_results(directory)

    try:
        outcome, written = run(InlineHost)
    except _TooLongError:
        return
    for host, what in (
        (RestoringHost, "where actors are restored from their snapshots at every message"),
        (ShippingHost, "where messages are shipped"),
    ):
        hardened, files = run(host)
        assert hardened == outcome, f"{what} the run has another trace, {_NOT_REPEATABLE}"
        assert files == written, f"{what} the results are others"


_WORLDS_ELSEWHERE = 10
_HASH_SEEDS = ("1", "2")
"""Of `PYTHONHASHSEED`, by which the hashes of texts differ from process to process, and with them
the order of sets. Two texts have the same order in one other process as often as not."""


def _is_found_elsewhere(kind: type) -> bool:
    """Return whether another process finds a class, as none does in a script or a function."""
    module = sys.modules[kind.__module__]
    return module.__name__ != "__main__" and getattr(module, kind.__qualname__, None) is kind


def _repeats_elsewhere(topology: Topology[Any], examples: int) -> None:
    worlds = list(draw_worlds(topology, examples))
    here = _digests(type(topology), worlds)
    for seed in _HASH_SEEDS:
        with _elsewhere(seed) as pool:
            try:
                there = pool.submit(_digests, type(topology), worlds).result()
            except Exception as error:
                raise AssertionError(f"another process could not run it: {error}") from error
        for world, ours, theirs in zip(worlds, here, there, strict=True):
            assert ours == theirs, (
                "in another process the run has another trace, by hash() of texts, or the order of "
                "a set of them: route with joins.hashing, and iterate in a fixed order\n"
                f"in the world\n{Recording(world=world)}"
            )


@contextmanager
def _elsewhere(hash_seed: str) -> Iterator[Executor]:
    """Start another process, in which texts have other hashes."""
    with patch.dict(os.environ, PYTHONHASHSEED=hash_seed), process_pool(1) as pool:
        yield pool


def _digests(kind: type[Topology[Any]], worlds: list[World]) -> list[str | None]:
    topology = find_topology(kind)
    return [_digest(topology, world) for world in worlds]


def _digest(topology: Topology[Any], world: World) -> str | None:
    """Return the digest of a world's run; None where it has more messages than it is worth."""
    with TemporaryDirectory() as folder:
        plan = world.plan(Path(folder), topology=topology)
        line = _MessageLimit(_LENGTHENED_MESSAGES)
        try:
            return simulate(plan, None, pairs=False, line=line).outcome.digest
        except _TooLongError:
            return None


class _TooLongError(Exception):
    """A run that has too many messages to be worth its time."""


class _MessageLimit(Line):
    """Ends a run of more than so many *messages*, soon after."""

    def __init__(self, messages: int) -> None:
        self._messages = messages

    def on_run(self, at: Progress, seconds: float) -> None:
        """Raise :exc:`_TooLongError` when there are more."""
        if at.messages > self._messages:
            raise _TooLongError(f"{at.messages:,} messages")


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


_LOOK_EVERY = 7
"""Messages of an actor after which its state is measured, which takes longer than the message. A
prime, as what actors do comes back every so many messages."""


class PeakHost(InlineHost):
    """Measures actors' states while they run; `state_bytes` returns the most that it saw."""

    def __init__(self, specs: Mapping[str, ActorSpec], *rest: Any, **options: Any) -> None:
        super().__init__(specs, *rest, **options)
        self._peaks = dict.fromkeys(specs, 0)
        self._received = dict.fromkeys(specs, 0)

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply:
        """Let the actor receive the message, and measure its state every so often."""
        reply = super().submit(ticket, actor, sender, port, handle, now)
        if self._received[actor] % _LOOK_EVERY == 0:
            self._peaks[actor] = max(self._peaks[actor], array_bytes(self.cells[actor].actor))
        self._received[actor] += 1
        return reply

    def state_bytes(self) -> dict[str, int]:
        """Return actor name to the most bytes that the arrays in its state had."""
        return self._peaks


class ShippingHost(InlineHost):
    """Ships every message, as between processes, so that actors cannot write to what they get."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, serialise=True, **options)


class RestoringHost(ShippingHost):
    """Replaces every actor by a new one, restored from its snapshot's bytes, at each message."""

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply:
        """Restore the actor, and let it receive the message."""
        self.restore(actor, self.snapshot(actor))
        return super().submit(ticket, actor, sender, port, handle, now)
