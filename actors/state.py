"""Actor states as plain data, in memory and on disk.

A state is made of dicts, lists, arrays, numbers, strings and None. `plain` turns the records
(dataclasses) and indexes that actors keep into such data and `revive` turns them back, so that an
actor's snapshot says only which of its fields are state. On disk a state is one npz file, never
pickle; in an engine's own storage, and on its way through one, it is bytes.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from actors.protocol import State

_RECORD, _INDEX, _STATE = "record", "index", "state"
_LAYOUT = "layout"
_OUR_PACKAGES = ("actors", "joins")
_ALIGNMENT = 16
"""In bytes, of arrays: numba compiles another kernel for those that are not aligned."""


def plain(value: Any) -> Any:
    """Return *value* with our dataclasses as dicts and tuples as lists, at any depth.

    Raise :exc:`TypeError` naming the type of anything that is not plain data.
    """
    if is_dataclass(value) and not isinstance(value, type):
        record = {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        return {_RECORD: _name(value), **record}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "snapshot"):
        return {_INDEX: _name(value), _STATE: plain(value.snapshot())}
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, bool | int | float | str | np.ndarray):
        return value
    raise TypeError(f"a {type(value).__name__} is not plain data")


def revive(value: Any) -> Any:
    """Turn what `plain` returned into records again; lists inside records become tuples.

    Raise :exc:`ValueError` when a record is not of our own packages.
    """
    if isinstance(value, list):
        return [revive(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _INDEX in value:
        return _class(value[_INDEX]).restore(value[_STATE])
    if _RECORD not in value:
        return {key: revive(item) for key, item in value.items()}
    return _class(value[_RECORD])(
        **{
            key: tuple(revive(item)) if isinstance(item, list) else revive(item)
            for key, item in value.items()
            if key != _RECORD
        }
    )


def _name(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _class(name: str) -> Any:
    module, _, qualname = name.partition(":")
    if module.split(".")[0] not in _OUR_PACKAGES:
        raise ValueError(f"a state may not hold a record of {module!r}")
    return getattr(import_module(module), qualname)


def save(state: State, path: Path) -> None:
    """Write a state as one npz file."""
    arrays: dict[str, np.ndarray] = {}
    layout = _flatten(plain(state), arrays)
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, **{_LAYOUT: np.array(json.dumps(layout))}, **arrays)


def load(path: Path) -> State:
    """Read a state that `save` wrote."""
    with np.load(path, allow_pickle=False) as arrays:
        layout = json.loads(str(arrays[_LAYOUT]))
        return _unflatten(layout, arrays)


def to_bytes(value: Any) -> bytes:
    """Return plain data, or what `plain` makes plain, as bytes: its layout, then its arrays."""
    arrays: dict[str, np.ndarray] = {}
    layout = _flatten(plain(value), arrays)
    shapes = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
    head = json.dumps([layout, shapes]).encode()
    parts: list[bytes | memoryview] = [len(head).to_bytes(_ALIGNMENT, "little"), head]
    for array in arrays.values():
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
        parts += [bytes(-len(parts[-1]) % _ALIGNMENT), data]
    return b"".join(parts)


def from_bytes(data: bytes | bytearray) -> Any:
    """Return the plain data in *data*, arrays as views; they can be written to in a bytearray."""
    begin = _ALIGNMENT + int.from_bytes(data[:_ALIGNMENT], "little")
    layout, shapes = json.loads(bytes(data[_ALIGNMENT:begin]))
    arrays = {}
    for name, (dtype, shape) in shapes.items():
        begin += -begin % _ALIGNMENT
        count = math.prod(shape)
        arrays[name] = np.frombuffer(data, dtype, count, begin).reshape(shape)
        begin += arrays[name].nbytes
    return _unflatten(layout, arrays)


def _flatten(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """Move the arrays of *value* into *arrays* and return what is left, with their names."""
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, dict):
        return {"dict": [[key, _flatten(item, arrays)] for key, item in value.items()]}
    if isinstance(value, list):
        return {"list": [_flatten(item, arrays) for item in value]}
    return {"scalar": value}


def _unflatten(layout: Any, arrays: Any) -> Any:
    ((kind, value),) = layout.items()
    if kind == "array":
        return arrays[value]
    if kind == "dict":
        return {key: _unflatten(item, arrays) for key, item in value}
    if kind == "list":
        return [_unflatten(item, arrays) for item in value]
    return value
