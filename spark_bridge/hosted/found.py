"""What leaves the system, as the columns that are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from actors.results import Late, Output

PAIRS = "probe_stream byte, probe_id bigint, match_id bigint"
COUNTS = "probe_stream byte, probe_id bigint, count bigint, fingerprint bigint"
"""Columns of the output: a row per pair, or per probing tuple and joiner with matches counted (the
fingerprint as its signed twin: Spark has no unsigned numbers). A null in the third column says that
the tuple was dropped as late."""

_ROWS_AT_ONCE = 1 << 20


def columns(emitted: Sequence[Any], *, pairs: bool) -> Iterator[pa.RecordBatch]:
    """Return what was emitted as record batches of `PAIRS` or of `COUNTS`.

    What actors tell of themselves is left out.
    """
    parts = [_found(e, pairs) for e in emitted if isinstance(e, Output)]
    parts += [_late(e, pairs) for e in emitted if isinstance(e, Late)]
    if parts:
        table = pa.concat_tables(parts).combine_chunks()
        yield from table.to_batches(max_chunksize=_ROWS_AT_ONCE)


def _found(output: Output, pairs: bool) -> pa.Table:
    matches = output.matches
    if pairs:
        probe_id, match_id = matches.pairs()
        rest = {"match_id": match_id}
    else:
        probe_id = matches.probe_id
        rest = {"count": matches.count, "fingerprint": matches.fingerprint.view(np.int64)}
    return _table(matches.stream, probe_id, rest)


def _late(late: Late, pairs: bool) -> pa.Table:
    nothing = pa.nulls(len(late.ids), pa.int64())
    names = ("match_id",) if pairs else ("count", "fingerprint")
    return _table(late.stream, late.ids, dict.fromkeys(names, nothing))


def _table(stream: int, ids: np.ndarray, rest: Mapping[str, Any]) -> pa.Table:
    return pa.table({"probe_stream": np.full(len(ids), stream, np.int8), "probe_id": ids, **rest})
