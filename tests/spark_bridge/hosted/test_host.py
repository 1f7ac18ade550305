"""Operators inside Spark: exact, counted or listed, and clear about what they cannot do.

A checkpoint is claimed for one query, and for another refused with what differs. Workers rehearse a
query before it runs, and what goes wrong there is ignored.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from actors.protocol import ActorSpec, Context, Message
from actors.source import ARRIVALS, TakesArrivals
from joins.batch import Schema
from joins.errors import DataError
from joins.queries.parser import parse_query
from spark_bridge.engines import EngineUnavailable, SparkFailed
from spark_bridge.hosted.host import (
    claim_checkpoint,
    cut_into_stages,
    describe_query,
    rehearsing,
    run_hosted,
)
from spark_bridge.hosted.stage import HostedQuery
from spark_bridge.sql import native
from spark_bridge.sql.native import expected_pairs, run_batch, run_streaming
from tests.spark_bridge.hosted.hosted_jobs import (
    INTERVAL,
    SELF,
    WINDOW,
    hosted,
    pairs_by_numpy,
    streams,
)
from topologies import TOPOLOGIES


@pytest.mark.parametrize(
    ("name", "shards"),
    [
        ("kp_oij", [["source.A.0 emitter.A.0", "source.B.0 emitter.B.0"], 4]),
        ("split_join", [["source router"], 4]),
        ("spo_join", [["source router"], 2, 4, 4]),
        ("nested_loop", [["source router joiner.0"]]),
    ],
)
def test_stages_are_what_the_topology_partitions_by(name: str, shards: list[Any]) -> None:
    topology = TOPOLOGIES[name]
    graph = topology.build(topology.example(), topology.parameters_type())
    stages = cut_into_stages(graph.specs, graph.wiring)
    assert stages.folded is None
    sizes = [[" ".join(actors) for actors in stages.actors[0]], *map(len, stages.actors[1:])]
    assert sizes == shards


@pytest.mark.parametrize("name", ["panjoin", "hp_oij"])
def test_a_graph_with_feedback_is_folded_and_says_so(name: str) -> None:
    topology = TOPOLOGIES[name]
    graph = topology.build(topology.example(), topology.parameters_type())
    stages = cut_into_stages(graph.specs, graph.wiring)
    assert [len(shards) for shards in stages.actors] == [1]
    assert "in a circle" in (stages.folded or "")


def test_an_interval_join_in_two_stages(spark: Any, tmp_path: Path) -> None:
    query, files = hosted("kp_oij", INTERVAL, tmp_path, rows=500, run_rows=250, replicas=3)
    run = run_hosted(query, tmp_path / "arrivals", tmp_path / "run", spark=spark)
    found = spark.read.parquet(str(tmp_path / "run" / "found")).collect()
    assert sorted(tuple(row) for row in found) == pairs_by_numpy(INTERVAL, files)
    assert (sum(rows for rows, _ in run.triggers), run.note, len(run.triggers)) == (1000, None, 4)
    assert run.shuffled_bytes
    native = run_streaming(parse_query(INTERVAL), files, tmp_path / "native", spark=spark)
    assert native.totals == run.totals


def test_a_folded_graph_counts_what_sql_counts(spark: Any, tmp_path: Path) -> None:
    query, files = hosted("panjoin", SELF, tmp_path, rows=400, run_rows=200, pairs=False)
    run = run_hosted(query, tmp_path / "arrivals", tmp_path / "run", spark=spark)
    assert run.note
    assert "circle" in run.note
    native = run_batch(parse_query(SELF), files, spark=spark)
    assert run.totals == native.totals
    assert run.totals.pairs > 1000


def test_results_of_three_streams_are_not_written(spark: Any, tmp_path: Path) -> None:
    topology = TOPOLOGIES["semijoin"]
    job = topology.example()
    graph = topology.build(job, topology.parameters_type())
    schemas = tuple(file.schema for file in job.files)
    query = HostedQuery(text="", schemas=schemas, specs=graph.specs, wiring=graph.wiring)
    with pytest.raises(DataError, match="results of 3 streams are counted: leave pairs out"):
        run_hosted(query, tmp_path, tmp_path / "run", spark=spark)


def test_a_checkpoint_of_another_query_is_refused(spark: Any, tmp_path: Path) -> None:
    checkpoint = tmp_path / "run" / "checkpoint"
    query, _ = hosted("nested_loop", SELF, tmp_path / "a", rows=10, run_rows=10)
    run_hosted(query, tmp_path / "a" / "arrivals", tmp_path / "run", spark=spark)
    other, _ = hosted("nested_loop", WINDOW, tmp_path / "b", rows=10, run_rows=10)
    with pytest.raises(DataError, match=f"{checkpoint} is the checkpoint of another query"):
        run_hosted(other, tmp_path / "b" / "arrivals", tmp_path / "run", spark=spark)


def test_a_checkpoint_of_another_log_is_refused(spark: Any, tmp_path: Path) -> None:
    """Spark would take the log's tuples as those that follow."""
    query, _ = hosted("nested_loop", SELF, tmp_path / "a", rows=10, run_rows=10)
    run_hosted(query, tmp_path / "a" / "arrivals", tmp_path / "run", spark=spark)
    hosted("nested_loop", SELF, tmp_path / "b", rows=20, run_rows=10)
    with pytest.raises(DataError, match=r"its arrivals is .*/a/arrivals, here it is .*/b/arrivals"):
        run_hosted(query, tmp_path / "b" / "arrivals", tmp_path / "run", spark=spark)


