"""Folders that appear whole or not at all.

A stream is built in a hidden sibling and renamed into place. A lock per stream, which the system
drops when its holder dies, tells a sibling that is being built from one that was left behind.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_bridge.errors import DataError

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def building(out: Path, name: str) -> Iterator[Path]:
    """Hold the lock on stream *name* in *out* and hand out an empty folder to build it in.

    What dead runs left behind is removed first; the folder is removed at the end unless it was
    published. Waits while another process builds the same stream.

    Raises
    ------
    DataError
        *out* cannot be written to.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / f".{name}.lock").open("w")
    except OSError as error:
        raise DataError(
            f"{out} cannot be written to ({error.strerror}); name another output folder"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _recover(out, name)
        folder = Path(tempfile.mkdtemp(prefix=f".{name}.building-", dir=out))
        # mkdtemp is for its owner alone; a stream may be read by whoever may read its neighbours.
        folder.chmod(out.stat().st_mode & 0o777)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def publish(built: Path, final: Path) -> None:
    """Put the folder *built* in the place of *final*, in one step where the system can."""
    if not final.exists():
        built.rename(final)
        return
    if _exchange(built, final):
        shutil.rmtree(built, ignore_errors=True)
        return
    old = final.with_name(f".{final.name}.old")
    final.rename(old)
    built.rename(final)
    shutil.rmtree(old, ignore_errors=True)


def _recover(out: Path, name: str) -> None:
    old, final = out / f".{name}.old", out / name
    if old.exists() and not final.exists():
        old.rename(final)  # a run died between the two renames
    for left in (old, *out.glob(f".{name}.building-*")):
        shutil.rmtree(left, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two paths atomically; return False where the system has no such call."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    paths = (_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other))
    return bool(rename(*paths, _RENAME_EXCHANGE) == 0)
