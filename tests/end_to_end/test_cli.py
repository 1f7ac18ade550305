"""The command line from a person's side: what it prints, writes and returns."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim as js
from joinsim.cli.command_line import main
from netsim.network import PRESETS
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.streams import SAMPLES
from scenarios.wall_clock import WALL_PARTS
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command, write_csv, write_prepared

QUERY = SELF_JOIN.format(window=WINDOW)

KEYS = {
    "scenario", "topology", "query", "streams", "backend", "clock", "seed", "digest", "tuples",
    "virtual_seconds", "wall_seconds", "wall_parts", "throughput_tps", "latency_ms", "network",
    "memory_bytes", "verdict",
}  # fmt: skip
KEYS_WITHIN = {
    "latency_ms": {"p50", "p75", "p95", "p99", "max"},
    "network": {"messages", "bytes"},
    "verdict": {
        "exact", "expected", "produced", "missing", "duplicate", "spurious", "expired", "wrong",
        "late",
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def taxi(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepare the taxi trips of the scenario spo-q3, once, and return the stream's folder."""
    folder = tmp_path_factory.mktemp("taxi")
    arguments = ["data", "prepare", str(SAMPLES / "yellow_taxi_sample.parquet")]
    arguments += ["--name", "NYC", "--time", "pickup_datetime", "--rows", "5000"]
    arguments += ["--field", "trip_distance", "--field", "fare_amount", "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["joinsim", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
    assert stopped.value.code == 0
    return folder / "NYC"


def smoke(data: Path) -> tuple[object, ...]:
    return ("run", "spo-q3", "--scale", "smoke", "--data", data)


def test_json_of_a_run_is_one_object_with_the_stable_keys(joinsim: Command, prepared: Path) -> None:
    said = joinsim("run", "--query", QUERY, "--data", prepared, "--json")
    assert said.code == 0
    answer = said.json
    assert answer.keys() >= KEYS
    assert answer["wall_parts"].keys() == WALL_PARTS.keys()
    assert answer["wall_seconds"] == pytest.approx(sum(answer["wall_parts"].values()))
    assert answer["wall_parts"]["report"] > 0
    for key, within in KEYS_WITHIN.items():
        assert answer[key].keys() >= within
    (stream,) = answer["streams"]
    assert stream == {
        "name": "s",
        "path": str(prepared / "segments"),
        "rows": 300,
        "rejected": 0,
    }


def test_the_wall_time_of_a_run_is_most_of_what_the_person_waits(
    joinsim: Command, prepared: Path
) -> None:
    shares = []
    for _ in range(3):  # of which other programs may disturb two
        began_s = time.monotonic()
        said = joinsim("run", "--query", QUERY, "--data", prepared, "--json")
        shares.append(said.json["wall_seconds"] / (time.monotonic() - began_s))
    assert 0.5 < max(shares) <= 1


def test_lists_and_tables_are_set_as_in_toml(joinsim: Command, prepared: Path) -> None:
    run = ("run", "--query", QUERY, "--data", prepared, "--json")
    answer = joinsim(*run, "--set", 'faults=[{kind = "loss", rate = 0.2}]').json
    assert answer["faults"]["counts"]["loss"] > 0
    assert answer["verdict"]["exact"] is True
    said = joinsim(*run, "--set", "faults=[{kind")
    assert said.code == 3
    assert "--set faults=[{kind: the value is not TOML" in said.err


def test_none_is_a_value_where_a_key_has_it_and_no_value_elsewhere(
    joinsim: Command, prepared: Path
) -> None:
    run = ("run", "--query", QUERY, "--data", prepared, "--json", "--set")
    lost = ("--set", 'faults=[{kind = "loss", rate = 0.5}]')
    answer = joinsim(*run, "network.transport=none", *lost).json
    assert answer["verdict"]["missing"] > 0, "nothing was sent again"
    assert joinsim(*run, "feeding.rate_tps=none").code == 0


def test_json_of_the_list_names_scenarios_and_topologies(joinsim: Command) -> None:
    answer = joinsim("list", "--json").json
    assert answer.keys() == {"scenarios", "topologies"}
    scenarios = {scenario["name"]: scenario for scenario in answer["scenarios"]}
    assert scenarios.keys() >= {"spo-q1", "spo-q2", "spo-q3"}
    topologies = {topology["name"]: topology for topology in answer["topologies"]}
    assert topologies["spo_join"]["exact"] is True
    assert "SPO-Join" in topologies["spo_join"]["paper"]
    for scenario in scenarios.values():
        assert scenario["figure"]
        assert set(scenario["topologies"]) <= topologies.keys()


def test_json_of_data_prepare_says_where_the_stream_is(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    write_csv(tmp_path / "raw.csv", ["2024-01-01,1,2.5", "2024-01-02,,1.0"])
    answer = joinsim("data", "prepare", "raw.csv", "--field", "a", "--json").json
    assert (answer["name"], answer["rows"], answer["rejected"]) == ("raw", 1, 1)
    assert len(pq.read_table(tmp_path / answer["path"])) == 1


def test_a_field_called_id_is_the_source_s_own(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    (tmp_path / "raw.csv").write_text("id,at\na,2024-01-01\nb,2024-01-02\n")
    answer = joinsim("data", "prepare", "raw.csv", "--field", "id", "--json").json
    assert answer["rows"] == 2
    run = js.run(
        f"SELECT raw.id1 FROM raw WHERE raw.id1 != raw.id2 WINDOW AS {WINDOW}",
        {"raw": tmp_path / answer["path"].removesuffix("/segments")},
    )
    assert run.joined.to_pylist() == [{"raw.id1": "b"}]


def test_the_demo_runs_on_ray_and_inline_with_equal_digests(
    taxi: Path, ray_running: None, joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = scenario_files.load

    def small(name: str, *, scale: str = "smoke") -> RunConfig:
        streams = [{"name": "NYC", "files": [str(taxi)]}]
        return scenario_files.change(load(name, scale="smoke"), {"streams": streams})

    monkeypatch.setattr(scenario_files, "load", small)
    said = joinsim("demo", "--json")
    assert said.code == 0
    answer = said.json
    assert answer["digests_equal"] is True
    assert [run["backend"] for run in answer["runs"]] == ["ray", "inline"]
    ray, inline = answer["runs"]
    assert ray["digest"] == inline["digest"]
    assert ray["verdict"] == inline["verdict"]
    assert inline["verdict"]["exact"] is True
    assert inline["verdict"]["expected"] > 0
    shown = joinsim("demo")
    assert shown.code == 0
    assert "digests equal" in shown.out


def test_pairs_of_a_self_join_are_those_of_a_plain_theta_join(
    taxi: Path, joinsim: Command, tmp_path: Path
) -> None:
    said = joinsim(*smoke(taxi), "--pairs", "--out", "run", "--json")
    assert said.code == 0
    results = tmp_path / "run" / "results.parquet"
    assert pq.read_schema(results).names == ["probe_stream", "probe_id", "match_id"]
    path = said.json["streams"][0]["path"]
    # The window of 1000 tuples slides by 200, so it reaches back 800 from the last slide's edge.
    expected = f"""
        SELECT 0 AS probe_stream, n.id AS probe_id, e.id AS match_id
        FROM '{path}/*.parquet' n JOIN '{path}/*.parquet' e
        ON e.id < n.id AND e.id >= (n.id // 200) * 200 - 800
        AND n.trip_distance > e.trip_distance AND n.fare_amount < e.fare_amount
        WHERE n.id < 5000"""
    assert _differing(results, expected) == 0
    assert pq.read_metadata(results).num_rows == said.json["verdict"]["expected"] > 0


def test_a_file_without_times_is_joined_in_the_order_of_its_rows(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    values = np.random.default_rng(3).integers(0, 50, 200)
    (tmp_path / "s.csv").write_text("\n".join(["a", *map(str, values)]) + "\n")
    query = f"SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS {WINDOW}"
    command = ("run", "--query", query, "--data", "s.csv", "--pairs", "--out", "run", "--json")
    said = joinsim(*command)
    assert said.code == 3
    assert "or rows, the order of the rows (its columns: a)" in said.err
    said = joinsim(*command, "--time", "rows")
    assert said.code == 0, said.err
    table = {"ts": -np.arange(200), "a": values}
    run = js.run(query, {"s": table}, time="rows")
    order = [(name, "ascending") for name in run.pairs.column_names]
    written = pq.read_table(tmp_path / "run" / "results.parquet")
    assert written.sort_by(order).equals(run.pairs.sort_by(order))
    assert run.verdict.exact
    assert "time={'s': 'rows'}" in run.replay


def test_pairs_of_a_two_way_join_are_those_of_a_plain_theta_join(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    rng = np.random.default_rng(3)
    for name in ("left", "right"):
        lines = [
            f"2024-01-01 00:{s // 60:02}:{s % 60:02},{rng.integers(0, 20)},{rng.random():.2f}"
            for s in rng.integers(0, 200, 250)
        ]
        write_csv(tmp_path / f"{name}.csv", lines)
    query = f"SELECT R.id, S.id FROM R, S WHERE R.a < S.a AND R.b > S.b WINDOW AS {WINDOW}"
    data = ("--data", "left.csv", "--data", "right.csv")
    said = joinsim("run", "--query", query, *data, "--pairs", "--out", "run", "--json")
    assert said.code == 0
    r, s = (tmp_path / stream["path"] / "*.parquet" for stream in said.json["streams"])
    # Tuples arrive by event time, those of R first; k are the other stream's that came before.
    expected = f"""
        WITH r AS (SELECT *, (SELECT count(*) FROM '{s}' o WHERE o.ts < i.ts) AS k FROM '{r}' i),
        s AS (SELECT *, (SELECT count(*) FROM '{r}' o WHERE o.ts <= i.ts) AS k FROM '{s}' i)
        SELECT 0 AS probe_stream, r.id AS probe_id, s.id AS match_id FROM r JOIN s
        ON r.a < s.a AND r.b > s.b AND s.id < r.k AND s.id >= (r.k // 20) * 20 - 80
        UNION ALL SELECT 1, s.id, r.id FROM r JOIN s
        ON r.a < s.a AND r.b > s.b AND r.id < s.k AND r.id >= (s.k // 20) * 20 - 80"""
    assert _differing(tmp_path / "run" / "results.parquet", expected) == 0
    assert said.json["verdict"]["expected"] > 0


def _differing(results: Path, expected: str) -> int:
    """Return how many pairs, each as often as it occurs, only one of the two sides has."""
    found = f"SELECT probe_stream, probe_id, match_id FROM '{results}'"
    counted = duckdb.execute(
        f"SELECT (SELECT count(*) FROM ({found} EXCEPT ALL ({expected})))"
        f" + (SELECT count(*) FROM (({expected}) EXCEPT ALL {found}))"
    ).fetchall()
    return int(counted[0][0])


@pytest.mark.parametrize("threshold", ["slide", "slide/pes"])
def test_every_merge_threshold_is_exact(threshold: str, joinsim: Command, prepared: Path) -> None:
    arguments = ("run", "--query", QUERY, "--data", prepared, "--json")
    said = joinsim(*arguments, "--set", f"merge_threshold={threshold}")
    assert said.code == 0
    assert said.json["verdict"]["exact"] is True


def test_every_network_gives_the_same_answer_and_a_slow_one_takes_longer(
    joinsim: Command, prepared: Path
) -> None:
    runs = {}
    for preset in PRESETS:
        arguments = ("run", "--query", QUERY, "--data", prepared, "--json")
        said = joinsim(*arguments, "--set", f"network.preset={preset}")
        assert said.code == 0, preset
        runs[preset] = said.json
    assert len({run["verdict"]["produced"] for run in runs.values()}) == 1
    assert runs["wan"]["virtual_seconds"] > runs["data-centre"]["virtual_seconds"]
    assert runs["data-centre"]["virtual_seconds"] > runs["rack"]["virtual_seconds"]


def test_the_seed_decides_what_is_drawn_and_nothing_else_does(
    joinsim: Command, prepared: Path
) -> None:
    drawn = ("--set", "network.preset=data-centre")  # its latency is
    arguments = ("run", "--query", QUERY, "--data", prepared, "--json", *drawn)
    first, again, other = (joinsim(*arguments, "--seed", seed).json for seed in (5, 5, 6))
    assert (first["seed"], other["seed"]) == (5, 6)
    assert first["digest"] == again["digest"] != other["digest"]
    assert first["verdict"] == other["verdict"]


def test_a_run_file_says_what_options_say(joinsim: Command, prepared: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(
        f'query = """{QUERY}"""\nseed = 9\nrows = 200\nparameters = {{ po_join_pes = 2 }}\n'
        f'[network]\npreset = "wan"\nlatency = "3 ms"\n[[streams]]\nfiles = ["{prepared}"]\n'
    )
    from_file = joinsim("run", "mine.toml", "--json")
    assert from_file.code == 0
    settings = ("po_join_pes=2", "network.preset=wan", "network.latency=3 ms")
    by_options = joinsim(
        "run", "--query", QUERY, "--data", prepared, "--seed", 9, "--rows", 200, "--json",
        *(word for setting in settings for word in ("--set", setting)),
    )  # fmt: skip
    assert from_file.json["scenario"] == "mine"
    assert from_file.json["tuples"] == 200
    assert from_file.json["digest"] == by_options.json["digest"]


def test_a_run_directory_holds_the_run_and_latest_links_it(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    arguments = ("run", "--query", QUERY, "--data", prepared)
    joinsim(*arguments)
    first = (tmp_path / "runs" / "latest").resolve()
    answer = joinsim(*arguments, "--seed", 3, "--json").json
    latest = (tmp_path / "runs" / "latest").resolve()
    assert latest != first
    assert latest.parent == tmp_path / "runs" / answer["scenario"]
    assert latest.name.endswith("-s3")
    assert {path.name for path in latest.iterdir()} >= {"run.json", "trace.parquet", "report.html"}
    written = json.loads((latest / "run.json").read_text())
    assert {key: written[key] for key in answer} == answer
    assert not (latest / "results.parquet").exists()


def test_a_run_directory_used_again_holds_the_last_run_alone(
    joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    arguments = ("run", "--query", QUERY, "--data", prepared, "--out", "run")
    assert joinsim(*arguments, "--pairs").code == 0
    assert (tmp_path / "run" / "results.parquet").exists()
    assert joinsim(*arguments).code == 0
    assert not (tmp_path / "run" / "results.parquet").exists()
    assert not (tmp_path / "runs").exists()


def test_the_last_line_replays_the_run(joinsim: Command, prepared: Path, tmp_path: Path) -> None:
    said = joinsim("run", "--query", QUERY, "--data", prepared, "--out", "run", "--rows", 250)
    assert said.code == 0
    last = said.out.strip().splitlines()[-1]
    assert last.startswith("replay: joinsim run ")
    digest = json.loads((tmp_path / "run" / "run.json").read_text())["digest"]
    assert digest in said.out
    command = shlex.split(last.removeprefix("replay: joinsim "))
    assert "--seed" in command
    assert joinsim(*command, "--json").json["digest"] == digest


@pytest.mark.parametrize("width", [80, 200])
def test_what_a_run_prints_fits_the_terminal(
    width: int, joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = joinsim("run", "--query", QUERY, "--data", prepared, "--out", tmp_path / "run").out
    # A path is never broken, and what repeats the run is one line, to be copied.
    whole = (str(prepared), str(tmp_path), "replay: ")
    lines = [line for line in said.splitlines() if not any(word in line for word in whole)]
    assert max(map(len, lines)) <= width
    assert "linger=5 ms" in said


def test_a_query_without_any_match_has_an_unknown_verdict(joinsim: Command, tmp_path: Path) -> None:
    rising = np.arange(100)
    write_prepared(tmp_path / "s", {"a": -rising, "b": rising}, ts=rising)
    said = joinsim("run", "--query", QUERY, "--data", "s")
    assert said.code == 2
    assert "verdict UNKNOWN (no pair was expected and none came out)" in said.out
    assert joinsim("run", "--query", QUERY, "--data", "s", "--json").code == 2


def test_an_option_with_an_equals_sign_knows_the_home_folder(
    joinsim: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell puts it there for ``~`` at the beginning of a word alone."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    pq.write_table(pa.table({"x": np.arange(9) % 4}), home / "T.parquet")
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')"
    said = joinsim(
        "run", query, "--topology=nested_loop", "--time=rows", "--data=~/T.parquet",
        "--out=~/run", "--figure=~/run.svg",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert (home / "run/run.json").is_file()
    assert (home / "run.svg").is_file()
    assert not (tmp_path / "~").exists()
