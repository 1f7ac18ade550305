"""The results of a live run as files: each process writes its own part, where they arise.

A process on the machine that started the run, or with the same disk, writes next to where the files
are to be; another one into a folder of its own, whose files are fetched when all clocks have
stopped. No row goes through another process, and none is written twice on one machine.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from actors.result_files import (
    ResultWriter,
    collectors_path,
    late_path,
    pairs_path,
    summary_path,
)
from joins.state import storable

_FOLDER = ".parts"
_PIECE_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the results of a run go.

    Attributes
    ----------
    folder
        The run's, on the machine that started it.
    mark
        Name of a file in it that no other folder has: a process that sees it can write there.
    streams, actors, pairs
        As for `actors.result_files.ResultWriter`.
    """

    folder: str
    mark: str
    streams: tuple[str, ...]
    actors: tuple[str, ...]
    pairs: bool

    @classmethod
    def make(
        cls, directory: Path, *, streams: Iterable[str], actors: Iterable[str], pairs: bool
    ) -> Destination:
        """Make room for parts in *directory*, and return the destination."""
        folder = directory.resolve() / _FOLDER
        shutil.rmtree(folder, ignore_errors=True)  # an interrupted run's
        folder.mkdir(parents=True)
        opened, mark = tempfile.mkstemp(dir=folder)
        os.close(opened)
        return cls(str(folder), Path(mark).name, tuple(streams), tuple(actors), pairs)


@storable
@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a file that was written on another machine, in order.

    Attributes
    ----------
    process, name
        Whose file it is.
    data
        Bytes, as uint8.
    """

    process: int
    name: str
    data: np.ndarray


class Part:
    """What one process writes; a context manager that leaves nothing but what was finished.

    Attributes
    ----------
    results
        Takes what is emitted.
    """

    def __init__(self, destination: Destination, process: int) -> None:
        self._process = process
        self._open = ExitStack()
        folder = Path(destination.folder)
        self._elsewhere = not (folder / destination.mark).is_file()
        if self._elsewhere:
            folder = Path(self._open.enter_context(tempfile.TemporaryDirectory()))
        self._folder = folder / str(process)
        self.results = ResultWriter(
            self._folder,
            streams=destination.streams,
            actors=destination.actors,
            pairs=destination.pairs,
        )

    def __enter__(self) -> Part:
        """Return the part itself."""
        self._open.enter_context(self.results)
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
        filled = [file for file in files if pq.read_metadata(file).num_rows] or files[:1]
        if len(filled) == 1:
            filled[0].replace(path)
        else:
            path.mkdir()
            for number, file in enumerate(filled):
                file.replace(path / f"part-{number}.parquet")
    shutil.rmtree(folder)
