"""Values as bytes: states on disk, payloads and all else that processes send each other.

A value is made of None, numbers, strings, bytes, arrays, lists, tuples, deques, sets, dicts, and
objects of the classes that `joins.state` has registered, at any depth. Its bytes are data: a
msgpack head, in which an object is the name of its class and the values of its fields, and beside
it the bytes of the arrays. Reading them looks names up among the registered classes, imports
nothing, and runs no code but the constructors of those.

Whatever bytes are read, the outcome is a value or a :exc:`FormatError`; nothing is allocated for
more than there is in them.

Many values of few kinds are shorter as columns, records by field and arrays end to end
(`to_columns`). A thousand results of some tuples each are several thousand arrays of a hundred
bytes; as columns they are a dozen arrays, without a head and padding for each.
"""

from __future__ import annotations

import math
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import fields
from functools import cache, lru_cache
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import msgpack
import numpy as np

from joins.state import Stateful, build_record, class_name, record_fields, registered, storable

_COUNT = struct.Struct("<Q")
_ALIGNED = 64
"""Arrays begin at multiples of this many bytes, as numpy's own do: kernels expect it, and numba
compiles another kernel for those that are not aligned."""
_PADDING = [bytes(length) for length in range(_ALIGNED)]
_ALONE = struct.Struct("<3Q")
_NO_SHAPES = bytes(_ALIGNED - _ALONE.size) + msgpack.packb([]) + bytes(_ALIGNED - 1)
_ALONE_BEGIN = 2 * _ALIGNED
"""A value without arrays has two parts: the shapes of none, and a head, which begins here."""

# What an object is, as the key of a map with one entry; the entry is its content.
_CLASS_CODE, _BUILTIN_CODE = 1, 2
_ARRAY, _SCALAR, _INTEGER = b"a", b"s", b"i"
_SETS = (set, frozenset)
_PLAIN: tuple[Any, ...] = (int, float, str, bytes, dict)
_SEQUENCES: dict[bytes, type] = {b"t": tuple, b"q": deque, b"e": set, b"f": frozenset}
_KEYS = {kind: msgpack.ExtType(_BUILTIN_CODE, code) for code, kind in _SEQUENCES.items()}
_ARRAY_KEY, _SCALAR_KEY, _INTEGER_KEY = (
    msgpack.ExtType(_BUILTIN_CODE, code) for code in (_ARRAY, _SCALAR, _INTEGER)
)


class FormatError(ValueError):
    """Bytes that `to_bytes` did not write; says what is wrong with them."""


class _Builtin(bytes):
    """The code of what is neither of a registered class nor known to msgpack."""


class _Form(NamedTuple):
    """How the objects of a registered class are written and read."""

    key: msgpack.ExtType
    take_apart: Callable[[Any], Any]
    build: Callable[[Any], Any]


@cache
def _form(cls: Any) -> _Form:
    name = class_name(cls)
    try:
        if registered(name) is not cls:  # a dataclass with slots is made twice
            storable(cls)
    except ValueError:
        raise TypeError(
            f"a {cls.__name__} is not plain data: no class {name} is registered "
            "(joins.state.storable)"
        ) from None
    key = msgpack.ExtType(_CLASS_CODE, name.encode())
    names = None if issubclass(cls, Stateful) else record_fields(cls)
    if names is None:
        # To build it from a message could take far more memory than there is in the message.
        raise TypeError(f"{cls.__name__} has a state of its own; its snapshot is plain data")
    if issubclass(cls, tuple):
        making: Any = cls
        return _Form(key, list, making._make)
    values_of: Any = attrgetter(*names, "__class__")  # of two at least, it returns a tuple

    def take_apart(value: Any) -> list[Any]:
        return list(values_of(value)[:-1])

    if all(field.init and not field.kw_only for field in fields(cls)):
        return _Form(key, take_apart, lambda values: cls(*values))
    return _Form(
        key, take_apart, lambda values: build_record(cls, dict(zip(names, values, strict=True)))
    )


class _Packing(threading.local):
    """Packs one value after the other into msgpack heads: making a packer takes longer than that.

    Each thread has one of its own.
    """

    def __init__(self) -> None:
        self._packer = msgpack.Packer(default=self._other, strict_types=True)
        self._arrays: list[np.ndarray] = []
        self._places: dict[int, int] = {}
        """An array that is in the value twice is in its bytes once."""

    def pack(self, value: Any) -> tuple[bytes, list[np.ndarray]]:
        if self._arrays:
            self._arrays, self._places = [], {}
        try:
            head: bytes = self._packer.pack(value)
        except BaseException:
            self._packer.reset()
            raise
        return head, self._arrays

    def _other(self, item: Any) -> Any:
        kind = type(item)
        if kind is np.ndarray:
            place = self._places.get(id(item))
            if place is None:
                if item.dtype.hasobject:
                    raise TypeError("an array of objects is not plain data")
                place = self._places[id(item)] = len(self._arrays)
                self._arrays.append(item)
            return {_ARRAY_KEY: place}
        if kind in _KEYS:
            return {_KEYS[kind]: sorted(item) if issubclass(kind, _SETS) else list(item)}
        if isinstance(item, np.generic):
            return {_SCALAR_KEY: np.asarray(item)}
        if kind is int:  # more than 64 bits: the state of a generator
            return {_INTEGER_KEY: hex(item)}
        for plain in _PLAIN:
            if isinstance(item, plain):  # of a class of its own, as a member of an enumeration
                return plain(item)
        hashable: Any = kind
        form = _form(hashable)
        return {form.key: form.take_apart(item)}


