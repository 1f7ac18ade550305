"""A comparison of engines calls none equal whose pairs are others, however they add up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import joinsim as js
from scenarios.engines import embedded_engines, host_engines
from scenarios.engines.embedded_engines import DuckDB
from tests.scenarios.verdict.broken import Break, on_matches, reversed_ids, wrapped
from tests.scenarios.verdict.test_mutants import MUTANTS, RUNS, _tuples


def compared(run: str, engine: str, breaks: Break, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return how an engine in this process compares, once it is broken."""

    def run_here(function: Callable[..., Any], *arguments: Any) -> tuple[Any, int]:
        return function(*arguments), 1

    for module in (host_engines, embedded_engines):
        monkeypatch.setattr(module, "run_alone", run_here)
    breaks(monkeypatch)
    one = RUNS[run]
    return js.compare_engines(
        one.query,
        _tuples(one.query),
        engines=engine,
        topology=one.topology,
        feeding={"batch_rows": 20},
        pairs=True,
    )


def _exchanged(original: Any, self: DuckDB, engine: Any, *args: Any) -> Any:
    class Exchanging:
        def execute(self, statement: str) -> Any:
            ids = "p.id AS probe_id, m.id AS match_id"
            other = "m.id AS probe_id, p.id AS match_id"
            return engine.execute(statement.replace(ids, other))

    return original(self, Exchanging(), *args)


def test_pairs_whose_sides_are_exchanged_are_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = wrapped(DuckDB, "_evaluate", _exchanged)
    found = compared("hash_join", "duckdb", exchange, monkeypatch)
    assert found.result.measured["duckdb"].totals.pairs == found.result.expected.pairs > 100
    assert found.passed is False


def test_what_a_verdict_fails_is_not_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The totals of three streams are those of reports, which are right here; lists are not."""
    found = compared("semijoin", "inline", on_matches(reversed_ids), monkeypatch)
    assert found.result.measured["inline"].totals == found.result.expected
    assert found.passed is False
    assert "its verdict is FAIL, by oracle, pairs" in found.result.measured["inline"].note


@pytest.mark.parametrize("engine", ["inline", "duckdb"])
@pytest.mark.parametrize("name", ["reads <= as <", "a longer window of the second stream"])
def test_a_query_that_is_read_otherwise_is_not_compared(
    engine: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant = MUTANTS[name]
    with pytest.raises(js.ConfigError, match="query: another parser reads"):
        compared(mutant.run, engine, mutant.breaks, monkeypatch)
