"""A small run to watch and to predict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scenarios import scenario_files
from scenarios.config import RunConfig
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, write_prepared

ROWS, BATCH = 200, 20


@pytest.fixture
def split_join(tmp_path: Path) -> RunConfig:
    """Return a self join of `ROWS` tuples by four PEs, `BATCH` tuples a message."""
    rng = np.random.default_rng(5)
    fields = {"a": rng.integers(0, 50, ROWS), "b": rng.random(ROWS)}
    write_prepared(tmp_path / "s", fields, ts=np.arange(ROWS) * 1_000)
    own = {
        "query": SELF_JOIN.format(window=WINDOW),
        "topology": "split_join",
        "parameters": {"pes": 4},
        "streams": [{"files": [str(tmp_path / "s")]}],
        "feeding": {"batch_rows": BATCH},
        "network": {"preset": "same-host"},
    }
    return scenario_files.build(own, where="test")
