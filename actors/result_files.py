"""The files of a run's results: their columns, writing them as results come, and their parts.

Results are written by the process that has them: in virtual time by one writer, live by each
process, into files of its own, so that no pair is handed over, or read again, only to be written.
Where several processes wrote rows of one kind, the file of that name is a folder of parts, as Spark
and its like write them; pyarrow, pandas and Polars read both alike.

Of a live run's processes one on the machine that started the run, or with the same disk, writes
next to where the files are to be (`Destination`); another one writes into a folder of its own,
whose files are fetched piece by piece when all clocks have stopped. No row goes through another
process, and none is written twice on one machine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.protocol import ActorError
from actors.results import Collected, Late, Output
from actors.whole_files import WholeTable, output_error
from joins.errors import DataError
from joins.state import storable

SUMMARY_SCHEMA = pa.schema(
    [
        ("probe_id", pa.int64()),
        ("count", pa.int64()),
        ("fingerprint", pa.uint64()),
        ("latency_ns", pa.int64()),
        ("sender", pa.int32()),
    ]
)
"""Of each probing tuple, in any number of rows: what was found, how long after its birth, and the
rank of the actor that sent it to a sink."""

LATE_SCHEMA = pa.schema(
    [("stream", pa.int8()), ("id", pa.int64()), ("ts", pa.int64()), ("watermark", pa.int64())]
)
"""Tuples that were dropped as late, and the watermark that they came behind."""

COLLECTORS_SCHEMA = pa.schema([(name, pa.int64()) for name in Collected.bytes_of])
"""What collectors of interval joins did, a row per replica."""

_ID = "_id"


def id_columns(streams: Sequence[str], stream: int) -> list[str]:
    """Return the columns of a result's ids in ``results.parquet``: its newest tuple's, the others'.

    A pair of a self join or of two streams has ``probe_id`` and ``match_id``. In a join of more
    streams each has a column of its own, wherever the newest tuple, of stream *stream*, is from.
    """
    if len(streams) <= 2:
        return ["probe_id", "match_id"]
    columns = [name + _ID for name in streams]
    return [columns.pop(stream), *columns]


def pairs_schema(streams: Sequence[str]) -> pa.Schema:
    """Return the columns of ``results.parquet``."""
    ids = id_columns(streams, 0)
    return pa.schema([("probe_stream", pa.int8()), *((name, pa.int64()) for name in ids)])


def summary_path(directory: Path, stream: int) -> Path:
    """Return the file of per-probe counts of a probing stream."""
    return directory / f"probes-{stream}.parquet"


def late_path(directory: Path) -> Path:
    """Return the file of tuples that were dropped as late."""
    return directory / "late.parquet"


def collectors_path(directory: Path) -> Path:
    """Return the file of what collectors did, a row per replica."""
    return directory / "collectors.parquet"


def pairs_path(directory: Path) -> Path:
    """Return the file of pairs."""
    return directory / "results.parquet"


def part_files(path: Path) -> list[Path]:
    """Return the Parquet files that *path*, a file or a folder of parts, consists of."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


_GROUP_ROWS = 65_536
"""Rows of a row group at the most, and those that gather before one is written."""

_WHOLE_ROWS = 8_192
"""Columns of so many rows are written as they are; fewer are copied together with others."""

_RANDOM = ("fingerprint",)
"""Columns that nothing makes shorter."""

_PIECES_WAITING = 4
"""Pieces that wait for the thread at the most."""