def test_of_an_older_spark_what_is_needed_is_named(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query, _ = hosted("nested_loop", SELF, tmp_path, rows=10, run_rows=10)
    monkeypatch.setattr("pyspark.__version__", "4.0.1")
    with pytest.raises(EngineUnavailable, match=r"Spark 4\.0\.1, .* run in Spark 4\.1 or newer"):
        run_hosted(query, tmp_path / "arrivals", tmp_path / "run", spark=spark)


def test_native_streaming_without_a_key_fails_in_sparks_words(spark: Any, tmp_path: Path) -> None:
    query = parse_query(INTERVAL.replace("R.y = S.y AND ", ""))
    files = streams(query, tmp_path, rows=10)
    with pytest.raises(SparkFailed, match="join without equality predicate is not supported"):
        run_streaming(query, files, tmp_path / "run", spark=spark)


KEYED = "SELECT * FROM T WHERE T.y1 = T.y2 AND T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '40' ON '80')"


@pytest.mark.parametrize(("text", "bucketed"), [(KEYED, True), (INTERVAL, False)])
def test_native_streaming_puts_windows_by_count_into_buckets_where_there_is_a_key(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, bucketed: bool
) -> None:
    asked = []

    def spy(*arguments: Any, **said: Any) -> Any:
        asked.append(said["bucketed"])
        return expected_pairs(*arguments, **said)

    monkeypatch.setattr(native, "expected_pairs", spy)
    query = parse_query(text)
    files = streams(query, tmp_path, rows=400)
    run = run_streaming(query, files, tmp_path / "run", spark=spark)
    assert asked == [bucketed]
    assert run.totals == run_batch(query, files, spark=spark).totals
    assert run.totals.pairs > 500


DESCRIPTION: dict[str, Any] = {
    "query": "Q",
    "actors": {"a": ["A", {"replicas": 2}], "b": ["B", {"batch": "x" * 300, "pairs": True}]},
    "partitions": 2,
}


def claim(folder: Path, description: dict[str, Any]) -> None:
    claim_checkpoint(folder / "checkpoint", description, results=folder / "found")


def test_the_same_query_goes_on(tmp_path: Path) -> None:
    claim(tmp_path, DESCRIPTION)
    before = (tmp_path / "checkpoint" / "joinsim.json").read_text()
    claim(tmp_path, DESCRIPTION)
    assert (tmp_path / "checkpoint" / "joinsim.json").read_text() == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"query": "R"}, "its query is Q, here it is R;"),
        (
            {"actors": DESCRIPTION["actors"] | {"b": ["B", {"batch": "x" * 300, "pairs": False}]}},
            "its actors.b.1.pairs is true, here it is false;",
        ),
        (
            {"actors": {"a": ["A", {"replicas": 2}]}},
            r'its actors.b is \["B", .*\.\.\., here it is null;',
        ),
        (
            {"actors": {"a": ["A"], "b": DESCRIPTION["actors"]["b"]}},
            "its actors.a.1 is .*, here it is nu",
        ),
    ],
)
def test_of_another_query_the_difference_is_named(
    tmp_path: Path, changed: dict[str, object], message: str
) -> None:
    claim(tmp_path, DESCRIPTION)
    with pytest.raises(DataError, match=message):
        claim(tmp_path, DESCRIPTION | changed)


