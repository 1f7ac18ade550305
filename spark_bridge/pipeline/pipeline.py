"""Raw CSV or Parquet in, prepared streams out.

This module decides whether there is anything to do, and imports Spark only if there is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING

from actors.whole_files import output_error, require_utf8
from joins.errors import DataError
from spark_bridge.engines import no_room, plain_name
from spark_bridge.pipeline.raw_files import RawFile, inspect_files
from spark_bridge.pipeline.raw_source import RawSource, Task
from spark_bridge.prepared import FORMAT, PreparedStream, building, load_stream, publish
from spark_bridge.session import SessionOptions, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEGMENT_ROWS = 1_000_000  # rows in a segment file: some 10 MB, and a second or two of sorting
QUICK_BYTES = 64 << 20  # below this the JVM lives too briefly for its better compiler to pay off
PREPARE_STAGES = ("inspect", "start Spark", "read", "validate", "write", "check", "done")
"""The stages that `prepare` reports of each stream, in this order."""

_READING = 5
"""Version of how values are read; a stream that was read in another way is prepared anew."""

DICTIONARIES = "+codes"  # not a valid name of a stream

OnStage = Callable[[str, int, int], None]
"""Called with a stage (``"R: write"``), the number of stages done, and their total."""


def prepare(
    sources: RawSource | Sequence[RawSource],
    out: str | Path,
    *,
    spark: SparkSession | None = None,
    segment_rows: int = SEGMENT_ROWS,
    progress: OnStage | None = None,
    on_spark: Callable[[], None] = lambda: None,
) -> list[PreparedStream]:
    """Turn raw files into streams: typed, validated, in event-time order, numbered, in segments.

    A stream whose files and options are unchanged since it was last prepared is left as it is, and
    Spark is not started for it; streams that share a dictionary of texts depend on each other's
    files. A stream is replaced in one step, when its successor is complete. The streams are
    prepared one after the other; where one fails, those before it remain.

    Each stream has a folder in *out* (see `prepared`), and segments of at most *segment_rows* rows.
    *spark* is a running session to use; by default one is started, and stopped again. *progress* is
    called at every stage, and *on_spark* before Spark starts, where there is something for it to
    do. The result is in the order of *sources*, whose names differ.

    Raise :exc:`DataError` where a file, an option or a folder is not usable, or every row was
    rejected; :exc:`EngineUnavailable` where Spark is needed and cannot start; and
    :exc:`OutputError` where there is no room on the disk.
    """
    if isinstance(sources, RawSource):
        sources = [sources]
    out = Path(out)
    require_utf8(out)
    names = [source.name.lower() for source in sources]
    for source in sources:
        if names.count(source.name.lower()) > 1:
            raise DataError(f"two streams are named {source.name!r}; names must differ")
    if segment_rows < 1:
        raise DataError(f"segment_rows is {segment_rows}; it must be 1 or more")
    reports = [_reporter(source, progress, at, len(sources)) for at, source in enumerate(sources)]
    inspected = []
    for source, report in zip(sources, reports, strict=True):
        report("inspect")
        inspected.append((source, inspect_files(source.paths)))
    tasks = [
        Task(
            source=source,
            files=files,
            segment_rows=segment_rows,
            fingerprint=_fingerprint(source, files, segment_rows, inspected),
            report=report,
        )
        for (source, files), report in zip(inspected, reports, strict=True)
    ]
    streams = {task.source.name: _finished(task, out) for task in tasks}
    missing = [task for task in tasks if streams[task.source.name] is None]
    for task in tasks:
        if task not in missing:
            task.report("done")
    if missing:
        missing[0].report("start Spark")
        for task in missing:
            # What is wrong with these is reported before Spark starts.
            task.layout, task.expressions, task.spanning  # noqa: B018
        size_bytes = sum(file.size_bytes for task in missing for file in task.files)
        on_spark()
        # A task that fails does so on data, and would again: no second attempt.
        options = SessionOptions(
            master="local[2]", quick_start=size_bytes < QUICK_BYTES, compile_late=True
        )
        started = nullcontext(spark) if spark is not None else spark_session(options)
        with started as session, _needing_room(out):
            _prepare_all(missing, tasks, out, session, streams)
    return [stream for stream in streams.values() if stream is not None]


@contextmanager
def _needing_room(out: Path) -> Iterator[None]:
    """Raise :exc:`OutputError` where the disk of *out* is full, or that of Spark's own files."""
    try:
        yield
    except (OSError, DataError) as error:
        full = no_room(error.__cause__ or error)
        if full is None:
            raise
        raise output_error(full, f"{out}, or to Spark's own files in {gettempdir()}") from error


def _prepare_all(
    missing: list[Task],
    tasks: list[Task],
    out: Path,
    spark: SparkSession,
    streams: dict[str, PreparedStream | None],
) -> None:
    from spark_bridge.pipeline.dictionaries import Dictionary, build_dictionaries
    from spark_bridge.pipeline.stages import build
    from spark_bridge.pipeline.typed_rows import Typed

    named = {name for task in missing for name in task.source.codes.values()}
    sharing = [task for task in tasks if named.intersection(task.source.codes.values())]
    with ExitStack() as scratch:
        dictionaries: dict[str, Dictionary] = {}
        typed: dict[str, Typed] = {}
        if sharing:
            texts = scratch.enter_context(building(out, DICTIONARIES))
            plain = scratch.enter_context(plain_name(texts))
            dictionaries, typed = build_dictionaries(spark, sharing, plain)
        for task in missing:
            name = task.source.name
            with building(out, name) as folder:
                # Another process may have built it while this one waited for the lock.
                if _finished(task, out) is None:
                    rejected = out / f"{name}.rejected"
                    build(
                        spark, task, folder, dictionaries, typed.get(name), only_rejected=rejected
                    )
                    publish(folder / "stream", out / name)
            streams[name] = load_stream(out / name)
            task.report("done")


def _reporter(
    source: RawSource, progress: OnStage | None, at: int, of: int
) -> Callable[[str], None]:
    steps = len(PREPARE_STAGES) - 1

    def report(stage: str) -> None:
        if progress is not None:
            progress(
                f"{source.name}: {stage}", at * steps + PREPARE_STAGES.index(stage), of * steps
            )

    return report


def _fingerprint(
    source: RawSource,
    files: list[RawFile],
    segment_rows: int,
    together: Sequence[tuple[RawSource, list[RawFile]]],
) -> str:
    inputs = {
        "format": FORMAT,
        "reading": _READING,
        "files": _contents(files),
        "options": source.options(),
        "segment_rows": segment_rows,
    }
    if source.codes:
        inputs["texts"] = [
            [name, field, other.name, other.options(), _contents(others)]
            for other, others in together
            for field, name in other.codes.items()
            if name in source.codes.values()
        ]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _contents(files: list[RawFile]) -> list[list[str]]:
    return [[file.format, file.separator, file.sha256] for file in files]


def _finished(task: Task, out: Path) -> PreparedStream | None:
    """Return the stream in *out* if it is the one that *task* would build, None otherwise."""
    try:
        stream = load_stream(out / task.source.name)
    except DataError:
        return None
    return stream if stream.fingerprint == task.fingerprint else None
