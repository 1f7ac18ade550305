"""Approximate joins: nothing wrong, links within their budget, and a recall stated as it is."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.source import Feeding
from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from joins.semijoins.value_sample import ValueSample
from netsim.network import Latency, Link, full_mesh
from scenarios.run import FinishedRun
from scenarios.worlds import World, WorldStream
from topologies.semijoin import SemijoinParameters, SemijoinTopology, plan_of
from topologies.semijoins.costing import estimate_plan
from topologies.semijoins.formulas import distinct_among
from topologies.semijoins.join_statistics import JoinAttribute, JoinStream
from topologies.semijoins.shedding import unevenness
from topologies.topology import Job, TopologyError

TOPOLOGY = SemijoinTopology()
WINDOW = "WINDOW AS (SLIDE INTERVAL '1 ns' ON '800 ms' PRECISE)"
TWO_WAY = f"SELECT * FROM A, B WHERE A.y = B.y {WINDOW}"
THREE_WAY = f"SELECT * FROM A, B, C WHERE A.y = B.y AND B.y = C.y {WINDOW}"
LINK = {"preset": "wan", "latency": 5_000_000, "bandwidth": 100_000_000}
STEP_NS = 2_000_000
ALGORITHMS = st.sampled_from(list(OneWayJoin))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


def uniform(seed: int, values: int, rows: int = 1500) -> WorldStream:
    """Return a stream of uniform values at a steady rate, five hundred a second."""
    rng = np.random.default_rng(seed)
    ts = (np.arange(rows) * STEP_NS + seed).tolist()
    return WorldStream(ts=ts, x=[0.0] * rows, y=rng.integers(0, values, rows).tolist())


def skewed(seed: int, rows: int = 1500) -> WorldStream:
    """Return the same with values of which the first is by far the most frequent."""
    y = np.minimum(np.random.default_rng(seed).zipf(1.5, rows), 1000)
    return replace(uniform(seed, 1, rows), y=y.tolist())


def run(
    folder: Path, query: str, streams: tuple[WorldStream, ...], **parameters: object
) -> FinishedRun:
    """Run it as a person's run would be: with what is left to the system chosen first."""
    parsed = parse_query(query)
    given = SemijoinParameters(tau=50_000_000, **parameters)  # type: ignore[arg-type]
    files = tuple(
        stream.write(name, folder / "streams" / name, 1000)
        for name, stream in zip(parsed.streams, streams, strict=True)
    )
    job = Job(query=parsed, files=files, feeding=Feeding(), network=network)
    return World(
        topology="semijoin",
        parameters=vars(TOPOLOGY.fitted(job, given, network(parsed.streams))),
        query=query,
        streams=streams,
        network=LINK,
        feeding={},
        segment_rows=1000,
        seed=1,
    ).run(folder, pairs=True)


def network(sites: object) -> nx.Graph:
    link = Link(latency=Latency(mean_ns=5_000_000), bandwidth_bps=100_000_000)
    return full_mesh(sites, link)  # type: ignore[arg-type]