_packing = _Packing()


def _unpack(head: bytes | memoryview, arrays: Sequence[np.ndarray]) -> Any:
    def build(pairs: list[tuple[Any, Any]]) -> Any:
        if len(pairs) != 1 or type(pairs[0][0]) not in (_Form, _Builtin):
            return dict(pairs)
        ((kind, content),) = pairs
        if type(kind) is _Form:
            return kind.build(content)
        if kind == _ARRAY:
            return arrays[content]
        if kind == _SCALAR:
            return content[()]
        if kind == _INTEGER:
            return int(content, 16)
        return _SEQUENCES[kind](content)

    return msgpack.unpackb(head, ext_hook=_kind, object_pairs_hook=build, strict_map_key=False)


def to_parts(value: Any) -> list[Any]:
    """Return *value* as buffers whose bytes, end to end, are its bytes; arrays are not copied.

    Raise :exc:`TypeError` naming the part that cannot be stored.
    """
    head, arrays = _packing.pack(value)
    if not arrays:
        end = _PADDING[-len(head) % _ALIGNED]
        return [b"".join((_ALONE.pack(2, 1, len(head)), _NO_SHAPES, head, end))]
    shapes = msgpack.packb([[_describe(array.dtype), array.shape] for array in arrays])
    buffers = [shapes, head, *map(_bytes_of, arrays)]
    lengths = [len(buffer) for buffer in buffers]
    sizes = struct.pack(f"<{len(lengths) + 1}Q", len(lengths), *lengths)
    parts: list[Any] = []
    for buffer in (sizes, *buffers):
        parts.append(buffer)
        if padding := -len(buffer) % _ALIGNED:
            parts.append(_PADDING[padding])
    return parts


def _bytes_of(array: np.ndarray) -> memoryview:
    try:
        return array.data.cast("B")
    except (TypeError, ValueError):  # strided, empty, or of no simple type
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def to_bytes(value: Any) -> bytes:
    """Return *value* as bytes; raise :exc:`TypeError` naming the part that cannot be stored."""
    return b"".join(to_parts(value))


def to_array(value: Any) -> np.ndarray:
    """Return *value* as bytes in an array, to be a part of another value; raise as `to_bytes`."""
    return np.frombuffer(to_bytes(value), np.uint8)


def from_bytes(data: bytes | bytearray | memoryview) -> Any:
    """Return the value in *data*, arrays as views; they can be written to if *data* can be.

    Raise :exc:`FormatError` when it is not what `to_bytes` writes.
    """
    try:
        if len(data) > _ALONE_BEGIN and _ALONE.unpack_from(data)[:2] == (2, 1):
            return _unpack(_only_head(memoryview(data)), ())
        shapes, head, *buffers = _split(memoryview(data))
        described = msgpack.unpackb(shapes)
        pairs = zip(described, buffers, strict=True)
        return _unpack(head, [_view(dtype, shape, part) for (dtype, shape), part in pairs])
    except Exception as error:  # of msgpack, numpy, or the constructor of a record
        kind = "" if isinstance(error, FormatError) else f"{type(error).__name__}: "
        raise FormatError(f"not a value that joinsim wrote: {kind}{error}") from None


def _only_head(data: memoryview) -> memoryview:
    """Return the head of a value without arrays."""
    length = _ALONE.unpack_from(data)[2]
    if _ALONE_BEGIN + length + -length % _ALIGNED != len(data):
        raise FormatError(f"a head of {length} bytes in {len(data)}")
    if data[_ALIGNED] != _NO_SHAPES[_ALIGNED - _ALONE.size]:
        raise FormatError("a value without arrays has shapes")
    return data[_ALONE_BEGIN : _ALONE_BEGIN + length]


