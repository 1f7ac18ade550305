"""Feeds: merged by event time, however streams are cut into segments and reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors import feed as feeds
from actors.feed import Disorder, Feed, StreamFile, StreamTable, open_feed
from joins.batch import Batch, Schema
from joins.errors import DataError
from scenarios.worlds import WorldStream
from scenarios.worlds.drawing import draw_stream
from tests.drawn import drawn


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("streams")


@given(
    first=drawn(draw_stream),
    second=drawn(draw_stream),
    segment_rows=st.integers(1, 50),
    reads=st.lists(st.integers(1, 15), min_size=1, max_size=40),
    rows=st.none() | st.integers(1, 30),
)
def test_arrivals_are_in_order_of_time_then_stream_then_position(
    directory: Path,
    first: WorldStream,
    second: WorldStream,
    segment_rows: int,
    reads: list[int],
    rows: int | None,
) -> None:
    files = []
    for name, stream in (("R", first), ("S", second)):
        written = stream.write(name, directory / name, segment_rows)
        files.append(StreamFile(schema=written.schema, directory=written.directory, rows=rows))
    cut = [stream.ts[:rows] for stream in (first, second)]
    expected = sorted((t, s, i) for s, ts in enumerate(cut) for i, t in enumerate(ts))
    feed = Feed(tuple(files))
    found: list[tuple[int, int, int]] = []
    turn = 0
    while True:
        taken = feed.snapshot()
        feed = Feed(tuple(files))
        feed.restore(taken)
        arrivals = feed.take(reads[turn % len(reads)])
        turn += 1
        if arrivals is None:
            break
        part = [
            (int(seq), (int(t), s, int(i)))
            for s, (batch, numbers) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True))
            for seq, t, i in zip(numbers, batch.ts, batch.id, strict=True)
        ]
        assert sorted(seq for seq, _ in part) == list(range(len(found), len(found) + len(part)))
        found += [row for _, row in sorted(part)]
    assert found == expected


def test_a_folder_without_segments_is_an_error_and_not_an_empty_stream(tmp_path: Path) -> None:
    schema = Schema(stream="R", fields={"x": "float64"})
    feed = Feed((StreamFile(schema=schema, directory=tmp_path),))
    with pytest.raises(DataError, match="stream 'R': no Parquet segment in"):
        feed.take(1)


def test_a_batch_that_was_handed_out_keeps_its_values(directory: Path) -> None:
    stream = WorldStream(list(range(10)), [float(i) for i in range(10)], list(range(10)))
    feed = Feed((stream.write("T", directory / "T", 3),))
    early = feed.take(4)
    feed.take(6)
    assert early is not None
    assert np.array_equal(early.parts[0].ts, [0, 1, 2, 3])


def test_counting_the_tuples_of_a_stream_leaves_none_of_its_segments_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = WorldStream(list(range(30)), [float(i) for i in range(30)], list(range(30)))
    file = stream.write("R", tmp_path / "R", 10)
    opened: list[pq.ParquetFile] = []

    def opening(path: Path) -> pq.ParquetFile:
        opened.append(pq.ParquetFile(path))
        return opened[-1]

    monkeypatch.setattr(feeds, "_opened", opening)
    assert file.tuples == 30
    assert [segment.closed for segment in opened] == [True] * 3


@pytest.mark.parametrize("rows", [7, 1_000, 30_000])
def test_delayed_tuples_are_put_in_order_once(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """However few are taken at a time, and however many are under way: here some thousand."""
    times = np.arange(10_000)
    tables = [
        StreamTable(
            schema=Schema(stream=name, fields={"x": "int64"}),
            table=pa.table({"ts": times, "x": times}),
        )
        for name in ("R", "S")
    ]
    disorder = Disorder(delay_ns=3_000)
    due = [disorder.due(stream, batch) for stream, batch in enumerate(map(whole, tables))]
    expected = sorted((t, s, i) for s, ts in enumerate(due) for i, t in enumerate(ts.tolist()))
    sorted_rows = 0
    lexsort = np.lexsort

    def counting(keys: Any) -> np.ndarray:
        nonlocal sorted_rows
        sorted_rows += len(keys[0])
        return lexsort(keys)

    monkeypatch.setattr(np, "lexsort", counting)
    feed, found = open_feed(tuple(tables), disorder), []
    while (arrivals := feed.take(rows)) is not None:
        for stream, (part, seq) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True)):
            found += [(n, stream, i) for n, i in zip(seq.tolist(), part.id.tolist(), strict=True)]
    assert [row[1:] for row in sorted(found)] == [row[1:] for row in expected]
    assert [row[0] for row in sorted(found)] == list(range(20_000))
    assert sorted_rows <= 20_000


def whole(table: StreamTable) -> Batch:
    (batch,) = table.batches()
    return batch
