"""What a run and the oracle read wrong alike is found by another reading of the streams."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors import feed
from actors.feed import StreamFile
from joins.arrivals import merged_places
from joins.batch import Batch, Schema
from joins.errors import DataError
from scenarios.verdict import expectation
from tests.scenarios.verdict.broken import Break
from tests.scenarios.verdict.test_mutants import RUNS, Ordinary


def _swaps_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give tuples the values of the next column."""
    original = Batch.from_arrow

    def from_arrow(table: Any, schema: Schema) -> Batch:
        batch = original(table, schema)
        values = list(batch.fields.values())
        return replace(batch, fields=dict(zip(batch.fields, values[1:] + values[:1], strict=True)))

    monkeypatch.setattr(Batch, "from_arrow", from_arrow)


def _loses_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Batch.from_arrow

    def from_arrow(table: Any, schema: Schema) -> Batch:
        batch = original(table, schema)
        fields = {name: np.trunc(values) for name, values in batch.fields.items()}
        return replace(batch, fields=fields)

    monkeypatch.setattr(Batch, "from_arrow", from_arrow)


def _merges_ties_the_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def merged(times: Any, rows: int) -> Any:
        return merged_places([times[0], times[1] - 2], rows)

    monkeypatch.setattr(feed, "merged_places", merged)


@pytest.mark.parametrize(
    ("run", "breaks", "words"),
    [
        (RUNS["hash_join"], _swaps_columns, "what was read of column"),
        (RUNS["spo_join"], _loses_fractions, "what was read of column y"),
        (RUNS["hash_join"], _merges_ties_the_other_way, "merged in another order"),
    ],
)
def test_what_run_and_oracle_read_wrong_alike_is_refused(
    run: Ordinary, breaks: Break, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    with pytest.raises(DataError, match=words):
        run.run()


def test_what_no_run_reads_is_not_summed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the first thousand tuples must not read the millions that follow."""
    pq.write_table(pa.table({"ts": np.arange(300_000)}), tmp_path / "0.parquet")
    read, blocks = [], expectation._blocks

    def counted(*arguments: Any) -> Iterator[pa.RecordBatch]:
        for block in blocks(*arguments):
            read.append(len(block))
            yield block

    monkeypatch.setattr(expectation, "_blocks", counted)
    schema = Schema(stream="T", fields={})
    sums = expectation.ColumnSums.of_stream(StreamFile(schema=schema, directory=tmp_path, rows=9))
    assert sums == {"ts": sum(ts * (2 * ts + 1) for ts in range(9))}
    assert len(read) == 1
