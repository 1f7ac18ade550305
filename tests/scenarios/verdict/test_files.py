"""Files of a run that were changed behind its back are found by the verdict, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.errors import DataError
from scenarios import run
from scenarios.verdict import Verdict
from scenarios.verdict.judge import judge
from tests.scenarios.verdict.test_mutants import RUNS

Tamper = Callable[[Path], Any]


def judged_after(tamper: Tamper, monkeypatch: pytest.MonkeyPatch, *, pairs: bool = True) -> Verdict:
    """Return the verdict on a run whose folder was tampered with before it was judged."""

    def judged(plan: Any, directory: Path, *rest: Any) -> Any:
        tamper(directory)
        return judge(plan, directory, *rest)

    monkeypatch.setattr(run, "judge", judged)
    return RUNS["kp_oij"].run(pairs=pairs).verdict


def changed(name: str, change: Callable[[pa.Table], pa.Table]) -> Tamper:
    def tamper(directory: Path) -> None:
        pq.write_table(change(pq.read_table(directory / name)), directory / name)

    return tamper


def column(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[pa.Table], pa.Table]:
    def with_column(table: pa.Table) -> pa.Table:
        values = pa.array(change(table[name].to_numpy()))
        return table.set_column(table.column_names.index(name), name, values)

    return with_column


def row_of(value: int) -> Callable[[pa.Table], pa.Table]:
    def with_row(table: pa.Table) -> pa.Table:
        row = {name: [value] for name in table.column_names}
        return pa.concat_tables([table, pa.table(row, schema=table.schema)])

    return with_row


def copied(name: str, to: str) -> Tamper:
    return lambda directory: (directory / to).write_bytes((directory / name).read_bytes())


def parts(directory: Path) -> None:
    """Make a folder of parts of the results, with one that no reader of ours looks at."""
    table = pq.read_table(directory / "results.parquet")
    (directory / "results.parquet").unlink()
    (directory / "results.parquet").mkdir()
    pq.write_table(table, directory / "results.parquet" / "part-0.parquet")
    pq.write_table(table.slice(0, 3), directory / "results.parquet" / "part-1.pq")


def emptied(directory: Path) -> None:
    (directory / "late.parquet").unlink()
    (directory / "late.parquet").mkdir()


def removed(name: str) -> Tamper:
    return lambda directory: (directory / name).unlink()


FOUND = {
    "a sender that is no actor": (
        changed("probes-0.parquet", column("sender", lambda s: np.full_like(s, 99))),
        "sender",
    ),
    "a negative sender": (
        changed("probes-0.parquet", column("sender", lambda s: -1 - s)), "sender",
    ),
    "a negative latency": (
        changed("probes-0.parquet", column("latency_ns", lambda ns: -1 - ns)), "latency",
    ),
    "a negative figure of a collector": (
        changed("collectors.parquet", row_of(-(10**15))), "1 rows of collectors",
    ),
    "reports of a stream that does not exist": (
        copied("probes-0.parquet", "probes-7.parquet"), "probes-7.parquet",
    ),
    "a part of another kind": (parts, "results.parquet/part-1.pq"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_what_no_run_writes_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tamper, words = FOUND[name]
    verdict = judged_after(tamper, monkeypatch)
    (check,) = (check for check in verdict.checks if check.name == "files")
    assert check.passed is False
    assert words in check.detail
    assert verdict.passed is False


def nulls(values: np.ndarray) -> list[int | None]:
    return [None, *values[1:].tolist()]


REFUSED = {
    "ids that are no integers": (
        changed("results.parquet", column("match_id", lambda ids: ids + 0.25)),
        "results.parquet: column match_id is double, not int64",
    ),
    "missing ids of probing tuples": (
        changed("results.parquet", column("probe_id", nulls)),
        "results.parquet: column probe_id has missing values",
    ),
    "missing ids of matches": (
        changed("results.parquet", column("match_id", nulls)),
        "results.parquet: column match_id has missing values",
    ),
    "missing counts": (
        changed("probes-0.parquet", column("count", nulls)),
        "probes-0.parquet: column count has missing values",
    ),
    "missing event times": (
        changed("late.parquet", column("ts", nulls)),
        "late.parquet: column ts has missing values",
    ),
    "a column too few": (
        changed("probes-0.parquet", lambda table: table.drop_columns(["sender"])),
        "probes-0.parquet has columns probe_id, count, fingerprint, latency_ns, not",
    ),
    "a file that is no Parquet file": (
        lambda directory: (directory / "late.parquet").write_text("late"),
        "late.parquet is damaged",
    ),
    "a folder without parts": (emptied, "late.parquet has no parts"),
}  # fmt: skip
for _name in ("results", "probes-0", "probes-1", "late", "collectors", "trace"):
    REFUSED[f"no {_name}"] = (removed(f"{_name}.parquet"), f"{_name}.parquet is missing")


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_judged_is_refused_with_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper, words = REFUSED[name]
    with pytest.raises(DataError, match=words):
        judged_after(tamper, monkeypatch)


def of_other_actors(table: pa.Table) -> pa.Table:
    names = pa.array(["somebody"] * len(table)).dictionary_encode()
    return table.set_column(0, "sender", names)


def test_a_trace_of_other_actors_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judged_after(changed("trace.parquet", of_other_actors), monkeypatch)
    (check,) = (check for check in verdict.checks if check.name == "trace")
    assert check.passed is False
    assert "no actor's" in check.detail


@pytest.mark.parametrize("pairs", [True, False])
def test_files_are_as_they_should_be(pairs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = judged_after(lambda directory: None, monkeypatch, pairs=pairs)
    assert next(check.passed for check in verdict.checks if check.name == "files")
    figures = next(check for check in verdict.checks if check.name == "figures")
    assert figures.passed is None
    for word in ("seconds", "memory", "costs", "sizes", "percentiles", "columns", "prepared"):
        assert word in figures.detail
