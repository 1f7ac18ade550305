"""Every study runs at smoke scale, and the claims that hold are those of the committed record.

A change that makes a claim hold or fail is seen here; where it is meant,
``python -m tests.scenarios.study.smoke_claims`` writes the record anew.
"""

from __future__ import annotations

from typing import Any

import pytest

from scenarios.streams import SAMPLES
from tests.scenarios.study import smoke_claims

RECORD = smoke_claims.read_record()
IN_MEMORY = [name for name in smoke_claims.studies() if not smoke_claims.needs_spark(name)]
BY_SPARK = [name for name in smoke_claims.studies() if smoke_claims.needs_spark(name)]
REWRITE = "if that is meant: python -m tests.scenarios.study.smoke_claims"


def check(name: str) -> None:
    assert smoke_claims.judge(name) == RECORD[name], f"{REWRITE} {name}"


@pytest.mark.parametrize("name", IN_MEMORY)
def test_the_claims_that_hold_are_those_of_the_record(name: str) -> None:
    check(name)


@pytest.mark.parametrize("name", BY_SPARK)
def test_those_that_hold_of_selected_rows_are_too(
    name: str, spark: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path))
    check(name)


@pytest.mark.parametrize("name", smoke_claims.ON_OTHER_DATA)
def test_a_study_is_left_out_only_where_its_data_does_not_come_with_joinsim(name: str) -> None:
    samples = {path.name for path in SAMPLES.glob("*.parquet")}
    assert any(
        stream.files and not samples & set(stream.files)
        for point in smoke_claims.load_simulated(name).points
        for stream in point.config.streams
    )


def test_the_record_is_of_the_catalogs_studies() -> None:
    assert list(RECORD) == sorted(smoke_claims.studies())
