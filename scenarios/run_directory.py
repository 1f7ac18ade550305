"""Where a run leaves what it wrote."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from joins.errors import JoinsimError

RUNS = Path("runs")
POINTS = "points"
"""Folder, in the directory of several runs, with a folder for each."""

_REPLACED = (
    "run.json", "report.html", "results.parquet", "compare.json", "compare.html", "compare.png",
    "study.json", "study.html", "study.png",
)  # fmt: skip


class OutputError(JoinsimError):
    """A place that cannot be written to; names it."""


def new_run_directory(scenario: str, seed: int, out: Path | None) -> Path:
    """Make and return the directory of a new run, linked as ``runs/latest`` unless *out* is given.

    Raise :exc:`OutputError` naming a directory that cannot be written, or one that holds
    something that is not a run.
    """
    directory = out or RUNS / scenario / f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-s{seed}"
    if directory.is_dir() and any(directory.iterdir()) and not _is_run(directory):
        raise OutputError(f"{directory} holds something that is not a run: give an empty --out")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _clear(directory)
        _check_writable(directory)
        if out is None:
            _link_latest(directory)
    except OSError as error:
        raise OutputError(f"cannot write to {directory}: {error.strerror}") from None
    return directory


def open_run_directory(directory: Path, mark: str) -> Path:
    """Make and return a directory that is filled by and by; what an earlier run left there stays.

    Raise :exc:`OutputError` naming a directory that cannot be written, or one that has something
    in it but no file *mark*.
    """
    if directory.is_dir() and any(directory.iterdir()) and not (directory / mark).exists():
        raise OutputError(f"{directory} holds something that is not a run: give an empty --out")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _check_writable(directory)
    except OSError as error:
        raise OutputError(f"cannot write to {directory}: {error.strerror}") from None
    return directory


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write *value* to *path*, whole, over what was there before."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    text = json.dumps(value, indent=2, ensure_ascii=False)
    unfinished.write_text(f"{text}\n", encoding="utf-8")
    unfinished.replace(path)


def _check_writable(directory: Path) -> None:
    """Raise :exc:`OSError` where no file can be made."""
    probe = directory / ".writable"
    probe.touch()
    probe.unlink()


def _is_run(directory: Path) -> bool:
    """Whether *directory* holds a run, finished or broken off."""
    marks = ("run.json", "trace.parquet", "compare.json", "study.json", POINTS)
    return any((directory / mark).exists() for mark in marks)


def _clear(directory: Path) -> None:
    """Take away what an earlier run left that this one might not replace."""
    for name in _REPLACED:
        (directory / name).unlink(missing_ok=True)
    if (directory / POINTS).is_dir():
        shutil.rmtree(directory / POINTS)


def _link_latest(directory: Path) -> None:
    link = RUNS / "latest"
    fresh = RUNS / f".latest-{os.getpid()}"
    fresh.symlink_to(directory.relative_to(RUNS))
    fresh.replace(link)
