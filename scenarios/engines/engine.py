"""The interface of engines: whether one can evaluate a query, and what was measured of its run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar

from scenarios.plan import Plan
from spark_bridge.engines import Totals


@dataclass(frozen=True, kw_only=True)
class EngineResult:
    """What one run on an engine came to.

    Attributes
    ----------
    totals
        The pairs that it found.
    start_seconds
        For the engine's own start: its session or its processes, and the compilation of kernels.
    wall_seconds
        From the prepared files to results that are counted, or on disk where pairs are written,
        all in between included, of an engine that works trigger by trigger its first too. The check
        of the results is not included.
    steady_tps
        Of engines that work trigger by trigger, tuples a second after the first trigger.
    latency_ms
        Percentiles, of engines that measure them.
    shuffled_bytes
        Bytes that travelled between operators, as the engine counts them.
    memory_bytes
        Peak resident memory of its processes, added up.
    note
        Remark for the reader.
    """

    totals: Totals
    start_seconds: float
    wall_seconds: float
    steady_tps: float | None = None
    latency_ms: Mapping[str, float | None] | None = None
    shuffled_bytes: int | None = None
    memory_bytes: int | None = None
    note: str | None = None


class Engine(ABC):
    """One engine.

    Attributes
    ----------
    name
        As on the command line.
    package
        The Python package that it comes with.
    install
        How to get it where it is missing.
    """

    name: str
    package: ClassVar[str]
    install: ClassVar[str]

    def version(self) -> str | None:
        """Return its version; None when it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    def cannot(self, plan: Plan) -> str | None:
        """Return why it cannot evaluate *plan*; None when it can."""
        return None

    @abstractmethod
    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Evaluate *plan*; what is written goes into *directory*.

        Raise :exc:`EngineFailed` with the engine's own message.
        """


class PairEngine(Engine):
    """An engine that joins a stream with itself, or two streams."""

    def cannot(self, plan: Plan) -> str | None:
        """Refuse joins of more than two streams."""
        streams = plan.query.streams
        if len(streams) <= 2:
            return None
        return f"joins a stream with itself or two streams; the query has {', '.join(streams)}"
