"""The digest of a study's inputs changes with whatever its results depend on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scenarios.scenario_files import ConfigError
from scenarios.study.findings import digest_inputs
from scenarios.study.study import load_study

STUDY = """
query = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '10' ON '20')"
[[streams]]
files = ["{folder}"]
[study]
measure = "throughput_tps"
label = "tuples/s"
[study.axis]
label = "arrivals a message"
keys = ["feeding.batch_rows"]
values = [1, 2]
[study.variants]
"one" = {{}}
[[study.claims]]
text = "it rises"
of = ["one"]
rises = true
"""


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    (tmp_path / "s").mkdir()
    path = tmp_path / "s" / "part-00000.parquet"
    path.write_bytes(b"")
    return path


def digest(segment: Path, old: str = "", new: str = "") -> str:
    path = segment.parents[1] / "mine.toml"
    path.write_text(STUDY.format(folder=segment.parent).replace(old, new))
    study = load_study(str(path))
    assert study is not None
    return digest_inputs(study)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("values = [1, 2]", "values = [1, 3]"),
        ("[study.axis]", "[study.parts]\nall = ['po_join']\n[study.axis]"),
        ("query =", "seed = 2\nquery ="),
    ],
)
def test_other_runs_are_other_inputs(segment: Path, old: str, new: str) -> None:
    assert digest(segment) == digest(segment)
    assert digest(segment) != digest(segment, old, new)


@pytest.mark.parametrize(("old", "new"), [("rises = true", "falls = true"), ("tuples/s", "/s")])
def test_claims_and_labels_are_no_inputs(segment: Path, old: str, new: str) -> None:
    assert digest(segment) == digest(segment, old, new)


def test_other_data_are_other_inputs(segment: Path) -> None:
    before = digest(segment)
    os.utime(segment, ns=(0, 1))
    touched = digest(segment)
    segment.write_bytes(b"more")
    os.utime(segment, ns=(0, 1))
    assert len({before, touched, digest(segment)}) == 3


def test_data_that_are_not_there_are_named(segment: Path) -> None:
    segment.unlink()
    segment.parent.rmdir()
    with pytest.raises(ConfigError, match="no data: there is no"):
        digest(segment)
