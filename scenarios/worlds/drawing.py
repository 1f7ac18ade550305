"""Worlds drawn at random from a seed: queries, tuples, parameters, networks, arrival orders.

They are small, dense with ties, and adversarial. As in swarm testing (Groce et al., 2012) each
world turns each feature on or off: what hides a fault in most worlds is absent from some.

A world in which no pair is expected shows little, so the streams of a world mostly share their
pace and their values. Empty streams and predicates that nothing satisfies are drawn now and then.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

import networkx as nx
import numpy as np
from annotated_types import Interval

from actors.feed import Disorder
from actors.source import Feeding
from joins.queries.conditions import OPERATORS
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery, QueryError
from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from joins.semijoins.value_sample import ValueSample
from netsim.network import PRESETS
from netsim.recovering_kernel import Guarantee
from scenarios.config import MAX_SEED
from scenarios.plan import refusal
from scenarios.worlds import World, WorldStream
from topologies import Topology, find_topology
from topologies.quantities import Duration, Extent
from topologies.semijoin import PlanText
from topologies.semijoins.plans import (
    JoinPlan,
    JoinStep,
    LinearPlan,
    Tree,
    TreePlan,
    TwoWayJoin,
    join_graph,
    leaves,
)

Random = np.random.Generator

_MOST_OF_A_NUMBER = 10
"""Random parameters stay this small: more PEs than tuples teach nothing."""

_NOT_DRAWN = ("byte_budget",)
"""Parameters that mean nothing in a world: it is over before a budget of bytes a second counts."""

_MOSTLY = 0.95
"""Share of the worlds whose streams have a pace and values in common, and of the streams that have
more than a few tuples: what is true of the others is mostly that nothing joins."""

_WITHOUT_TRANSPORT = 0.15
"""Share of the worlds with faults in which lost messages are not sent again: as little is promised
then, little can be found."""

_IN_FILES = 0.25
"""Share of the worlds whose streams are files: the rest of a run cannot tell them from tables."""

_OF_A_KIND = 0.3
"""Share of the worlds with faults that have those of a given kind: of ten kinds three at a time, so
that one does not hide what another would show."""

_GATHERING = 0.2
"""Share of the worlds in which tuples gather, which is what runs do by default; where they have no
rate all of a small stream is one message then."""

_WITHOUT_WATERMARKS = 0.1

_BATCH_ROWS_MAX = 20
_ROWS = (8, 40)
"""Tuples of a stream: some batches, and as many as the longest windows have."""
_FEW_ROWS = (0, 4)
_DENSE_ROWS = (20, 119)
_LARGE_ROWS = (150, 300)
_LARGE = 0.03
"""Share of the worlds over windows that have so many tuples, in windows as long: indexes grow then,
and are built anew, which takes more tuples than show anything else."""
_SEGMENT_ROWS_MAX = 50

_DISORDER_NS_MAX = 12
"""Tuples are up to 8 ns apart: so some of them overtake none, and some overtake many."""

_MOMENTS_NS = 10**8
"""The latest moment and the longest span of faults, and of parameters that are durations. Moments
are drawn by order of magnitude, for worlds take from microseconds to seconds of virtual time."""

_RATE_TPS_MAX = 10**7

# Few distinct values, so that ties are everywhere; some are whole, as y is, and some are such that
# 0.1 steps never hit them exactly.
_FLOATS = (*(i / 10 for i in range(-5, 12)), 0.30000000000000004, -0.0, 1e300)
_WHOLE = tuple(float(i) for i in range(-2, 5))

_STEPS = (1, 2, 2, 2, 4, 4, 4, 4, 4, 9)
"""Event times are less than so many ns apart: at 1 all are equal, at 9 few tuples are in a window
of time. Both are worth a look now and then, and show less than what is between."""

_RANGES = ((-4, -2), (-4, 6), (0, 3), (0, 3))
"""First and last value of y: mostly few, which x has too; once in four hardly any that x has."""

_FAR = 0.1
"""Share of the streams whose event times and whole values are as far from 0 as they may be."""
_FIRST_NS = (-(2**63), -(2**62), -1_000, -20, 10**18, 2**62)
_FARTHEST_NS, _RATE_OF_FAR_TPS = 2**62, 1_000
"""Semijoins wait for event times where tuples have no rate, and refuse those 255 years apart."""
_INTEGERS = np.array(
    [-(2**63), -(2**63) + 1, -(2**53) - 1, -1, 0, 1, 2**53, 2**53 + 1, 2**63 - 2, 2**63 - 1]
)
"""At either end of int64, and where floats begin to leave whole numbers out."""

_SYMBOLS = list(dict.fromkeys(one.symbol for one in OPERATORS.values()))
_WIDTHS = (0.1, 0.3, 1, 2)
"""Of bands: some below and some above the distance of whole values."""

_WINDOW = (8, 6)
"""Tuples or ns of a slide, and slides of a window, at the most: then hardly a tuple expires."""
_LARGE_WINDOW = (40, 6)
"""The same in large worlds."""
_SMALL_WINDOW = (6, 4)
"""The same in joins of up to four streams, whose results grow with each of the windows."""
_EQUALITIES = 2 / 3
"""Share of the joins in multi-way queries that are equalities, without which the results of four
streams are very many; and of the interval joins that have a key."""

_RATES = (0.01, 0.1, 0.3)
_MUST_END = ("partition", "pause", "stall")
_GUARANTEES = get_args(Guarantee)
_DISORDERED = Feeding(disorder=Disorder(delay_ns=1))
_LATENCY_KINDS = ("constant", "uniform", "normal", "pareto")


def draw_worlds(
    topology: Topology[Any], count: int, *, exact: bool = False, seed: int = 0
) -> Iterator[World]:
    """Yield so many worlds of *topology*, the same ones each time, see `draw_world`."""
    for number in range(count):
        yield draw_world(np.random.default_rng([seed, number]), topology, exact=exact)


def draw_world(rng: Random, topology: Topology[Any], *, exact: bool = False) -> World:
    """Draw a world of *topology*, with *exact* one that claims to be exactly right.

    No actor crashes in it, see `with_recovery`.
    """
    large = False
    if topology.within_interval:
        text = draw_interval_query(rng)
    elif topology.multiway:
        text = draw_multiway_query(rng)
    else:
        large = _maybe(rng, _LARGE)
        text = draw_query(rng, equality=topology.needs_equality, large=large)
    query = parse_query(text)
    parameters = draw_parameters(rng, topology, query, exact=exact)
    feeding = _draw_batches(rng)
    if _maybe(rng):
        feeding["rate_tps"] = _magnitude(rng, 1, _RATE_TPS_MAX)
    if _maybe(rng, _WITHOUT_WATERMARKS):
        feeding |= {"watermarks": False, "unbounded_state": True}
    if _maybe(rng) and refusal(topology, query, _DISORDERED, parameters) is None:
        feeding |= {"disorder": _between(rng, 0, _DISORDER_NS_MAX), "bounded": _maybe(rng)}
        if _maybe(rng):
            feeding["watermark_lag"] = _between(rng, 0, _DISORDER_NS_MAX)
    faults = draw_faults(rng) if _maybe(rng) else []
    network = draw_network(rng)
    if faults and not exact and _maybe(rng, _WITHOUT_TRANSPORT):
        network["transport"] = "none"
    dense = not topology.multiway and not large and _maybe(rng)
    streams = draw_streams(rng, len(query.streams), dense=dense, large=large)
    if topology.multiway and "rate_tps" not in feeding and _are_far_apart(streams):
        feeding["rate_tps"] = _RATE_OF_FAR_TPS
    return World(
        topology=topology.name,
        query=text,
        parameters={
            name: value
            for name, value in vars(parameters).items()
            if value != getattr(topology.parameters_type(), name)
        },
        streams=streams,
        network=network,
        feeding=feeding,
        faults=faults,
        sink=_one_of(rng, ["partitioned", "single"]),
        seed=_between(rng, 0, MAX_SEED),
        segment_rows=_between(rng, 1, _SEGMENT_ROWS_MAX) if _maybe(rng, _IN_FILES) else None,
    )


def _are_far_apart(streams: Sequence[WorldStream]) -> bool:
    """Whether no clock that begins with the first event time can wait for the last."""
    times = [time for stream in streams for time in stream.ts]
    return bool(times) and max(times) - min(times) > _FARTHEST_NS


def _draw_batches(rng: Random) -> dict[str, Any]:
    """Draw how many tuples a message has: a number, or as many as gather."""
    if not _maybe(rng, _GATHERING):
        return {"batch_rows": _between(rng, 1, _BATCH_ROWS_MAX)}
    return {"linger": _magnitude(rng, 0, _MOMENTS_NS)} if _maybe(rng) else {}


@dataclasses.dataclass(frozen=True)
class _Character:
    """What streams have in common."""

    first_ns: int
    """Event time that theirs follow on."""
    steps: int
    """Event times are less than so many ns apart."""
    rows: tuple[int, int]
    """Fewest and most tuples."""
    x: np.ndarray
    y: np.ndarray
    """Values of the fields, those of y ascending."""


def _draw_character(rng: Random, *, dense: bool, large: bool = False) -> _Character:
    far = _maybe(rng, _FAR)
    first_ns = _one_of(rng, _FIRST_NS) if far else 0
    if dense:  # four values, whole ones or nearly equal ones
        x = np.arange(4) / _one_of(rng, [1, 1, 10])
        return _Character(first_ns, _between(rng, 2, 4), _DENSE_ROWS, x, np.arange(6))
    values = np.array(_FLOATS + _WHOLE * 2)
    low, high = _one_of(rng, _RANGES)
    return _Character(
        first_ns=first_ns,
        steps=_one_of(rng, _STEPS),
        rows=_LARGE_ROWS if large else _ROWS,
        x=rng.choice(values, _one_of(rng, [3, 6, len(values)]), replace=False),
        y=np.sort(rng.choice(_INTEGERS, 5, replace=False)) if far else np.arange(low, high + 1),
    )


def draw_streams(rng: Random, count: int, *, dense: bool, large: bool) -> tuple[WorldStream, ...]:
    """Draw so many streams, see `draw_stream`; mostly of the same pace and values.

    With *large* they have some hundred tuples.
    """
    alike = large or _maybe(rng, _MOSTLY)
    common = _draw_character(rng, dense=dense, large=large) if alike else None
    return tuple(draw_stream(rng, dense=dense, character=common) for _ in range(count))


def draw_stream(
    rng: Random, *, dense: bool = False, character: _Character | None = None
) -> WorldStream:
    """Draw up to some dozens of tuples, with equal timestamps among them; now and then none.

    With *dense* there are more, at few times and with few keys, some of them frequent.
    """
    of = character or _draw_character(rng, dense=dense)
    if dense:
        rows = _between(rng, *of.rows)
        # The share of the most frequent key, from hardly any skew on.
        y = of.y[np.minimum(rng.geometric(rng.uniform(0.2, 0.9), rows), len(of.y)) - 1]
    else:
        low, high = of.rows if _maybe(rng, _MOSTLY) else _FEW_ROWS
        rows = _between(rng, low, high)
        y = rng.choice(of.y, rows)
    ts = of.first_ns + np.cumsum(rng.integers(0, of.steps, rows))
    return WorldStream(ts.tolist(), rng.choice(of.x, rows).tolist(), y.tolist())


def draw_query(rng: Random, *, equality: bool = False, large: bool = False) -> str:
    """Draw the text of a self join or a two-way join with one to three predicates.

    With *equality* at least one of them is ``=``; with *large* a window may have hundreds of
    tuples.
    """
    two_way = _maybe(rng)
    left, right = ("R.{}", "S.{}") if two_way else ("T.{}1", "T.{}2")
    while True:
        equal = [_comparison(rng, left, right, ["="])] if equality else []
        others = [_predicate(rng, left, right) for _ in range(_between(rng, 1 - len(equal), 2))]
        predicates = _shuffled(rng, dict.fromkeys(equal + others))
        if _consistent(predicates):
            break
    names = "R, S" if two_way else "T"
    window = _window(rng, *(_LARGE_WINDOW if large else _WINDOW))
    return f"SELECT * FROM {names} WHERE {' AND '.join(predicates)} WINDOW AS ({window})"


def draw_multiway_query(rng: Random) -> str:
    """Draw the text of a join of two to four streams: any join graph, one window or several."""
    names = "RSTU"[: _between(rng, 2, 4)]
    edges = [(_one_of(rng, names[:place]), names[place]) for place in range(1, len(names))]
    pairs = list(combinations(names, 2))
    edges += [_one_of(rng, pairs) for _ in range(_between(rng, 0, 2))]
    predicates: list[str] = []
    for a, b in edges:
        left, right = f"{a}.{{}}", f"{b}.{{}}"
        equal = _maybe(rng, _EQUALITIES)
        predicates.append(
            _comparison(rng, left, right, ["="]) if equal else _predicate(rng, left, right)
        )
    predicates = list(dict.fromkeys(predicates))
    while not _consistent(predicates, names):
        predicates.pop()
    if _maybe(rng):
        clauses = ", ".join(f"{name} AS ({_window(rng, *_SMALL_WINDOW)})" for name in names)
    else:
        clauses = f"AS ({_window(rng, *_SMALL_WINDOW)})"
    return f"SELECT * FROM {', '.join(names)} WHERE {' AND '.join(predicates)} WINDOW {clauses}"


def draw_interval_query(rng: Random) -> str:
    """Draw the text of an interval join: any base, any interval, with or without predicates."""
    keys = (
        [_one_of(rng, ["R.y = S.y", "R.y = S.y", "S.x = R.x", "S.x = R.x", "R.x = S.y"])]
        if _maybe(rng, _EQUALITIES)
        else []
    )
    others = [_predicate(rng, "R.{}", "S.{}") for _ in range(_one_of(rng, [0, 1, 1, 2]))]
    predicates = list(dict.fromkeys(keys + others))
    if not _consistent(predicates or ["R.x < S.x"]):
        predicates = keys
    probe, base = _shuffled(rng, "RS")
    lower, upper = (
        f"{base}.ts {'-' if bound < 0 else '+'} INTERVAL '{abs(bound)} ns'"
        for bound in _interval(rng)
    )
    conditions = [*predicates, f"{probe}.ts BETWEEN {lower} AND {upper}"]
    return f"SELECT * FROM R, S WHERE {' AND '.join(_shuffled(rng, conditions))}"


def draw_parameters(
    rng: Random, topology: Topology[Any], query: JoinQuery, *, exact: bool = False
) -> Any:
    """Draw parameters of any topology that suit *query*, from the types of its fields.

    What contradicts the query or what was drawn before it is left at its default; with *exact* so
    is what takes the claim to exactness away.
    """
    hints = typing.get_type_hints(topology.parameters_type, include_extras=True)
    defaults = topology.parameters_type()

    def suit(values: dict[str, Any]) -> bool:
        drawn = topology.parameters_type(**values)
        fits = refusal(topology, query, Feeding(), drawn) is None
        return fits and (not exact or topology.claims_exact(drawn))

    share = _one_of(rng, [0.3, 0.7, 1.0])  # a few of them, most, or all
    drawn = {
        field.name: _value(rng, hints[field.name], getattr(defaults, field.name), query)
        for field in dataclasses.fields(topology.parameters_type)
        if _maybe(rng, share) and field.name not in _NOT_DRAWN
    }
    if suit(drawn):
        return topology.parameters_type(**drawn)
    suitable: dict[str, Any] = {}
    for name, value in drawn.items():
        if suit(suitable | {name: value}):
            suitable[name] = value
    return topology.parameters_type(**suitable)


def draw_network(rng: Random) -> dict[str, Any]:
    """Draw a network: a preset, and what differs from it."""
    values = {
        "latency": _magnitude(rng, 0, 10_000_000),
        "jitter": _magnitude(rng, 0, 10_000_000),
        "latency_kind": _one_of(rng, _LATENCY_KINDS),
        "bandwidth": _magnitude(rng, 10_000, 10**10),
        "cores": _between(rng, 1, 3),
        "inbox_messages": _between(rng, 1, 8),
    }
    chosen = {name: value for name, value in values.items() if _maybe(rng)}
    return {"preset": _one_of(rng, list(PRESETS))} | chosen


def draw_faults(rng: Random) -> list[dict[str, Any]]:
    """Draw rows of faults: of each kind one or none, for all links or actors, at random moments.

    Faults that stop all work last for a quarter of the time at the most, so that runs end.
    """
    amounts: dict[str, dict[str, Any]] = {
        "loss": {"rate": _one_of(rng, _RATES)},
        "duplicate": {"rate": _one_of(rng, _RATES)},
        "reorder": {"rate": _one_of(rng, _RATES), "delay": _magnitude(rng, 1, _MOMENTS_NS)},
        "delay": {"delay": _magnitude(rng, 1, _MOMENTS_NS)},
        "partition": {},
        "bandwidth": {"factor": _one_of(rng, [0.01, 0.5, 2.0])},
        "pause": {},
        "slow": {"factor": _one_of(rng, [1.5, 20.0, 1000.0])},
        "skew": {"offset": _magnitude(rng, 0, _MOMENTS_NS)},
        "stall": {},
    }
    rows = []
    for kind, amount in amounts.items():
        if _maybe(rng, _OF_A_KIND):
            every = _magnitude(rng, 1_000, _MOMENTS_NS)
            times = {"start": _magnitude(rng, 0, _MOMENTS_NS)} if _maybe(rng) else {"start": 0}
            if kind in _MUST_END or _maybe(rng):
                times["end"] = times["start"] + max(1, every // _between(rng, 4, 100))
                if _maybe(rng, 0.7):  # one span alone is mostly over before a message meets it
                    times |= {"every": every, "random": _maybe(rng)}
            rows.append({"kind": kind, **times, **amount})
    return rows


def with_recovery(rng: Random, world: World, *, exact: bool = False) -> World:
    """Return a world with snapshots, and mostly crashes; with *exact* it recovers exactly once.

    Both are drawn for the time that its sources send, which is drawn too, or not much longer.
    """
    sending_ns = _magnitude(rng, 10**5, 10**9)
    rows = max(len(stream.ts) for stream in world.streams)
    recovery: dict[str, Any] = {
        "guarantee": "exactly_once" if exact else _one_of(rng, _GUARANTEES),
        "interval": max(1_000, sending_ns // _between(rng, 1, 20)),  # 1 to 20 snapshots
    }
    if _maybe(rng):
        recovery["storage"] = _magnitude(rng, 10**6, 10**11)
    topology = find_topology(world.topology)
    parameters = topology.parameters_type(**world.parameters)
    graph = topology.build(topology.sketch(parse_query(world.query)), parameters)
    names = {"actor": list(graph), "site": list(graph.placement.values())}
    crashes = []
    for _ in range(_between(rng, 0, 4)):
        start = _between(rng, 0, sending_ns * 5 // 4)  # some when all has been sent
        of = _one_of(rng, list(names))
        crash = {"start": start, "end": start + _magnitude(rng, 1, sending_ns)}
        # And all whose names begin so: a sink is one, or one for each PE.
        crashes.append({"kind": "crash", of: f"{_one_of(rng, names[of])}*", **crash})
    rate_tps = min(_RATE_TPS_MAX, max(1, rows * 10**9 // sending_ns))
    return replace(
        world,
        feeding=world.feeding | {"rate_tps": rate_tps},
        faults=world.faults + crashes,
        recovery=recovery,
    )


def _value(rng: Random, hint: Any, default: Any, query: JoinQuery) -> Any:
    """Draw a value of a parameter's type; its *default* where the type says too little."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _value(rng, _one_of(rng, _kinds(hint, default)), default, query)
    if origin is typing.Literal:
        return _one_of(rng, typing.get_args(hint))
    for kind, draw in _OF_A_TYPE:
        if hint == kind:
            return draw(rng, query)
    for bound in getattr(hint, "__metadata__", ()):
        if isinstance(bound, Interval):
            return _within(rng, bound, whole=typing.get_args(hint)[0] is not float)
        if isinstance(bound, Extent):
            window = query.windows[0]
            unit = "" if window.kind == "count" else " ns"
            part = f"{_between(rng, 1, window.length)}{unit}"
            return _one_of(rng, [*bound.words, part])
    if origin is typing.Annotated:
        return _value(rng, typing.get_args(hint)[0], default, query)
    return default


