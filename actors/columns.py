"""Many values of few kinds as columns: records by field, arrays end to end.

A thousand results of some tuples each are several thousand arrays of a hundred bytes. As columns
they are a dozen arrays, without a head and padding for each. What comes back is equal; arrays are
views of their column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from joins.state import Stateful, build_record, class_name, record_fields, registered

_VALUES, _ARRAYS, _SEQUENCES, _TUPLES, _RECORDS, _MIXED = range(6)
"""The first item of a column says what is in it."""

_LEAVES = (str, int, float, bool, bytes, type(None))

_dtype = attrgetter("dtype")


def to_columns(values: Sequence[Any]) -> list[Any]:
    """Return *values* as lists of plain values, records and a few large arrays."""
    fields: Iterable[Sequence[Any]]
    kinds = set(map(type, values))
    if len(kinds) > 1:
        return _by_kind(values)
    kind = kinds.pop() if kinds else type(None)
    if kind in _LEAVES:
        return [_VALUES, list(values)]
    if kind is np.ndarray:
        if len(set(map(_dtype, values))) == 1:
            with suppress(TypeError, ValueError):  # of other shapes, or without one
                return [_ARRAYS, list(map(len, values)), np.concatenate(values)]
    elif kind is tuple or kind is list:
        lengths = list(map(len, values))
        if kind is tuple and values[0] and len(set(lengths)) == 1:
            return [_TUPLES, list(map(to_columns, zip(*values, strict=True)))]
        items = to_columns(list(chain.from_iterable(values)))
        return [_SEQUENCES, kind is tuple, lengths, items]
    elif not issubclass(kind, Stateful) and (names := record_fields(kind)):
        if issubclass(kind, tuple):
            fields = zip(*values, strict=True)
        else:
            fields = (list(map(attrgetter(name), values)) for name in names)
        return [_RECORDS, class_name(kind), list(map(to_columns, fields))]
    return [_VALUES, list(values)]


def _by_kind(values: Sequence[Any]) -> list[Any]:
    parts: dict[type, tuple[int, list[Any]]] = {}
    codes = []
    for value in values:
        code, part = parts.setdefault(type(value), (len(parts), []))
        codes.append(code)
        part.append(value)
    return [_MIXED, codes, [to_columns(part) for _, part in parts.values()]]


def from_columns(columns: Sequence[Any]) -> list[Any]:
    """Return the values that `to_columns` was given."""
    kind, *content = columns
    if kind == _VALUES:
        values: list[Any] = content[0]
        return values
    if kind == _ARRAYS:
        return cut(content[1], content[0])
    if kind == _SEQUENCES:
        is_tuple, lengths, items = content
        parts = cut(from_columns(items), lengths)
        return list(map(tuple, parts)) if is_tuple else parts
    if kind == _MIXED:
        following = [iter(from_columns(part)) for part in content[1]]
        return [next(following[code]) for code in content[0]]
    rows = list(zip(*map(from_columns, content[-1]), strict=True))
    if kind == _TUPLES:
        return rows
    cls = registered(content[0])
    names = record_fields(cls)
    assert names
    return [build_record(cls, dict(zip(names, row, strict=True))) for row in rows]


def cut(items: Any, lengths: Sequence[int]) -> list[Any]:
    """Return the first ``lengths[0]`` items, the next ``lengths[1]``, ..."""
    return [items[begin:end] for begin, end in pairwise(accumulate(lengths, initial=0))]