def _split(data: memoryview) -> list[memoryview]:
    if len(data) < _COUNT.size:
        raise FormatError(f"{len(data)} bytes are too few")
    (count,) = _COUNT.unpack_from(data)
    if count > len(data) // _COUNT.size - 1:
        raise FormatError(f"{count} parts do not fit into {len(data)} bytes")
    parts, begin = [], (count + 1) * _COUNT.size
    for length in struct.unpack_from(f"<{count}Q", data, _COUNT.size):
        begin += -begin % _ALIGNED
        if length > len(data) - begin:
            raise FormatError(f"a part of {length} bytes is not in the {len(data)} that there are")
        parts.append(data[begin : begin + length])
        begin += length
    if begin + -begin % _ALIGNED != len(data):
        raise FormatError(f"{len(data)} bytes, and its parts end at {begin}")
    return parts


def _view(described: Any, shape: list[int], data: memoryview) -> np.ndarray:
    dtype = _dtype(described) if type(described) is str else _read_dtype(described)
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != len(data):
        raise FormatError(f"an array of {shape} {dtype} does not have {len(data)} bytes")
    return np.ndarray(shape, dtype, data)


def _kind(code: int, data: bytes) -> Any:
    if code == _CLASS_CODE:
        return _form(registered(data.decode()))
    if code == _BUILTIN_CODE:
        return _Builtin(data)
    raise FormatError(f"{code} is no kind of object")


@lru_cache(maxsize=1024)
def _describe(dtype: np.dtype) -> Any:
    return np.lib.format.dtype_to_descr(dtype)


def _read_dtype(described: Any) -> np.dtype:
    if isinstance(described, list):  # of the columns of a structured array
        described = [tuple(column) for column in described]
    dtype = np.lib.format.descr_to_dtype(described)
    if dtype.hasobject or not dtype.itemsize:
        raise FormatError(f"arrays of {dtype} are not plain data")
    return dtype


_dtype = lru_cache(maxsize=1024)(_read_dtype)


_OF_VALUES, _OF_ARRAYS, _OF_SEQUENCES, _OF_TUPLES, _OF_RECORDS, _OF_MIXED = range(6)
"""The first item of a column says what is in it."""

_LEAVES = (str, int, float, bool, bytes, type(None))

_dtype_of = attrgetter("dtype")


def to_columns(values: Sequence[Any]) -> list[Any]:
    """Return *values* as columns: lists of plain values, records and a few large arrays."""
    fields: Iterable[Sequence[Any]]
    kinds = set(map(type, values))
    if len(kinds) > 1:
        return _by_kind(values)
    kind = kinds.pop() if kinds else type(None)
    if kind in _LEAVES:
        return [_OF_VALUES, list(values)]
    if kind is np.ndarray:
        if len(set(map(_dtype_of, values))) == 1:
            with suppress(TypeError, ValueError):  # of other shapes, or without one
                return [_OF_ARRAYS, list(map(len, values)), np.concatenate(values)]
    elif kind is tuple or kind is list:
        lengths = list(map(len, values))
        if kind is tuple and values[0] and len(set(lengths)) == 1:
            return [_OF_TUPLES, list(map(to_columns, zip(*values, strict=True)))]
        items = to_columns(list(chain.from_iterable(values)))
        return [_OF_SEQUENCES, kind is tuple, lengths, items]
    elif not issubclass(kind, Stateful) and (names := record_fields(kind)):
        if issubclass(kind, tuple):
            fields = zip(*values, strict=True)
        else:
            fields = (list(map(attrgetter(name), values)) for name in names)
        return [_OF_RECORDS, class_name(kind), list(map(to_columns, fields))]
    return [_OF_VALUES, list(values)]


def _by_kind(values: Sequence[Any]) -> list[Any]:
    parts: dict[type, tuple[int, list[Any]]] = {}
    codes = []
    for value in values:
        code, part = parts.setdefault(type(value), (len(parts), []))
        codes.append(code)
        part.append(value)
    return [_OF_MIXED, codes, [to_columns(part) for _, part in parts.values()]]


def from_columns(columns: Sequence[Any]) -> list[Any]:
    """Return the values that `to_columns` was given; arrays are views of their column."""
    kind, *content = columns
    if kind == _OF_VALUES:
        values: list[Any] = content[0]
        return values
    if kind == _OF_ARRAYS:
        return cut(content[1], content[0])
    if kind == _OF_SEQUENCES:
        is_tuple, lengths, items = content
        parts = cut(from_columns(items), lengths)
        return list(map(tuple, parts)) if is_tuple else parts
    if kind == _OF_MIXED:
        following = [iter(from_columns(part)) for part in content[1]]
        return [next(following[code]) for code in content[0]]
    rows = list(zip(*map(from_columns, content[-1]), strict=True))
    if kind == _OF_TUPLES:
        return rows
    cls = registered(content[0])
    names = record_fields(cls)
    assert names
    return [build_record(cls, dict(zip(names, row, strict=True))) for row in rows]


def cut(items: Any, lengths: Sequence[int]) -> list[Any]:
    """Return the first ``lengths[0]`` items, the next ``lengths[1]``, ..."""
    return [items[begin:end] for begin, end in pairwise(accumulate(lengths, initial=0))]
