"""Join trees: any of them gives the results of the oracle, as linear plans do."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from actors.hosting.inline import InlineHost
from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from joinsim.checks import RestoringHost
from netsim.network import PRESETS, full_mesh
from scenarios.worlds.drawing import draw_multiway_query, draw_stream
from tests.drawn import drawn
from tests.topologies.test_semijoin import THREE_WAY, TOPOLOGY, dense, job
from topologies.semijoin import SemijoinParameters
from topologies.semijoins.plans import Tree, TreePlan, TwoWayJoin, join_graph, leaves
from topologies.topology import TopologyError

_AT_SOURCE = [algorithm for algorithm in OneWayJoin if algorithm.at_source]
_AT_DESTINATION = [algorithm for algorithm in OneWayJoin if not algorithm.at_source]


@st.composite
def timed_queries(draw: st.DrawFn) -> str:
    """Draw a query of two to four streams with windows of time, which is all that trees know."""
    return re.sub(r"'(\d+)'", r"'\1 ns'", draw(drawn(draw_multiway_query)))


@st.composite
def trees(draw: st.DrawFn, query: str) -> str:
    """Draw a tree that the join graph allows: two operands that a predicate compares at a time."""
    parsed = parse_query(query)
    graph = join_graph(parsed)
    hashed = all(predicate.operator.is_equality for predicate in parsed.predicates)

    def one_of(algorithms: list[OneWayJoin]) -> OneWayJoin:
        allowed = [a for a in algorithms if hashed or not a.startswith("BLOOM")]
        return draw(st.sampled_from(allowed))

    operands: list[Tree] = list(graph)
    while len(operands) > 1:
        pairs = [(a, b) for a in operands for b in operands if a != b and adjacent(graph, a, b)]
        left, right = draw(st.sampled_from(pairs))
        up, down = one_of(_AT_SOURCE), one_of(_AT_DESTINATION)
        if draw(st.booleans()):
            up, down = down, up
        if len(operands) == 2:  # the last join may make its output at both sites
            up = one_of(list(OneWayJoin))
        operands = [operand for operand in operands if operand not in (left, right)]
        operands.append(TwoWayJoin(left=left, right=right, up=up, down=down))
    root = operands[0]
    assert isinstance(root, TwoWayJoin)
    return str(TreePlan(streams=parsed.streams, root=root))


def adjacent(graph: nx.Graph, a: Tree, b: Tree) -> bool:
    return any(graph.has_edge(x, y) for x in leaves(a) for y in leaves(b))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.mark.parametrize("execution", ["delayed", "punctuated"])
@pytest.mark.parametrize("restored", [False, True])
def test_every_tree_gives_the_results_of_the_oracle(
    execution: str, restored: bool, directory: Path
) -> None:
    """Claim 1, for trees; also restored at every message."""

    @settings(max_examples=5 if restored else 50, phases=[Phase.generate])
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        query = data.draw(timed_queries())
        run = job(
            query,
            tuple(data.draw(drawn(draw_stream)) for _ in parse_query(query).streams),
            execution=execution,
            plan=data.draw(trees(query)),
            tau=data.draw(st.integers(200_000, 20_000_000)),
            delta=30_000_000,
        )
        most = 2_000_000 if execution == "delayed" else 100_000_000
        run = replace(run, network={"preset": "rack", "latency": data.draw(st.integers(0, most))})
        host = RestoringHost if restored else InlineHost
        verdict = run.run(directory, inline_host=host).verdict
        assert verdict.exact, (verdict, run)
        assert all(held.passed is not False for held in verdict.checks), verdict.checks

    check()


def test_a_tree_of_late_messages_loses_results_unless_punctuated(directory: Path) -> None:
    data = tuple(dense(seed) for seed in range(3))
    late = {"preset": "rack", "latency": 40_000_000}
    common = {"plan": "(B, A SP-S/SM-D1, C SM-S2/SP-D)", "tau": 1_000_000, "delta": 2_000_000}
    lost = replace(job(THREE_WAY, data, execution="delayed", **common), network=late)
    verdict = lost.run(directory).verdict
    assert verdict.missing > 0
    assert verdict.spurious == verdict.duplicate == 0
    kept = replace(job(THREE_WAY, data, execution="punctuated", **common), network=late)
    verdict = kept.run(directory).verdict
    assert verdict.exact
    assert verdict.expected > 0


def refused(query: str, **parameters: object) -> str:
    sketch = TOPOLOGY.sketch(parse_query(query))
    with pytest.raises(TopologyError) as error:
        TOPOLOGY.build(sketch, SemijoinParameters(**parameters))  # type: ignore[arg-type]
    return str(error.value)


def test_what_trees_cannot_do_is_refused_before_anything_runs() -> None:
    tree = "(A, B SP-S/SP-D, C SP-S/SP-D)"
    counting = THREE_WAY.replace("'1 ns' ON '20 ns' PRECISE", "'1' ON '20'")
    assert "that of A counts tuples" in refused(counting, plan=tree)
    assert "is a tree, whose output streams" in refused(THREE_WAY, plan=tree, replan_every=4)
    across = "(A, C SP-S/SP-D, B SP-S/SP-D)"
    assert "joins C to A, with which it shares no predicate" in refused(THREE_WAY, plan=across)
    filtered = "(A, B SP-S/SP-D, C BLOOM-S/SP-D)"
    assert "BLOOM-S from C to A⋈B" in refused(THREE_WAY, plan=filtered)


def test_delta_must_cover_one_join_of_a_tree_at_a_time() -> None:
    """An output stream waits until its interval is whole, so that delays do not add up."""
    query = parse_query(THREE_WAY)
    network = full_mesh("ABC", PRESETS["wan"])  # 25 ms
    plan = "(A, B SP-S/SP-D, C SM-D2/SP-D)"
    tight = SemijoinParameters(plan=plan, execution="delayed", delta=74_000_000)
    (warning,) = TOPOLOGY.warnings(query, tight, network)
    assert "74 ms, less than the 75 ms" in warning
    assert "C > B > C > B" in warning
    assert TOPOLOGY.warnings(query, replace(tight, delta=75_000_000), network) == ()
