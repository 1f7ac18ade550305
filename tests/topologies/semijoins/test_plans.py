from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.plans import (
    JoinStep,
    LinearPlan,
    TreePlan,
    TwoWayJoin,
    join_graph,
    joins_of,
    leaves,
    parse_plan,
    uniform_plan,
)
from topologies.topology import TopologyError

ABC = ("A", "B", "C")


@st.composite
def linear_plans(draw: st.DrawFn) -> LinearPlan:
    names = tuple("ABCDE"[: draw(st.integers(2, 5))])
    sequences = []
    for head in range(len(names)):
        rest = draw(st.permutations([s for s in range(len(names)) if s != head]))
        steps = tuple(
            JoinStep(stream=stream, algorithm=draw(st.sampled_from(OneWayJoin))) for stream in rest
        )
        sequences.append(steps)
    return LinearPlan(streams=names, sequences=tuple(sequences))


@given(linear_plans())
def test_a_linear_plan_is_read_back_as_it_is_printed(plan: LinearPlan) -> None:
    assert parse_plan(str(plan), plan.streams) == plan
    assert parse_plan(str(plan).replace("\n", "; "), plan.streams) == plan


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        ("(A, B SP-S/SP-D, C SM-S1/SM-S2)", [(0, 1), (0, 1, 2)]),
        ("(A, (B, C BLOOM-S/SP-D) SM-S1/SM-S2)", [(1, 2), (0, 1, 2)]),
        ("(B, A SP-S/SP-D, (D, C SM-D2/SP-S) SP-S/SP-S)", [(1, 0), (3, 2), (1, 0, 3, 2)]),
    ],
)
def test_a_tree_is_read_back_as_it_is_printed(text: str, joined: list[tuple[int, ...]]) -> None:
    plan = parse_plan(text, "ABCD"[: 1 + max(joined[-1])])
    assert str(plan) == text
    assert isinstance(plan, TreePlan)
    assert [leaves(join) for join in joins_of(plan.root)] == joined


def test_a_tree_may_be_written_on_several_lines() -> None:
    plan = parse_plan("(A,\n (B,\n  C sp-s/sp-d)sm-s1/sm-s2)\n", ABC)
    assert str(plan) == "(A, (B, C SP-S/SP-D) SM-S1/SM-S2)"


def test_brackets_that_say_nothing_are_not_printed() -> None:
    plan = parse_plan("((A, B SP-S/SP-D), C SM-S1/SM-S2)", ABC)
    assert str(plan) == "(A, B SP-S/SP-D, C SM-S1/SM-S2)"


def test_the_output_moves_with_algorithms_at_the_destination() -> None:
    plan = parse_plan("A: B SP-D, C SM-S1; B: C SP-S, A SM-D2; C: B BLOOM-D, A BLOOM-S", ABC)
    assert [join.source for join in plan.one_way_joins] == [0, 1, 1, 1, 2, 1]


def test_a_tree_keeps_the_output_of_each_join_at_one_site() -> None:
    at_b = TwoWayJoin(left=0, right=1, up=OneWayJoin.SP_S, down=OneWayJoin.SM_D1)
    root = TwoWayJoin(left=at_b, right=2, up=OneWayJoin.SP_D, down=OneWayJoin.SP_D)
    assert at_b.site == 1
    assert str(TreePlan(streams=ABC, root=root)) == "(A, B SP-S/SM-D1, C SP-D/SP-D)"
    with pytest.raises(TopologyError, match=r"output of \(A, B SP-S/SP-S\) at two sites"):
        parse_plan("(A, B SP-S/SP-S, C SP-D/SP-D)", ABC)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A: B SP-D", "one join sequence for each of A, B, C"),
        ("A: B SP-D, B SP-D; B: A SP-D, C SP-D; C: A SP-D, B SP-D", "it joins A, B, B"),
        ("A: B SP-X, C SP-D", "no algorithm 'SP-X'; there are SP-S, SP-D"),
        ("A: D SP-D, C SP-D", "no stream 'D'; there are A, B, C"),
        ("A B SP-D", "write a sequence as in A: B SP-D"),
        ("A: B", "write a stream and its algorithm"),
        ("(A, B SP-S, C SP-D)", "write a tree's join as in B SP-S/SP-D"),
        ("(A, B SP-S/SP-D", "bracket is not closed"),
        ("(A, B SP-S/SP-D)", "it joins A, B"),
        ("(A)", "a tree joins two streams or more"),
        ("(A SP-S/SP-D, B SP-S/SP-D)", "begins with a stream or a tree alone"),
        ("(A, B SP-S/SP-D) C", "nothing may follow the last bracket"),
        ("(A, (B, C SP-S/SP-D), SP-S/SP-D)", "write a tree's join"),
        ("(A, , C SP-S/SP-D)", "no stream ''"),
        ("(A, B SP-S/SP-D, C SP-D/SP-S))", "nothing may follow the last bracket"),
        ("(A, (B, C SP-S/SP-D) SP-S/SP-D", "bracket is not closed"),
        ("(A, #3 SP-S/SP-D, C SP-S/SP-D)", "no stream '#3'; there are A, B, C$"),
    ],
)
def test_what_is_wrong_with_a_plan_is_named(text: str, said: str) -> None:
    with pytest.raises(TopologyError, match=said.replace("(", r"\(")):
        parse_plan(text, ABC)


def test_a_plan_follows_the_join_graph() -> None:
    graph = nx.path_graph(3)
    uniform_plan(ABC, graph).check(graph)
    across = parse_plan("A: C SP-D, B SP-D; B: A SP-D, C SP-D; C: B SP-D, A SP-D", ABC)
    with pytest.raises(TopologyError, match="joins C to A, with which it shares no predicate"):
        across.check(graph)
    with pytest.raises(TopologyError, match="joins C to A, with"):
        parse_plan("(A, C SP-S/SP-D, B SP-S/SP-D)", ABC).check(graph)


def test_a_join_graph_in_parts_is_refused() -> None:
    query = parse_query(
        "SELECT A.id FROM A, B, C, D WHERE A.x = B.x AND C.y = D.y "
        "WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    with pytest.raises(TopologyError, match="2 parts: A, B; C, D"):
        join_graph(query)
