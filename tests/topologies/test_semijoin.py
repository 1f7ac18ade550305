"""The semijoin system: any plan gives the same results; what late messages cost; refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from joins.batch import Batch
from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from netsim.network import PRESETS, full_mesh
from scenarios.worlds import World, WorldStream
from scenarios.worlds.drawing import draw_multiway_query, draw_stream
from tests.drawn import drawn
from topologies.semijoin import SemijoinParameters, SemijoinTopology, with_tuple_bytes
from topologies.semijoins.plans import JoinStep, LinearPlan, join_graph
from topologies.topology import TopologyError

TOPOLOGY = SemijoinTopology()
THREE_WAY = (
    "SELECT * FROM A, B, C WHERE A.y = B.y AND B.x < C.x "
    "WINDOW AS (SLIDE INTERVAL '1 ns' ON '20 ns' PRECISE)"
)


@st.composite
def plans(draw: st.DrawFn, query: str) -> str:
    """Draw an order and algorithms for every head, any that the join graph allows."""
    parsed = parse_query(query)
    graph = join_graph(parsed)
    # A Bloom filter needs an equality, which a random predicate may not be.
    hashed = all(predicate.operator.is_equality for predicate in parsed.predicates)
    algorithms = [a for a in OneWayJoin if hashed or not a.startswith("BLOOM")]
    sequences = []
    for head in graph:
        done, steps = [head], []
        while len(done) < len(graph):
            near = sorted({n for d in done for n in graph[d]} - set(done))
            done.append(draw(st.sampled_from(near)))
            steps.append(JoinStep(stream=done[-1], algorithm=draw(st.sampled_from(algorithms))))
        sequences.append(tuple(steps))
    return str(LinearPlan(streams=parsed.streams, sequences=tuple(sequences)))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def job(query: str, data: tuple[WorldStream, ...], **parameters: object) -> World:
    return World(
        topology="semijoin",
        parameters=parameters,
        query=query,
        streams=data,
        network={"preset": "rack", "latency": 1_000_000},
        feeding={"rate_tps": 10_000},
        segment_rows=16,
        seed=1,
    )


@pytest.mark.parametrize("execution", ["delayed", "punctuated"])
def test_every_plan_gives_the_results_of_the_oracle(execution: str, directory: Path) -> None:
    """Claim 1, for random streams, windows, join graphs, plans, τ, and latencies below δ."""

    @settings(max_examples=60)
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        query = data.draw(drawn(draw_multiway_query))
        run = job(
            query,
            tuple(data.draw(drawn(draw_stream)) for _ in parse_query(query).streams),
            execution=execution,
            plan=data.draw(plans(query)),
            tau=data.draw(st.integers(200_000, 20_000_000)),
            delta=30_000_000,
        )
        latency = data.draw(st.integers(0, 2_000_000))
        run = replace(run, network={"preset": "rack", "latency": latency})
        verdict = run.run(directory).verdict
        assert verdict.exact, (verdict, run)

    check()


def dense(seed: int, rows: int = 120) -> WorldStream:
    rng = np.random.default_rng(seed)
    return WorldStream(
        ts=np.arange(rows).tolist(),
        x=(rng.integers(0, 4, rows) / 10).tolist(),
        y=rng.integers(0, 3, rows).tolist(),
    )


@pytest.mark.parametrize("algorithm", [a for a in OneWayJoin if not a.startswith("BLOOM")])
def test_latency_above_delta_loses_results_unless_punctuated(
    algorithm: OneWayJoin, directory: Path
) -> None:
    """The paper's model trusts in δ; punctuations need not."""
    data = tuple(dense(seed) for seed in range(3))
    late = {"preset": "rack", "latency": 40_000_000}
    common = {"algorithm": algorithm, "tau": 1_000_000, "delta": 2_000_000}
    lost = replace(job(THREE_WAY, data, execution="delayed", **common), network=late)
    verdict = lost.run(directory).verdict
    assert verdict.missing > 0
    assert verdict.spurious == verdict.duplicate == 0
    kept = replace(job(THREE_WAY, data, execution="punctuated", **common), network=late)
    verdict = kept.run(directory).verdict
    assert verdict.exact
    assert verdict.expected > 0