@pytest.mark.parametrize("query", [TWO_WAY, THREE_WAY])
def test_a_kept_value_keeps_all_its_results_and_nothing_else_comes(
    query: str, directory: Path
) -> None:
    """Whatever is kept, at whatever sites it is joined by whatever algorithm."""
    streams = tuple(uniform(seed, 30, 400) for seed in range(query.count(".y") // 2 + 1))
    whole = run(directory, query, streams)
    expected = values_of_results(directory, streams[0])

    @settings(max_examples=10)
    @given(
        algorithm=ALGORITHMS,
        share=st.floats(0.05, 1),
        never=st.lists(st.integers(0, 29), max_size=3),
    )
    def check(algorithm: OneWayJoin, share: float, never: list[int]) -> None:
        kept = ValueSample(share=share, always=(1.0,), never=tuple(map(float, never)))
        report = run(directory, query, streams, algorithm=algorithm, kept=kept)
        verdict = report.verdict
        assert verdict.spurious == verdict.duplicate == 0
        assert verdict.produced == kept.contains(expected).sum()
        assert all(check.passed is not False for check in verdict.checks), verdict.checks

    assert whole.verdict.exact
    check()


def values_of_results(directory: Path, stream: WorldStream) -> np.ndarray:
    """Return the value of each result of the latest run, of two streams or of three."""
    results = pq.read_table(directory / "results.parquet")
    if "A_id" in results.column_names:
        return np.array(stream.y)[results["A_id"].to_numpy()]
    newest, other = results["probe_id"].to_numpy(), results["match_id"].to_numpy()
    of_first = results["probe_stream"].to_numpy() == 0
    return np.array(stream.y)[np.where(of_first, newest, other)]


def test_no_link_carries_more_than_the_budget(directory: Path) -> None:
    """Uniform values at steady rates, any two algorithms, and budgets from much to little."""

    @settings(max_examples=12)
    @given(
        there=ALGORITHMS,
        back=ALGORITHMS,
        values=st.integers(80, 400),
        part=st.floats(0.15, 0.9),
        sizes=st.tuples(st.integers(100, 1500), st.integers(100, 1500)),
    )
    def check(
        there: OneWayJoin, back: OneWayJoin, values: int, part: float, sizes: tuple[int, int]
    ) -> None:
        streams = (uniform(1, values), uniform(2, 2 * values))
        common = {
            "plan": f"A: B {there}; B: A {back}",
            "tuple_bytes": dict(zip("AB", sizes, strict=True)),
        }
        whole = run(directory, TWO_WAY, streams, kept=ValueSample(share=1), **common)
        assert whole.approximated is not None
        budget = int(part * whole.approximated.link_bytes_ps)
        report = run(directory, TWO_WAY, streams, byte_budget=budget, **common)
        assert report.approximated is not None
        assert 0.5 * budget < report.approximated.link_bytes_ps <= budget
        assert report.verdict.spurious == report.verdict.duplicate == 0
        assert report.verdict.missing > 0
        assert report.verdict.passed

    check()


def test_costs_are_those_of_what_is_kept(directory: Path) -> None:
    """Rates, windows and matches: a plan of what is kept is costed, not of what comes."""
    streams = (uniform(1, 300), uniform(2, 300))
    plan = "A: B SM-S1; B: A SP-D"
    report = run(directory, TWO_WAY, streams, plan=plan, kept=ValueSample(share=0.3))
    assert report.approximated is not None
    job = report.plan.job(pairs=False)
    statistics = TOPOLOGY.statistics(job, report.plan.parameters, network("AB"))
    estimated = estimate_plan(statistics, plan_of(job.query, report.plan.parameters))
    assert estimated.nbytes == pytest.approx(report.approximated.link_bytes_ps, rel=0.1)


def test_a_tree_keeps_within_the_budget_too(directory: Path) -> None:
    streams = tuple(uniform(seed, 100) for seed in range(3))
    plan = "(A, B SP-S/SP-D, C SM-S1/SP-D)"
    whole = run(directory, THREE_WAY, streams, kept=ValueSample(share=1), plan=plan)
    assert whole.verdict.exact
    assert whole.approximated is not None
    budget = int(whole.approximated.link_bytes_ps / 2)
    report = run(directory, THREE_WAY, streams, byte_budget=budget, plan=plan)
    assert report.verdict.passed, report.verdict.checks
    assert 0 < report.verdict.produced < report.verdict.expected


@pytest.mark.parametrize("shape", ["uniform", "skewed"])
@pytest.mark.parametrize("part", [0.2, 0.6])
def test_the_recall_that_is_stated_is_near_the_true_one(
    shape: str, part: float, directory: Path
) -> None:
    """Within four standard errors of a sample of values, which is not exact by chance either."""
    streams = (uniform(1, 300), uniform(2, 300)) if shape == "uniform" else (skewed(1), skewed(2))
    whole = run(directory, TWO_WAY, streams, kept=ValueSample(share=1))
    assert whole.approximated is not None
    assert whole.approximated.stated_recall == whole.approximated.recall == 1
    budget = int(part * whole.approximated.link_bytes_ps)
    found = run(directory, TWO_WAY, streams, byte_budget=budget).approximated
    assert found is not None
    assert found.stated_recall is not None
    assert found.standard_error is not None
    assert found.recall is not None
    assert 0 < found.recall < 1
    assert 0 < found.standard_error < 0.2
    assert abs(found.stated_recall - found.recall) < 4 * found.standard_error
    if shape == "skewed" and part > 0.5:
        assert found.recall > part  # the most frequent value gives most results for its bytes


def test_a_budget_that_suffices_sheds_nothing_and_one_of_next_to_nothing_is_refused(
    directory: Path,
) -> None:
    streams = (uniform(1, 100), uniform(2, 100))
    enough = run(directory, TWO_WAY, streams, byte_budget=10_000_000)
    assert enough.verdict.exact
    assert enough.verdict.claims_exact
    assert enough.plan.parameters.kept == ValueSample(share=1)
    with pytest.raises(TopologyError, match=r"byte_budget = 700: .* the busiest link, A - B"):
        run(directory, TWO_WAY, streams, byte_budget=700)


def test_what_a_budget_keeps_can_be_set_again(tmp_path: Path) -> None:
    """Where all values are frequent, too: none is left whose results are to be squared."""
    shares = np.linspace(1, 2, 14) / np.linspace(1, 2, 14).sum()
    files = tuple(
        replace(
            uniform(seed, 1), y=np.random.default_rng(seed).choice(14, 1500, p=shares).tolist()
        ).write(name, tmp_path / name, 1000)
        for seed, name in ((2, "A"), (3, "B"))
    )
    job = Job(query=parse_query(TWO_WAY), files=files, feeding=Feeding(), network=network)
    given = SemijoinParameters(tau=50_000_000, byte_budget=25_000)
    kept = TOPOLOGY.fitted(job, given, network("AB")).kept
    assert kept is not None
    assert kept.never
    again = SemijoinParameters(kept=asdict(kept))  # type: ignore[arg-type]
    assert again.kept == kept


def test_what_cannot_be_shed_by_value_is_refused() -> None:
    def refused(query: str, **parameters: object) -> str:
        sketch = TOPOLOGY.sketch(parse_query(query))
        with pytest.raises(TopologyError) as error:
            TOPOLOGY.build(sketch, SemijoinParameters(**parameters))  # type: ignore[arg-type]
        return str(error.value)

    counted = TWO_WAY.replace("'1 ns' ON '800 ms' PRECISE", "'1' ON '80'")
    assert "the window of A holds the latest 80 tuples" in refused(counted, byte_budget=1000)
    unlike = THREE_WAY.replace("B.y = C.y", "B.x = C.x")
    assert "no equalities make one of a field of each" in refused(unlike, kept={"share": 0.5})
    with pytest.raises(ValueError, match=r"share[\s\S]*greater than 0"):
        SemijoinParameters(kept={"share": 0})  # type: ignore[arg-type]


# How much more uneven values match than even ones: against tuples that were drawn.


STREAMS = tuple(
    JoinStream(name=name, rate_tps=100, window_rows=200, full_bytes=100) for name in "AB"
)


def of(*columns: np.ndarray) -> float:
    return unevenness(JoinAttribute.of_columns(dict(enumerate(columns)), 2), STREAMS)


def test_even_values_are_even() -> None:
    column = np.tile(np.arange(500), 20)
    assert of(column, column) == pytest.approx(1, abs=1e-6)
    assert of(column, column + 250) == pytest.approx(1, abs=1e-6)
    assert of(column, column + 500) == 1  # nothing matches


def test_uneven_values_match_as_often_as_drawn_ones() -> None:
    rng = np.random.default_rng(1)
    columns = [np.minimum(rng.zipf(1.3, 40_000), 3000) for _ in "AB"]
    hits = [
        np.isin(columns[0][i : i + 20], columns[1][i : i + 200]).mean()
        for i in range(0, 39_000, 20)
    ]
    distinct = len(np.unique(columns[1]))
    there = np.isin(columns[0], columns[1]).mean()
    even = there * distinct_among(distinct, 200) / distinct
    assert of(*columns) == pytest.approx(np.mean(hits) / even, rel=0.03)
