"""Workers that are ready when Spark needs them: the query in miniature, while Spark plans it.

A Python worker takes a second before its first trigger: it starts, imports what actors consist of,
and loads kernels. Spark takes as long to plan that trigger, and seldom keeps all cores busy. So
meanwhile the first tuples of the log go through all actors in each worker, and what comes out is
forgotten; later tasks are given workers that are idle. The library of the state store is loaded in
the same time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from actors.serialisation import to_bytes
from joins.machine.memory import keep_freed_memory
from spark_bridge.hosted.results import write_results
from spark_bridge.hosted.shard import StageShard, cut_into_stages, unpack_letters
from spark_bridge.hosted.stage import HostedQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def rehearsing(
    query: HostedQuery, first_parcel: Callable[[], bytes], *, workers: int, spark: SparkSession
) -> Iterator[None]:
    """Have *workers* Python workers rehearse *query* from now on, beside what is done here.

    Parameters
    ----------
    first_parcel
        Returns a parcel with the first tuples of all streams; it is called in another thread. What
        it or the rehearsal raises is ignored: the query itself will meet it again.
    """

    def rehearse() -> None:
        tasks = spark.sparkContext.parallelize(range(workers), workers)
        tasks.foreachPartition(partial(_rehearse, query, first_parcel()))

    def load_library() -> None:
        spark.sparkContext._jvm.org.rocksdb.RocksDB.loadLibrary()

    with ThreadPoolExecutor(max_workers=2) as beside:  # where what they raise stays
        beside.submit(rehearse)
        beside.submit(load_library)
        yield


def _rehearse(query: HostedQuery, parcel: bytes, numbers: Iterable[int]) -> None:
    """Run all actors of *query* in this process; Spark passes the *numbers* of its tasks."""
    with suppress(Exception):
        keep_freed_memory()
        stages = cut_into_stages(query.specs, query.wiring, fold="a rehearsal")
        shard = StageShard((0, 0), stages, query.specs, query.wiring, query.seed)
        outcome = shard.deliver(unpack_letters([parcel]))
        to_bytes(shard.snapshot())
        with tempfile.TemporaryDirectory() as folder:
            write_results(outcome.emitted, Path(folder) / "found.parquet", pairs=query.pairs)
