"""Whatever a person gets wrong, the command says what, where, and what is allowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import joinsim as js
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command, Said, write_csv, write_prepared

REPOSITORY = Path(__file__).resolve().parents[2]
MAIN = [sys.executable, "-c", "from joinsim.cli.command_line import main; main()"]

QUERY = SELF_JOIN.format(window=WINDOW)
TWO_WAY = f"SELECT s.id FROM s, r WHERE s.a > r.a AND s.b < r.b WINDOW AS {WINDOW}"
THREE_WAY = f"SELECT s.id FROM s, r, q WHERE s.a > r.a AND s.b < q.b WINDOW AS {WINDOW}"
RUN = ("run", "--query", QUERY, "--data", "{data}")


def refused(said: Said, *expected: str) -> None:
    """Hold that a command stopped with one clear message on stderr and nothing on stdout."""
    assert said.code == 3
    assert said.out == ""
    assert "Traceback" not in said.err
    assert "traceback is in" not in said.err
    assert said.err.count("joinsim: ") == 1
    for words in expected:
        assert words in said.err


def _windowed(window: str) -> tuple[str, ...]:
    return ("run", "--query", SELF_JOIN.format(window=window), "--data", "{data}")


def _set(setting: str) -> tuple[str, ...]:
    return (*RUN, "--set", setting)


MISTAKES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "unknown topology": ((*RUN, "--topology", "spojoin"), ("'spojoin'", "mean 'spo_join'?")),
    "unknown scenario": (("run", "spo-q33"), ("'spo-q33'", "mean 'spo-q3'?", "spo-q1")),
    "scenario without a name": (("run", ""), ("no scenario is called ''", "spo-q1")),
    "unknown parameter": (_set("po_join_pe=3"), ("po_join_pe:", "mean 'po_join_pes'?")),
    "unknown key": (_set("network.latncy=3 ms"), ("network.latncy", "mean 'latency'?")),
    "unknown section": (_set("netwrk.latency=3 ms"), ("netwrk", "mean 'network'?")),
    "unknown preset": (_set("network.preset=lan"), ("network.preset", "'lan'", "'infiniband'")),
    "unknown profile": (_set("profile=fast"), ("profile", "'fast'", "default")),
    "time of a prepared stream": (
        (*RUN, "--time", "a"),
        ("--time a", "is a prepared stream", "raw file"),
    ),
    "time of two streams": (
        (*RUN, "--time", "a", "--time", "b"),
        ("--time a and --time b", "--time s=a"),
    ),
    "time of an unknown stream": ((*RUN, "--time", "r=a"), ("no stream r", "it has s")),
    "no value": (_set("po_join_pes"), ("po_join_pes", "KEY=VALUE")),
    "no PE": (_set("po_join_pes=0"), ("po_join_pes = '0'", "greater than or equal to 1")),
    "PEs in words": (_set("po_join_pes=two"), ("po_join_pes = 'two'", "integer")),
    "negative latency": (
        _set("network.latency=-1 ms"),
        ("network.latency = '-1 ms'", "at least 0"),
    ),
    "weight for latency": (_set("network.latency=25 kg"), ("network.latency", "'25 ms'")),
    "no unit": (_set("network.latency=0.5"), ("network.latency", "'25 ms'")),
    "infinite latency": (_set("network.latency=inf s"), ("network.latency", "'25 ms'")),
    "latency not a number": (_set("network.latency=nan s"), ("network.latency", "'25 ms'")),
    "endless latency": (_set("network.latency=1e30 s"), ("network.latency", "at most a day")),
    "time for bandwidth": (_set("network.bandwidth=25 ms"), ("network.bandwidth", "'1 Mbps'")),
    "slide too long": (
        _windowed("(SLIDE INTERVAL '200' ON '100')"),
        ("slide of 200 tuples is longer", "100 tuples at the most"),
    ),
    "not whole slides": (
        _windowed("(SLIDE INTERVAL '30' ON '100')"),
        ("whole number of slides of 30 tuples", "90 or 120"),
    ),
    "unbound": (_windowed("(SLIDE INTERVAL 'D' ON 'W')"), ("'D' has no value", "--set bind.D=")),
    "nothing to bind": (_set("bind.Z=3"), ("'Z'", "SLIDE INTERVAL '20' ON '100'")),
    "negative seed": ((*RUN, "--seed", "-1"), ("seed = -1", "equal to 0")),
    "huge seed": ((*RUN, "--seed", str(2**40)), ("seed = 1099511627776", "4294967295")),
    "no rows": ((*RUN, "--rows", "0"), ("rows = 0", "greater than or equal to 1")),
    "no process": ((*RUN, "--processes", "0"), ("processes = '0'", "greater than or equal to 1")),
    "dashes": ((*RUN, "--processes=--5"), ("processes = '--5'", "greater than or equal to 1")),
    "no data": (("run", "--query", QUERY), ("a query needs --data",)),
    "nothing to run": (("run",), ("joinsim list", "--query", "--data")),
    "scenario and query": (("run", "spo-q3", "--query", QUERY), ("either a scenario", "--query")),
    "too many files": ((*RUN, "--data", "{data}"), ("1 stream(s), s,", "given for 2")),
    "too few files": (
        ("run", "--query", TWO_WAY, "--data", "{data}"),
        ("2 stream(s), s, r,", "given for 1"),
    ),
    "three streams": (
        ("run", "--topology", "spo_join", "--query", THREE_WAY, *["--data", "{data}"] * 3),
        ("has 3: s, r, q", "one stream with itself or two", "These can evaluate it: semijoin"),
    ),
    "file not there": (
        ("run", "--query", QUERY, "--data", "nope.csv"),
        ("no nope.csv", "another file"),
    ),
    "field not there": (
        ("run", "--query", QUERY.replace("s.a", "s.c"), "--data", "{data}"),
        ("'c'", "it has a, b"),
    ),
    "field spelt wrong": (
        ("run", "--query", QUERY.replace("s.a", "s.aa"), "--data", "{data}"),
        ("'aa'", "did you mean 'a'? it has a, b"),
    ),
    "out below a file": ((*RUN, "--out", "file/run"), ("file/run", "Not a directory")),
    "out in proc": ((*RUN, "--out", "/proc/run"), ("cannot write to /proc/run",)),
    "out is taken": ((*RUN, "--out", "full"), ("full holds something that is not a run",)),
    "address of an inline run": (
        (*RUN, "--backend", "inline", "--address", "127.0.0.1:1"),
        ("address 127.0.0.1:1", "backend ray"),
    ),
    "address without a port": (
        (*RUN, "--backend", "ray", "--address", "nowhere"),
        ("address nowhere", "HOST:PORT"),
    ),
    "nothing at the address": (
        (*RUN, "--backend", "ray", "--address", "127.0.0.1:1"),
        ("address 127.0.0.1:1", "nothing answers", "ray start --head"),
    ),
    "address with an empty name": (
        (*RUN, "--backend", "ray", "--address", "a..b:6379"),
        ("address a..b:6379", "nothing answers"),
    ),
    "figure of other letters": (
        (*RUN, "--figure", os.fsdecode(b"r\xff.svg")),
        (".svg", "not in UTF-8"),
    ),
    "run file not there": (("run", "none.toml"), ("no file none.toml",)),
    "wrong key in a run file": (("run", "key.toml"), ("key.toml", "querry", "mean 'query'?")),
    "wrong key in a section": (
        ("run", "net.toml"),
        ("net.toml", "network.bandwidht", "'bandwidth'?"),
    ),
    "wrong key in a list": (
        ("run", "list.toml"),
        ("list.toml", "streams.0.file:", "mean 'files'?"),
    ),
    "wrong type": (("run", "type.toml"), ("type.toml", "rows = 'many'", "integer")),
    "not TOML": (("run", "broken.toml"), ("broken.toml is not TOML", "line 1")),
    "empty file": (("run", "--query", QUERY, "--data", "empty.csv"), ("empty.csv is empty",)),
    "header alone": (("run", "--query", QUERY, "--data", "header.csv"), ("header.csv", "no rows")),
}

FILES = {
    "file": "",
    "full/other.txt": "",
    "key.toml": 'querry = "x"\n',
    "net.toml": 'query = "x"\nstreams = []\n[network]\nbandwidht = "1 Mbps"\n',
    "list.toml": 'query = "x"\nstreams = [{ file = "x" }]\n',
    "type.toml": 'query = "x"\nrows = "many"\nstreams = []\n',
    "broken.toml": "query =\n",
    "empty.csv": "",
    "header.csv": "t,a,b\n",
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_message_that_names_it_and_what_is_allowed(
    mistake: str, joinsim: Command, prepared: Path, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    arguments, expected = MISTAKES[mistake]
    said = joinsim(*(argument.format(data=prepared) for argument in arguments), "--json")
    refused(said, *expected)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "arguments", [("rum",), ("run", "--scal", "smoke"), ("run", "spo-q3", "--scale", "huge")]
)
def test_a_wrong_word_on_the_command_line_is_not_taken_for_an_unknown_verdict(
    arguments: tuple[str, ...], joinsim: Command
) -> None:
    said = joinsim(*arguments)
    assert (said.code, said.out) == (3, "")
    assert arguments[-1] in said.err or "--scale" in said.err


def test_a_syntax_error_shows_the_line_and_points_at_the_character(
    joinsim: Command, prepared: Path
) -> None:
    text = QUERY.replace("WHERE", "WHER")
    said = joinsim("run", "--query", text, "--data", prepared)
    refused(said, "character 20 of the query")
    shown, pointer = said.err.splitlines()[-2:]
    assert text in shown
    assert shown[pointer.index("^")] == "W"
    assert pointer.index("^") - shown.index(text) == 19


def test_control_characters_of_a_name_are_shown_and_not_obeyed(
    joinsim: Command, tmp_path: Path
) -> None:
    name = "a\x1b[31m\x07\x7f"
    table = {"ts": list(range(30)), name: [number % 3 for number in range(30)]}
    field = f'"{name}"'
    query = f"SELECT * FROM R, S WHERE R.{field} = S.{field} WINDOW AS {WINDOW}"
    js.run(query, {"R": table, "S": table}, out=tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "a␛[31m␇␡" in page
    assert not {"\x1b", "\x07", "\x7f"} & set(page)
    write_prepared(tmp_path / "s", {"a": np.arange(9), "b\x1b": np.arange(9)}, ts=np.arange(9))
    said = joinsim("run", "--query", QUERY, "--data", tmp_path / "s")
    refused(said, "b␛")
    assert "\x1b" not in said.err


def test_a_column_that_raw_data_lack_is_named_with_the_columns_there_are(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    write_csv(tmp_path / "raw.csv", ["2024-01-01 00:00:00,1,2.5"])
    query = QUERY.replace("s.a", "s.speed")
    said = joinsim("run", "--query", query, "--data", "raw.csv", "--json")
    refused(said, "'speed'", "raw.csv", "t, a, b")


def _lines(rows: int, rng: np.random.Generator) -> list[str]:
    return [
        f"2024-01-01 00:{row // 60:02}:{row % 60:02},{rng.integers(0, 50)},{rng.random():.3f}"
        for row in range(rows)
    ]


def _model(rows: list[tuple[int, float]]) -> set[tuple[int, int, int]]:
    """Return the pairs of QUERY over *rows*, by its definition."""
    return {
        (0, i, j)
        for i, (a, b) in enumerate(rows)
        for j in range(max(0, i // 20 * 20 - 80), i)
        if a > rows[j][0] and b < rows[j][1]
    }


def _pairs(run: Path) -> set[tuple[int, int, int]]:
    columns = pq.read_table(run / "results.parquet").to_pydict()
    return set(zip(columns["probe_stream"], columns["probe_id"], columns["match_id"], strict=True))


def test_rows_without_valid_fields_are_set_aside_with_reasons_and_the_rest_is_exact(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    lines = _lines(120, np.random.default_rng(1))
    dirt = {3: (",1.0", "a: null"), 5: ("3,NaN", "b: NaN"), 7: ("3,inf", "b: infinite")}
    dirt[9] = (f"{10**23},2.0", "a: overflows bigint")
    for row, (values, _) in dirt.items():
        lines[row] = f"2024-01-01 00:00:{row:02},{values}"
    write_csv(tmp_path / "dirty.csv", lines)
    arguments = ("run", "--query", QUERY, "--data", "dirty.csv", "--pairs", "--out", "run")
    said = joinsim(*arguments)
    assert said.code == 0, said.err
    (rejected,) = tmp_path.glob("prepared/*/s/rejected")
    assert str(rejected.relative_to(tmp_path)) in said.out
    rows = pq.read_table(rejected).to_pylist()
    expected = [str(row) for row in rows]
    assert len(expected) == len(dirt)
    for _, reason in dirt.values():
        assert sum(reason in row for row in expected) == 1
        assert f"1 x {reason}" in said.out
    kept = [line.split(",") for row, line in enumerate(lines) if row not in dirt]
    assert _pairs(tmp_path / "run") == _model([(int(a), float(b)) for _, a, b in kept])
    again = joinsim(*arguments, "--json").json
    assert again["streams"][0]["rejected"] == 4
    assert again["verdict"]["exact"] is True


def test_unsorted_rows_and_repeated_times_are_taken_in_time_order_and_noted(
    spark: object, joinsim: Command, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    lines = _lines(100, rng)
    lines += [f"{line.split(',')[0]},7,0.5" for line in lines[:10]]
    lines = [lines[place] for place in rng.permutation(len(lines))]
    write_csv(tmp_path / "unsorted.csv", lines)
    said = joinsim("run", "--query", QUERY, "--data", "unsorted.csv", "--pairs", "--out", "run")
    assert said.code == 0, said.err
    assert "10 timestamps repeated" in said.out
    assert "order" in said.out
    ordered = [line.split(",") for line in sorted(lines, key=lambda line: line.split(",")[0])]
    assert _pairs(tmp_path / "run") == _model([(int(a), float(b)) for _, a, b in ordered])


def test_a_stream_of_one_tuple_runs_and_its_verdict_is_unknown(
    joinsim: Command, tmp_path: Path
) -> None:
    write_prepared(tmp_path / "one", {"a": np.ones(1), "b": np.ones(1)}, ts=np.zeros(1))
    said = joinsim("run", "--query", QUERY, "--data", "one", "--json")
    assert said.code == 2
    assert said.json["tuples"] == 1
    assert said.json["verdict"]["expected"] == 0


def test_without_java_the_message_says_what_to_install(tmp_path: Path) -> None:
    write_csv(tmp_path / "raw.csv", ["2024-01-01 00:00:00,1,2.5"])
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    environment |= {"PATH": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        [*MAIN, "run", "--query", QUERY, "--data", "raw.csv", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    refused(
        Said(code=done.returncode, out=done.stdout, err=done.stderr), "no Java on PATH", "install"
    )
