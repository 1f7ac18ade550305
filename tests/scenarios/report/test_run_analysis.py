"""A trace and results in time bins are what adding up their rows one by one gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.feed import Disorder, open_feed
from actors.result_files import SUMMARY_SCHEMA, summary_path
from netsim.trace import COLUMNS, Trace, pack_row
from scenarios.report import run_analysis
from scenarios.report.run_analysis import (
    BINS_MAX,
    TimeBins,
    analyse_results,
    analyse_trace,
    arrival_numbers,
    born_at_rate,
)
from tests.scenarios.toy_run import stream_file

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
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traces")


@given(rows, st.sampled_from([1, 4, 1_000]), st.integers(0, 5_000))
def test_a_trace_in_numbers_is_what_counting_each_nanosecond_gives(
    traces: Path, journal: list[Row], batch: int, messages: int
) -> None:
    write_trace(traces / "trace.parquet", journal)
    end_ns = max((row.times[-1] for row in journal), default=0)
    bins = TimeBins.over(end_ns, messages)
    with mock.patch.object(run_analysis, "READ_ROWS", batch):
        found = analyse_trace(traces / "trace.parquet", ACTORS, {"source"}, bins)

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


read_rows = st.sampled_from([1, 4, 1_000])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


tuples = st.lists(
    st.tuples(
        st.integers(0, 30),  # after the tuple before it
        st.lists(st.tuples(st.integers(0, 60), st.integers(0, 4)), max_size=3),  # its reports
    ),
    max_size=40,
)


@given(st.lists(tuples, min_size=1, max_size=2), read_rows, st.integers(0, 3_000), st.booleans())
def test_every_tuple_is_answered_within_one_bin_of_its_last_report(
    folder: Path,
    streams: list[list[tuple[int, list[tuple[int, int]]]]],
    batch: int,
    messages: int,
    late: bool,
) -> None:
    births = [np.cumsum([gap for gap, _ in stream], dtype=np.int64) for stream in streams]
    if late:  # tuples out of order: those with the lowest ids come last
        births = [births_ns[::-1] for births_ns in births]
    answers = [
        (birth_ns + max(after for after, _ in reports), sum(count for _, count in reports))
        for stream, births_ns in zip(streams, births, strict=True)
        for (_, reports), birth_ns in zip(stream, births_ns.tolist(), strict=True)
        if reports
    ]
    end_ns = max(
        [at_ns for at_ns, _ in answers] + [int(b.max()) + 1 for b in births if len(b)] + [0]
    )
    bins = TimeBins.over(end_ns, messages)
    for stream, probes in enumerate(streams):
        reports = [
            (probe, count, 0, after, 0)
            for probe, (_, all_) in enumerate(probes)
            for after, count in all_
        ]
        columns = [np.array([report[i] for report in reports], np.int64) for i in range(5)]
        table = pa.table(
            [pa.array(c).cast(f.type) for c, f in zip(columns, SUMMARY_SCHEMA, strict=True)],
            schema=SUMMARY_SCHEMA,
        )
        with pq.ParquetWriter(summary_path(folder, stream), SUMMARY_SCHEMA) as writer:
            for first in range(0, len(table), 5):  # as the results' writer: no empty row group
                writer.write_table(table.slice(first, 5))
    order = np.argsort(np.concatenate(births), kind="stable")
    born = np.searchsorted(np.concatenate(births)[order], bins.edges_ns, "left")
    arrivals = np.split(np.argsort(order), np.cumsum([len(each) for each in births])[:-1])
    with mock.patch.object(run_analysis, "READ_ROWS", batch):
        found = analyse_results(folder, bins, born, arrivals)

    assert found.answered.sum() == len(answers)
    assert found.matches.sum() == sum(count for _, count in answers)
    true_bins = np.array([min(at // bins.width_ns, bins.count - 1) for at, _ in answers], int)
    by = np.cumsum(found.answered)
    for bin_ in range(bins.count):
        assert np.sum(true_bins <= bin_ - 1) <= by[bin_] <= np.sum(true_bins <= bin_ + 1)
    known = found.latency_ms([50, 100])
    assert (np.isnan(known[0]) == (found.answered == 0)).all()
    longest = max((max(a for a, _ in r) for s in streams for _, r in s if r), default=None)
    if longest is not None:
        assert np.nanmax(known) == longest / 1e6


def test_results_that_are_not_there_count_as_none(tmp_path: Path) -> None:
    bins = TimeBins.over(1_000, 100)
    found = analyse_results(tmp_path, bins, np.full(bins.count + 1, 7), [np.arange(7)])
    assert not found.answered.any()
    assert np.isnan(found.latency_ms([50])).all()


@given(
    st.lists(st.lists(st.integers(0, 9), max_size=30).map(sorted), min_size=1, max_size=2),
    st.sampled_from([None, Disorder(delay_ns=5), Disorder(delay_ns=3, bounded=False)]),
    read_rows,
)
def test_arrival_numbers_are_those_of_the_feed(
    tmp_path_factory: pytest.TempPathFactory,
    times: list[list[int]],
    disorder: Disorder | None,
    batch: int,
) -> None:
    folder = tmp_path_factory.mktemp("streams")
    files = tuple(stream_file(folder / str(i), f"S{i}", all_) for i, all_ in enumerate(times))
    with mock.patch.object(run_analysis, "READ_ROWS", batch):
        found = arrival_numbers(files, disorder)
    arrived = open_feed(files, disorder).take(1_000)
    for stream, numbers in enumerate(found):
        assert len(numbers) == len(times[stream])
        if arrived is not None:
            assert numbers[arrived.parts[stream].id].tolist() == arrived.seq[stream].tolist()


@given(st.integers(1, 10**7), st.integers(0, 300), st.integers(0, 10**12))
def test_tuples_at_a_steady_rate_are_born_when_the_source_says(
    rate_tps: int, count: int, end_ns: int
) -> None:
    bins = TimeBins.over(end_ns, 10_000)
    births_ns = [seq * 1_000_000_000 // rate_tps for seq in range(count)]
    expected = [sum(birth < edge for birth in births_ns) for edge in bins.edges_ns.tolist()]
    assert born_at_rate(bins, rate_tps, count).tolist() == expected


@given(st.integers(0, 10**15), st.integers(0, 10**9))
def test_time_bins_cover_the_run_and_no_more_than_one_bin_beyond_it(
    end_ns: int, messages: int
) -> None:
    bins = TimeBins.over(end_ns, messages)
    assert 1 <= bins.count <= BINS_MAX
    assert bins.edges_ns[0] == 0
    assert bins.edges_ns[-1] - bins.width_ns < max(1, end_ns) <= bins.edges_ns[-1]
    assert bins.of(np.array([0, end_ns])).tolist() == [0, bins.count - 1]
