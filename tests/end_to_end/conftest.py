"""The command line, called in this process from a directory of the test's own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joinsim.cli.command_line import main

SELF_JOIN = "SELECT s.id FROM s WHERE s.a1 > s.a2 AND s.b1 < s.b2 WINDOW AS {window}"
WINDOW = "(SLIDE INTERVAL '20' ON '100')"


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command printed and with which exit code it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Stdout, which must be one JSON object and nothing else."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Command = Callable[..., Said]


@pytest.fixture
def joinsim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Command:
    """Call the command line as a person would, in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["joinsim", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        out, err = capfd.readouterr()
        code = stopped.value.code
        return Said(code=code if isinstance(code, int) else bool(code), out=out, err=err)

    return call


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a prepared stream of 300 tuples: ``a`` whole numbers, ``b`` fractions."""
    rng = np.random.default_rng(7)
    fields = {"a": rng.integers(0, 50, 300), "b": rng.random(300)}
    folder = tmp_path_factory.mktemp("streams") / "s"
    write_prepared(folder, fields, ts=np.arange(300) * 1_000_000_000)
    return folder


def write_prepared(folder: Path, fields: Mapping[str, np.ndarray], *, ts: np.ndarray) -> None:
    """Write a prepared stream as the pipeline would lay it out."""
    (folder / "segments").mkdir(parents=True)
    rows = len(ts)
    columns = {"id": np.arange(rows), "ts": ts.astype(np.int64), **fields}
    pq.write_table(pa.table(columns), folder / "segments" / "part-00000.parquet")
    summary = {
        "format": 2,
        "name": folder.name,
        "rows": rows,
        "rejected": 0,
        "rejected_reasons": {},
        "notes": [],
        "join_fields": list(fields),
        "schema": {
            name: {"type": str(values.dtype), "join_field": True, "dtype": str(values.dtype)}
            for name, values in fields.items()
        },
        "first_ts": int(ts[0]),
        "last_ts": int(ts[-1]),
        "fingerprint": "",
    }
    (folder / "stream.json").write_text(json.dumps(summary))


def write_csv(path: Path, lines: Sequence[str]) -> Path:
    """Write a CSV file with the columns t, a, b."""
    path.write_text("\n".join(["t,a,b", *lines]) + "\n")
    return path