class _Columns(WholeTable):
    """A Parquet file that a thread of its own writes columns to.

    What comes in large pieces is not copied; small pieces gather in buffers that are made once:
    many short-lived arrays of changing size would leave holes in the heap, and the process would
    grow with the number of results. There is a set of them for each piece that may wait, and one
    that is filled meanwhile: results come in bursts.

    All first bytes of a column's numbers are written before all second ones, and so on: ids that
    are near each other then differ in few places, which LZ4 makes short in about half the time that
    writing their differences takes. Nulls, and statistics but those of *ordered*
    columns, which readers go by, would only take time.
    """

    def __init__(self, path: Path, schema: pa.Schema, ordered: Sequence[str]) -> None:
        self._schema = pa.schema([field.with_nullable(False) for field in schema])
        by_byte = [f.name for f in schema if f.type.bit_width == 64 and f.name not in _RANDOM]
        super().__init__(
            path,
            self._schema,
            compression={name: "none" if name in _RANDOM else "lz4" for name in schema.names},
            use_dictionary=False,
            column_encoding=dict.fromkeys(by_byte, "BYTE_STREAM_SPLIT"),
            write_statistics=list(ordered),
        )
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._writing: deque[Future[None]] = deque()
        self._buffers = deque(
            [np.empty(_GROUP_ROWS, f.type.to_pandas_dtype()) for f in schema]
            for _ in range(_PIECES_WAITING + 1)
        )
        self._rows = 0

    def add(self, *columns: np.ndarray) -> None:
        """Write rows, as columns that nobody changes any more."""
        taken, rows = 0, len(columns[0])
        if rows >= _WHOLE_ROWS:
            self._flush()
            self._submit(columns)
            return
        while taken < rows:
            step = min(rows - taken, _GROUP_ROWS - self._rows)
            for buffer, column in zip(self._buffers[0], columns, strict=True):
                buffer[self._rows : self._rows + step] = column[taken : taken + step]
            taken += step
            self._rows += step
            if self._rows == _GROUP_ROWS:
                self._flush()

    def finish(self) -> None:
        """Write what is left, and hand all to the system."""
        self._flush()
        self._wait(0)
        super().finish()

    def discard(self) -> None:
        """Remove the file, unless it has appeared."""
        self._thread.shutdown()
        super().discard()

    def _flush(self) -> None:
        if self._rows:
            self._submit([buffer[: self._rows] for buffer in self._buffers[0]])
            self._buffers.rotate(-1)  # the thread is done with the next ones
        self._rows = 0

    def _submit(self, columns: Sequence[np.ndarray]) -> None:
        self._wait(_PIECES_WAITING - 1)
        table = pa.table(columns, schema=self._schema)
        self._writing.append(self._thread.submit(self._writer.write_table, table, _GROUP_ROWS))

    def _wait(self, pieces: int) -> None:
        """Wait until only so many pieces are to be written; raise what the thread raised."""
        while len(self._writing) > pieces:
            try:
                self._writing.popleft().result()
            except OSError as error:
                raise output_error(error, self._path) from None


