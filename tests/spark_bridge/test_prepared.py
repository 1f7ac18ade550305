"""Reading a prepared stream needs no Spark, and says so when there is none to read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from joins.errors import DataError
from spark_bridge.prepared import load_stream

ROOT = Path(__file__).parents[2]


def test_reading_a_stream_does_not_import_spark() -> None:
    modules = "sys, spark_bridge.prepared, spark_bridge.pipeline.pipeline"
    script = f"import {modules}; print('pyspark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not a prepared stream"),
        ("{", "is damaged"),
        ("{}", "is damaged"),
        ("[]", "is damaged"),
        (json.dumps({"format": 0}), "another version"),
    ],
)
def test_what_is_no_stream_is_refused(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "stream.json").write_text(text)
    with pytest.raises(DataError, match=words):
        load_stream(tmp_path)
