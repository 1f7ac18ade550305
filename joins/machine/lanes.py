"""Vector instructions: many entries of a column at once, as functions for kernels.

Python has no spelling for them. Like `joins.machine.instructions` they check no bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import overload
from numba.types import int64, intp, void

from joins.machine.compiling import ARRAY, ITEM, CodeEmitter, instruction
from joins.machine.instructions import address

LANES = 16
"""Entries that `lanes_less`, `lanes_greater`, `move_lanes` and `widen_lanes` take at once."""
_DOUBLE_BYTES = 8


def greatest_of(rows: np.ndarray) -> float:
    """Return the greatest value of an array's dtype, int64 or float64."""
    return np.inf if rows.dtype.kind == "f" else np.iinfo(rows.dtype).max


def _make_greatest(rows: Any) -> Any:
    is_float = isinstance(rows.dtype, types.Float)
    greatest = np.inf if is_float else np.iinfo(np.int64).max
    return lambda rows: greatest


_OPTIONS: Any = {"nogil": True, "_nrt": False, "forceinline": True}
overload(greatest_of, jit_options=_OPTIONS, strict=False)(_make_greatest)


def lanes_from(emit: CodeEmitter, entry: Any, count: int = LANES) -> tuple[Any, int]:
    """Emit the address of a vector of *count* entries, from the first one's; and its alignment."""
    kind = entry.type.pointee
    lanes = ir.VectorType(kind, count)
    align = _DOUBLE_BYTES if isinstance(kind, ir.DoubleType) else kind.width // 8
    return emit.builder.bitcast(entry, lanes.as_pointer()), align


def lanes_at(emit: CodeEmitter, rows: Any, row: Any, begin: Any) -> tuple[Any, int]:
    """Emit the address of a vector of `LANES` entries of a matrix, and its alignment."""
    return lanes_from(emit, address(emit, rows, row, begin))


def load(emit: CodeEmitter, place: Any, align: int) -> Any:
    """Emit the vector at an address."""
    entries = emit.builder.load(place)
    entries.align = align
    return entries


def _compare(emit: CodeEmitter, entries: Any, compared: str, target: Any) -> Any:
    """Emit a word with a bit for each entry of a vector: whether it compares so with *target*."""
    builder, lanes = emit.builder, entries.type
    is_float = isinstance(lanes.element, ir.DoubleType)
    compare = builder.fcmp_ordered if is_float else builder.icmp_signed
    bits = compare(compared, entries, repeat(emit, target, lanes))
    return builder.zext(builder.bitcast(bits, ir.IntType(entries.type.count)), ir.IntType(64))


def repeat(emit: CodeEmitter, value: Any, lanes: Any) -> Any:
    """Emit a vector with *value* in every place."""
    anything = ir.Constant(lanes, ir.Undefined)
    places = ir.VectorType(ir.IntType(32), lanes.count)
    one = emit.builder.insert_element(anything, value, ir.IntType(32)(0))
    return emit.builder.shuffle_vector(one, anything, ir.Constant(places, [0] * lanes.count))


@instruction(int64, ARRAY, intp, intp, ITEM)
def lanes_less(emit: CodeEmitter, rows: Any, row: Any, begin: Any, target: Any) -> Any:
    """Count how many of the `LANES` entries from ``rows[row, begin]`` on are less than *target*.

    They are integers or float64. One or two instructions compare them all.
    """
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    return emit.builder.ctpop(_compare(emit, entries, "<", target))


@instruction(int64, ARRAY, intp, intp, ITEM)
def lanes_greater(emit: CodeEmitter, rows: Any, row: Any, begin: Any, target: Any) -> Any:
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on exceed *target*."""
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    return emit.builder.ctpop(_compare(emit, entries, ">", target))


LOOKAHEAD = 8
"""Entries that `leading_less` looks at."""


@instruction(int64, ARRAY, intp, ITEM)
def leading_less(emit: CodeEmitter, column: Any, begin: Any, target: Any) -> Any:
    """Count the integers less than *target* from ``column[begin]`` on, up to one that is not.

    It looks at `LOOKAHEAD` of them, all at once, which must be there.
    """
    builder = emit.builder
    entries = load(emit, *lanes_from(emit, builder.gep(column.data, [begin]), LOOKAHEAD))
    past_all = ir.IntType(64)(1 << LOOKAHEAD)
    others = builder.or_(_compare(emit, entries, ">=", target), past_all)
    return builder.cttz(others, ir.IntType(1)(0))


@instruction(void, ARRAY, intp, intp, intp)
def move_lanes(emit: CodeEmitter, rows: Any, row: Any, begin: Any, to: Any) -> Any:
    """Copy `LANES` entries within a row; the two places may overlap.

    ``rows[row, to : to + LANES] = rows[row, begin : begin + LANES]``
    """
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    emit.builder.store(entries, *lanes_at(emit, rows, row, to))


@instruction(void, ARRAY, intp, intp, ARRAY, intp, int64)
def widen_lanes(
    emit: CodeEmitter, rows: Any, row: Any, begin: Any, target: Any, to: Any, more: Any
) -> Any:
    """Copy `LANES` integers of a matrix to a column of int64, and add *more* to each.

    ``target[to : to + LANES] = rows[row, begin : begin + LANES] + more``
    """
    builder = emit.builder
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    wide, align = lanes_from(emit, builder.gep(target.data, [to]))
    lanes = wide.type.pointee
    sums = builder.add(builder.sext(entries, lanes), repeat(emit, more, lanes))
    builder.store(sums, wide, align)