class ResultWriter:
    """Takes what sinks emit; a context manager, whose files appear when it ends without an error.

    Parameters
    ----------
    directory
        Where to write ``probes-N.parquet`` per probing stream N and, with *pairs*,
        ``results.parquet``; tuples dropped as late go into ``late.parquet``, and
        what collectors of interval joins did into ``collectors.parquet``.
    streams
        Their names, in the order of the query.
    actors
        Their names, in the order of rank.
    pairs
        Whether matches come with their ids.
    """

    def __init__(
        self, directory: Path, *, streams: Sequence[str], actors: Iterable[str], pairs: bool
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._rank = {name: rank for rank, name in enumerate(actors)}
        self._streams = streams
        self._files: list[_Columns] = []
        with ExitStack() as opened:

            def columns(path: Path, schema: pa.Schema, *ordered: str) -> _Columns:
                self._files.append(_Columns(path, schema, ordered))
                opened.callback(self._files[-1].discard)
                return self._files[-1]

            self._summaries = [
                columns(summary_path(directory, stream), SUMMARY_SCHEMA, "probe_id")
                for stream in range(len(streams))
            ]
            self._pairs = None
            if pairs:
                newest = dict.fromkeys(
                    id_columns(streams, stream)[0] for stream in range(len(streams))
                )
                self._pairs = columns(pairs_path(directory), pairs_schema(streams), *newest)
            self._late = columns(late_path(directory), LATE_SCHEMA)
            self._collectors = columns(collectors_path(directory), COLLECTORS_SCHEMA)
            self._opened = opened.pop_all()
        self.produced = 0

    def __enter__(self) -> ResultWriter:
        """Return the writer itself."""
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """Write what is left; after a *failure* discard every file."""
        with self._opened:
            if failure is None:
                self.close()

    def finish(self) -> None:
        """Hand all that is left to the system: from now on there is nothing to collect."""
        for columns in self._files:
            columns.finish()

    def publish(self) -> None:
        """Write what is left, and begin to force all files to the disk, side by side."""
        for columns in self._files:
            columns.publish()

    def close(self) -> None:
        """Return when all files have appeared, `publish`ed before or now."""
        self.publish()
        for columns in self._files:
            columns.close()

    def collect(self, outputs: list[Output | Late | Collected]) -> None:
        """Write *outputs*.

        Raise :exc:`ActorError` where an actor's matches do not fit each other, or the run.
        """
        for output in outputs:
            if isinstance(output, Output):
                self._add_matches(output)
            elif isinstance(output, Late):
                rows = len(output.ids)
                stream, watermark = np.full(rows, output.stream), np.full(rows, output.watermark)
                self._late.add(stream, output.ids, output.ts, watermark)
            elif isinstance(output, Collected):
                figures = [getattr(output, name) for name in COLLECTORS_SCHEMA.names]
                self._collectors.add(*(np.array([figure]) for figure in figures))
            else:
                kind = type(output).__name__
                raise ActorError(f"an actor emitted a {kind}: results are Output, Late, Collected")

    def _add_matches(self, output: Output) -> None:
        flaw = self._flaw(output)
        if flaw:
            raise ActorError(f"{output.sender} reported matches that cannot be: {flaw}")
        matches = output.matches
        self.produced += matches.total
        sender = np.full_like(matches.count, self._rank[output.sender], np.int32)
        self._summaries[matches.stream].add(
            matches.probe_id, matches.count, matches.fingerprint, output.latency_ns, sender
        )
        if self._pairs:
            probe_id, match_id = matches.pairs()
            stream = np.full(len(probe_id), matches.stream, np.int8)
            ids = [probe_id, *np.atleast_2d(match_id.T)]
            if len(self._streams) > 2:
                ids.insert(matches.stream, ids.pop(0))
            self._pairs.add(stream, *ids)

    def _flaw(self, output: Output) -> str | None:
        """Return what an actor of one's own put together wrongly, if anything.

        It looks at every message: lists take less time here than generators.
        """
        matches, streams = output.matches, len(self._streams)
        columns = [matches.probe_id, matches.count, matches.fingerprint, output.latency_ns]
        arrays = columns if matches.match_id is None else [*columns, matches.match_id]
        lists = [type(column).__name__ for column in arrays if not isinstance(column, np.ndarray)]
        if output.sender not in self._rank:
            return f"no actor is called {output.sender!r}"
        if lists:
            return f"their columns are NumPy's arrays, and one is a {lists[0]}"
        if isinstance(matches.stream, float) or matches.stream not in range(streams):
            return f"their stream is {matches.stream}, and there are streams 0 to {streams - 1}"
        shapes = [column.shape for column in columns]
        if set(shapes) != {(matches.probe_id.size,)}:
            return (
                "probe_id, count, fingerprint and birth times have a value per probing tuple each; "
                f"their shapes are {', '.join(map(str, shapes))}"
            )
        if matches.count.dtype.kind not in "iu" or matches.fingerprint.dtype != np.uint64:
            return (
                "counts are of type int64 and fingerprints of uint64; here they are of "
                f"{matches.count.dtype} and {matches.fingerprint.dtype}"
            )
        if [one for one in arrays if len(one) and one.dtype.kind not in "iu"]:
            kinds = ", ".join(str(column.dtype) for column in arrays)
            return f"ids and birth times are integers; their columns are of {kinds}"
        if matches.count.min(initial=0) < 0:
            return f"a count is {matches.count.min()}"
        listed = 0 if matches.match_id is None else len(matches.match_id)
        if self._pairs and listed != matches.total:
            return f"the counts add up to {matches.total}, and match_id has {listed or 'none'}"
        return None


PARTS = ".parts"
"""Folder, in a run's, of what its processes write until it is put together."""
_PIECE_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the results of a run go."""

    folder: str
    """The run's, on the machine that started it."""
    mark: str
    """Name of a file in it that no other folder has: a process that sees it can write there."""
    streams: tuple[str, ...]
    actors: tuple[str, ...]
    pairs: bool
    """As for `actors.result_files.ResultWriter`."""

    @classmethod
    def make(
        cls, directory: Path, *, streams: Iterable[str], actors: Iterable[str], pairs: bool
    ) -> Destination:
        """Make room for parts in *directory*, and return the destination."""
        folder = directory.resolve() / PARTS
        shutil.rmtree(folder, ignore_errors=True)  # an interrupted run's
        folder.mkdir(parents=True)
        opened, mark = tempfile.mkstemp(dir=folder)
        os.close(opened)
        return cls(str(folder), Path(mark).name, tuple(streams), tuple(actors), pairs)


@storable
@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file that was written on another machine, in order."""

    process: int
    name: str
    """Whose file it is."""
    data: np.ndarray
    """Bytes, as uint8."""


class Part:
    """What one process writes; a context manager that leaves nothing but what was finished.

    Attributes
    ----------
    results
        Takes what is emitted.
    """

    def __init__(self, destination: Destination, process: int) -> None:
        self._process = process
        folder = Path(destination.folder)
        self._elsewhere = not (folder / destination.mark).is_file()
        with ExitStack() as opened:
            if self._elsewhere:
                folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
            self._folder = folder / str(process)
            self.results = opened.enter_context(
                ResultWriter(
                    self._folder,
                    streams=destination.streams,
                    actors=destination.actors,
                    pairs=destination.pairs,
                )
            )
            self._open = opened.pop_all()

    def __enter__(self) -> Part:
        """Return the part itself."""
        return self

    def __exit__(self, *failure: object) -> None:
        """Discard what was not published."""
        self._open.__exit__(*failure)  # type: ignore[arg-type]

    def pieces(self) -> Iterator[Piece]:
        """Publish the files; return them piece by piece if they are on another machine."""
        self.results.close()
        if not self._elsewhere:
            return
        for path in sorted(self._folder.glob("*.parquet")):
            with path.open("rb") as file:
                while data := file.read(_PIECE_BYTES):
                    yield Piece(self._process, path.name, np.frombuffer(data, np.uint8))


def receive_piece(piece: Piece, destination: Destination) -> None:
    """Append a piece to its file among the parts."""
    folder = Path(destination.folder) / str(piece.process)
    folder.mkdir(exist_ok=True)
    with (folder / piece.name).open("ab") as file:
        file.write(piece.data.data)


def put_together(destination: Destination) -> None:
    """Move all parts to where a run's files are.

    A file of which one process alone has rows is that process's; one of which several have is a
    folder of theirs.

    Raise :exc:`DataError` naming a file that a process has not written, or not to its end.
    """
    folder = Path(destination.folder)
    directory = folder.parent
    parts = sorted((path for path in folder.iterdir() if path.is_dir()), key=lambda p: int(p.name))
    paths = [late_path(directory), collectors_path(directory)]
    paths += [summary_path(directory, stream) for stream in range(len(destination.streams))]
    if destination.pairs:
        paths.append(pairs_path(directory))
    for path in paths:
        files = [part / path.name for part in parts]
        filled = [file for file in files if _rows_in(file)] or files[:1]
        if len(filled) == 1:
            filled[0].replace(path)
        else:
            path.mkdir()
            for number, file in enumerate(filled):
                file.replace(path / f"part-{number}.parquet")
    shutil.rmtree(folder)


def _rows_in(part: Path) -> int:
    try:
        rows: int = pq.read_metadata(part).num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(
            f"{part.name} of process {part.parent.name} is missing or damaged ({error}): run it "
            "again"
        ) from None
    return rows
