"""The directory of a run: what is in it, how it is marked unfinished, how a run is resumed from it.

A run that saves writes `RESUME` into its directory before anything runs: the whole configuration,
where its prepared streams are, and a digest of what is in them. What `actors.hosting.saved_run` has
saved is beside it, in `SAVED`. Both go when the run has finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from io import FileIO
from pathlib import Path
from typing import Any, ClassVar

from actors.hosting.saved_run import SavedRun
from actors.result_files import PARTS, part_files
from actors.whole_files import remove_unfinished, require_utf8, write_text, writing
from joins.errors import OutputError
from scenarios.config import RunConfig
from scenarios.formatting import json_text
from scenarios.plan import Plan, Prepare, bound_query
from scenarios.scenario_files import ConfigError, build
from scenarios.tables import TableStream, add_to_digest
from spark_bridge.prepared import PreparedStream, load_stream

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
    "replay", PARTS, "failure-*.txt",
)  # fmt: skip
"""What a run, a study, a comparison or an advice writes, so that none of it stays from before."""
_OF_ONE_THAT_SAVES = (RESUME, SAVED)
_OF_SEVERAL = {
    "study.json": "a study or a sweep, not of one run: its page is study.html, and joinsim run "
    "with --out writes one run whole, of a study with --point",
    "compare.json": "a comparison, not of one run: its page is compare.html, and joinsim run with "
    "--topology and --out writes one run whole",
    "advice.json": "advice, not of one run: its page is advice.html, and joinsim run advice.toml "
    "runs the winner",
    "reproduce.json": "a reproduction, not of one run: its page is reproduce.html, and joinsim "
    "claims reads it",
}
"""The file by which the folder of several runs is known, to what it has."""


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
            raise OutputError(f"{directory} holds something that is not a run: give an empty one")
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
                remove(directory / PARTS)
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
            raise OutputError(f"{directory} holds something that is not a run: give an empty one")
    with _marked_unfinished(directory):
        yield


class WrittenResult(ABC):
    """What several runs came to, of which their directory has a JSON file."""

    file: ClassVar[str]
    """Its name."""

    @abstractmethod
    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys; *replay* repeats the runs."""

    def write_json(self, directory: Path, replay: str) -> None:
        """Write the file, whole, over the one before."""
        write_json(directory / self.file, self.as_json(replay))


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
    require_utf8(directory)
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
            f"another run is writing to {directory} ({owner}): give another folder, or wait "
            "until it is done"
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
    remove_matching(directory, (*_REPLACED, *more))
    remove_unfinished(directory)


def read_results(directory: Path) -> dict[str, bytes]:
    """Return the contents of a run's files of results, by name: equal where the results are.

    The trace is left out: files of equal traces differ in some bytes, and digests compare those.
    """
    return {
        path.name: path.read_bytes() for path in directory.glob("*.parquet") if path.name != TRACE
    }


def remove_matching(directory: Path, patterns: Iterable[str]) -> None:
    """Delete the files and folders in *directory* that one of *patterns* matches."""
    for pattern in patterns:
        for path in directory.glob(pattern):
            remove(path)


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


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    """A run that did not finish, as its directory has it."""

    directory: Path
    """Of the run."""
    configuration: dict[str, Any]
    """All of its keys."""
    folders: tuple[str | None, ...]
    """Per stream that of the prepared stream; None: it was in memory."""
    digests: tuple[str, ...]
    """Digests of the streams."""
    every_ns: int
    """Real time from one snapshot to the next."""
    replay: str
    """The command or call that repeats it from the beginning."""

    def load_streams(self, prepare: Prepare) -> tuple[PreparedStream, ...]:
        """Return the prepared streams; *prepare* prepares those that were in memory again.

        Raise :exc:`ConfigError` where one was a table that the caller passed.
        """
        if None in self.folders:
            config = RunConfig.model_validate(self.configuration)
            if not any(stream.table for stream in config.streams):
                return prepare(config, bound_query(config.query, config.bind))
            raise ConfigError(
                f"{self.directory}: its streams were tables in memory: pass them again, as in "
                f"joinsim.resume({str(self.directory)!r}, streams)"
            )
        return tuple(load_stream(folder) for folder in self.folders if folder)

    def check_streams(self, streams: Sequence[PreparedStream]) -> None:
        """Raise :exc:`ConfigError` naming a stream that is not what it was."""
        for stream, before in zip(streams, self.digests, strict=True):
            if digest_stream(stream) != before:
                raise ConfigError(
                    f"{self.directory}: the data of stream {stream.name!r} ({stream.path}) has "
                    f"changed since: the run cannot go on, start it again: {self.replay}"
                )


