"""A checkpoint is claimed for one query, and for another refused with what differs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from joins.errors import DataError
from spark_bridge.hosted.host import claim_checkpoint, describe_query
from spark_bridge.hosted.shard import cut_into_stages
from tests.spark_bridge.hosted.hosted_jobs import SELF, hosted

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
