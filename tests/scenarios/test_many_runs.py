from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from joins.queries.parser import parse_query
from joins.state import array_bytes
from scenarios import many_runs, scenario_files
from scenarios.config import RunConfig, StreamConfig
from scenarios.many_runs import VARIANTS, systems_by_label
from scenarios.scenario_files import ConfigError
from scenarios.streams import prepare_streams
from scenarios.synthetic import SyntheticStream
from scenarios.tables import TableStream
from topologies import TOPOLOGIES, TopologyError

QUERY = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '5' ON '10')"


@pytest.fixture
def base(tmp_path: Path) -> RunConfig:
    values = {
        "query": QUERY,
        "streams": [{"files": ["s"]}],
        "topology": "spo_join",
        "parameters": {"po_join_pes": 3},
    }
    return scenario_files.build(values, where="test")


def test_all_systems_there_are_take_part(base: RunConfig) -> None:
    topologies = {config.topology for config in systems_by_label(base, [], {}).values()}
    assert topologies == set(TOPOLOGIES)


def test_no_label_is_that_of_two_systems(base: RunConfig) -> None:
    variants = sum(len(VARIANTS.get(name, {name: {}})) for name in TOPOLOGIES)
    assert len(systems_by_label(base, [], {})) == variants


def test_a_parameter_goes_to_the_systems_that_have_it(base: RunConfig) -> None:
    configs = systems_by_label(
        base, ["spo_join", "split_join"], {"pes": "7", "rows": "50"}
    ).values()
    assert {config.rows for config in configs} == {50}
    for config in configs:
        expected = "7" if config.topology == "split_join" else None
        assert config.parameters.get("pes") == expected


def test_one_topology_is_refused_where_several_are_compared(base: RunConfig) -> None:
    with pytest.raises(ConfigError, match="topology = 'bchj': several are compared here"):
        systems_by_label(base, [], {"topology": "bchj"})


def test_the_scenarios_parameters_go_to_its_own_system(base: RunConfig) -> None:
    for config in systems_by_label(base, ["spo_join", "split_join"], {}).values():
        expected = 3 if config.topology == "spo_join" else None
        assert config.parameters.get("po_join_pes") == expected


def test_a_setting_that_makes_variants_one_leaves_one(base: RunConfig) -> None:
    settings = {"mutable": "hash", "immutable": "css_hash", "merge_threshold": "slide"}
    variants = systems_by_label(base, ["spo_join"], settings).values()
    parameters = {repr(sorted(config.parameters.items())) for config in variants}
    assert len(parameters) == len(variants)
    assert len(variants) < len(systems_by_label(base, ["spo_join"], {}))


def test_a_setting_that_means_nothing_is_refused(base: RunConfig) -> None:
    with pytest.raises(ConfigError, match="colour: no system compared here"):
        systems_by_label(base, [], {"colour": "red"})


def test_a_system_there_is_not_is_refused(base: RunConfig) -> None:
    with pytest.raises(TopologyError, match="no topology is called 'spojoin'"):
        systems_by_label(base, ["spojoin"], {})


def test_streams_are_prepared_again_for_a_query_over_other_event_times(
    base: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        many_runs, "prepare_streams", lambda config, query, **_: prepared.append(query.times)
    )
    preparation = many_runs.Preparation()
    for time in ("sent", "seen", "sent"):
        within = f"B.{time} BETWEEN A.{time} - INTERVAL '1 s' AND A.{time}"
        preparation(base, parse_query(f"SELECT A.k FROM A, B WHERE A.k = B.k AND {within}"))
    assert prepared == [("sent", "sent"), ("seen", "seen")]


def test_synthetic_streams_of_several_runs_are_made_in_memory_as_spark_prepares_them(
    spark: Any, prepared_once: None, base: RunConfig
) -> None:
    fields = {"x": "normal(3, 1)", "y": "uniform(1, 9)"}
    streams = tuple(
        StreamConfig(
            name=name,
            synthetic=SyntheticStream(rows=500, seed=seed, fields=fields, every=3_000_000),
        )
        for name, seed in (("A", 1), ("B", 5))
    )
    config = base.model_copy(update={"streams": streams})
    query = parse_query(
        "SELECT A.x FROM A, B WHERE A.x < B.x AND A.y = B.y WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    made = many_runs.Preparation()(config, query)
    for one, by_spark in zip(made, prepare_streams(config, query), strict=True):
        assert isinstance(one, TableStream)
        assert not isinstance(by_spark, TableStream)
        assert one.schema == by_spark.schema
        names = ["ts", *one.schema.fields]
        assert one.table.select(names).equals(pq.read_table(by_spark.path).select(names))


def synthetic(rows: int, **others: Any) -> StreamConfig:
    made = SyntheticStream(rows=rows, fields={"x": "zipf(1, 9)"})
    return StreamConfig(name="A", synthetic=made, **others)


@pytest.mark.parametrize(
    ("other", "how"),
    [
        (synthetic(5), "in memory"),
        (synthetic(1 << 22), "by Spark"),
        (synthetic(5, where="x > 2"), "by Spark"),
        (StreamConfig(files=("a.csv",)), "by Spark"),
    ],
)
def test_only_small_synthetic_streams_of_several_runs_are_made_in_memory(
    other: StreamConfig, how: str, base: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_runs, "prepare_streams", lambda *_, **__: "by Spark")
    monkeypatch.setattr(many_runs, "prepare_tables", lambda *_: "in memory")
    config = base.model_copy(update={"streams": (synthetic(5), other)})
    query = parse_query(
        "SELECT A.x FROM A, B WHERE A.x < B.x WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    assert many_runs.Preparation()(config, query) == how  # type: ignore[comparison-overlap]


def test_streams_made_in_memory_are_bounded_over_all_runs(
    base: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_runs, "prepare_streams", lambda *_, **__: "by Spark")
    monkeypatch.setattr(many_runs, "prepare_tables", lambda *_: "in memory")
    query = parse_query("SELECT A.x FROM A WHERE A.x1 < A.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9')")
    preparation = many_runs.Preparation()
    third = (1 << 22) // 3
    prepared: list[Any] = [
        preparation(base.model_copy(update={"streams": (synthetic(third + number),)}), query)
        for number in (0, 1, 2, 0)
    ]
    assert prepared == ["in memory", "in memory", "by Spark", "in memory"]


def test_bytes_held_count_each_array_once_and_views_as_what_they_are_views_of() -> None:
    class Holder:
        __slots__ = ("array", "others")

    holder: Any = Holder()
    holder.array = np.zeros(100)
    holder.others = {"view": holder.array[:10], "again": [holder.array, (np.zeros(5, np.int8),)]}
    assert array_bytes(holder) == 805
