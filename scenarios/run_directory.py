"""Where a run leaves what it wrote, and how it says there that it has not finished."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any

from actors.whole_files import remove_unfinished, write_text, writing
from joins.errors import OutputError

RUNS = Path("runs")
UNFINISHED = "unfinished.txt"
"""File in the directory of a run that goes on, or that was interrupted."""
RESUME, SAVED = "resume.json", "saved"
"""What a run that saves itself writes down of what it runs, and the folder of what it saves."""
POINTS = "points"
"""Folder, in the directory of several runs, with a folder for each."""

RUN_RECORD, TRACE = "run.json", "trace.parquet"
"""What a run writes down about itself, and its messages: names in its directory."""
_MARKS = (RUN_RECORD, TRACE, "compare.json", "study.json", "advice.json", POINTS)
"""By these a directory is known to have a run in it."""
_REPLACED = (
    *_MARKS, "report.html", "compare.html", "study.html", "advice.html", "advice.toml",
    "results.parquet", "joined.parquet", "probes-*.parquet", "late.parquet", "collectors.parquet",
    "replay", ".parts", "failure-*.txt",
)  # fmt: skip
"""What a run, a study, a comparison or an advice writes, so that none of it stays from before."""
_OF_ONE_THAT_SAVES = (RESUME, SAVED)


@contextmanager
def run_directory(
    scenario: str,
    seed: int,
    out: Path | None,
    *,
    resume_line: Callable[[Path], str] | None = None,
    resuming: bool = False,
) -> Iterator[Path]:
    """Make and yield the directory of a new run, linked as ``runs/latest`` unless *out* is given.

    While the run lasts, the directory has a file `UNFINISHED` that says so. It goes when the block
    ends without an error: where it is found, the run goes on or was interrupted. The process also
    has a lock on it, so that no other run writes into the same directory. The system releases a
    lock when its owner dies, however that happens, which no file with a process id can promise.

    Of a run that saves itself, *resume_line* returns what goes on with it: the file says that, and
    so does a note on the error that interrupts the run. *resuming*: what it has saved stays.

    Raise :exc:`OutputError` naming a directory that cannot be written to, that holds something that
    is not a run, or that another run is writing to.
    """
    directory = out or RUNS / scenario / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-s{seed}"
    with writing(directory):
        if directory.is_dir() and any(directory.iterdir()) and not _is_run(directory):
            raise OutputError(f"{directory} holds something that is not a run: give an empty --out")
    with _marked_unfinished(directory, resume_line and resume_line(directory)):
        with writing(directory):
            clear_results(directory, () if resuming else _OF_ONE_THAT_SAVES)
            if out is None:
                _link_latest(directory)
        try:
            yield directory
        except BaseException as error:
            with suppress(OSError):  # Ctrl-C may come just after one was made
                remove_unfinished(directory)
            if resume_line:
                error.add_note(f"go on with: {resume_line(directory)}")
            raise
        for name in _OF_ONE_THAT_SAVES:
            remove(directory / name)


@contextmanager
def shared_directory(directory: Path, mark: str) -> Iterator[None]:
    """Make a directory of many runs' own ones; what earlier ones left there stays.

    It is locked while the block lasts, as that of a run is.

    Raise :exc:`OutputError` naming a directory that cannot be written, one that has something in
    it but no file *mark*, or one that another process is writing to.
    """
    if directory.is_dir():
        there = {path.name for path in directory.iterdir()} - {UNFINISHED}
        if there and mark not in there:
            raise OutputError(f"{directory} holds something that is not a run: give an empty --out")
    with _marked_unfinished(directory):
        yield


def json_text(value: Mapping[str, Any]) -> str:
    """Return *value* as JSON for files and for stdout: indented, letters as they are."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write *value* to *path*, whole, over what was there before."""
    write_text(path, json_text(value))


def read_json(path: Path) -> Any:
    """Return what `write_json` wrote to *path*.

    Raise :exc:`OSError` where it cannot be read, and :exc:`ValueError` where it is no JSON.
    """
    return json.loads(path.read_text(encoding="utf-8"))


@contextmanager
def _marked_unfinished(directory: Path, resume_line: str | None = None) -> Iterator[None]:
    """Make and lock *directory*, which says that it is unfinished until the block ends well."""
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        mark = _lock(directory)
    with mark:
        with writing(directory / UNFINISHED):
            mark.truncate(0)
            mark.write(_unfinished_text(resume_line))
        yield
        (directory / UNFINISHED).unlink(missing_ok=True)


def _lock(directory: Path) -> FileIO:
    """Return the file `UNFINISHED`, made if it is not there, and locked until it is closed.

    Raise :exc:`OutputError` naming the process that has locked it.
    """
    mark = (directory / UNFINISHED).open("ab+", buffering=0)
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with mark:
            mark.seek(0)
            owner = mark.readline().decode().strip()
        raise OutputError(
            f"another run is writing to {directory} ({owner}): give another --out, or wait until "
            "it is done"
        ) from None
    except OSError:
        pass  # a disk without locks: nothing protects one run from another there
    if os.fstat(mark.fileno()).st_nlink == 0:  # its owner finished after we had opened it
        mark.close()
        return _lock(directory)
    return mark


def _unfinished_text(resume_line: str | None) -> bytes:
    remedy = f"go on with:\n{resume_line}" if resume_line else "run it again."
    return (
        f"process {os.getpid()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n"
        "This run has not finished. If there is no such process any more, it was interrupted:\n"
        f"what is here is not complete; {remedy}\n"
    ).encode()


def _is_run(directory: Path) -> bool:
    """Whether *directory* holds a run, finished or broken off."""
    return any((directory / mark).exists() for mark in (UNFINISHED, *_MARKS))


def clear_results(directory: Path, more: Iterable[str] = ()) -> None:
    """Take away what an earlier run left that this one might not replace, and *more* patterns."""
    for pattern in (*_REPLACED, *more):
        for path in directory.glob(pattern):
            remove(path)
    remove_unfinished(directory)


def remove(path: Path) -> None:
    """Delete a file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _link_latest(directory: Path) -> None:
    link = RUNS / "latest"
    fresh = RUNS / f".latest-{os.getpid()}"
    fresh.symlink_to(directory.relative_to(RUNS))
    fresh.replace(link)
