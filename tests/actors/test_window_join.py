"""Whole windows shared out over joiner PEs: who meets whom, at what cost, and for how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import joinsim as js
from actors import window_join
from actors.feed import StreamFile
from actors.hosting.inline import RecordingContext
from actors.protocol import Actor, Message
from actors.source import Fed, Feeding
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.queries.parser import parse_query
from joins.state import revive
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph
from topologies.topology import Job
from topologies.window_join import WindowJoinTopology

SYSTEMS = [name for name, system in TOPOLOGIES.items() if isinstance(system, WindowJoinTopology)]
FIELDS = {"x": "float64", "y": "int64"}

# Equal as floats, though not in their bits or not as integers; and what equals nothing.
floats = st.sampled_from([0.0, -0.0, 1.0, 2.0**53, -(2.0**63), np.inf, -np.inf, np.nan])
integers = st.sampled_from([0, 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1])


def make_job(predicates: str, window: str = "SLIDE INTERVAL '10' ON '40'") -> Job:
    streams = ("R", "S") if "R." in predicates else ("T",)
    query = parse_query(
        f"SELECT * FROM {', '.join(streams)} WHERE {predicates} WINDOW AS ({window})"
    )
    files = tuple(
        StreamFile(schema=Schema(stream=stream, fields=FIELDS), directory=Path())
        for stream in streams
    )
    return Job(query=query, files=files, feeding=Feeding())


def make_batch(first: int, x: list[float], y: list[int]) -> Batch:
    ids = np.arange(first, first + len(x), dtype=np.int64)
    fields = {"x": np.array(x, np.float64), "y": np.array(y, np.int64)}
    return Batch(id=ids, ts=ids, key=np.zeros_like(ids), fields=fields)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    rows = draw(st.lists(st.tuples(floats, integers), max_size=8))
    return make_batch(draw(st.integers(0, 9)), [x for x, _ in rows], [y for _, y in rows])


def pe_counts(topology: WindowJoinTopology[Any]) -> list[str]:
    """Return the parameters that are a number of PEs."""
    return [field.name for field in fields(topology.parameters_type) if field.type == "Pes"]


@pytest.mark.parametrize(
    "predicates",
    ["R.x = S.x", "R.x = S.y", "R.y = S.y", "T.x1 = T.x2", "T.x1 = T.y2", "T.y1 = T.y2"],
)
@pytest.mark.parametrize("name", SYSTEMS)
@given(data=st.data())
def test_two_tuples_that_match_meet_at_one_pe_alone(
    name: str, predicates: str, data: st.DataObject
) -> None:
    """Whichever of them comes later finds the other there, once; others meet once at the most."""
    job = make_job(predicates)
    schemas = [file.schema for file in job.files]
    topology = TOPOLOGIES[name]
    assert isinstance(topology, WindowJoinTopology)
    # As far as 7 at least: the hashes of 0.0 and -0.0 are equal modulo all numbers below it.
    many = {key: data.draw(st.integers(1, 12), label=key) for key in pe_counts(topology)}
    layout = topology.lay_out(job, topology.parameters_type(**many))
    for probing in range(len(schemas)):
        stored = job.query.stored_stream(probing)
        new, old = data.draw(batches()), data.draw(batches())
        meetings = sum(
            layout.routing.probes_at(probing, new).at(pe)[:, None].astype(int)
            & layout.routing.stored_at(stored, old).at(pe)
            for pe in range(sum(layout.joiners.values()))
        )
        (condition,) = job.query.conditions(probing, schemas)
        match = condition.holds(
            new.fields[condition.probe_field][:, None], old.fields[condition.stored_field]
        )
        assert (meetings[match] == 1).all()
        assert (meetings <= 1).all()


def drive(graph: ActorGraph, messages: list[Fed]) -> Iterator[list[Actor]]:
    """Deliver *messages* to the router and what it sends to the joiners; yield these each time."""
    wiring = graph.wiring
    contexts = {name: RecordingContext(name, wiring[name], 0) for name in graph}
    actors = {name: spec.build() for name, spec in graph.specs.items()}
    joiners = wiring["router"]["joiner"]
    for fed in messages:
        actors["router"].receive(Message("source", "out", fed), contexts["router"])
        for sent in contexts["router"].take().sends:
            for receiver in sent.receivers:
                message = Message("router", "joiner", sent.handle)
                actors[receiver].receive(message, contexts[receiver])
                contexts[receiver].take()
        yield [actors[name] for name in joiners]


def fed(number: int, rows: tuple[int, ...]) -> Fed:
    """Return batch *number*: so many *rows* of every stream, one stream after the other."""
    parts = tuple(make_batch(number * n, [0.0] * n, [number] * n) for n in rows)
    order = np.arange(number * sum(rows), (number + 1) * sum(rows), dtype=np.int64)
    ends = np.cumsum(rows)
    seq = tuple(order[end - n : end] for end, n in zip(ends, rows, strict=True))
    return Fed(Arrivals(parts, seq), tuple(np.zeros(n, np.int64) for n in rows))


@pytest.mark.parametrize("window", ["'10' ON '40'", "'10 ns' ON '40 ns'"])
@pytest.mark.parametrize("rows", [(7, 7), (7, 0), (0, 7), (7,)])
@pytest.mark.parametrize("name", SYSTEMS)
def test_what_is_kept_follows_the_window_not_the_stream(
    name: str, rows: tuple[int, ...], window: str
) -> None:
    """Not even while the other stream, whose tuples would see it, is silent."""
    predicates = "R.x = S.x" if len(rows) == 2 else "T.x1 = T.x2"
    topology = TOPOLOGIES[name]
    assert isinstance(topology, WindowJoinTopology)
    settings: dict[str, int] = {key: 3 for key in pe_counts(topology)}
    if name == "chain_index":
        settings["sub_index"] = 5
    parameters = topology.parameters_type(**settings)
    job = make_job(predicates, f"SLIDE INTERVAL {window}")
    graph = topology.build(job, parameters)
    feds = [fed(number, rows) for number in range(40)]
    stored = [
        sum(len(index) for pe in joiners for index in revive(pe.snapshot()["_indexes"]))
        for joiners in drive(graph, feds)
    ]
    routing = topology.lay_out(job, parameters).routing
    # Every stream with tuples is seen over 40 positions, and stored at so many PEs.
    places = [routing.stored_at(*part) for part in enumerate(feds[0].arrivals.parts)]
    copies = [
        max(((each.group_of == group).sum() for group in each.group), default=0) for each in places
    ]
    assert max(stored) <= sum(copies) * 40 + sum(max(c, 1) for c in copies) * 2 * 10
    assert stored[-1] >= sum(copies) * (40 - 10)


@pytest.mark.parametrize(
    ("name", "settings", "copies"),
    [
        ("nested_loop", {}, (1, 1)),
        ("b_plus_tree", {}, (1, 1)),
        ("ie_join", {}, (1, 1)),
        ("split_join", {"pes": 5}, (5, 5)),
        ("scale_join", {"pes": 5}, (5, 5)),
        ("bchj", {"pes": 5}, (5, 5)),
        ("chain_index", {"units": 5}, (6, 6)),
        ("hash_join", {"pes": 5}, (1, 1)),
        ("join_matrix", {"grid_rows": 3, "grid_columns": 4}, (4, 3)),
    ],
)
def test_a_tuple_is_shipped_as_often_as_the_system_says(
    name: str, settings: dict[str, int], copies: tuple[int, int]
) -> None:
    topology = TOPOLOGIES[name]
    graph = topology.build(make_job("R.x = S.x"), topology.parameters_type(**settings))
    wiring = graph.wiring["router"]
    context = RecordingContext("router", wiring, 0)
    router = graph.specs["router"].build()
    router.receive(Message("source", "out", fed(0, (8, 13))), context)
    shipped: Counter[tuple[int, int]] = Counter()
    for sent in context.take().sends:
        for stream, part in enumerate(sent.handle.parts):
            shipped.update(
                (stream, tuple_id) for tuple_id in part.batch.id.tolist() for _ in sent.receivers
            )
    assert shipped == {(s, i): copies[s] for s, rows in enumerate((8, 13)) for i in range(rows)}


@pytest.mark.parametrize("name", ["b_plus_tree", "chain_index", "ie_join"])
@given(
    seed=st.integers(0, 9_999),
    streams=st.sampled_from(["R.x < S.x AND R.y >= S.y", "T.x1 < T.x2 AND T.y1 >= T.y2"]),
    window=st.sampled_from(
        ["'1' ON '6'", "'5' ON '20'", "'10 ns' ON '40 ns'", "'45 ns' ON '90 ns'"]
    ),
    rows=st.tuples(st.integers(1, 150), st.integers(1, 150)),
    batch_rows=st.sampled_from([7, 60, 1_000]),
    least_stored=st.integers(1, 12),
)
@settings(max_examples=15)
def test_messages_longer_than_the_window_are_joined_exactly(
    name: str, seed: int, streams: str, window: str, rows: tuple[int, int], batch_rows: int,
    least_stored: int,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    tables = {
        stream: {
            "ts": np.sort(rng.integers(0, 400, n)),
            "x": rng.integers(0, 9, n).astype(float),
            "y": rng.integers(0, 9, n),
        }
        for stream, n in zip(("R", "S") if "R." in streams else ("T",), rows, strict=False)
    }
    query = f"SELECT * FROM {', '.join(tables)} WHERE {streams} WINDOW AS (SLIDE INTERVAL {window})"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_join, "_LEAST_STORED", least_stored)
        run = js.run(query, tables, topology=name, pairs=True, feeding={"batch_rows": batch_rows})
    assert run.verdict.exact
    assert run.verdict.passed is not False


@pytest.mark.parametrize("name", ["b_plus_tree", "chain_index", "ie_join"])
def test_a_tuple_costs_no_more_in_a_message_of_many_windows(name: str) -> None:
    """What later tuples of the message see is not searched for the earlier ones."""
    rng = np.random.default_rng(1)
    table = {field: rng.integers(0, 1_000, 24_000) for field in ("x", "y")}
    query = (
        "SELECT * FROM T WHERE T.x1 < T.x2 AND T.y1 > T.y2 WINDOW AS (SLIDE INTERVAL '1' ON '500')"
    )

    def busy_ns(batch_rows: int) -> int:
        run = js.run(query, {"T": table}, topology=name, feeding={"batch_rows": batch_rows})
        return sum(run.trace["done_ns"].to_numpy() - run.trace["started_ns"].to_numpy())

    assert busy_ns(24_000) < 1.5 * busy_ns(1_000)


@pytest.mark.parametrize("streams", ["T.x1 < T.x2 AND T.y1 > T.y2", "R.x < S.x AND R.y > S.y"])
@pytest.mark.parametrize(
    ("window", "pes"),
    [(4_000, 1), (500, 16)],
    ids=["no longer than the window", "few of whose tuples each PE stores"],
)
def test_a_message_is_joined_at_once_where_steps_would_save_nothing(
    window: int, pes: int, streams: str
) -> None:
    """While windows fill, too, when its tuples see fewer than there are in one."""
    rng = np.random.default_rng(1)
    names = ("R", "S") if "R." in streams else ("T",)
    tables = {name: {field: rng.integers(0, 1_000, 12_000) for field in "xy"} for name in names}
    query = (
        f"SELECT * FROM {', '.join(names)} WHERE {streams} "
        f"WINDOW AS (SLIDE INTERVAL '1' ON '{window}')"
    )

    def digest() -> str | None:
        feeding = {"batch_rows": 4_000}
        run = js.run(
            query, tables, topology="split_join", index="b_plus_tree", pes=pes, feeding=feeding
        )
        return run.digest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_join, "cut_by_window", lambda share, stored: [share])
        whole = digest()
    assert digest() == whole
