"""Runs are held to what they promise, and files that were changed behind a run's back are found.

After a crash results may come again, or be lost; an approximate run leaves some out; variants that
their paper shows to be wrong claim nothing. Files that cannot be judged are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.errors import DataError
from joins.semijoins.value_sample import ValueSample
from scenarios import run
from scenarios.verdict import Verdict
from scenarios.verdict.judge import judge
from tests.scenarios.verdict.broken import (
    Break,
    doubled,
    every,
    first_of_all,
    neighbours,
    on_matches,
    undercounted,
    wrapped,
)
from tests.scenarios.verdict.test_mutants import INTERVAL, LATE, RUNS, SELF, SMALL, THREE, Ordinary

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
        changed("collectors.parquet", row_of(-(10**15))), "1 row of collectors has",
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
    assert not re.search(r"\b1 [a-z]+s\b", check.detail)
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


def crashing(guarantee: str) -> Ordinary:
    """Return a run of which a PE crashes."""
    crash = {"kind": "crash", "actor": "joiner.1", "start": "1 ms", "end": "1200 us"}
    return recovering([crash], guarantee, "reliable")


def recovering(faults: list[dict[str, Any]], guarantee: str, transport: str) -> Ordinary:
    recovery = {"guarantee": guarantee, "interval": "500 us"}
    return Ordinary(
        "split_join",
        feeding=SMALL | {"rate_tps": 100_000},
        parameters={"faults": faults, "recovery": recovery, "network": {"transport": transport}},
    )


UNCLAIMED = {
    "without a hash table": Ordinary(
        "spo_join", SELF, {"batch_rows": 5, "rate_tps": 50_000}, {"hash_table": False}
    ),
    "naive collectors": Ordinary("dp_oij", INTERVAL, LATE, {"collector": "naive"}),
}


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.passed is False]


def detail(verdict: Verdict, name: str) -> str:
    return next(check.detail for check in verdict.checks if check.name == name)


APPROXIMATE = Ordinary(
    "semijoin", THREE.replace("B.x = C.x", "B.k = C.k"), parameters={"kept": {"share": 0.5}}
)


@pytest.mark.parametrize("pairs", [True, False])
def test_at_least_once_may_repeat(pairs: bool) -> None:
    verdict = crashing("at_least_once").run(pairs=pairs).verdict
    assert verdict.duplicate > 100
    assert verdict.passed is True, verdict.checks


@pytest.mark.parametrize("pairs", [True, False])
def test_without_recovery_pairs_that_are_missing_prove_nothing(pairs: bool) -> None:
    verdict = crashing("none").run(pairs=pairs).verdict
    assert verdict.missing > 0
    assert verdict.spurious == verdict.duplicate == 0
    assert verdict.passed is None
    assert "nothing is promised" in detail(verdict, "recovery")
    assert not any("snapshot" in check.detail for check in verdict.checks), "it takes none"


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "none"])
@pytest.mark.parametrize(
    ("breaks", "pairs"),
    [(on_matches(neighbours), True), (on_matches(undercounted), False)],
    ids=["neighbours", "counts"],
)
def test_no_crash_makes_pairs_that_do_not_satisfy_the_query_or_sums_of_other_pairs(
    guarantee: str, breaks: Break, pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    verdict = crashing(guarantee).run(pairs=pairs).verdict
    assert verdict.passed is False, verdict.checks
    assert "recovery" in failed(verdict)
    if not pairs:
        assert verdict.inconsistent == verdict.differing_tuples > 100
        assert "pairs" in failed(verdict)


def test_at_least_once_may_not_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    on_matches(first_of_all(0))(monkeypatch)
    assert failed(crashing("at_least_once").run().verdict) == ["recovery"]


@pytest.mark.parametrize("pairs", [True, False])
def test_at_least_once_repeats_no_pair_more_often_than_it_restarts(
    pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_matches(doubled)(monkeypatch)
    verdict = crashing("at_least_once").run(pairs=pairs).verdict
    assert failed(verdict) == ["recovery"]
    assert "a pair came 4 times" in detail(verdict, "recovery")


@pytest.mark.parametrize("name", UNCLAIMED)
@pytest.mark.parametrize("breaks", [on_matches(neighbours), on_matches(first_of_all(0))])
def test_what_claims_nothing_and_is_not_exact_is_unknown(
    name: str, breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    verdict = UNCLAIMED[name].run().verdict
    assert not verdict.exact
    assert verdict.passed is None, verdict.checks
    assert "does not claim to be exact" in detail(verdict, "oracle")


def test_what_claims_nothing_and_is_exact_passes() -> None:
    verdict = UNCLAIMED["naive collectors"].run().verdict
    assert verdict.exact
    assert not verdict.claims_exact
    assert verdict.passed is True, verdict.checks


def test_what_claims_nothing_still_reports_the_pairs_that_it_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_matches(undercounted)(monkeypatch)
    verdict = UNCLAIMED["without a hash table"].run(pairs=False).verdict
    assert failed(verdict) == ["pairs"]


@pytest.mark.parametrize("pairs", [True, False])
def test_an_approximate_run_passes_with_just_what_it_keeps(pairs: bool) -> None:
    verdict = APPROXIMATE.run(pairs=pairs).verdict
    assert 0 < verdict.produced < verdict.expected
    assert verdict.off_sample == 0
    assert verdict.passed is True, verdict.checks


@pytest.mark.parametrize(
    "breaks",
    [
        on_matches(every(10)),
        on_matches(first_of_all(0)),
        on_matches(every(10**9)),
        wrapped(ValueSample, "contains", lambda original, self, values: original(self, values + 1)),
        wrapped(ValueSample, "contains", lambda original, self, values: values == values),
    ],
    ids=["nine in ten lost", "one lost", "one a message left", "other values kept", "all kept"],
)
def test_an_approximate_run_gives_all_that_it_keeps_and_no_more(
    breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    verdict = APPROXIMATE.run().verdict
    assert verdict.off_sample > 0
    assert failed(verdict) == ["sample"]


def test_the_loss_of_a_marker_that_ends_all_snapshots_is_said() -> None:
    """Without a transport the next snapshot waits for it, and no other is taken."""
    loss = {"kind": "loss", "rate": 0.05}
    lossy = recovering([loss], "exactly_once", "none").run().verdict
    assert "; a marker was lost, and no snapshot came after that" in detail(lossy, "recovery")
    sound = recovering([loss], "exactly_once", "reliable").run().verdict
    assert "marker" not in detail(sound, "recovery")
