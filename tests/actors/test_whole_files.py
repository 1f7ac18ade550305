"""A file appears whole or not at all, and what stops it is one message with a remedy."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from actors.whole_files import WholeTable, remove_unfinished, whole_file, write_text
from joins.errors import OutputError
from tests.limits import file_size_limit

TABLE = pa.table({"id": list(range(1000))})


def write_table(path: Path) -> None:
    with WholeTable(path, TABLE.schema, use_dictionary=False) as file:
        file.write(TABLE)
        file.write(TABLE)


def write_long_text(path: Path) -> None:
    write_text(path, "Grüße " * 1000)


KILLED = """
import os, sys
from pathlib import Path
from actors.whole_files import whole_file
with whole_file(Path(sys.argv[1])) as unfinished:
    unfinished.touch()
    os._exit(0)
"""

Write = Callable[[Path], None]
WRITERS: list[Write] = [write_long_text, write_table]


@pytest.mark.parametrize("write", WRITERS)
def test_a_file_replaces_what_was_there_and_leaves_nothing_else(
    write: Write, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    for _ in range(2):
        write(path)
    assert list(tmp_path.iterdir()) == [path]
    if write is write_table:
        assert pq.read_table(path).equals(pa.concat_tables([TABLE, TABLE]).combine_chunks())
    else:
        assert path.read_text(encoding="utf-8") == "Grüße " * 1000


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("nbytes", [0, 1024])
def test_a_file_that_grows_too_large_is_named_and_the_old_one_stays(
    write: Write, nbytes: int, tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    message = f"cannot write to {path}: File too large; raise the limit"
    with file_size_limit(nbytes), pytest.raises(OutputError, match=re.escape(message)):
        write(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


@pytest.mark.parametrize("write", WRITERS)
def test_a_disk_that_is_full_only_when_it_is_forced_leaves_the_old_file(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = f"cannot write to {path}: No space left on device; make room"
    with pytest.raises(OutputError, match=re.escape(message)):
        write(path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("none/file", "No such file or directory; make its folder first"),
        ("taken/file", "Not a directory; a folder on the way to it is a file"),
        ("folder", "Is a directory; a folder has this name"),
    ],
)
def test_a_place_that_cannot_be_written_to_is_named_with_a_remedy(
    write: Write, place: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(
        OutputError, match=re.escape(f"cannot write to {tmp_path / place}: {reason}")
    ):
        write(tmp_path / place)
    assert {path.name for path in tmp_path.iterdir()} == {"taken", "folder"}


def test_a_block_that_fails_or_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), whole_file(tmp_path / "one") as unfinished:
        unfinished.write_text("half")
        raise KeyboardInterrupt
    with suppress(KeyboardInterrupt), WholeTable(tmp_path / "two", TABLE.schema) as file:
        file.write(TABLE)
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_link_stays_one_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    for write in (write_long_text, write_table):
        path.write_text("old")
        link.unlink(missing_ok=True)
        link.symlink_to(path)
        write(link)
        assert link.is_symlink()
        assert path.read_bytes() != b"old"


@pytest.mark.parametrize("name", ["000001-0-0", "000001-0-0.parquet", "run.json"])
def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    # A process of its own, and no fork of this one, which has threads.
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=True, timeout=60)
    assert len(list(tmp_path.iterdir())) == 2
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_hidden_file_of_a_persons_own_is_left(tmp_path: Path) -> None:
    own = tmp_path / ".notes.2024.txt"
    own.touch()
    remove_unfinished(tmp_path)
    assert own.exists()
