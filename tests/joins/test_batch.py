"""Batches from Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from joins.batch import Batch, Schema

SCHEMA = Schema(stream="S", fields={"x": "float64", "n": "int64"}, width_bytes=40)
BATCH = Batch(
    id=np.array([3, 4]),
    ts=np.array([10, 10]),
    key=np.zeros(2, np.int64),
    fields={"x": np.array([0.5, -0.0]), "n": np.array([2**62, -(2**63)])},
    width_bytes=40,
)


TABLE = pa.table({"id": BATCH.id, "ts": BATCH.ts} | dict(BATCH.fields))


def test_a_batch_is_read_from_arrow_without_a_copy() -> None:
    again = Batch.from_arrow(TABLE, SCHEMA)
    assert again.nbytes == BATCH.nbytes == 2 * (24 + 16 + 40)
    np.testing.assert_array_equal(again.key, BATCH.key)
    columns = [(BATCH.id, again.id), (BATCH.ts, again.ts)]
    for before, after in [*columns, *((BATCH.fields[f], again.fields[f]) for f in SCHEMA.fields)]:
        np.testing.assert_array_equal(before, after)
        assert np.shares_memory(before, after)
