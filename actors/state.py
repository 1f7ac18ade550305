"""Plain data (`joins.state`) on disk and as bytes.

On disk a state is one npz file, never pickle; in an engine's own storage, and on its way through
one, it is bytes.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from joins.state import State, plain

_LAYOUT = "layout"
_ALIGNMENT = 16
"""In bytes, of arrays: numba compiles another kernel for those that are not aligned."""


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
        state: State = _unflatten(layout, arrays)
        return state


def to_bytes(value: Any) -> bytes:
    """Return plain data, or what `plain` makes plain, as bytes: its layout, then its arrays."""
    arrays: dict[str, np.ndarray] = {}
    layout = _flatten(plain(value), arrays)
    describe = np.lib.format.dtype_to_descr
    shapes = {name: [describe(a.dtype), list(a.shape)] for name, a in arrays.items()}
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
    for name, (described, shape) in shapes.items():
        begin += -begin % _ALIGNMENT
        count = math.prod(shape)
        dtype = np.lib.format.descr_to_dtype(described)
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
