"""A topology of the caller's own: compared with the others, and refused by name where it cannot."""

from __future__ import annotations

import enum
import json
import re
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, make_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import joinsim as js
from actors.protocol import Actor, ActorError, Payload
from actors.results import Answers, Output
from actors.source import Source
from joins.indexes.windows.window_tuples import WindowIndex
from joins.work import Step, Work
from joinsim.starter import my_join
from topologies.parameters import describe
from topologies.window_join import PeParameters, SplitJoinTopology

QUERY = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
DATA = {"T": {"x": list(range(60))}}


class Mine(SplitJoinTopology):
    name = "mine"


class Broken(WindowIndex):
    state = ()

    def probe(self, ranges: Any, *, enumerate: bool = False) -> Any:
        raise RuntimeError("no such page")


OWN: Any = [Mine]


@pytest.mark.parametrize("topologies", [[Mine, "nested_loop"], ["nested_loop", Mine()], Mine])
def test_it_is_compared_as_others_are(topologies: Any, tmp_path: Path) -> None:
    compared = js.compare(QUERY, DATA, topologies=topologies, pes=3, out=tmp_path)
    mine = compared.result.results["mine"]
    assert mine.passed
    assert mine.record["digest"] == js.run(QUERY, DATA, topology=Mine, pairs=False, pes=3).digest
    assert not compared.refused
    assert "'mine'" in json.loads((tmp_path / "compare.json").read_text())["replay"]


def test_one_that_fails_is_shown_with_its_reason_beside_the_others() -> None:
    compared = js.compare(QUERY, DATA, topologies=["split_join", "nested_loop"], index=Broken)
    good, failed, fastest = repr(compared).splitlines()
    assert re.fullmatch(r"nested_loop +PASS +[\d,]+ /s", good)
    assert re.fullmatch(r"split_join +failed: ActorError: .*no such page", failed)
    assert fastest == "fastest exact: nested_loop"


class Short(Answers):
    """Ids as numbers of four bytes."""

    @property
    def nbytes(self) -> int:
        return self.frame_bytes + (super().nbytes - self.frame_bytes) // 2


class _Changed:
    """A context on which sending is something else."""

    def __init__(self, context: Any, send: Callable[..., None]) -> None:
        self._context, self.send = context, send

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class SendsShort(my_join.NestedLoopJoiner):
    def receive(self, message: Any, context: Any) -> None:
        def send(port: str, answers: Answers) -> None:
            context.send(port, Short(answers.matches, answers.born_ns, answers.span))

        super().receive(message, _Changed(context, send))


class EmitsSome(my_join.NestedLoopJoiner):
    """Hands results out itself at its odd times, and sends the others to the sink."""

    def receive(self, message: Any, context: Any) -> None:
        def emit(port: str, answers: Answers) -> None:
            for matches, born_ns in zip(answers.matches, answers.born_ns, strict=True):
                if len(matches):
                    context.emit(Output(matches, context.now - born_ns, context.name))

        super().receive(message, _Changed(context, emit if context.now % 2 else context.send))


class SendsTwice(Source):
    """Sends each batch to every receiver on its own, as one that partitions tuples would."""

    def receive(self, message: Any, context: Any) -> None:
        def send(port: str, payload: Any) -> None:
            for to in range(len(context.peers(port))):
                context.send(port, payload, to)

        super().receive(message, _Changed(context, send))


class Bursts(Source):
    """Sends its tuples ahead of the rate at which those of others come into being."""

    def _due_ns(self, arrivals: Any, now: int) -> int:
        return now


class Idle(Actor):
    state = ()

    def receive(self, message: Any, context: Any) -> None:
        pass


class Copied(my_join.MyJoin):
    name = "copied"

    def assemble(self, job: Any, parameters: Any) -> Any:
        graph = super().assemble(job, parameters)
        graph.connect("source", "out", graph.add("idle", "idle", Idle))
        return graph


def _checks(run: js.Run) -> dict[str, Any]:
    return {check.name: check for check in run.verdict.checks}


