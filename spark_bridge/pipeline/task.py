"""One stream to prepare, as the pipeline hands it to the stages that run on Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spark_bridge.pipeline.raw_files import RawFile
from spark_bridge.pipeline.source import StreamSource


@dataclass(frozen=True, kw_only=True)
class Task:
    """One stream to prepare: what is asked for, the files as they are, and their digest."""

    source: StreamSource
    files: list[RawFile]
    segment_rows: int
    fingerprint: str
    report: Callable[[str], None]