def _draw_sample(rng: Random, query: JoinQuery) -> dict[str, Any]:
    """Draw what is kept of streams whose values are those of worlds."""
    some = [rng.choice(_WHOLE, 2).tolist() if _maybe(rng) else [] for _ in range(2)]
    return {"share": _one_of(rng, [0.1, 0.5, 1.0]), "always": some[0], "never": some[1]}


def draw_join_plan(rng: Random, query: JoinQuery) -> str:
    """Draw a plan for a join of several streams: sequences, or where they may be a tree."""
    graph = join_graph(query)
    algorithms = tuple(OneWayJoin) if _maybe(rng, 0.25) else PAPER_ALGORITHMS
    if all(window.kind == "time" for window in query.windows) and _maybe(rng):
        plan: JoinPlan = _draw_tree(rng, query, graph, algorithms)
    else:
        plan = LinearPlan(
            streams=query.streams,
            sequences=tuple(_draw_sequence(rng, graph, head, algorithms) for head in graph),
        )
    return plan.one_line


def _draw_sequence(
    rng: Random, graph: nx.Graph, head: int, algorithms: Sequence[OneWayJoin]
) -> tuple[JoinStep, ...]:
    joined, steps = {head}, []
    while near := sorted(nx.node_boundary(graph, joined)):
        joined.add(stream := _one_of(rng, near))
        steps.append(JoinStep(stream=stream, algorithm=_one_of(rng, algorithms)))
    return tuple(steps)


