"""Sizes of full tuples where they carry more than is joined on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from actors.feed import StreamFile
from joins.batch import Batch, Schema
from topologies.topology import TopologyError


def sized(files: Sequence[StreamFile], sizes: dict[str, int]) -> tuple[StreamFile, ...]:
    """Return the streams with tuples of the given sizes, bytes, by the streams' names.

    Raise :exc:`TopologyError` for a size smaller than the fields, or of no stream.
    """
    names = [file.schema.stream for file in files]
    for name, size in sizes.items():
        if name not in names:
            raise TopologyError(
                f"tuple_bytes: there is no stream {name!r}; there are {', '.join(names)}"
            )
        least = _full_bytes(files[names.index(name)].schema)
        if size < least:
            raise TopologyError(
                f"tuple_bytes.{name} is {size}: what is joined on takes {least} bytes"
            )
    return tuple(
        replace(
            file,
            schema=replace(
                file.schema, width_bytes=sizes[file.schema.stream] - _full_bytes(file.schema)
            ),
        )
        if file.schema.stream in sizes
        else file
        for file in files
    )


def _full_bytes(schema: Schema) -> int:
    """Return the size of a tuple with its position, event time, key and join fields."""
    return Batch.empty(schema).row_bytes
