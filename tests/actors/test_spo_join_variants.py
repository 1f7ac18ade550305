"""Whole runs of SPO-Join's variants: which are exact, how the others fail, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from joins.indexes.structures import SEGMENTS
from joins.queries.parser import parse_query
from joinsim.checks import PeakHost
from scenarios.plan import make_parameters
from scenarios.run import FinishedRun
from scenarios.scenario_files import ConfigError
from scenarios.verdict import Verdict
from scenarios.worlds import World, WorldStream
from topologies import TOPOLOGIES, TopologyError

SPO_JOIN = TOPOLOGIES["spo_join"]
SELF_JOIN = "SELECT * FROM T WHERE T.x1 > T.x2 AND T.y1 < T.y2 WINDOW AS ({})"
TWO_WAY = (
    "SELECT * FROM R, S WHERE R.x < S.x AND R.y != S.y AND ABS(R.y - S.y) < 300 WINDOW AS ({})"
)
SELECTIVE = "SELECT * FROM T WHERE T.x1 > T.x2 AND ABS(T.y1 - T.y2) < 20 WINDOW AS ({})"
BY_COUNT = "SLIDE INTERVAL '20' ON '60'"
BY_TIME = "SLIDE INTERVAL '20 us' ON '60 us'"
SPREAD = {"preset": "rack", "jitter": "5 ms", "latency_kind": "pareto", "inbox_messages": 10_000}
"""A network whose channels differ for each message; inboxes that hold nobody up."""
SLOW = {"preset": "rack", "latency": "1 ms", "bandwidth": "10 Mbps", "inbox_messages": 1_000}
"""A network on which a merge takes long."""


def run(
    directory: Path,
    parameters: dict[str, Any] | None = None,
    *,
    query: str = SELF_JOIN.format(BY_COUNT),
    rows: int = 140,
    rate_tps: int | None = None,
    batch_rows: int = 1,
    network: dict[str, Any] | None = None,
) -> FinishedRun:
    rng = np.random.default_rng(7)
    streams = tuple(
        WorldStream(
            (1000 * np.arange(rows)).tolist(),
            rng.random(rows).tolist(),
            rng.integers(0, 1000, rows).tolist(),
        )
        for _ in parse_query(query).streams
    )
    job = World(
        topology="spo_join",
        parameters=parameters or {},
        query=query,
        streams=streams,
        network=network or {"preset": "rack"},
        feeding={"batch_rows": batch_rows, "rate_tps": rate_tps},
        segment_rows=1000,
        seed=3,
    )
    return job.run(directory)


def verdict(directory: Path, parameters: dict[str, Any] | None = None, **given: Any) -> Verdict:
    return run(directory, parameters, **given).verdict


EXACT = [
    {"mutable": "hash"},
    {"mutable": "hash", "predicate_pes": 3, "logical_pes": 3},
    {"merge_threshold": "slide/pes", "threads": 3},
    {"po_join_pes": 1, "threads": 2, "merge_threshold": 7},
    {"merge_threshold": "1"},
    {"merge_threshold": "33", "mutable": "hash"},
    {"merge_threshold": "60", "po_join_pes": 2},
    *(
        {"immutable": structure, "threads": 2, "po_join_pes": 2, "merge_threshold": "slide"}
        for structure in SEGMENTS
    ),
]


@pytest.mark.parametrize("parameters", EXACT, ids=str)
@pytest.mark.parametrize("query", [SELF_JOIN, TWO_WAY])
def test_exact_variants_are_exact(query: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    found = verdict(tmp_path, parameters, query=query.format(BY_COUNT), batch_rows=9)
    assert found.claims_exact
    assert found.expected > 0
    assert found.exact, found


@pytest.mark.parametrize("threshold", ["1 ns", "7 us", "33 us", "60 us"])
def test_any_time_up_to_the_window_is_a_merge_threshold(threshold: str, tmp_path: Path) -> None:
    found = verdict(
        tmp_path, {"merge_threshold": threshold}, query=TWO_WAY.format(BY_TIME), batch_rows=9
    )
    assert found.expected > 0
    assert found.exact, found


@pytest.mark.parametrize(
    "window",
    [
        "SLIDE INTERVAL '1' ON '20'",
        "SLIDE INTERVAL '1' ON '50'",
        "SLIDE INTERVAL '1' ON '129'",
        "SLIDE INTERVAL '1 us' ON '60 us'",
        "SLIDE INTERVAL '100 ns' ON '60 us' PRECISE",
    ],
)
@pytest.mark.parametrize("query", [SELF_JOIN, TWO_WAY])
def test_short_slides_are_merged_together(query: str, window: str, tmp_path: Path) -> None:
    """A merge has a dozen messages, and every tuple waits for those that are under way."""
    reports = {
        threshold: run(tmp_path / str(threshold), given, query=query.format(window), batch_rows=35)
        for threshold, given in ((None, {}), ("slide", {"merge_threshold": "slide"}))
    }
    for report in reports.values():
        assert report.verdict.expected > 0
        assert report.verdict.exact, report.verdict
    assert reports[None].outcome.messages < reports["slide"].outcome.messages / 2


def test_threads_shorten_the_service_and_change_nothing_else(tmp_path: Path) -> None:
    query = SELF_JOIN.format("SLIDE INTERVAL '100' ON '800'")
    verdicts, busy_ns = [], []
    for threads in (1, 4):
        parameters = {"threads": threads, "po_join_pes": 1}
        verdicts.append(verdict(tmp_path, parameters, query=query, rows=1200, batch_rows=50))
        trace = pq.read_table(tmp_path / "trace.parquet").to_pylist()
        mine = [row for row in trace if row["receiver"] == "po_join.0"]
        busy_ns.append(sum(row["done_ns"] - row["started_ns"] for row in mine))
    assert verdicts[0] == verdicts[1]
    assert verdicts[0].exact
    assert busy_ns[1] < busy_ns[0]


def correct(found: Verdict) -> float:
    return (found.produced - found.spurious - found.duplicate) / found.expected


def test_without_the_hash_table_correctness_falls_with_the_rate_and_rises_with_the_pes(
    tmp_path: Path,
) -> None:
    """Figure 18; the window is one slide, so that all matches come from the mutable component."""
    settings = {"query": SELF_JOIN.format("SLIDE INTERVAL '300' ON '300'"), "network": SPREAD}
    broken = {
        (rate, pes): verdict(
            tmp_path, {"hash_table": False, "logical_pes": pes}, rate_tps=rate, **settings
        )
        for rate in (200, 5000)
        for pes in (3, 30)
    }
    assert not any(found.claims_exact for found in broken.values())
    assert all(found.missing > 0 and found.spurious > 0 for found in broken.values())
    share = {key: correct(found) for key, found in broken.items()}
    assert share[200, 30] > share[200, 3] > share[5000, 3]
    assert share[200, 30] > share[5000, 30] > share[5000, 3]
    with_table = verdict(tmp_path, {"logical_pes": 3}, rate_tps=5000, **settings)
    assert with_table.exact


@pytest.mark.parametrize("mutable", ["bits", "hash"])
def test_results_dealt_in_turns_are_missing_but_never_wrong(mutable: str, tmp_path: Path) -> None:
    turns = {"logical_partitioning": "round_robin", "mutable": mutable}
    scattered = verdict(tmp_path, turns | {"logical_pes": 5})
    assert not scattered.claims_exact
    assert scattered.missing > 0
    assert scattered.spurious == scattered.duplicate == 0
    assert verdict(tmp_path, turns | {"logical_pes": 1}).exact


def test_an_epoch_answers_no_tuple_that_came_too_late_to_see_it(tmp_path: Path) -> None:
    """All tuples are there before the first merge is done, and wait for every one of them."""
    window, rows = 8, 140
    query = SELF_JOIN.format(f"SLIDE INTERVAL '1' ON '{window}'")
    at_each = {"merge_threshold": "slide"}
    assert verdict(tmp_path, at_each, query=query, rows=rows, batch_rows=rows).exact
    trace = pq.read_table(tmp_path / "trace.parquet", columns=["sender", "port"]).to_pylist()
    answers = [row for row in trace if row["port"] == "sink" and "po_join" in row["sender"]]
    assert 0 < len(answers) <= rows * (window + 1)


@pytest.mark.parametrize("way", ["own_slide", "round_robin", "cache"])
def test_a_window_state_that_comes_late_finds_expired_tuples(way: str, tmp_path: Path) -> None:
    query = SELECTIVE.format("SLIDE INTERVAL '60' ON '180'")
    settings = {"query": query, "rows": 480, "rate_tps": 4000, "batch_rows": 4, "network": SLOW}
    late = verdict(tmp_path, {"window_state": way}, **settings)
    assert not late.claims_exact
    assert late.expired > 0
    assert late.wrong == late.duplicate == late.missing == 0
    assert verdict(tmp_path, {}, **settings).exact


def test_the_cache_finds_fewer_expired_tuples_than_counts_of_slow_merges(tmp_path: Path) -> None:
    """Figure 19: a count that waits for a merge comes later than the one in the cache."""
    query = SELECTIVE.format("SLIDE INTERVAL '400' ON '800'")
    settings = {"query": query, "rows": 1250, "rate_tps": 4000, "batch_rows": 4, "network": SLOW}
    merged = verdict(tmp_path, {"window_state": "round_robin"}, **settings)
    often = {"publish_interval": "1 ms", "sync_interval": "1 ms"}
    cached = verdict(tmp_path, {"window_state": "cache"} | often, **settings)
    assert 0 < cached.expired < merged.expired


@pytest.mark.parametrize(
    ("way", "window", "silent"),
    [
        ("carried", "SLIDE INTERVAL '10' ON '20'", 0),
        ("carried", "SLIDE INTERVAL '10' ON '20'", 1),
        ("carried", "SLIDE INTERVAL '10 us' ON '20 us'", 0),
        ("own_slide", "SLIDE INTERVAL '10' ON '20'", 1),
        ("round_robin", "SLIDE INTERVAL '10' ON '20'", 1),
        ("cache", "SLIDE INTERVAL '10' ON '20'", 1),
    ],
)
def test_nothing_piles_up_while_one_stream_is_silent(
    way: str, window: str, silent: int, tmp_path: Path
) -> None:
    most = {}
    for silence in (200, 2000):  # 10 and 100 windows
        rng = np.random.default_rng(silence)
        ts = 1000 * np.arange(silence + 200)
        times = [ts, ts]
        times[silent] = np.concatenate([ts[:100], ts[-100:]])
        streams = tuple(
            WorldStream(
                at.tolist(), rng.random(len(at)).tolist(), rng.integers(0, 1000, len(at)).tolist()
            )
            for at in times
        )
        world = World(
            topology="spo_join",
            parameters={"window_state": way, "po_join_pes": 2, "merge_threshold": "slide"},
            query=TWO_WAY.format(window),
            streams=streams,
            network={"preset": "rack"},
            feeding={"batch_rows": 20, "rate_tps": 10_000},  # merges keep up
            segment_rows=1000,
        )
        found = world.run(tmp_path, inline_host=PeakHost)
        assert found.verdict.exact or not found.verdict.claims_exact, found.verdict
        most[silence] = found.state_bytes
    for actor, nbytes in most[2000].items():
        assert nbytes <= max(4_000, 2 * most[200][actor]), actor


@pytest.mark.parametrize(
    ("parameters", "window", "message"),
    [
        ({"merge_threshold": "61"}, BY_COUNT, "1 to 60 tuples are allowed"),
        ({"merge_threshold": "5 us"}, BY_COUNT, "1 to 60 tuples are allowed"),
        ({"merge_threshold": "61 us"}, BY_TIME, "1 to 60000 ns are allowed"),
        ({"merge_threshold": 5}, BY_TIME, "1 to 60000 ns are allowed"),
        ({"window_state": "cache"}, BY_TIME, "window_state = 'cache' counts tuples"),
        ({"window_state": "own_slide"}, BY_TIME, "'carried' is allowed"),
        ({"sync_interval": "1 ms"}, BY_COUNT, "sync_interval is how often"),
        (
            {"publish_interval": "1 ms", "window_state": "round_robin"},
            BY_COUNT,
            "set window_state = 'cache'",
        ),
    ],
)
def test_parameters_that_contradict_the_query_or_each_other_are_refused(
    parameters: dict[str, Any], window: str, message: str
) -> None:
    job = SPO_JOIN.sketch(parse_query(SELF_JOIN.format(window)))
    with pytest.raises(TopologyError, match=message):
        SPO_JOIN.build(job, make_parameters(SPO_JOIN, parameters))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"merge_threshold": "0"}, "merge_threshold = '0': must be 'slide', 'slide/pes', a number"),
        ({"merge_threshold": -3}, "and more than nothing"),
        ({"merge_threshold": "slides"}, "merge_threshold = 'slides': must be 'slide'"),
        ({"merge_threshold": "0 s"}, "a time such as '25 ms'"),
        ({"merge_threshold": True}, "valid string"),
        ({"window_state": "cache", "sync_interval": 0}, "sync_interval = 0: must be at least 1 ns"),
        ({"publish_interval": "0 ms"}, "publish_interval = '0 ms': must be at least 1 ns"),
        ({"publish_interval": "7"}, "must be a time such as '25 ms'"),
        ({"immutable": "css"}, "immutable = 'css': .*'po_join'"),
        ({"threads": 65}, "less than or equal to 64"),
        ({"threads": 0}, "greater than or equal to 1"),
        ({"mutable": "sets"}, "'bits' or 'hash'"),
        ({"window_state": "none"}, "'carried'"),
    ],
)
def test_values_that_cannot_be_are_refused_by_name(
    parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_parameters(SPO_JOIN, parameters)