def _draw_tree(
    rng: Random, query: JoinQuery, graph: nx.Graph, algorithms: Sequence[OneWayJoin]
) -> TreePlan:
    """Draw a tree, bushy or not; all but its last join make their output at one site."""
    trees: list[Tree] = list(graph)
    while True:
        pairs = [
            (left, right)
            for left in trees
            for right in trees
            if left is not right
            and any(graph.has_edge(a, b) for a in leaves(left) for b in leaves(right))
        ]
        left, right = _one_of(rng, pairs)
        up = _one_of(rng, algorithms)
        last = len(trees) == 2
        down = _one_of(rng, [one for one in algorithms if last or one.at_source != up.at_source])
        join = TwoWayJoin(left=left, right=right, up=up, down=down)
        if last:
            return TreePlan(streams=query.streams, root=join)
        trees = [*(tree for tree in trees if tree is not left and tree is not right), join]


_OF_A_TYPE: tuple[tuple[Any, Callable[[Random, JoinQuery], Any]], ...] = (
    (type(None), lambda rng, query: None),
    (bool, lambda rng, query: _maybe(rng)),
    (Duration, lambda rng, query: _magnitude(rng, 1, _MOMENTS_NS)),
    (PlanText, draw_join_plan),
    (ValueSample, _draw_sample),
)
"""Parameters that are drawn by their type alone."""


