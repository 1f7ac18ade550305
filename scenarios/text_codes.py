"""Texts as codes that are equal exactly where the texts are.

Text is stored so (`spark_bridge.pipeline.dictionaries`), and can be compared with ``=`` and ``!=``,
with whatever shares its dictionary: which fields of a query those are, what a dictionary of tables
in memory is, and whether the codes of prepared streams match.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from joins.errors import DataError
from joins.queries.query import JoinQuery, Predicate
from scenarios.columns import Numbers
from spark_bridge.prepared import PreparedStream


def dictionary_names(query: JoinQuery) -> tuple[dict[str, str], ...]:
    """Return for each stream its join fields that may be text: to the name of their dictionary.

    Fields that are compared with each other, directly or by way of others, share one, which is
    named after the first of them. Where one of them is compared otherwise than with ``=`` and
    ``!=``, none of them may be text.
    """
    groups: list[set[tuple[int, str]]] = []
    ordered: set[tuple[int, str]] = set()
    for predicate in query.predicates:
        merged = {(side.stream, side.name) for side in (predicate.left, predicate.right)}
        if not _can_compare_text(predicate):
            ordered |= merged
        merged = merged.union(*(group for group in groups if group & merged))
        groups = [group for group in groups if not group & merged] + [merged]
    names: tuple[dict[str, str], ...] = tuple({} for _ in query.streams)
    for group in groups:
        if group & ordered:
            continue
        stream, first = min(group)
        for at, field in sorted(group):
            names[at][field] = f"{query.streams[stream]}.{first}"
    return names


def codes_mistake(query: JoinQuery, streams: Sequence[PreparedStream]) -> str | None:
    """Return which comparison the codes of *streams* cannot answer, and why; None without one."""
    for predicate in query.predicates:
        left, right = (
            streams[side.stream].codes.get(side.name) for side in (predicate.left, predicate.right)
        )
        if left is None and right is None:
            continue
        text, other = predicate.left, predicate.right
        if left is None:
            text, other = other, text
        if not _can_compare_text(predicate):
            return f"{predicate}: {text.text} is text, which = and != alone can compare"
        if None in (left, right):
            return f"{predicate}: {text.text} is text, and {other.text} is a number"
        if left != right:
            return (
                f"{predicate}: both are text, but were prepared apart, each with a dictionary of "
                "its own, so that their codes cannot be compared. Give the raw files of all "
                "streams: they are then prepared together"
            )
    return None


def _can_compare_text(predicate: Predicate) -> bool:
    operator = predicate.operator
    return (operator.is_equality or operator.negated) and not operator.subtracts


@dataclass(frozen=True)
class TextCodes:
    """The codes of fields that are compared: the places of their distinct texts, sorted."""

    texts: pa.Array
    digest: str

    @classmethod
    def of(cls, fields: Mapping[tuple[str, str], pa.ChunkedArray | None]) -> TextCodes | None:
        """Return the codes of the texts of *fields*, by stream and name; None without any.

        Raise :exc:`DataError` naming a field that has no texts beside others that do.
        """
        if not any(column is not None for column in fields.values()):
            return None
        for (stream, name), column in fields.items():
            if column is None:
                raise DataError(
                    f"stream {stream!r}: join field {name!r} is compared with text and holds none "
                    "itself"
                )
        chunks = [chunk for column in fields.values() if column for chunk in column.chunks]
        distinct = pc.unique(pa.chunked_array(chunks, pa.string())).drop_null()
        ordered = distinct.take(pc.array_sort_indices(distinct))
        return cls(ordered, hashlib.sha256("\0".join(ordered.to_pylist()).encode()).hexdigest())

    def encode(self, column: pa.ChunkedArray) -> Numbers:
        """Return the codes of a column's texts."""
        codes = pc.index_in(column, self.texts).combine_chunks().fill_null(0)
        return codes.to_numpy().astype(np.int64), {"is null": pc.is_null(column).to_numpy()}