def check_saves(plan: Plan) -> None:
    """Raise :exc:`ConfigError` where a run of *plan* could not go on from what it saves."""
    if plan.config.clock == "live":
        raise ConfigError("save_every is for virtual time: nothing repeats a live run exactly")


def resume_line_of(plan: Plan) -> Callable[[Path], str]:
    """Return a function that returns what goes on with a run of *plan*, given its directory."""
    streams = zip(plan.config.streams, plan.streams, strict=True)
    if any(one.table and isinstance(stream, TableStream) for one, stream in streams):
        return lambda directory: f"joinsim.resume({str(directory.resolve())!r}, streams)"
    return lambda directory: shlex.join(["joinsim", "run", "--resume", str(directory.resolve())])


@contextmanager
def saving(plan: Plan, directory: Path, every_ns: int, replay: str) -> Iterator[SavedRun]:
    """Write down what is run, and yield where the run is to save itself, or has already."""
    if not (directory / RESUME).exists():
        about = {
            "joinsim": version("joinsim"),
            "configuration": plan.config.model_dump(mode="json"),
            "folders": [
                None if isinstance(stream, TableStream) else str(stream.path.parent.resolve())
                for stream in plan.streams
            ],
            "digests": [digest_stream(stream) for stream in plan.streams],
            "every_ns": every_ns,
            "replay": replay,
        }
        write_json(directory / RESUME, about | {"digest": _digest_of(about)})
    with SavedRun(directory / SAVED, every_s=every_ns / 1e9) as disk:
        yield disk


def read_interrupted(directory: Path) -> Interrupted:
    """Return what *directory* says of its run.

    Raise :exc:`ConfigError` where there is no run, or none that can go on.
    """
    if not (directory / RESUME).is_file():
        raise ConfigError(f"{directory}: {_why_not(directory)}")
    try:
        about = read_json(directory / RESUME)
        digest, as_found = about.pop("digest"), _digest_of(about)
        made_by = about.pop("joinsim")
        about |= {name: tuple(about[name]) for name in ("folders", "digests")}
        interrupted = Interrupted(directory=directory, **about)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{directory / RESUME} is damaged ({error}): start the run again"
        ) from None
    if made_by != version("joinsim"):
        raise ConfigError(
            f"{directory} is a run of joinsim {made_by}, and this is {version('joinsim')}: what "
            f"one saves another cannot go on from; start it again: {interrupted.replay}"
        )
    build(interrupted.configuration, where=f"{directory / RESUME} is damaged")
    if digest != as_found:
        raise ConfigError(
            f"{directory / RESUME} is not as the run wrote it: it cannot go on with another "
            f"configuration; start it again: {interrupted.replay}"
        )
    return interrupted


def _digest_of(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(about).encode()).hexdigest()


def _why_not(directory: Path) -> str:
    if (directory / UNFINISHED).is_file():
        return (
            "this run was interrupted and had saved nothing: start it again, and to have it saved "
            "from time to time give save_every='10s', or --save-every 10s"
        )
    if (directory / RUN_RECORD).is_file():
        return "this run has finished, there is nothing to resume"
    return "there is no run to resume" if directory.is_dir() else "there is no such directory"


def why_no_run(directory: Path, needed: str) -> str:
    """Return what a directory is that has not all that a run writes, of which *needed* is read."""
    if not directory.is_dir():
        return f"there is no folder {directory}: name one that a run has written"
    for file, what in _OF_SEVERAL.items():
        if (directory / file).is_file():
            return f"{directory} is the folder of {what}"
    return f"{directory} is no finished run: it needs {needed}, which `joinsim run` writes"


def digest_stream(stream: PreparedStream) -> str:
    """Return a digest of what a run reads of *stream*."""
    digest = hashlib.sha256(json.dumps([stream.rows, dict(stream.codes)]).encode())
    if isinstance(stream, TableStream):
        add_to_digest(digest, stream.table)
        return digest.hexdigest()
    for path in part_files(stream.path):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
