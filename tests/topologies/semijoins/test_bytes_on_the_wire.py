"""What sites ship is as long as what is in it: tuples with arrival numbers, and punctuations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from actors.protocol import HEADER_BYTES
from actors.semijoins.one_way import Shipment, SiteContext
from joins.batch import Batch
from joins.semijoins.combinations import Combinations
from joins.semijoins.one_way_join import PAPER_ALGORITHMS
from tests.topologies.test_semijoin import THREE_WAY, dense, job

TREE = "(B, A SP-S/SM-D1, C SM-S2/SP-D)"


def tuple_bytes(batch: Batch) -> int:
    """Return the size of what is in *batch*, and of what its tuples are said to carry beside."""
    columns = (batch.id, batch.ts, batch.key, *batch.fields.values())
    return sum(column.nbytes for column in columns) + len(batch) * batch.width_bytes


@pytest.mark.parametrize("plan", [*PAPER_ALGORITHMS, TREE])
def test_shipped_bytes_are_those_of_tuples_values_and_a_header(
    plan: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped: list[Shipment[Any]] = []
    ship = SiteContext.ship

    def recording(self: SiteContext, site: int, payload: Shipment[Any]) -> None:
        shipped.append(payload)
        ship(self, site, payload)

    monkeypatch.setattr(SiteContext, "ship", recording)
    chosen = {"plan": plan} if plan == TREE else {"algorithm": plan}
    data = tuple(dense(seed) for seed in range(3))
    run = job(THREE_WAY, data, execution="punctuated", tau=100_000, **chosen)
    assert run.run(tmp_path).verdict.exact
    punctuations = numbered = 0
    for payload in shipped:
        content, nbytes = payload.content, payload.nbytes - HEADER_BYTES
        if isinstance(content, Combinations):
            assert nbytes == sum(map(tuple_bytes, content.parts))
            np.testing.assert_array_equal(content.newest.key, content.seq)  # not only in the trace
            numbered += len(content)
        elif isinstance(content, Batch):
            assert nbytes == tuple_bytes(content)
            numbered += len(content)
        punctuations += nbytes == 0
        assert nbytes >= 0
    assert punctuations
    assert numbered
    trace = pq.read_table(tmp_path / "trace.parquet", columns=["sender", "receiver", "nbytes"])
    between = [
        nbytes
        for sender, receiver, nbytes in zip(*trace.to_pydict().values(), strict=True)
        if sender.startswith("site.") and receiver.startswith("site.") and sender != receiver
    ]
    assert sorted(between) == sorted(payload.nbytes for payload in shipped)
