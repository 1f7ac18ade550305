"""Vector instructions: many entries of a column at once, as functions for kernels.

Python has no spelling for them. Like `joins.machine.instructions` they check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.types import int64, intp, void

from joins.machine.compiling import ARRAY, ITEM, Emitter, instruction
from joins.machine.instructions import address

LANES = 16
"""Entries that `lanes_less`, `lanes_greater`, `move_lanes` and `widen_lanes` take at once."""


def lanes_from(emit: Emitter, entry: Any, count: int = LANES) -> tuple[Any, int]:
    """Emit the address of a vector of *count* entries, from the first one's; and its alignment."""
    lanes = ir.VectorType(entry.type.pointee, count)
    return emit.builder.bitcast(entry, lanes.as_pointer()), entry.type.pointee.width // 8


def lanes_at(emit: Emitter, rows: Any, row: Any, begin: Any) -> tuple[Any, int]:
    """Emit the address of a vector of `LANES` entries of a matrix, and its alignment."""
    return lanes_from(emit, address(emit, rows, row, begin))


def load(emit: Emitter, place: Any, align: int) -> Any:
    """Emit the vector at an address."""
    entries = emit.builder.load(place)
    entries.align = align
    return entries


def _compare(emit: Emitter, entries: Any, compared: str, target: Any) -> Any:
    """Emit a word with a bit for each entry of a vector: whether it compares so with *target*."""
    builder = emit.builder
    bits = builder.icmp_signed(compared, entries, repeat(emit, target, entries.type))
    return builder.zext(builder.bitcast(bits, ir.IntType(entries.type.count)), ir.IntType(64))


def repeat(emit: Emitter, value: Any, lanes: Any) -> Any:
    """Emit a vector with *value* in every place."""
    anything = ir.Constant(lanes, ir.Undefined)
    places = ir.VectorType(ir.IntType(32), lanes.count)
    one = emit.builder.insert_element(anything, value, ir.IntType(32)(0))
    return emit.builder.shuffle_vector(one, anything, ir.Constant(places, [0] * lanes.count))


@instruction(int64, ARRAY, intp, intp, ITEM)
def lanes_less(emit: Emitter, rows: Any, row: Any, begin: Any, target: Any) -> Any:
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on are less than *target*.

    One or two instructions compare them all.
    """
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    return emit.builder.ctpop(_compare(emit, entries, "<", target))


@instruction(int64, ARRAY, intp, intp, ITEM)
def lanes_greater(emit: Emitter, rows: Any, row: Any, begin: Any, target: Any) -> Any:
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on exceed *target*."""
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    return emit.builder.ctpop(_compare(emit, entries, ">", target))


LOOKAHEAD = 8
"""Entries that `leading_less` looks at."""


@instruction(int64, ARRAY, intp, ITEM)
def leading_less(emit: Emitter, column: Any, begin: Any, target: Any) -> Any:
    """Count the integers less than *target* from ``column[begin]`` on, up to one that is not.

    It looks at `LOOKAHEAD` of them, all at once, which must be there.
    """
    builder = emit.builder
    entries = load(emit, *lanes_from(emit, builder.gep(column.data, [begin]), LOOKAHEAD))
    past_all = ir.IntType(64)(1 << LOOKAHEAD)
    others = builder.or_(_compare(emit, entries, ">=", target), past_all)
    return builder.cttz(others, ir.IntType(1)(0))


@instruction(void, ARRAY, intp, intp, intp)
def move_lanes(emit: Emitter, rows: Any, row: Any, begin: Any, to: Any) -> Any:
    """Copy `LANES` entries within a row; the two places may overlap.

    ``rows[row, to : to + LANES] = rows[row, begin : begin + LANES]``
    """
    entries = load(emit, *lanes_at(emit, rows, row, begin))
    emit.builder.store(entries, *lanes_at(emit, rows, row, to))


@instruction(void, ARRAY, intp, intp, ARRAY, intp, int64)
def widen_lanes(
    emit: Emitter, rows: Any, row: Any, begin: Any, target: Any, to: Any, more: Any
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