def test_results_of_a_query_whose_checkpoint_was_deleted_are_not_added_to(tmp_path: Path) -> None:
    claim(tmp_path, DESCRIPTION)
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "000001-0-0.parquet").touch()
    claim(tmp_path, DESCRIPTION)
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(DataError, match="found has results of a query whose checkpoint is"):
        claim(tmp_path, DESCRIPTION | {"query": "R"})
    assert not (tmp_path / "checkpoint").exists()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="is no checkpoint of joinsim's"):
        claim_checkpoint(tmp_path, DESCRIPTION, results=tmp_path / "found")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def described(folder: Path, topology: str, **settings: Any) -> dict[str, Any]:
    query, _ = hosted(topology, SELF, folder, rows=10, run_rows=10, **settings)
    stages = cut_into_stages(query.specs, query.wiring)
    return describe_query(query, stages.actors, 2, folder / "arrivals")


@pytest.mark.parametrize(
    ("topology", "first", "second", "message"),
    [
        (
            "chain_index",
            {"sub_index": 5},
            {"sub_index": 6},
            r"actors\.T_unit\.0\.1\.options\.length is 5, here it is 6",
        ),
        (
            "spo_join",
            {"merge_threshold": "10"},
            {"merge_threshold": "20"},
            r"actors\.router\.1\.threshold\.length is 10, here it is 20",
        ),
        (
            "spo_join",
            {"merge_threshold": "slide"},
            {"merge_threshold": "slide", "window_state": "own_slide"},
            r"actors\.po_join\.0\.1\.window\.0 is .*\.Carried, here it is .*\.OwnSlide",
        ),
    ],
)
def test_the_same_actors_with_other_settings_are_another_query(
    tmp_path: Path,
    topology: str,
    first: dict[str, object],
    second: dict[str, object],
    message: str,
) -> None:
    """Records, options and classes tell them apart, whatever the arguments' types."""
    claim(tmp_path, described(tmp_path, topology, **first))
    claim(tmp_path, described(tmp_path, topology, **first))
    with pytest.raises(DataError, match=message):
        claim(tmp_path, described(tmp_path, topology, **second))


class Noting(TakesArrivals):
    """Notes its process, and how many tuples it is given, as a line of a file."""

    state = ()

    def __init__(self, *, path: Path) -> None:
        self._path = path

    def receive(self, message: Message, context: Context) -> None:
        """Note what arrives."""
        if message.port == ARRIVALS:
            with self._path.open("a") as file:
                file.write(f"{os.getpid()} {len(message.payload.arrivals)}\n")


def _noting(path: Path) -> HostedQuery:
    return HostedQuery(
        text="",
        schemas=(Schema(stream="T", fields={}),),
        specs={"noting": ActorSpec(actor=Noting, arguments={"path": path})},
        wiring={"noting": {}},
    )


def test_workers_run_the_first_tuples_beside_the_query(spark: Any, tmp_path: Path) -> None:
    hosted("nested_loop", SELF, tmp_path, rows=300, run_rows=150)
    run_hosted(_noting(tmp_path / "noted"), tmp_path / "arrivals", tmp_path / "run", spark=spark)
    noted = [line.split() for line in (tmp_path / "noted").read_text().splitlines()]
    assert sorted(rows for _, rows in noted) == ["150", "150", "96"]
    assert str(os.getpid()) not in {process for process, _ in noted}


@pytest.mark.parametrize("where", ["driver", "worker"])
def test_what_fails_in_a_rehearsal_is_left_to_the_query(
    spark: Any, tmp_path: Path, where: str
) -> None:
    def first_parcel() -> bytes:
        if where == "driver":
            raise OSError("no log")
        return b"no parcel"

    with rehearsing(_noting(tmp_path / "noted"), first_parcel, workers=1, spark=spark):
        pass
    assert not (tmp_path / "noted").exists()
    assert spark.range(9).count() == 9
