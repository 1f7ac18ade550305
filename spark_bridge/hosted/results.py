"""Results as Parquet files that the executors write themselves, each whole or not at all.

Passed on through Spark, results would go through the JVM row by row, which costs several times what
finding them does. Each trigger of each shard writes one file, named by both, and makes it visible
when it is complete. A trigger that Spark runs again, because it was killed, begins with the same
state and takes the same arrivals: it writes the same file again. So no result is missing, and none
is there twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.results import Late, Output
from actors.whole_files import whole_file


def write_results(emitted: Sequence[Any], path: Path, *, pairs: bool) -> None:
    """Write the results among what was *emitted* to *path*; no file where there are none.

    The columns are `spark_bridge.runs.PAIRS`, or `COUNTS`. Actors' reports about themselves are
    left out. Ids hardly repeat, and fingerprints never: a dictionary and compression would each
    cost more than the rest of writing. So, nearly, would a null mark for each value.
    """
    matched = [_matched(e, pairs) for e in emitted if isinstance(e, Output)]
    late = [_late(e, pairs) for e in emitted if isinstance(e, Late)]
    if not matched and not late:
        return
    table = pa.concat_tables([*matched, *late])
    fields = [field.with_nullable(bool(late)) for field in table.schema]
    with whole_file(path) as unfinished:
        pq.write_table(
            table.cast(pa.schema(fields)), unfinished, compression="none", use_dictionary=False
        )


def _matched(output: Output, pairs: bool) -> pa.Table:
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
