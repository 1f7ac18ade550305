"""Workers rehearse a query before it runs, and what goes wrong there is ignored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from actors.protocol import ActorSpec, Context, Message
from actors.source import ARRIVALS, TakesArrivals
from joins.batch import Schema
from spark_bridge.hosted.host import rehearsing, run_hosted
from spark_bridge.hosted.stage import HostedQuery
from tests.spark_bridge.hosted.hosted_jobs import SELF, hosted


class Noting(TakesArrivals):
    """Notes its process, and how many tuples it is given, as a line of a file."""

    state = ()

    def __init__(self, *, path: Path) -> None:
        self._path = path

    def receive(self, message: Message, context: Context) -> None:
        """Note what arrives."""
        if message.port == ARRIVALS:
            with self._path.open("a") as file:
                file.write(f"{os.getpid()} {len(message.payload.arrivals)}\n")


def _noting(path: Path) -> HostedQuery:
    return HostedQuery(
        text="",
        schemas=(Schema(stream="T", fields={}),),
        specs={"noting": ActorSpec(actor=Noting, arguments={"path": path})},
        wiring={"noting": {}},
    )


def test_workers_run_the_first_tuples_beside_the_query(spark: Any, tmp_path: Path) -> None:
    hosted("nested_loop", SELF, tmp_path, rows=300, run_rows=150)
    run_hosted(_noting(tmp_path / "noted"), tmp_path / "arrivals", tmp_path / "run", spark=spark)
    noted = [line.split() for line in (tmp_path / "noted").read_text().splitlines()]
    assert sorted(rows for _, rows in noted) == ["150", "150", "96"]
    assert str(os.getpid()) not in {process for process, _ in noted}


@pytest.mark.parametrize("where", ["driver", "worker"])
def test_what_fails_in_a_rehearsal_is_left_to_the_query(
    spark: Any, tmp_path: Path, where: str
) -> None:
    def first_parcel() -> bytes:
        if where == "driver":
            raise OSError("no log")
        return b"no parcel"

    with rehearsing(_noting(tmp_path / "noted"), first_parcel, workers=1, spark=spark):
        pass
    assert not (tmp_path / "noted").exists()
    assert spark.range(9).count() == 9
