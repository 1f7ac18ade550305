"""The index-based window join: what can be set, what is refused, what is noted; shared cores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from actors.ibwj import Machine
from benchmarks.pim_tree import make_work
from joins.queries.parser import parse_query
from joins.window_join import window_join_spec
from joins.window_join.window_join_spec import SHARED
from scenarios.plan import make_parameters
from scenarios.scenario_files import ConfigError
from scenarios.worlds import World
from scenarios.worlds.drawing import draw_worlds
from topologies import TOPOLOGIES, TopologyError

IBWJ = TOPOLOGIES["ibwj"]
QUERY = "SELECT R.x FROM R, S WHERE ABS(R.x - S.x) <= 2 WINDOW AS (SLIDE INTERVAL '1' ON '{}')"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"merge_ratio": 0}, "merge_ratio = 0: .*greater than 0"),
        ({"merge_ratio": 1.5}, "merge_ratio = 1.5: .*less than or equal to 1"),
        ({"chain_length": 1}, "chain_length = 1: .*greater than or equal to 2"),
        ({"index": "skip_list"}, "index = 'skip_list': .*'pim_tree'"),
        ({"insertion_depth": -1}, "insertion_depth = -1"),
        ({"lookup_rows": 0}, "lookup_rows = 0: .*greater than or equal to 1"),
        ({"lookup_rows": 17}, "lookup_rows = 17: .*less than or equal to 16"),
    ],
)
def test_a_parameter_that_cannot_be_is_named(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_parameters(IBWJ, values)


def test_an_index_that_threads_cannot_share_is_refused_with_those_they_can() -> None:
    job = IBWJ.sketch(parse_query(QUERY.format(8)))
    with pytest.raises(
        TopologyError,
        match=r"cannot share an index of b_chain.* pim_tree, im_tree",
    ):
        IBWJ.build(job, make_parameters(IBWJ, {"threads": 4, "index": "b_chain"}))


@pytest.mark.parametrize(
    ("values", "window", "says"),
    [
        ({"threads": 16, "cores": 8}, 1 << 16, ["16 threads on 8 cores"]),
        ({"insertion_depth": 40}, 1 << 16, ["40: the tree of a window of 65536 tuples is 2 deep"]),
        ({"insertion_depth": 2}, 1, ["2: the tree of a window of 1 tuples is 0 deep"]),
        ({"threads": 8, "cores": 8}, 1 << 16, []),
        ({"lookup_rows": 1}, 1 << 16, ["1: virtual time does not depend on it"]),
        ({"lookup_rows": 2, "threads": 8}, 1 << 16, ["2: an index that threads share does not"]),
        (
            {"cores": 4, "task_rows": 8},
            1 << 16,
            ["cores = 4: one thread does", "task_rows = 8: one"],
        ),
        ({"merge": "blocking"}, 1 << 16, ["merge = 'blocking': one thread does not depend on it"]),
        ({"merge": "blocking", "threads": 2}, 1 << 16, []),
        ({"merge": "blocking", "threads": 2, "index": "bw_tree"}, 1 << 16, ["bw_tree does not"]),
        ({"chain_length": 4}, 1 << 16, ["chain_length = 4: pim_tree does not depend on it"]),
        ({"chain_length": 4, "index": "ib_chain"}, 1 << 16, []),
        ({"merge_ratio": 0.5, "index": "im_tree"}, 1 << 16, []),
        (
            {"merge_ratio": 0.5, "insertion_depth": 3, "index": "b_plus_tree"},
            1 << 16,
            ["merge_ratio = 0.5: b_plus_tree does not", "insertion_depth = 3: b_plus_tree"],
        ),
    ],
)
def test_what_says_less_than_it_seems_to_is_noted(
    values: dict[str, object], window: int, says: list[str]
) -> None:
    notes = IBWJ.notes(
        IBWJ.sketch(parse_query(QUERY.format(window))), make_parameters(IBWJ, values)
    )
    assert len(notes) == len(says)
    assert all(part in note for part, note in zip(says, notes, strict=True))


@pytest.mark.parametrize(
    ("values", "ratio"),
    [({}, 1 / 8), ({"threads": 2}, 1), ({"threads": 2, "merge_ratio": 0.25}, 0.25)],
)
def test_threads_that_share_an_index_merge_rarely(values: dict[str, float], ratio: float) -> None:
    assert make_parameters(IBWJ, values).ratio == ratio


@pytest.mark.parametrize(("values", "ratio"), [({}, 1 / 4), ({"merge_ratio": 0.5}, 0.5)])
def test_real_threads_merge_more_often(values: dict[str, float], ratio: float) -> None:
    spec = make_parameters(IBWJ, {"threads": 2} | values)
    join = spec.make(self_join=False, unit_ps=None)
    assert join.windows.index.merge_ratio == ratio


@pytest.mark.parametrize(
    ("index", "memory"),
    [("b_plus_tree", "_found"), ("pim_tree", "_places"), ("ib_chain", "_places")],
)
@pytest.mark.parametrize("lookup_rows", [1, 5, 16])
def test_as_many_tuples_are_looked_up_together_as_is_set(
    index: str, memory: str, lookup_rows: int
) -> None:
    spec = make_parameters(IBWJ, {"index": index, "lookup_rows": lookup_rows})
    join = spec.make(self_join=False, unit_ps=None)
    assert len(getattr(join, memory)) == lookup_rows


@pytest.mark.parametrize("world", list(draw_worlds(IBWJ, 4, exact=True)), ids=range(4))
def test_tuples_looked_up_together_change_no_digest_of_a_b_plus_tree(
    world: World, tmp_path: Path
) -> None:
    digests = set()
    for lookup_rows in (1, 5, 16):
        parameters = {"index": "b_plus_tree", "lookup_rows": lookup_rows}
        report = replace(world, parameters=parameters).run(tmp_path)
        assert report.verdict.exact
        digests.add(report.outcome.digest)
    assert len(digests) == 1


@pytest.mark.parametrize("index", SHARED)
def test_threads_are_real_in_a_live_run_and_simulated_in_virtual_time(index: str) -> None:
    rows = make_work(200, 100)
    for live in (False, True):
        job = replace(IBWJ.sketch(parse_query(QUERY.format(100))), live=live)
        graph = IBWJ.build(job, make_parameters(IBWJ, {"threads": 2, "index": index}))
        made = graph.specs["machine"].arguments
        join = made["spec"].make(self_join=False, unit_ps=made["unit_ps"])
        assert (join.join(rows).work.elapsed_ns == 0) is live


@pytest.mark.parametrize(
    ("index", "live", "driver", "usual"),
    [
        ("pim_tree", False, "CoresJoin", 8),
        ("bw_tree", False, "CoresJoin", 8),
        ("pim_tree", True, "ThreadsJoin", 64),
        ("bw_tree", True, "ThreadsJoin", 64),
    ],
)
def test_tasks_are_larger_where_threads_are_real(
    index: str, live: bool, driver: str, usual: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def take(*_: object, task_rows: int, **__: object) -> None:
        taken.append(task_rows)

    monkeypatch.setattr(window_join_spec, driver, take)
    job = replace(IBWJ.sketch(parse_query(QUERY.format(100))), live=live)
    for values in ({}, {"task_rows": 5}):
        parameters = make_parameters(IBWJ, {"threads": 2, "index": index} | values)
        made = IBWJ.build(job, parameters).specs["machine"].arguments
        made["spec"].make(self_join=False, unit_ps=made["unit_ps"])
    assert taken == [usual, 5]


def test_more_real_threads_than_cores_are_noted() -> None:
    job = replace(IBWJ.sketch(parse_query(QUERY.format(1 << 16))), live=True)
    shared, unused = IBWJ.notes(job, make_parameters(IBWJ, {"threads": 1000, "cores": 1000}))
    assert shared.startswith("1000 threads on")
    assert unused == "cores = 1000: a live run does not depend on it"


@pytest.mark.parametrize("index", window_join_spec.INDEXES)
@pytest.mark.parametrize("world", list(draw_worlds(IBWJ, 8, exact=True)), ids=range(8))
def test_every_index_gives_the_exact_answer_and_goes_on_from_a_snapshot(
    index: str, world: World, tmp_path: Path
) -> None:
    threads = world.parameters.get("threads", 0) if index in SHARED else 0
    chosen = world.parameters | {"index": index, "threads": threads}
    receive = Machine.receive

    def put_away_first(machine: Machine, message: object, context: object) -> None:
        machine.restore(machine.snapshot())
        receive(machine, message, context)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "receive", put_away_first)
        report = replace(world, parameters=chosen).run(tmp_path)
    assert report.verdict.exact


@pytest.mark.parametrize("world", list(draw_worlds(IBWJ, 15, exact=True)), ids=range(15))
def test_a_window_of_one_tuple_and_a_machine_put_away_in_between(
    world: World, tmp_path: Path
) -> None:
    query = world.query.partition("WINDOW")[0] + "WINDOW AS (SLIDE INTERVAL '1' ON '1')"
    assert replace(world, query=query).run(tmp_path).verdict.exact

    receive = Machine.receive

    def put_away_first(machine: Machine, message: object, context: object) -> None:
        machine.restore(machine.snapshot())
        receive(machine, message, context)  # type: ignore[arg-type]

    right = world.run(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Machine, "receive", put_away_first)
        assert world.run(tmp_path).outcome.digest == right.outcome.digest


def test_a_sketch_reads_no_file_of_the_folder_it_is_made_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    query = parse_query(QUERY.replace("'1'", "'1 s'").format("2 s"))
    IBWJ.build(IBWJ.sketch(query), IBWJ.parameters_type())