def test_simple_joins_ship_every_tuple_once(directory: Path) -> None:
    """Bytes on the wire: each tuple to the other site, and a header for each interval's batch."""
    query = "SELECT * FROM A, B WHERE A.y = B.y WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    data = (dense(1), dense(2))
    for algorithm in (OneWayJoin.SP_S, OneWayJoin.SP_D):
        run = job(
            query,
            data,
            algorithm=algorithm,
            execution="delayed",
            tau=2_000_000,
            tuple_bytes={"A": 100, "B": 1250},
        )
        # 240 tuples at 10,000 a second last 24 ms: 12 intervals, in which both streams have tuples.
        assert run.run(directory).outcome.nbytes == 120 * (100 + 1250) + 2 * 12 * 32


def test_semijoins_ship_fewer_bytes_where_few_tuples_match(directory: Path) -> None:
    """Of 120 distinct values in each stream one is in both: only its tuples are worth shipping."""
    one = WorldStream(ts=list(range(120)), x=[0.0] * 120, y=list(range(120)))
    other = replace(one, y=list(range(119, 239)))
    query = "SELECT * FROM A, B WHERE A.y = B.y WINDOW AS (SLIDE INTERVAL '1' ON '150')"
    nbytes = {}
    for algorithm in OneWayJoin:
        run = job(
            query,
            (one, other),
            algorithm=algorithm,
            execution="delayed",
            tau=2_000_000,
            tuple_bytes={"A": 1000, "B": 1000},
        )
        report = run.run(directory)
        assert report.verdict.exact
        assert report.verdict.expected == 1
        nbytes[algorithm] = report.outcome.nbytes
    simple = min(nbytes.pop(OneWayJoin.SP_S), nbytes.pop(OneWayJoin.SP_D))
    assert max(nbytes.values()) < simple / 4, nbytes


