from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from numba.core.dispatcher import Dispatcher

from joins.machine.cache import CACHE_VARIABLE
from joins.queries.parser import parse_query
from scenarios import rehearsal, scenario_files
from scenarios.config import RunConfig
from scenarios.plan import make_plan
from scenarios.preparation import prepare_by_spark, prepare_tables
from scenarios.rehearsal import _first_rows, rehearse, rehearsing_ahead
from scenarios.run import simulate
from scenarios.streams import PREPARED_VARIABLE
from scenarios.subprocesses import run_alone
from tests.spark_bridge.helpers import write_csv, write_parquet
from topologies.actor_graph import ActorGraph

QUERY = (
    "SELECT * FROM orders, payments WHERE orders.id = payments.id AND orders.price <= payments.paid"
    " WINDOW AS (SLIDE INTERVAL '2' ON '4')"
)


def asked(folder: Path, topology: str) -> RunConfig:
    """Return what joins a CSV and a Parquet file, with texts, fractions and times in words."""
    orders = [(f"2026-03-01T09:30:{i:02}+02:00", f"o{i}", i + 0.5) for i in range(20)]
    payments = {
        "at": [1_000_000_000 * i for i in range(20)],
        "id": [f"o{i % 7}" for i in range(20)],
        "paid": list(range(20)),
    }
    return scenario_files.build(
        {
            "name": "payments",
            "query": QUERY,
            "topology": topology,
            "streams": [
                {
                    "files": [str(write_csv(folder / "o.csv", ["at", "id", "price"], orders))],
                    "time": "at",
                },
                {"files": [str(write_parquet(folder / "p.parquet", payments))], "time": "at"},
            ],
        },
        where="test",
    )


def test_first_rows_have_the_types_that_spark_will_give_them(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREPARED_VARIABLE, str(tmp_path / "prepared"))
    config = asked(tmp_path, "nested_loop")
    query = parse_query(config.query)
    waited: list[None] = []
    prepared = prepare_by_spark(config, query, on_spark=lambda: waited.append(None))
    assert [one.schema for one in _first_rows(config, query)] == [one.schema for one in prepared]
    assert len(waited) == 1
    prepare_by_spark(config, query, on_spark=lambda: waited.append(None))
    assert len(waited) == 1, "Spark was not needed again"


def test_another_process_stores_kernels_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))
    waits: list[None] = []
    with rehearsing_ahead(asked(tmp_path, "hash_join"), lambda: waits.append(None)) as rehearse:
        assert not list(tmp_path.glob("kernels/*/*.nbc"))
        rehearse()
    assert waits
    assert list(tmp_path.glob("kernels/*/*.nbc"))


def loaded_in_a_run(topology: str, folder: Path) -> list[str]:
    """Return the functions whose machine code a run made or read after its rehearsal."""
    keys = np.arange(300) % 7
    table = {"ts": np.arange(300) * 10**8, "id": keys, "price": keys * 1.5, "paid": keys * 1.4}
    config = scenario_files.build(
        {"name": "loads", "query": QUERY, "topology": topology, "streams": [{"table": "t"}] * 2},
        where="test",
    )
    query = parse_query(QUERY)
    plan = make_plan(config, prepare=lambda *_: prepare_tables(query, [table, table], [None, None]))
    loaded: list[str] = []

    def compile_(self: Dispatcher, signature: Any, compiled: Any = Dispatcher.compile) -> Any:
        loaded.append(self.py_func.__name__)
        return compiled(self, signature)

    rehearse(*plan.rehearsal)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Dispatcher, "compile", compile_)
        patched.setattr("actors.feed._READ_ROWS", 90)  # several blocks, of which some are joined
        simulate(plan, folder, pairs=True)
    return loaded


@pytest.mark.parametrize("topology", ["hash_join", "spo_join"])
def test_a_rehearsal_leaves_no_kernel_to_load(topology: str, tmp_path: Path) -> None:
    # In another process: this one may have them all.
    assert run_alone(loaded_in_a_run, topology, tmp_path)[0] == []


def test_what_is_warm_is_not_rehearsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"ts": np.arange(9), "id": np.arange(9), "price": np.ones(9), "paid": np.ones(9)}
    other = table | {"paid": np.arange(9)}  # whole numbers
    ran: list[ActorGraph] = []
    monkeypatch.setattr(rehearsal, "_REHEARSED", set())
    monkeypatch.setattr(rehearsal, "run_inline", lambda graph, *rest: ran.append(graph))

    def rehearsals(topology: str, tables: Any = table, **settings: Any) -> int:
        config = scenario_files.build(
            {"name": "warm", "query": QUERY, "topology": topology, "streams": [{"table": "t"}] * 2}
            | settings,
            where="test",
        )
        query, times = parse_query(QUERY), [None, None]
        plan = make_plan(config, prepare=lambda *_: prepare_tables(query, [tables] * 2, times))
        ran.clear()
        rehearse(*plan.rehearsal)
        return len(ran)

    assert rehearsals("hash_join") == 1
    assert rehearsals("hash_join") == 0
    assert rehearsals("hash_join", seed=8, feeding={"batch_rows": 3}) == 0
    assert rehearsals("hash_join", other) == 1
    assert rehearsals("hash_join", pairs=True) == 1
    assert rehearsals("nested_loop") == 1


def test_a_run_that_is_interrupted_meanwhile_does_not_wait(tmp_path: Path) -> None:
    before = psutil.Process().children()
    waits: list[None] = []

    def interrupted() -> None:
        with rehearsing_ahead(asked(tmp_path, "hash_join"), lambda: waits.append(None)) as rehearse:
            rehearse()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not waits
    assert psutil.Process().children() == before
