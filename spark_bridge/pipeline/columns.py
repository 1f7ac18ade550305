"""Which source column ends up under which name in a prepared stream.

``id``, ``ts`` and ``key`` mean the tuple's position, time and key there; a source's own columns of
those names make way. Capitals make no difference to that, because SQL engines see none.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from spark_bridge.errors import DataError
from spark_bridge.pipeline.source import StreamSource


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The names of one stream's columns.

    Attributes
    ----------
    kept
        Source column to its name in the prepared stream, in order; replaced ones are not in it.
    fields
        Join field (by its name in the prepared stream) to the source column behind it.
    notes
        What a reader of the stream must know about renamed columns.
    """

    kept: dict[str, str]
    fields: dict[str, str]
    notes: list[str]


def lay_out(source: StreamSource, columns: list[str]) -> Layout:
    """Name the columns of the prepared stream, and find its join fields among them.

    Parameters
    ----------
    source
        What was asked for.
    columns
        The source's columns.

    Raises
    ------
    DataError
        A join field or a declared column is not there.
    """
    for name in source.schema:
        _require(source, name, columns, "declared column")
    time = source.time or "ts"
    kept, notes = {}, []
    for column in columns:
        low = column.lower()
        replaced = (low == "ts" and column == time) or (low == "key" and column == source.key)
        own_key = low == "key" and (column in source.fields or source.key == column)
        if replaced:
            if column == time:
                notes.append(f"column {column} is the event time: ts holds it in nanoseconds")
        elif low in ("id", "ts") or (low == "key" and not own_key):
            kept[column] = _free(f"source_{column}", columns)
            notes.append(f"the source's own column {column} is named {kept[column]}")
        else:
            kept[column] = column
    fields = {}
    for name in source.fields:
        if name == "ts":
            continue  # every tuple has a valid one
        renamed = kept.get(name, name)
        if name.lower() in ("id", "ts") or renamed != name:
            raise DataError(
                f"stream {source.name!r}: join field {name!r} means the tuple's own "
                f"{name.lower()} in a prepared stream; the source's column is "
                f"{renamed if renamed != name else 'ts'!r} there, name that one"
            )
        by_name = {new: old for old, new in kept.items()}
        _require(source, name, list(by_name), "join field")
        fields[name] = by_name[name]
    return Layout(kept=kept, fields=fields, notes=notes)


def _free(name: str, taken: Iterable[str]) -> str:
    low = {other.lower() for other in taken}
    while name.lower() in low:
        name += "_"
    return name


def _require(source: StreamSource, name: str, columns: list[str], what: str) -> None:
    if name in columns:
        return
    close = difflib.get_close_matches(name, columns, n=1, cutoff=0.5)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise DataError(
        f"stream {source.name!r}: {what} {name!r} is not in {source.files}{hint} "
        f"(its columns: {', '.join(columns)})"
    )