def _kinds(union: Any, default: Any) -> list[Any]:
    """Return the types in *union*; not None where that is the default: to draw it adds nothing."""
    kinds = typing.get_args(union)
    return [kind for kind in kinds if kind is not type(None) or default is not None]


def _within(rng: Random, bound: Interval, *, whole: bool) -> float:
    least = _number(bound.ge if bound.gt is None else bound.gt)
    if whole:
        most = min(_number(bound.le), least + _MOST_OF_A_NUMBER - 1)
        return _between(rng, int(least), int(most))
    most = min(_number(bound.le), least + _MOST_OF_A_NUMBER)
    return most - (most - least) * float(rng.random())  # never the least itself


def _number(bound: object) -> float:
    assert isinstance(bound, int | float)  # parameters are numbers
    return bound


def _predicate(rng: Random, left: str, right: str) -> str:
    """Draw a predicate between fields of the two sides, which *left* and *right* format."""
    if _maybe(rng):
        return _comparison(rng, left, right, _SYMBOLS)
    field, operator = _one_of(rng, "xy"), _one_of(rng, ["<", "<="])
    width = _one_of(rng, _WIDTHS)
    return f"ABS({left.format(field)} - {right.format(field)}) {operator} {width}"


def _comparison(rng: Random, left: str, right: str, operators: Sequence[str]) -> str:
    """Draw a comparison of a field of one side with a field of the other, mostly the same."""
    a, operator = _one_of(rng, "xy"), _one_of(rng, operators)
    b = a if _maybe(rng, 0.8) else _one_of(rng, "xy")  # x and y have few values in common
    return f"{left.format(a)} {operator} {right.format(b)}"


