"""Spark as an engine: what it lacks is reported as an engine's failure, in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scenarios.engines.host_engines import SparkNative
from spark_bridge.engines import EngineFailed


def test_without_java_the_engine_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr("spark_bridge.session.active_session", lambda: None)
    plan: Any = None  # it does not come to that
    with pytest.raises(EngineFailed, match=r"^JAVA_HOME is .* needs Java 17 or newer"):
        SparkNative().run(plan, tmp_path)
