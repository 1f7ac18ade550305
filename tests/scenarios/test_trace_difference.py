"""Where two runs part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import joinsim as js
from joinsim.cli import app
from joinsim.cli.command_line import CLOCK, Finished
from netsim.trace import COLUMNS, Trace, pack_row
from scenarios import trace_difference
from scenarios.wall_clock import WallClock

QUERY = "SELECT * FROM A, B WHERE A.key = B.key WINDOW AS (SLIDE INTERVAL '1' ON '50')"
NAMES = ["source", "joiner", "sink", "out", "start", "timer:"]


def run(out: Path, **how: Any) -> Path:
    """Run a small join and return its directory."""
    streams = {name: {"key": np.arange(200) % 7} for name in "AB"}
    js.run(QUERY, streams, topology="split_join", out=out, feeding={"batch_rows": 10}, **how)
    return out


def trace(directory: Path, rows: list[tuple[int, ...]]) -> Path:
    directory.mkdir()
    with Trace(NAMES, directory / "trace.parquet") as written:
        for row in rows:
            written.record(pack_row(*row))
            written.flush_if_full()
        written.close()
    return directory


def row(number: int, **changed: int) -> tuple[int, ...]:
    values = dict.fromkeys(COLUMNS, 0) | {"receiver": 1, "port": 3, "seq": number} | changed
    return tuple(values.values())


def test_two_runs_with_one_digest_are_the_same(tmp_path: Path) -> None:
    found = js.diff(run(tmp_path / "a"), run(tmp_path / "b"))
    assert found.same
    assert found.settings == ()


def test_of_two_seeds_the_first_message_that_differs_is_named(tmp_path: Path) -> None:
    network = {"preset": "data-centre"}
    a, b = (run(tmp_path / str(seed), seed=seed, network=network) for seed in (1, 2))
    found = js.diff(a, b)
    rows = [pq.read_table(one / "trace.parquet").to_pylist() for one in (a, b)]
    first = next(i for i, pair in enumerate(zip(*rows, strict=True)) if pair[0] != pair[1])
    assert found.row == first
    assert set(found.columns) == {c for c in COLUMNS if rows[0][first][c] != rows[1][first][c]}
    assert [table.to_pylist() for table in found.rows] == [
        one[found.first : first + 11] for one in rows
    ]
    assert found.settings == (("seed", 1, 2),)
    place = f"the first difference is in row {first}: {', '.join(found.columns)}"
    assert repr(found) == f"seed: 1 in {a}, 2 in {b}\n{place}"


@pytest.mark.parametrize("at", [0, 1, 16_383, 16_384, 40_000])
def test_a_difference_is_found_wherever_the_files_are_cut(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_difference, "READ_ROWS", 10_000)
    rows = [row(number) for number in range(40_001)]
    a = trace(tmp_path / "a", rows)
    # One row more at the front of a file of its own would move every batch: here rows change.
    b = trace(tmp_path / "b", [*rows[:at], row(at, sender=2, done_ns=7), *rows[at + 1 :]])
    found = js.diff(a, b)
    assert (found.row, found.columns) == (at, ("sender", "done_ns"))
    assert found.first == max(0, at - 10)
    assert found.rows[1]["sender"].to_pylist()[at - found.first] == "sink"
    assert js.diff(a, a).same


@pytest.mark.parametrize("length", [0, 5])
def test_a_trace_that_ends_first_differs_where_it_ends(tmp_path: Path, length: int) -> None:
    rows = [row(number) for number in range(30)]
    found = js.diff(trace(tmp_path / "a", rows), trace(tmp_path / "b", rows[:length]))
    assert (found.row, found.columns) == (length, ())
    assert [table.num_rows for table in found.rows] == [length + 11, length]
    assert repr(found) == f"{tmp_path / 'b'} has no row {length}: it ended before"


def test_the_command_shows_both_runs_and_says_so_in_its_exit_code(tmp_path: Path) -> None:
    def said(*words: str) -> tuple[int, str]:
        CLOCK.set(WallClock())
        result = CliRunner().invoke(app, ["diff", *words])
        assert isinstance(result.exception, Finished)
        return result.exception.code, result.output

    rows = [row(number) for number in range(30)]
    a, b = (str(trace(tmp_path / name, rows)) for name in "ab")
    c = str(trace(tmp_path / "c", [*rows[:20], row(20, nbytes=99), *rows[21:]]))
    assert said(a, b)[0] == 0
    code, text = said(a, c)
    assert code == 1
    assert "the first difference is in row 20: nbytes" in text
    assert '"columns": [' in said(a, c, "--json")[1]


def test_a_directory_without_a_trace_is_named(tmp_path: Path) -> None:
    whole = trace(tmp_path / "a", [row(1)])
    with pytest.raises(js.JoinsimError, match=r"is no finished run: it needs trace.parquet"):
        js.diff(whole, tmp_path)
    with pytest.raises(js.JoinsimError, match=r"there is no folder .*elsewhere: name one"):
        js.diff(whole, tmp_path / "elsewhere")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "trace.parquet").write_bytes(b"PAR1 no such thing")
    with pytest.raises(js.JoinsimError, match=r"trace.parquet cannot be read: "):
        js.diff(whole, tmp_path / "b")


@pytest.mark.parametrize("text", ["[1, 2]", "null", "{}", '{"configuration": [1]}', '{"conf'])
def test_a_record_that_is_damaged_is_named(tmp_path: Path, text: str) -> None:
    whole, broken = trace(tmp_path / "a", [row(1)]), trace(tmp_path / "b", [row(1)])
    (broken / "run.json").write_text(text)
    with pytest.raises(js.DataError, match=r"b/run.json is damaged: it is no JSON object with"):
        js.diff(whole, broken)


def test_a_file_that_is_no_trace_is_named_with_what_it_has_not(tmp_path: Path) -> None:
    folder = run(tmp_path / "a")
    table = pq.read_table(folder / "trace.parquet")
    pq.write_table(table.drop_columns(["left_ns"]), folder / "trace.parquet")
    with pytest.raises(js.JoinsimError, match=r"a/trace.parquet is no trace .* no left_ns"):
        js.diff(folder, run(tmp_path / "b"))
