"""Results reach their files whole and in order, in pieces of any size, from any machine."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from actors import result_files
from actors.protocol import ActorError
from actors.result_files import (
    Destination,
    Part,
    ResultWriter,
    part_files,
    put_together,
    receive_piece,
)
from actors.results import Late, Output
from joins.errors import DataError, OutputError
from joins.matches import Matches

STREAMS = ("R", "S")


def found(first: int, rows: int, sender: str = "pe.0") -> Output:
    """Return matches of *rows* probes from *first* on, two of each, at id and id + 1."""
    ids = np.arange(first, first + rows)
    matches = Matches(
        stream=0,
        probe_id=ids,
        count=np.full(rows, 2),
        fingerprint=ids.astype(np.uint64),
        match_id=np.stack([ids, ids + 1], axis=1).ravel(),
    )
    return Output(matches, ids * 10, sender)


def written(path: Path, column: str) -> list[int]:
    values: list[int] = pq.read_table(path)[column].to_pylist()
    return values


def test_large_and_small_pieces_come_out_in_the_order_they_went_in(tmp_path: Path) -> None:
    sizes = [1, 9_000, 3, 70_000, 1, 1, 20_000]
    with ResultWriter(tmp_path, streams=STREAMS, actors=["a", "pe.0"], pairs=True) as writer:
        first = 0
        for rows in sizes:
            writer.collect([found(first, rows)])
            first += rows
    assert written(tmp_path / "probes-0.parquet", "probe_id") == list(range(sum(sizes)))
    assert set(written(tmp_path / "probes-0.parquet", "sender")) == {1}
    pairs = pq.read_table(tmp_path / "results.parquet")
    assert pairs["probe_id"].to_pylist() == [i for i in range(sum(sizes)) for _ in range(2)]
    assert pairs["match_id"].to_pylist() == [i + j for i in range(sum(sizes)) for j in range(2)]
    assert writer.produced == 2 * sum(sizes)


@pytest.mark.parametrize(
    ("column", "change", "words"),
    [
        ("stream", lambda stream: 2, "their stream is 2, and there are streams 0 to 1"),
        ("stream", lambda stream: -1, "their stream is -1"),
        ("count", lambda count: count[1:], r"their shapes are \(3,\), \(2,\), \(3,\), \(3,\)"),
        ("probe_id", lambda ids: ids[0, ...], r"their shapes are \(\), \(3,\)"),
        ("probe_id", lambda ids: np.append(ids, 9), r"their shapes are \(4,\), \(3,\)"),
        ("fingerprint", lambda sums: sums[:, None], r"\(3, 1\)"),
        ("fingerprint", lambda sums: sums.astype(float), "of int64 and float64"),
        ("count", lambda count: count.astype(float), "of float64 and uint64"),
        ("count", lambda count: count - 4, "a count is -2"),
        ("match_id", lambda ids: ids[1:], "add up to 6, and match_id has 5"),
        ("match_id", lambda ids: None, "add up to 6, and match_id has none"),
        ("match_id", lambda ids: ids + 0.5, "of int64, int64, uint64, int64, float64"),
        ("match_id", lambda ids: ids.tolist(), "one is a list"),
        ("stream", float, "their stream is 0.0, and there are streams 0 to 1"),
    ],
)
def test_matches_that_do_not_fit_each_other_are_refused_with_their_actor(
    column: str, change: Callable[[Any], Any], words: str, tmp_path: Path
) -> None:
    output = found(0, 3)
    matches = replace(output.matches, **{column: change(getattr(output.matches, column))})
    with ResultWriter(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True) as writer:
        with pytest.raises(ActorError, match=rf"pe\.0 reported matches that cannot be: .*{words}"):
            writer.collect([replace(output, matches=matches)])
        writer.collect([output])
    assert writer.produced == 6


def test_results_of_nobody_are_refused(tmp_path: Path) -> None:
    with (
        ResultWriter(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True) as writer,
        pytest.raises(ActorError, match=r"no actor is called 'pe\.1'"),
    ):
        writer.collect([replace(found(0, 3), sender="pe.1")])


def test_small_pieces_wait_unchanged_for_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = pq.ParquetWriter.write_table

    def slow(file: pq.ParquetWriter, *arguments: Any) -> None:
        time.sleep(0.005)
        write(file, *arguments)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", slow)
    rows, piece = 1_000_000, 8_000
    with ResultWriter(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=False) as writer:
        for first in range(0, rows, piece):
            writer.collect([found(first, piece)])
    assert written(tmp_path / "probes-0.parquet", "probe_id") == list(range(rows))


def test_after_a_failure_there_is_no_file(tmp_path: Path) -> None:
    def write() -> None:
        with ResultWriter(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True) as writer:
            writer.collect([found(0, 10_000)])
            writer.finish()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert list(tmp_path.iterdir()) == []


def write_part(destination: Destination, process: int, outputs: list[Any]) -> None:
    """Do what a process of a live run does with what it emits."""
    with Part(destination, process) as part:
        part.results.collect(outputs)
        part.results.finish()
        for piece in part.pieces():
            receive_piece(piece, destination)


@pytest.mark.parametrize("far", [False, True], ids=["on this machine", "on another"])
def test_parts_of_several_processes_are_one_result(tmp_path: Path, far: bool) -> None:
    """Parts where several have rows, one file where one has."""
    destination = Destination.make(tmp_path, streams=STREAMS, actors=["pe.0", "pe.1"], pairs=True)
    if far:
        (Path(destination.folder) / destination.mark).unlink()
    late = Late(1, np.array([4]), np.array([40]), 50, (4, 4))
    write_part(destination, 0, [found(0, 30_000)])
    write_part(destination, 1, [found(30_000, 5, "pe.1"), late])
    write_part(destination, 2, [late])
    put_together(destination)
    assert len(part_files(tmp_path / "results.parquet")) == 2
    assert sorted(written(tmp_path / "probes-0.parquet", "probe_id")) == list(range(30_005))
    assert (tmp_path / "probes-1.parquet").is_file()
    assert (tmp_path / "collectors.parquet").is_file()
    assert written(tmp_path / "late.parquet", "id") == [4, 4]
    names = ["collectors", "late", "probes-0", "probes-1", "results"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{n}.parquet" for n in names]


def test_a_process_elsewhere_that_cannot_write_its_part_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    destination = Destination.make(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True)
    (Path(destination.folder) / destination.mark).unlink()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))

    def refuse(*_: object) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr(result_files, "_Columns", refuse)
    with pytest.raises(OutputError) as refused:
        Part(destination, 0)
    # By itself, and not once nothing refers to the part, as the error does.
    assert list(elsewhere.iterdir()) == []
    assert refused.tb


def test_rows_of_one_process_alone_are_one_file(tmp_path: Path) -> None:
    destination = Destination.make(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True)
    write_part(destination, 0, [])
    write_part(destination, 1, [found(0, 10)])
    put_together(destination)
    assert (tmp_path / "results.parquet").is_file()
    assert len(written(tmp_path / "results.parquet", "probe_id")) == 20


def test_what_an_interrupted_run_left_is_not_taken_for_a_part(tmp_path: Path) -> None:
    left = Destination.make(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True)
    write_part(left, 0, [found(0, 10)])
    destination = Destination.make(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True)
    write_part(destination, 0, [found(0, 3)])
    put_together(destination)
    assert len(written(tmp_path / "probes-0.parquet", "probe_id")) == 3
    assert not Path(left.folder).exists()


@pytest.mark.parametrize("part", [b"", b"PAR1 half of it", None])
def test_a_part_that_was_not_written_to_its_end_is_named(
    part: bytes | None, tmp_path: Path
) -> None:
    destination = Destination.make(tmp_path, streams=STREAMS, actors=["pe.0"], pairs=True)
    for process in range(2):
        write_part(destination, process, [found(0, 10)])
    path = Path(destination.folder) / "1" / "late.parquet"
    path.unlink() if part is None else path.write_bytes(part)
    with pytest.raises(DataError, match=r"^late.parquet of process 1 is missing or damaged"):
        put_together(destination)
