from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.trace import COLUMNS, Trace, pack_row
from scenarios.report import run_analysis
from scenarios.report.run_analysis import TimeBins, analyse_trace

ACTORS = ["source", "joiner.0", "joiner.1", "sink"]
PORTS = ["in", "out"]


class Row(NamedTuple):
    """One served message or timer, actors and ports by their places."""

    sender: int
    receiver: int
    port: int
    nbytes: int
    last: int
    times: list[int]


rows = st.lists(
    st.builds(
        Row,
        st.integers(0, 3),
        st.integers(0, 3),
        st.integers(0, 1),
        st.integers(0, 500),
        st.integers(-1, 90),
        st.lists(st.integers(0, 150), min_size=5, max_size=5).map(sorted),
    ),
    max_size=25,
)


def write_trace(path: Path, journal: list[Row]) -> None:
    names = [*ACTORS, *PORTS]
    with Trace(names, path) as trace:
        for seq, row in enumerate(journal):
            port = len(ACTORS) + row.port
            last = row.last
            trace.record(
                pack_row(row.sender, row.receiver, port, seq, row.nbytes, 1, last, last, *row.times)
            )
        trace.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@given(rows, st.sampled_from([1, 4, 1_000]), st.integers(0, 5_000))
def test_a_trace_in_numbers_is_what_counting_each_nanosecond_gives(
    folder: Path, journal: list[Row], batch: int, messages: int
) -> None:
    write_trace(folder / "trace.parquet", journal)
    end_ns = max((row.times[-1] for row in journal), default=0)
    bins = TimeBins.over(end_ns, messages)
    with mock.patch.object(run_analysis, "READ_ROWS", batch):
        found = analyse_trace(folder / "trace.parquet", ACTORS, {"source"}, bins)

    queued: Counter[tuple[int, int]] = Counter()
    stages: Counter[tuple[int, int]] = Counter()
    busy: Counter[int] = Counter()
    messages_to: Counter[int] = Counter()
    nbytes: Counter[tuple[str, str, str]] = Counter()
    entered = [0] * (bins.count + 1)
    for row in journal:
        *_, arrived_ns, started_ns, done_ns = row.times
        for now_ns in range(arrived_ns, started_ns):
            queued[row.receiver, now_ns // bins.width_ns] += 1
        busy[row.receiver] += done_ns - started_ns
        if row.sender == row.receiver:
            continue
        messages_to[row.receiver] += 1
        channel = (ACTORS[row.sender], ACTORS[row.receiver], PORTS[row.port])
        nbytes[channel] += row.nbytes
        for stage in range(4):
            stages[row.receiver, stage] += row.times[stage + 1] - row.times[stage]
        for edge in range(1, bins.count + 1):
            before = row.times[0] < edge * bins.width_ns or edge == bins.count
            if ACTORS[row.sender] == "source" and before:
                entered[edge] = max(entered[edge], row.last + 1)

    for actor in range(len(ACTORS)):
        assert found.busy_ns[actor] == busy[actor]
        assert found.messages[actor] == messages_to[actor]
        assert [stages[actor, stage] for stage in range(4)] == found.stage_ns[actor].tolist()
        counted = [queued[actor, bin_] for bin_ in range(bins.count)]
        assert found.queued_ns[actor].tolist() == counted
    assert found.channel_bytes == nbytes
    assert found.entered.tolist() == entered


def test_the_columns_read_are_columns_of_the_trace() -> None:
    assert set(run_analysis._COLUMNS) <= set(COLUMNS)
