"""What all engines have in common: names they read, how they fail, and what a run came to."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from actors.whole_files import FULL
from joins.errors import JoinsimError
from joins.hashing import mix
from joins.matches import Matches


class EngineFailed(JoinsimError):  # noqa: N818  (reads as what happened, like KeyboardInterrupt)
    """An engine refused or failed a query; the message is its own."""


class EngineUnavailable(EngineFailed):
    """Spark or Flink cannot start on this machine; the message names what is missing.

    Examples
    --------
    >>> import joinsim as js
    >>> def prepared(file):
    ...     try:
    ...         return js.prepare(file)
    ...     except js.EngineUnavailable:
    ...         return file  # `run` reads Parquet without Spark
    """


class SparkFailed(EngineFailed):
    """Spark refused or failed a query; the message is Spark's own."""


def one_line(error: BaseException) -> str:
    """Return Spark's own message without its Java stack trace, as one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    # The innermost cause carries the error class in brackets; the lines before it are wrapping.
    bracketed = [line for line in lines if "[" in line and not line.startswith("at ")]
    causes = [line for line in bracketed if line.startswith("Caused by:")]
    named = [line for line in bracketed if line.partition("[")[2][:1].isupper()]
    line = (causes[-1:] or named or lines)[0]
    start = line.find("[")
    if start > 0 and line[start + 1 : start + 2].isupper():
        line = line[start:]
    return line.partition(" SQLSTATE:")[0]


@contextmanager
def plain_name(folder: Path) -> Iterator[Path]:
    """Yield *folder*, which exists, by a name in which engines see no patterns and no accents.

    DuckDB, Polars and Spark take ``a[1]`` for a pattern, and read ``a1`` where there is one.
    """
    if re.fullmatch(r"[A-Za-z0-9_./-]+", str(folder.resolve())):
        yield folder.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="joinsim-") as elsewhere:
        link = Path(elsewhere) / "folder"
        link.symlink_to(folder.resolve())
        yield link


def no_room(error: BaseException) -> OSError | None:
    """Return the system's error where Spark's *error* is that it cannot write more; else None.

    Spark itself says which task failed, and has why among the lines behind that.
    """
    reasons = {number: os.strerror(number) for number in sorted(FULL)}
    text = str(error)
    return next((OSError(one, why) for one, why in reasons.items() if why in text), None)


@dataclass(frozen=True)
class Totals:
    """How many pairs there are, and which."""

    pairs: int = 0
    """Their number."""
    checksum: int = 0
    """The wrapping sum over all pairs of ``splitmix64(~probe id) * splitmix64(match id)``. It does
    not depend on their order, but on which of the two probed, and follows from the pairs as well as
    from counts with fingerprints."""

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.pairs + other.pairs, (self.checksum + other.checksum) % (1 << 64))

    def check_counted(self, counted: int) -> None:
        """Raise :exc:`EngineFailed` where an engine *counted* another number of pairs before."""
        if counted != self.pairs:
            raise EngineFailed(f"it counted {counted:,} pairs, and then {self.pairs:,}")

    @classmethod
    def of_pairs(cls, probe_id: np.ndarray, match_id: np.ndarray) -> Totals:
        """Return the totals of a row per pair."""
        checksum = int((mix(~probe_id) * mix(match_id)).sum(dtype=np.uint64))
        return cls(len(probe_id), checksum)

    @classmethod
    def of_counts(cls, probe_id: np.ndarray, count: np.ndarray, fingerprint: np.ndarray) -> Totals:
        """Return the totals of matches counted by probing tuple (see `joins.matches.Matches`)."""
        checksum = int((mix(~probe_id) * fingerprint).sum(dtype=np.uint64))
        return cls(int(count.sum()), checksum)

    @classmethod
    def of(cls, matches: Matches) -> Totals:
        """Return the totals of some matches."""
        return cls.of_counts(matches.probe_id, matches.count, matches.fingerprint)


@dataclass(frozen=True, kw_only=True)
class EngineResult:
    """What one run on an engine came to."""

    totals: Totals
    """The pairs that it found."""
    start_seconds: float = 0.0
    """For the engine's own start: its session or its processes, and the compilation of kernels."""
    wall_seconds: float
    """From the prepared files to results that are counted, or on disk where pairs are written, all
    in between included, of an engine that works trigger by trigger its first too. The check of the
    results is not included."""
    latency_ms: Mapping[str, float | None] | None = None
    """Percentiles, of engines that measure them."""
    shuffled_bytes: int | None = None
    """Bytes that travelled between operators, as the engine counts them."""
    memory_bytes: int | None = None
    """Peak resident memory of its processes, added up."""
    note: str | None = None
    """Remark for the reader."""
    failed: bool = False
    """Whether it was judged, beyond its totals, and found wrong."""
    triggers: tuple[tuple[int, float], ...] = ()
    """Of engines that work trigger by trigger, the tuples and seconds of each."""

    @property
    def steady_tps(self) -> float | None:
        """Tuples a second after the first trigger, in which Spark compiles and starts workers."""
        later = [trigger for trigger in self.triggers[1:] if trigger[0]]
        if not later:
            return None
        return sum(rows for rows, _ in later) / sum(seconds for _, seconds in later)
