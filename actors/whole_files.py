"""Files that appear whole or not at all, and one message where they cannot be written.

A file is written under a hidden name next to its place, forced to the disk and then renamed, so a
file that has its own name is whole, also after a crash or a power failure. When writing fails,
nothing is left, and what was there before stays.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joins.errors import JoinsimError, OutputError

if TYPE_CHECKING:
    from concurrent.futures import Future

    import pyarrow as pa

_REMEDIES = {
    errno.ENOSPC: "make room on that disk, or write to another place",
    errno.EDQUOT: "make room in your quota, or write to another place",
    errno.EFBIG: "raise the limit on the size of files (`ulimit -f unlimited`)",
    errno.EACCES: "write to a folder of your own",
    errno.EPERM: "write to a folder of your own",
    errno.EROFS: "write to a folder that is not read-only",
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "a folder on the way to it is a file; write to another place",
    errno.EISDIR: "a folder has this name; write to another place",
    errno.EEXIST: "a file has this name; write to another place",
}
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Error numbers that only writing has, wherever in a program it happens."""


def output_error(error: OSError, path: Path | str | None = None) -> OutputError:
    """Return *error* as a message that names the file, by default the error's own, and a remedy."""
    # Arrow's errors carry the number, but a text of their own.
    reason = os.strerror(error.errno) if error.errno else str(error)
    where = path or error.filename or "standard output or a file"
    remedy = _REMEDIES.get(error.errno or 0, "write to another place")
    return OutputError(f"cannot write to {where}: {reason}; {remedy}")


def at_home(path: Path | str) -> Path:
    """Return *path*, in which ``~`` at the beginning is the home folder."""
    return Path(os.path.expanduser(path))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of a block that does nothing but write *path* into :exc:`OutputError`."""
    try:
        yield
    except OSError as error:
        raise output_error(error, path) from None


def check_folder(path: Path) -> None:
    """Raise :exc:`OutputError` where the folder that *path* is to be in does not exist."""
    with writing(path):
        os.stat(f"{path.parent}/.")  # the dot is refused of a file


def check_can_be_made(folder: Path) -> None:
    """Raise :exc:`OutputError` where *folder*, which need not be there, could not be made."""
    with writing(folder):
        there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
        os.stat(f"{there}/.")  # the dot is refused of a file
        if not os.access(there, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def require_utf8(path: Path, error: type[JoinsimError] = OutputError) -> None:
    """Raise *error* where a name on the way to *path* is not in UTF-8: Arrow opens no such file."""
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError:
        raise error(
            f"{path.absolute()}: a name in this path is not in UTF-8, which Parquet's libraries "
            "need; rename it, or take another path"
        ) from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield where to write, in a block that does nothing else; at its end that replaces *path*.

    Raise :exc:`OutputError` naming *path* if it cannot be written.
    """
    place = path.resolve()  # not a link: what it points to is replaced
    unfinished = _unfinished(place)
    try:
        with writing(path):
            yield unfinished
            _publish(unfinished, place)
    except BaseException:
        _remove(unfinished)
        raise


def write_text(path: Path, text: str) -> None:
    """Write *text* to *path*, whole, over what was there before; raise as `whole_file` does."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write *content* to *path*, whole, over what was there; raise as `whole_file` does."""
    with whole_file(path) as unfinished:
        unfinished.write_bytes(content)


def remove_unfinished(folder: Path) -> None:
    """Delete what killed writers left in *folder*; call it while none is writing."""
    for path in folder.glob(".*.[0-9]*"):
        if path.suffix[1:].isdigit():
            path.unlink(missing_ok=True)


def force_to_disk(path: Path) -> None:
    """Force a file, or everything in a folder, to the disk, as before it is renamed."""
    for one in [*path.rglob("*"), path]:
        _force(one)


class WholeTable:
    """A Parquet file written in pieces over a long time, which appears at *path* when it is closed.

    A context manager: leaving it by an exception discards the file. Its *options* are those of
    `pyarrow.parquet.ParquetWriter`.
    """

    def __init__(self, path: Path, schema: pa.Schema, **options: Any) -> None:
        # Only here: most of what writes whole files needs no Arrow.
        from pyarrow.parquet import ParquetWriter

        self._path, self._open = path, False
        self._place = path.resolve()  # not a link: what it points to is replaced
        self._unfinished = _unfinished(self._place)
        self._finished = False
        self._published: Future[None] | None = None
        try:
            with writing(path):
                self._writer = ParquetWriter(self._unfinished, schema, **options)
        except BaseException:
            _remove(self._unfinished)
            raise
        self._open = True

    def __enter__(self) -> WholeTable:
        """Return the file itself."""
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """Close the file, or discard it after a *failure*."""
        try:
            if failure is None:
                self.close()
        finally:
            self.discard()

    def write(self, table: pa.Table, row_group_rows: int | None = None) -> None:
        """Append *table* as a row group or several. Raise as `whole_file` does."""
        with writing(self._path):
            self._writer.write_table(table, row_group_rows)

    def finish(self) -> None:
        """Hand all that was written to the system, whose disk may take longer; the file is whole.

        It appears when it is closed. Raise as `whole_file` does.
        """
        if not self._finished:
            with writing(self._path):
                self._writer.close()
            self._finished = True

    def publish(self) -> None:
        """Finish the file, and let a thread force it to the disk; then it appears.

        A disk takes some milliseconds, for which the caller has use. Raise as `whole_file` does.
        """
        from concurrent.futures import ThreadPoolExecutor  # with Arrow: a command may need neither

        if self._published is None:
            self.finish()
            thread = ThreadPoolExecutor(max_workers=1)
            self._published = thread.submit(_publish, self._unfinished, self._place)
            thread.shutdown(wait=False)  # it ends when it is done

    def close(self) -> None:
        """Return when the file has appeared; `publish` it before, if need be. Raise likewise."""
        if self._open:
            self.publish()
            assert self._published is not None
            with writing(self._path):
                self._published.result()
            self._open = False

    def discard(self) -> None:
        """Remove the file, unless it has appeared."""
        if self._open:
            self._open = False
            with suppress(OSError):  # it writes a footer, for which there may be no room either
                self._writer.close()
            if self._published is not None:
                self._published.exception()  # the thread is done with it
            _remove(self._unfinished)


def _unfinished(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _publish(unfinished: Path, path: Path) -> None:
    _force(unfinished)
    unfinished.replace(path)
    with suppress(OSError):  # some network disks cannot force a folder
        _force(path.parent)


def _force(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(unfinished: Path) -> None:
    with suppress(OSError):
        unfinished.unlink(missing_ok=True)
