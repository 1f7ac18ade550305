"""Joined rows that are not those of the listed pairs are found, and those that are pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim as js
from joins.matches import Matches
from scenarios import result_readers
from scenarios.result_readers import JoinedColumns, joined_path, write_joined
from scenarios.tables import TableStream
from scenarios.verdict import CheckResult
from tests.end_to_end.conftest import write_prepared
from tests.scenarios.verdict.broken import Break, also, of_no_tuple, on_matches, with_ids, wrapped

ROWS = 200
WINDOW = "WINDOW AS (SLIDE INTERVAL '1' ON '50')"
TWO = f"SELECT * FROM R, S WHERE R.k = S.k AND R.x <= S.x {WINDOW}"
SELF = f"SELECT T.name1, T.x2, x, T.y2, id1 FROM T WHERE T.x1 > T.x2 {WINDOW}"
THREE = f"SELECT C.name, A.y, B.id FROM A, B, C WHERE A.k = B.k AND B.k = C.k {WINDOW}"


def table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 12, ROWS)
    return pa.table(
        {
            "ts": rng.permutation(ROWS) * 10,
            "k": pa.array([f"key {key}" for key in rng.integers(0, 20, ROWS)]).dictionary_encode(),
            "x": x,
            "y": pa.array(np.where(x % 3, x / 4, np.nan), mask=x % 5 == 0),
            "name": pa.array([None if key == 3 else f"name {key}" for key in x]),
            "at": pa.array(x, pa.timestamp("s", "UTC")),
        }
    )


def checked(query: str, folder: Path, **streams: Any) -> CheckResult:
    """Return what was found of the joined rows of a run."""
    names = query.split("FROM")[1].split("WHERE")[0].replace(" ", "").split(",")
    streams = streams or {name: table(seed) for seed, name in enumerate(names)}
    run = js.run(query, streams, topology=None, out=folder)
    assert run.verdict.produced > 100
    (found,) = (check for check in run.verdict.checks if check.name == "joined rows")
    assert run.verdict.passed is found.passed
    return found


@pytest.mark.parametrize("query", [TWO, SELF, THREE])
def test_rows_that_are_those_of_the_pairs_pass(query: str, tmp_path: Path) -> None:
    assert checked(query, tmp_path / "run").passed


def coded(folder: Path) -> Path:
    """Write a prepared stream whose key is text."""
    rng = np.random.default_rng(7)
    fields = {"k": rng.integers(0, 5, ROWS), "x": rng.integers(0, 12, ROWS)}
    write_prepared(folder, fields, ts=np.arange(ROWS) * 10)
    codes = {"code": [3, 1, 0, 4, 2], "value": list("dbaec")}
    pq.write_table(pa.table(codes), folder / "codes-k.parquet")
    summary = json.loads((folder / "stream.json").read_text()) | {"codes": {"k": "one"}}
    (folder / "stream.json").write_text(json.dumps(summary))
    return folder


def test_texts_of_prepared_streams_are_compared_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = {name: coded(tmp_path / name) for name in "RS"}
    assert checked(TWO, tmp_path / "run", **streams).passed
    from_file = js.run(TWO, streams, out=tmp_path / "file").joined["R.k"]
    assert set(from_file.to_pylist()) == set("abcde")
    # As if the codes were the places of the texts in their file.
    read = pq.read_table

    def unsorted(path: Any, **options: Any) -> pa.Table:
        found = read(path, **options)
        if "code" in found.column_names:
            found = found.set_column(0, "code", pa.array(np.arange(len(found))))
        return found

    original = JoinedColumns.__init__

    def broken(self: JoinedColumns, *args: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pq, "read_table", unsorted)
            original(self, *args)

    monkeypatch.setattr(JoinedColumns, "__init__", broken)
    found = checked(TWO, tmp_path / "again", **streams)
    assert "R.k" in found.detail


def _sided(original: Callable[..., pa.Array], *args: Any) -> pa.Array:
    query, stream, *rest = args
    return original(query, 1 - stream, *rest)


def _in_blocks(change: Callable[[pa.Table], pa.Table]) -> Break:
    return wrapped(
        JoinedColumns, "__iter__", lambda original, self: (change(one) for one in original(self))
    )


def _afterwards(change: Callable[[Path], Any]) -> Break:
    def broken(query: Any, streams: Any, directory: Path) -> None:
        write_joined(query, streams, directory)
        change(joined_path(directory))

    return lambda monkeypatch: monkeypatch.setattr(result_readers, "write_joined", broken)


def _ids(change: Callable[..., pa.Array]) -> Break:
    original = result_readers._ids
    return lambda monkeypatch: monkeypatch.setattr(
        result_readers, "_ids", lambda *args: change(original, *args)
    )


def _with_nulls(rows: pa.Table) -> pa.Table:
    return rows.set_column(3, rows.schema.field(3), pa.nulls(len(rows), rows.schema.field(3).type))


BROKEN: dict[str, tuple[Break, str]] = {
    "sides": (_ids(_sided), "R.ts"),
    "the next pair's": (
        _ids(lambda original, *args: pa.array(np.roll(original(*args).to_numpy(), 1))), "R.ts",
    ),
    "one less": (_in_blocks(lambda rows: rows.slice(1)), "rows of"),
    "one twice": (
        _in_blocks(lambda rows: pa.concat_tables([rows, rows.slice(0, 1)])), "rows of",
    ),
    "order": (_in_blocks(lambda rows: rows.take(np.arange(len(rows))[::-1].copy())), "R.ts"),
    "nulls": (_in_blocks(_with_nulls), "R.y"),
    "another column": (
        wrapped(
            TableStream,
            "values",
            lambda original, self, name: original(self, "k" if name == "name" else name),
        ),
        "R.name",
    ),
    "columns in another order": (
        _afterwards(lambda path: pq.write_table(pq.read_table(path).select([1, 0]), path)),
        "has columns",
    ),
    "no file": (_afterwards(Path.unlink), "cannot be read"),
    "half a file": (
        _afterwards(lambda path: path.write_bytes(path.read_bytes()[:900])), "cannot be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_rows_that_are_not_those_of_the_pairs_are_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, words = BROKEN[name]
    broken(monkeypatch)
    found = checked(TWO, tmp_path / "run")
    assert found.passed is False
    assert words in found.detail


def test_a_self_join_with_the_earlier_tuple_first_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ids(lambda original, query, stream, earlier, block: original(query, 0, not earlier, block))(
        monkeypatch
    )
    assert checked(SELF, tmp_path / "run").passed is False


def before_the_first(matches: Matches) -> Matches:
    """Report tuples with negative ids."""
    assert matches.match_id is not None
    row = np.repeat(np.arange(len(matches)), matches.count)
    return with_ids(matches, row, matches.match_id - ROWS)


@pytest.mark.parametrize("broken", [also(of_no_tuple), on_matches(before_the_first)])
def test_pairs_of_no_tuple_are_judged_and_have_rows_without_values(
    broken: Break, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    streams = {"R": table(0), "S": table(1)}
    run = js.run(TWO, streams, topology="nested_loop", out=tmp_path / "run")
    assert run.verdict.passed is False
    assert run.verdict.spurious > 0
    (found,) = (check for check in run.verdict.checks if check.name == "joined rows")
    assert found.passed, found.detail
    assert run.joined["R.k"].null_count + run.joined["S.k"].null_count > 0