def _consistent(predicates: Sequence[str], names: str = "RS") -> bool:
    """Whether a query with these predicates is accepted: contradictions are refused, rightly."""
    sides = ", ".join(names) if any(f"{name}." in predicates[0] for name in names) else "T"
    try:
        parse_query(
            f"SELECT * FROM {sides} WHERE {' AND '.join(predicates)} "
            "WINDOW AS (SLIDE INTERVAL '1' ON '1')"
        )
    except QueryError:
        return False
    return True


def _interval(rng: Random) -> tuple[int, int]:
    """Draw the bounds of an interval, mostly of some width: narrow ones have few pairs."""
    lower = _between(rng, -9, 3)
    return lower, lower + _between(rng, *_one_of(rng, [(0, 3), (4, 12), (4, 12), (4, 12)]))


def _window(rng: Random, slide_most: int, slides_most: int) -> str:
    """Draw a window of count or time, of up to so many slides of up to so much each."""
    slide = _between(rng, 1, slide_most)
    # Mostly of several slides: of a tumbling window many a tuple sees nothing.
    length = slide * _between(rng, _one_of(rng, [1, 2, 3]), slides_most)
    unit = _one_of(rng, ["", " ns"])
    precise = " PRECISE" if unit and _maybe(rng) else ""
    return f"SLIDE INTERVAL '{slide}{unit}' ON '{length}{unit}'{precise}"


def _maybe(rng: Random, share: float = 0.5) -> bool:
    return bool(rng.random() < share)


def _between(rng: Random, least: int, most: int) -> int:
    return int(rng.integers(least, most, endpoint=True))


def _magnitude(rng: Random, least: int, most: int) -> int:
    """Draw a whole number of any order of magnitude."""
    low, high = np.log(least + 1), np.log(most + 1)
    return min(most, max(least, round(float(np.exp(rng.uniform(low, high))) - 1)))


def _one_of(rng: Random, values: Sequence[Any]) -> Any:
    return values[int(rng.integers(len(values)))]


def _shuffled(rng: Random, values: Sequence[str] | Mapping[str, None]) -> list[str]:
    listed = list(values)
    return [listed[place] for place in rng.permutation(len(listed))]