def test_what_cannot_be_joined_is_refused_by_name() -> None:
    """A join graph in parts, a stream with itself, plans and sizes that do not fit."""
    text = "SELECT * FROM A, B, C{more} WHERE A.x = B.x{and_} WINDOW AS (SLIDE INTERVAL '1' ON '9')"

    def refused(query: str, **parameters: object) -> str:
        sketch = TOPOLOGY.sketch(parse_query(query))
        with pytest.raises(TopologyError) as error:
            TOPOLOGY.build(sketch, SemijoinParameters(**parameters))  # type: ignore[arg-type]
        return str(error.value)

    in_parts = text.format(more="", and_="")
    chain = text.format(more="", and_=" AND B.x < C.x")
    assert "C" in refused(in_parts)
    assert "itself" in refused(
        "SELECT * FROM A WHERE A.x1 = A.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    assert "BLOOM-D" in refused(chain, algorithm=OneWayJoin.BLOOM_D)
    assert "'D'" in refused(chain, plan="A: D SP-S")
    assert "did you mean 'greedy-tree'? searches are greedy" in refused(chain, plan="greedy_tree")
    assert "shares no predicate" in refused(
        chain, plan="A: C SP-D, B SP-D; B: A SP-D, C SP-D; C: B SP-D, A SP-D"
    )
    assert "there is no stream 'D'" in refused(chain, tuple_bytes={"D": 100})
    assert "takes 32 bytes" in refused(chain, tuple_bytes={"A": 31})
    with pytest.raises(ValidationError, match="tau"):
        SemijoinParameters(tau=0)


@pytest.mark.parametrize(
    ("parameters", "noted"),
    [
        ({}, True),
        ({"plan": "A: B SP-D, C SP-D; B: A SP-D, C SP-D; C: B SP-D, A SP-D"}, True),
        ({"plan": "exhaustive"}, False),
        ({"replan_every": 5}, False),
    ],
)
def test_bloom_filters_that_no_search_may_choose_are_noted(
    parameters: dict[str, Any], noted: bool
) -> None:
    chosen, unset = SemijoinParameters(bloom=True, **parameters), SemijoinParameters(**parameters)
    example = TOPOLOGY.sketch(parse_query(THREE_WAY))
    note = "bloom = True: a plan that is not searched for does not depend on it"
    assert TOPOLOGY.notes(example, chosen) == ((note,) if noted else ())
    assert TOPOLOGY.notes(example, unset) == ()


def test_a_delta_that_is_set_beside_punctuations_is_noted() -> None:
    example = TOPOLOGY.sketch(parse_query(THREE_WAY))
    (note,) = TOPOLOGY.notes(example, SemijoinParameters(delta=7))
    assert note == "delta = 7: punctuated execution does not depend on it"
    assert TOPOLOGY.notes(example, SemijoinParameters(delta=7, execution="delayed")) == ()


def test_white_space_around_a_plan_means_nothing() -> None:
    """Nor in a rehearsal, whose window counts tuples, which no tree does."""
    tree = SemijoinParameters(plan="\n(A, B SP-S/SP-D)\n")
    assert TOPOLOGY.in_miniature(tree).plan is None
    assert SemijoinParameters(plan=" greedy ") == SemijoinParameters(plan="greedy")


def test_the_last_size_that_tuples_get_counts() -> None:
    job = TOPOLOGY.sketch(parse_query(THREE_WAY))
    once = with_tuple_bytes(job, {"A": 100, "B": 80})
    twice = with_tuple_bytes(once, {"A": 60})
    assert [Batch.empty(schema).row_bytes for schema in once.schemas[:2]] == [100, 80]
    assert [Batch.empty(schema).row_bytes for schema in twice.schemas[:2]] == [60, 80]


def test_results_have_a_column_for_each_stream(directory: Path) -> None:
    """And the stream of the newest tuple, which has the latest event time."""
    data = tuple(dense(seed, 60) for seed in range(3))
    job(THREE_WAY, data, algorithm="SM-S2").run(directory, pairs=True)
    results = pq.read_table(directory / "results.parquet").to_pydict()
    assert list(results) == ["probe_stream", "A_id", "B_id", "C_id"]
    rows = list(zip(*results.values(), strict=True))
    assert rows
    for newest, *ids in rows:
        a, b, c = ids
        assert data[0].y[a] == data[1].y[b]
        assert data[1].x[b] < data[2].x[c]
        assert all(ids[newest] - 20 <= i < ids[newest] for s, i in enumerate(ids) if s != newest)


def test_a_delta_below_the_longest_path_is_warned_of() -> None:
    """SM-D2 crosses three times a step; the warning names the path."""
    query = parse_query(THREE_WAY)
    network = full_mesh("ABC", PRESETS["wan"])
    plan = "A: B SM-D2, C SP-D; B: A SP-D, C SP-D; C: B SP-D, A SP-D"
    tight = SemijoinParameters(plan=plan, execution="delayed", delta=99_000_000)
    (warning,) = TOPOLOGY.warnings(query, tight, network)
    assert "99 ms, less than the 100 ms" in warning
    assert "A > B > A > B > C" in warning
    enough = replace(tight, delta=100_000_000)
    assert TOPOLOGY.warnings(query, enough, network) == ()
    assert TOPOLOGY.warnings(query, replace(tight, execution="punctuated"), network) == ()


def test_each_stream_has_a_site_with_its_source_and_sink() -> None:
    """Every two sites are connected; a source and a sink only with their own site."""
    graph = TOPOLOGY.build(TOPOLOGY.example(), SemijoinParameters())
    sites = {name: site for name, site in graph.placement.items() if name.startswith("site.")}
    assert list(sites.values()) == ["S1", "S2", "S3"]
    between = nx.DiGraph(graph.subgraph(sites))
    assert all(between.has_edge(a, b) for a in sites for b in sites if a != b)
    assert all(
        graph.placement[a] == graph.placement[b]
        for a, b in graph.edges()
        if not (a in sites and b in sites)
    )