def test_messages_of_its_own_may_have_sizes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What sinks received is then compared in rows alone, and the other bytes still are."""
    monkeypatch.setattr(my_join, "NestedLoopJoiner", SendsShort)
    run = js.run(QUERY, DATA, topology=my_join.MyJoin, pes=2)
    sinks = _checks(run)["sinks"]
    assert run.verdict.passed
    assert sinks.passed
    assert "sizes" in sinks.detail


def test_an_actor_of_its_own_may_hand_results_out_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(my_join, "NestedLoopJoiner", EmitsSome)
    run = js.run(QUERY, DATA, topology=my_join.MyJoin, pes=2, feeding={"rate_tps": 1_234})
    assert run.verdict.passed, run.verdict.checks
    assert _checks(run)["latencies"].passed


def test_a_source_of_its_own_may_send_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(my_join, "Source", SendsTwice)
    run = js.run(QUERY, DATA, topology=Copied, pes=2)
    assert run.verdict.passed, run.verdict.checks


def test_a_source_of_its_own_may_send_when_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(my_join, "Source", Bursts)
    run = js.run(QUERY, DATA, topology=my_join.MyJoin, pes=2, feeding={"rate_tps": 1_000})
    assert run.verdict.passed, run.verdict.checks
    assert _checks(run)["latencies"].passed is None


class Unassembled(Mine):
    name = "unassembled"

    def assemble(self, job: Any, parameters: Any) -> Any:
        return json.loads("{}")["routes"]


class Unfitted(Mine):
    name = "unfitted"

    def fitted(self, job: Any, parameters: Any, network: Any) -> Any:
        return int("no costs")


class Unmade(Mine):
    name = "unmade"

    def __init__(self) -> None:
        raise OSError("no licence")


def _line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    return next(place for place, line in enumerate(lines, 1) if text in line)


class Unclaimed(Mine):
    name = "unclaimed"

    def claims_exact(self, parameters: Any) -> bool:
        return bool(float("no claims"))


class Oversized(Mine):
    name = "oversized"

    def in_miniature(self, parameters: Any) -> Any:
        return [][parameters.pes]


NO_NUMBER = "ValueError: invalid literal for int() with base 10: 'no costs'"
NO_FLOAT = "ValueError: could not convert string to float: 'no claims'"
FAULTS = [
    (Unassembled, f"KeyError: 'routes' ({__file__}, line {_line_of('routes')})"),
    (Unfitted, f"{NO_NUMBER} ({__file__}, line {_line_of('no costs')})"),
    (Unclaimed, f"{NO_FLOAT} ({__file__}, line {_line_of('no claims')})"),
]


@pytest.mark.parametrize(("topology", "fault"), FAULTS)
def test_one_that_cannot_be_built_names_its_fault_and_loses_no_other(
    topology: Any, fault: str, tmp_path: Path
) -> None:
    with pytest.raises(js.TopologyError) as raised:
        js.run(QUERY, DATA, topology=topology)
    assert str(raised.value) == f"{topology.name} has a fault: {fault}"
    compared = js.compare(QUERY, DATA, topologies=["nested_loop", topology], out=tmp_path)
    good, failed, fastest = repr(compared).splitlines()
    assert good.startswith("nested_loop")
    assert failed.split() == f"{topology.name} failed: {raised.value}".split()
    assert fastest == "fastest exact: nested_loop"
    assert not compared.refused
    with pytest.raises(js.ConfigError, match=f"no system .*: {topology.name}: has a fault: "):
        js.compare(QUERY, DATA, topologies=topology)


class Awaited(Idle):
    async def receive(self, message: Any, context: Any) -> None:  # type: ignore[override]
        raise NotImplementedError


class Yielding(Idle):
    def receive(self, message: Any, context: Any) -> Any:
        yield


def _graph_with(change: Callable[[Any], Any]) -> Any:
    """Return a topology whose graph is what *change* makes of a right one."""

    class Changed(my_join.MyJoin):
        name = "changed"

        def assemble(self, job: Any, parameters: Any) -> Any:
            graph = super().assemble(job, parameters)
            change(graph)
            return graph if "joiner.0" in graph else None

    return Changed


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda graph: graph.clear(), "assemble returned None, and not an ActorGraph"),
        (
            lambda graph: graph.connect("router", "extra", "joinr.9"),
            "port 'extra' of router is connected to joinr.9, and no actor is called 'joinr.9': did",
        ),
        (
            lambda graph: graph.connect("roter", "extra", "joiner.0"),
            "port 'extra' of roter is connected to joiner.0, and no actor is called 'roter': did",
        ),
        (
            lambda graph: graph.add("idle", "joiner.1", Idle),
            "ValueError: two actors are called 'joiner.1'; each has a name of its own",
        ),
        (
            lambda graph: graph.add("idle", "idle", object),
            "TypeError: idle: <class 'object'> is no class that derives from Actor",
        ),
        (
            lambda graph: graph.add("idle", "idle", Awaited),
            f"TypeError: idle: receive of {Awaited} is async or has a yield, so that a call of it",
        ),
        (
            lambda graph: graph.add("idle", "idle", Yielding),
            f"TypeError: idle: receive of {Yielding} is async or has a yield, so that a call of",
        ),
    ],
)
def test_a_graph_that_cannot_be_run_is_refused(change: Callable[[Any], Any], fault: str) -> None:
    with pytest.raises(js.TopologyError, match=re.escape(f"changed has a fault: {fault}")):
        js.run(QUERY, DATA, topology=_graph_with(change), pes=2)


class Unbuilt(Idle):
    state = ()

    def __init__(self, **arguments: Any) -> None:
        raise OSError("no licence")


def _work(comparisons: Any) -> Work:
    return Work(comparisons)


def _asking(ask: Callable[[Any, Any], Any]) -> type:
    """Return a joiner that does what *ask* says, with a payload and the context, in between."""

    class Asking(my_join.NestedLoopJoiner):
        def receive(self, message: Any, context: Any) -> None:
            super().receive(message, context)
            ask(message.payload, context)

    return Asking


@dataclass(frozen=True)
class Odd(Payload):
    """Sizes and a span that may be anything."""

    nbytes: Any = 100
    span: Any = (0, 0)


@dataclass(frozen=True)
class OfLists(Payload):
    ids: list[int]
    bytes_of = ("ids",)


AT_WORK = r"^joiner\.0 failed on a message from router .*: "


@pytest.mark.parametrize(
    ("joiner", "message"),
    [
        (Unbuilt, r"^joiner\.0 could not be built: OSError: no licence"),
        (_asking(lambda _, context: sys.exit()), f"{AT_WORK}SystemExit: "),
        (
            _asking(lambda _, context: context.send("sink", {"x": 1})),
            f"{AT_WORK}.* port 'sink': dict does not derive from Payload",
        ),
        (
            _asking(lambda _, context: context.send("sink", Odd(), to=1)),
            f"{AT_WORK}.* port 'sink': to = 1; it has receivers 0 to 0",
        ),
        (
            _asking(lambda _, context: context.send("sink", OfLists([1]))),
            f"{AT_WORK}.* OfLists.ids has a list, and takes an array, ",
        ),
        (
            _asking(lambda _, context: context.send("sink", Odd(nbytes=0.5))),
            f"{AT_WORK}.* Odd on port 'sink': nbytes = 0.5, .* integers, 0 or more",
        ),
        (
            _asking(lambda _, context: context.send("sink", Odd(nbytes=-1))),
            f"{AT_WORK}.* Odd on port 'sink': nbytes = -1, .* integers, 0 or more",
        ),
        (
            _asking(lambda _, context: context.send("sink", Odd(span=None))),
            f"{AT_WORK}.* span = None; .* a span is a tuple of two",
        ),
        (
            _asking(lambda _, context: context.send("sink", Odd())),
            r"^sink\.joiner\.0 failed on .* a sink takes Answers, Late or Collected, not Odd",
        ),
        (
            _asking(lambda _, context: context.set_timer(context.now + 0.5, "soon")),
            rf"{AT_WORK}.* a timer at \d+\.5 called 'soon': ",
        ),
        (
            _asking(lambda _, context: context.set_timer(context.now, 7)),
            rf"{AT_WORK}.* a timer at \d+ called 7: ",
        ),
        (
            _asking(lambda _, context: context.charge(None)),
            f"{AT_WORK}TypeError: the work None of the step None: a Work is charged",
        ),
        (
            _asking(lambda _, context: context.charge(Work(comparisons=10**6, inserts=-1))),
            rf"{AT_WORK}.* inserts=-1, .* the counters of Work are integers, 0 or more",
        ),
        (
            _asking(lambda _, context: context.charge(_work(1.5), Step("mine.probe", 1, 1))),
            rf"{AT_WORK}.*\(comparisons=1\.5, .* the counters of Work are integers, 0 or more",
        ),
        (
            _asking(lambda _, context: context.charge(Work(comparisons=10**40))),
            r"^joiner\.0 charged work of \d+ ns in all: .* a message takes a day at the most",
        ),
        (
            _asking(lambda _, context: context.emit({"x": 1})),
            "^an actor emitted a dict: results are Output, Late, Collected",
        ),
    ],
)
def test_what_nobody_can_do_names_the_actor_that_asks_for_it(
    joiner: type, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(my_join, "NestedLoopJoiner", joiner)
    with pytest.raises(ActorError, match=message) as raised:
        js.run(QUERY, DATA, topology=my_join.MyJoin, pes=2)
    assert isinstance(raised.value, js.JoinsimError)


class Unstored(my_join.NestedLoopJoiner):
    state = ("_less",)

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._less = min


def test_a_state_that_cannot_be_stored_names_actor_class_and_attribute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(my_join, "NestedLoopJoiner", Unstored)
    message = r"the state of joiner\.0 cannot be stored: TypeError: Unstored\._less: a builtin"
    with pytest.raises(ActorError, match=message):
        js.run(QUERY, DATA, topology=my_join.MyJoin, pes=2, recovery={"interval": "1 us"})
    checks = {check.name: check for check in js.checks.check_topology(my_join.MyJoin)}
    with pytest.raises(ActorError, match=message):
        checks["its actors can be built and restored"]()


def test_a_string_in_place_of_names_of_fields_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Mistaken\.bytes_of is a string: write a tuple"):
        type("Mistaken", (Payload,), {"bytes_of": "ids", "__annotations__": {}})


def test_a_fault_in_a_rehearsal_is_named() -> None:
    with pytest.raises(js.TopologyError, match="oversized has a fault: IndexError: "):
        js.run(QUERY, DATA, topology=Oversized)


class Side(enum.Enum):
    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, kw_only=True)
class Various(PeParameters):
    """Parameters of types that JSON does not have.

    Attributes
    ----------
    side, folder, keys, copies
        Anything.
    """

    side: Side = Side.LEFT
    folder: Path = Path("here")
    keys: frozenset[int] = frozenset({3})
    copies: Literal[1, 2] = 1

    def __post_init__(self) -> None:
        if self.copies == 2:
            raise LookupError("no second copy")


class WithVarious(my_join.MyJoin):
    name = "with_various"
    parameters_type = Various


def test_parameters_of_many_types_are_written_down() -> None:
    run = js.run(QUERY, DATA, topology=WithVarious, side="right", folder=Path("there"))
    written = json.loads((run.directory / "run.json").read_text())["parameters"]
    assert (written["side"], written["folder"], written["keys"]) == ("right", "there", [3])
    described = {one.name: one.allowed for one in describe(WithVarious())}
    assert described["copies"] == "1, 2"
    with pytest.raises(js.TopologyError, match="with_various has a fault: LookupError: no second"):
        js.run(QUERY, DATA, topology=WithVarious, copies=2)


@pytest.mark.parametrize(
    ("hint", "default", "message"),
    [
        (Callable[[int], int], abs, "the parameter odd is of the type .*Callable.*, which no file"),
        (np.int64, np.int64(3), "the parameter odd is of the type .*int64.*, which no file"),
        ("Undefined", 1, "a type of its parameters is unknown: name 'Undefined' is not defined"),
        (int, MISSING, "the parameter odd has no default"),
    ],
)
def test_parameters_that_nobody_can_set_are_refused_by_name(
    hint: Any, default: Any, message: str
) -> None:
    odd = ("odd", hint) if default is MISSING else ("odd", hint, field(default=default))
    kind = make_dataclass("Odd", [odd], bases=(PeParameters,), frozen=True, kw_only=True)
    topology: Any = type("WithOdd", (my_join.MyJoin,), {"parameters_type": kind, "name": "odd"})
    for call in (js.run, js.compare):
        with pytest.raises(js.TopologyError, match=f"^odd: {message}"):
            call(QUERY, DATA, **{"topology" if call is js.run else "topologies": topology})


def test_one_that_cannot_be_made_is_refused_with_its_exception() -> None:
    with pytest.raises(js.TopologyError, match=r"test_own_topology\.Unmade: OSError: no licence"):
        js.run(QUERY, DATA, topology=Unmade)


def test_one_name_is_compared_alone() -> None:
    compared = js.compare(QUERY, DATA, topologies="split_join")
    assert compared.table["topology"].to_pylist() == ["split_join"]


def test_a_single_system_that_cannot_evaluate_is_one() -> None:
    compared = js.compare(QUERY, DATA, topologies=["split_join", "kp_oij"])
    assert repr(compared).endswith("1 system cannot evaluate the query")


@pytest.mark.parametrize(
    "call",
    [
        lambda: js.advise(QUERY, DATA, topologies=OWN),
        lambda: js.fuzz(3, topologies=OWN),
        lambda: js.sweep(QUERY, DATA, over={"pes": [1, 2]}, topology=Mine),
        lambda: js.sweep(QUERY, DATA, over={"topology": ["split_join", Mine]}),
        lambda: js.calibrate("calibrated.toml", topologies=OWN),
        lambda: js.scenario("oij-w1", scale="smoke").run(topology=Mine),
    ],
)
def test_elsewhere_it_is_refused_by_name_with_a_remedy(call: Callable[[], Any]) -> None:
    with pytest.raises(js.JoinsimError, match=r"Mine is not registered: .* entry point group"):
        call()
