"""Sizes of full tuples where they carry more than is joined on."""

from __future__ import annotations

from dataclasses import replace

from actors.feed import StreamFile
from joins.batch import Batch, Schema
from topologies.topology import Job, TopologyError


def sized(job: Job, sizes: dict[str, int]) -> Job:
    """Return *job* with tuples of the given sizes, bytes, by the streams' names.

    Raise :exc:`TopologyError` for a size smaller than the fields, or of no stream.
    """
    names = [file.schema.stream for file in job.files]
    for name, size in sizes.items():
        if name not in names:
            raise TopologyError(
                f"tuple_bytes: there is no stream {name!r}; there are {', '.join(names)}"
            )
        least = _full_bytes(job.files[names.index(name)].schema)
        if size < least:
            raise TopologyError(
                f"tuple_bytes.{name} is {size}: what is joined on takes {least} bytes"
            )
    files = tuple(_sized(file, sizes.get(file.schema.stream)) for file in job.files)
    return replace(job, files=files)


def _sized(file: StreamFile, size: int | None) -> StreamFile:
    if size is None:
        return file
    width_bytes = size - _full_bytes(file.schema)
    return replace(file, schema=replace(file.schema, width_bytes=width_bytes))


def _full_bytes(schema: Schema) -> int:
    """Return the size of a tuple with its position, event time, key and join fields."""
    return Batch.empty(schema).row_bytes
