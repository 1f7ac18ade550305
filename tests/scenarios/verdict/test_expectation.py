"""What the oracle works out beside a run is what it would say after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors import feed
from actors.feed import StreamFile
from joins import oracle
from joins.arrivals import merged_places
from joins.batch import Batch, Schema
from joins.errors import DataError
from joins.matches import Matches
from joins.queries.parser import parse_query
from scenarios.verdict import expectation
from scenarios.verdict.expectation import Expectation, expected_sums
from scenarios.worlds import WorldStream
from tests.scenarios.verdict.broken import Break, wrapped
from tests.scenarios.verdict.test_mutants import RUNS, Ordinary

QUERY = parse_query("SELECT R.x FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '5' ON '20')")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[StreamFile, ...]:
    folder = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(3)
    files = []
    for name in "RS":
        ts = np.sort(rng.integers(0, 500, 200)).tolist()
        stream = WorldStream(ts, rng.random(200).tolist(), rng.integers(0, 9, 200).tolist())
        files.append(stream.write(name, folder / name, 64))
    return tuple(files)


def test_sums_are_those_of_the_oracle(
    files: tuple[StreamFile, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectation, "CHUNK_ROWS", 37)
    right = [one for one in expected_sums(QUERY, files) if len(one)]
    with Expectation(QUERY, files) as ahead:
        found = list(ahead.sums())
    assert len(found) == len(right) > 10
    for one, other in zip(found, right, strict=True):
        assert one.stream == other.stream
        for name in ("probe_id", "count", "fingerprint"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_what_goes_wrong_is_raised_where_the_sums_are_read(tmp_path: Path) -> None:
    schema = WorldStream([0], [0.0], [0]).write("R", tmp_path / "R", 1).schema
    nowhere = StreamFile(schema=schema, directory=tmp_path / "nowhere")
    with Expectation(QUERY, (nowhere, nowhere)) as ahead, pytest.raises(Exception, match="nowhere"):
        list(ahead.sums())


@pytest.mark.parametrize("lost", ["a segment", "the first tuple of each"])
def test_a_reader_that_leaves_tuples_out_is_found_though_the_run_reads_the_same_ones(
    lost: str, files: tuple[StreamFile, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(original: Any, self: StreamFile, start: int = 0) -> Iterator[Batch]:
        for place, batch in enumerate(original(self, start)):
            if lost != "a segment":
                yield batch.slice(1, len(batch))
            elif place != 1:
                yield batch

    wrapped(StreamFile, "batches", fewer)(monkeypatch)
    with pytest.raises(DataError, match=r"stream 'R' has 200 tuples, of which 1(36|96) could"):
        list(expected_sums(QUERY, files))


@pytest.mark.parametrize("chunk_rows", [1, 37, 400])
def test_streams_that_are_merged_in_another_order_give_no_verdict(
    chunk_rows: int, files: tuple[StreamFile, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def last_stream_first(times: Any, rows: int) -> list[np.ndarray]:
        return merged_places(times[::-1], rows)[::-1]

    monkeypatch.setattr(expectation, "CHUNK_ROWS", chunk_rows)
    assert list(expected_sums(QUERY, files))
    monkeypatch.setattr(feed, "merged_places", last_stream_first)
    with pytest.raises(DataError, match="another order than that of their event times"):
        list(expected_sums(QUERY, files))


@pytest.mark.parametrize("name", ["hash_join", "kp_oij", "semijoin"])
def test_an_oracle_that_leaves_tuples_out_gives_no_verdict(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(original: Any, *args: Any, **options: Any) -> Iterator[Matches]:
        return (sums for sums in original(*args, **options) if sums.stream == 1)

    monkeypatch.setattr(oracle, "expected", partial(fewer, oracle.expected))
    with pytest.raises(DataError, match=r"the oracle ended at tuple 0 of 240"):
        RUNS[name].run()


def test_it_ends_with_its_block_whether_or_not_it_was_read(
    files: tuple[StreamFile, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: Any, **__: Any) -> Iterator[Any]:
        while True:
            yield from right

    right = [one for one in expected_sums(QUERY, files) if len(one)]
    monkeypatch.setattr(expectation, "expected_sums", endless)
    with Expectation(QUERY, files) as ahead:
        assert len(next(ahead.sums()).count)
    assert not ahead._thread.is_alive()


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


def _counts_half(monkeypatch: pytest.MonkeyPatch) -> None:
    tuples = feed.StreamTable.tuples
    monkeypatch.setattr(
        feed.StreamTable, "tuples", property(lambda self: tuples.__get__(self) // 2)
    )


@pytest.mark.parametrize(
    ("run", "breaks", "words"),
    [
        (RUNS["hash_join"], _swaps_columns, "what was read of column"),
        (RUNS["spo_join"], _loses_fractions, "what was read of column y"),
        (RUNS["split_join"], _counts_half, "what was read of column"),
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
