"""Runs that go on when their process has died: what their directory says of them.

A run that saves writes `RESUME` into its directory before anything runs: the whole configuration,
where its prepared streams are, and a digest of what is in them. What `actors.hosting.saved_run` has
saved is beside it, in `SAVED`. Both go when the run has finished.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from actors.hosting.saved_run import SavedRun
from actors.result_files import part_files
from scenarios.plan import Plan
from scenarios.run_directory import RESUME, RUN_RECORD, SAVED, UNFINISHED, read_json, write_json
from scenarios.scenario_files import ConfigError
from scenarios.tables import TableStream
from spark_bridge.prepared import PreparedStream, load_stream


@dataclass(frozen=True, kw_only=True)
class Interrupted:
    """A run that did not finish, as its directory has it.

    Attributes
    ----------
    directory
        Of the run.
    configuration
        All of its keys.
    folders
        Per stream that of the prepared stream; None: a table in memory.
    fingerprints
        Digests of the streams.
    every_ns
        Real time from one snapshot to the next.
    replay
        The command or call that repeats it from the beginning.
    """

    directory: Path
    configuration: dict[str, Any]
    folders: tuple[str | None, ...]
    fingerprints: tuple[str, ...]
    every_ns: int
    replay: str

    def load_streams(self) -> tuple[PreparedStream, ...]:
        """Return the prepared streams; raise :exc:`ConfigError` where one is a table in memory."""
        if None in self.folders:
            raise ConfigError(
                f"{self.directory}: its streams were tables in memory: pass them again, as in "
                f"joinsim.resume({str(self.directory)!r}, streams)"
            )
        return tuple(load_stream(folder) for folder in self.folders if folder)

    def check_streams(self, streams: Sequence[PreparedStream]) -> None:
        """Raise :exc:`ConfigError` naming a stream that is not what it was."""
        for stream, before in zip(streams, self.fingerprints, strict=True):
            if fingerprint(stream) != before:
                raise ConfigError(
                    f"{self.directory}: the data of stream {stream.name!r} ({stream.path}) has "
                    f"changed since: the run cannot go on, start it again: {self.replay}"
                )


def check_saves(plan: Plan) -> None:
    """Raise :exc:`ConfigError` where a run of *plan* could not go on from what it saves."""
    if plan.config.clock == "live":
        raise ConfigError("save_every is for virtual time: nothing repeats a live run exactly")


def resume_line(plan: Plan) -> Callable[[Path], str]:
    """Return a function that returns what goes on with a run of *plan*, given its directory."""
    if any(isinstance(stream, TableStream) for stream in plan.streams):
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
            "fingerprints": [fingerprint(stream) for stream in plan.streams],
            "every_ns": every_ns,
            "replay": replay,
        }
        write_json(directory / RESUME, about)
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
        made_by = about.pop("joinsim")
        about |= {name: tuple(about[name]) for name in ("folders", "fingerprints")}
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
    return interrupted


def _why_not(directory: Path) -> str:
    if (directory / UNFINISHED).is_file():
        return (
            "this run was interrupted and had saved nothing: start it again, with --save-every 10s "
            "to save it from time to time"
        )
    if (directory / RUN_RECORD).is_file():
        return "this run has finished, there is nothing to resume"
    return "there is no run to resume" if directory.is_dir() else "there is no such directory"


def fingerprint(stream: PreparedStream) -> str:
    """Return a digest of what a run reads of *stream*."""
    digest = hashlib.sha256(json.dumps([stream.rows, dict(stream.codes)]).encode())
    if isinstance(stream, TableStream):
        for name in stream.table.column_names:
            digest.update(name.encode())
            digest.update(stream.table[name].to_numpy().data)
        return digest.hexdigest()
    for path in part_files(stream.path):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
