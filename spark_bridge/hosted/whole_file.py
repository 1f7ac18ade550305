"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Hand out where to write, and show it as *path* when all is written, over what was there."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    yield unfinished
    unfinished.replace(path)


def remove_unfinished(folder: Path) -> None:
    """Delete what writers that were killed left in *folder*; to be called while none is there."""
    for path in folder.glob(".*.[0-9]*"):
        path.unlink()
