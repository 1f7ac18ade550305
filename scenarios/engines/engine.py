"""What an engine is to a comparison: whether it can, and what its run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Protocol

import numpy as np

from joins.hashing import mix
from joins.matches import Matches
from scenarios.plan import Plan


@dataclass(frozen=True)
class Totals:
    """What must be equal whatever computed it.

    Attributes
    ----------
    pairs
        Their number.
    checksum
        The wrapping sum over all pairs of ``splitmix64(probe id) * splitmix64(match id)``.
    """

    pairs: int = 0
    checksum: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(self.pairs + other.pairs, (self.checksum + other.checksum) % (1 << 64))

    @classmethod
    def of_pairs(cls, probe_id: np.ndarray, match_id: np.ndarray) -> Totals:
        """Return the totals of a row per pair."""
        checksum = int((mix(probe_id) * mix(match_id)).sum(dtype=np.uint64))
        return cls(len(probe_id), checksum)

    @classmethod
    def of_counts(cls, probe_id: np.ndarray, count: np.ndarray, fingerprint: np.ndarray) -> Totals:
        """Return the totals of matches counted by probing tuple (see `joins.matches.Matches`)."""
        checksum = int((mix(probe_id) * fingerprint).sum(dtype=np.uint64))
        return cls(int(count.sum()), checksum)

    @classmethod
    def of(cls, matches: Matches) -> Totals:
        """Return the totals of some matches."""
        return cls.of_counts(matches.probe_id, matches.count, matches.fingerprint)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one run on an engine came to.

    Attributes
    ----------
    totals
        What it found.
    wall_seconds
        From the start of the query, reading the streams included, to its end; the engine's own
        start is not included.
    steady_tps
        Of engines that work trigger by trigger, tuples a second after the first of them.
    latency_ms
        Percentiles where the engine has them.
    shuffled_bytes
        What travelled between operators, as the engine counts it.
    memory_bytes
        Peak resident memory of its processes, added up.
    note
        What a reader should know.
    """

    totals: Totals
    wall_seconds: float
    steady_tps: float | None = None
    latency_ms: Mapping[str, float | None] | None = None
    shuffled_bytes: int | None = None
    memory_bytes: int | None = None
    note: str | None = None


class Engine(Protocol):
    """One engine.

    Attributes
    ----------
    name
        As on the command line.
    install
        How to get it where it is missing.
    """

    name: str
    install: str

    def version(self) -> str | None:
        """Return its version; None when it is not installed."""

    def cannot(self, plan: Plan) -> str | None:
        """Return why it cannot evaluate *plan*; None when it can."""

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Evaluate *plan*; what is written goes into *directory*.

        Raise :exc:`EngineFailed` with the engine's own words.
        """


class EngineFailed(Exception):  # noqa: N818  (reads as what happened)
    """An engine refused or failed a query; the message is its own."""


def installed(package: str) -> str | None:
    """Return the version of a Python package; None when it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def needs_two_sides(plan: Plan) -> str | None:
    """Return why engines that join by pairs cannot evaluate *plan*; None when they can."""
    streams = plan.query.streams
    if len(streams) <= 2:
        return None
    return f"joins a stream with itself or two streams; the query has {', '.join(streams)}"
