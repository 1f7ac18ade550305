"""Vector instructions: many entries of a column at once, as functions for kernels.

Python has no spelling for them. Like `joins.machine.instructions` they check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from joins.machine.compiling import intrinsic
from joins.machine.instructions import address as address_of

LANES = 16
"""Entries that `lanes_less`, `lanes_greater`, `move_lanes` and `widen_lanes` take at once."""


def lanes_at(
    context: Any,
    builder: Any,
    kind: Any,
    rows: Any,
    row: Any,
    begin: Any,
    *,
    count: int = LANES,
) -> Any:
    """Emit the address of *count* entries of a matrix as that of one vector, and its alignment."""
    entry = address_of(builder, make_array(kind)(context, builder, rows), row, begin)
    lanes = ir.VectorType(entry.type.pointee, count)
    return builder.bitcast(entry, lanes.as_pointer()), entry.type.pointee.width // 8


def load(builder: Any, address: Any, align: int) -> Any:
    """Emit the vector at an address."""
    entries = builder.load(address)
    entries.align = align
    return entries


def _count_lanes(context: Any, builder: Any, signature: Any, args: Any, compared: str) -> Any:
    """Emit how many of `LANES` entries compare so with the last argument."""
    entries = load(builder, *lanes_at(context, builder, signature.args[0], *args[:3]))
    return builder.ctpop(_compare(builder, entries, compared, args[3]))


def _compare(builder: Any, entries: Any, compared: str, target: Any) -> Any:
    """Emit a word with a bit for each entry of a vector: whether it compares so with *target*."""
    bits = builder.icmp_signed(compared, entries, repeat(builder, target, entries.type))
    return builder.zext(builder.bitcast(bits, ir.IntType(entries.type.count)), ir.IntType(64))


def repeat(builder: Any, value: Any, lanes: Any) -> Any:
    """Emit a vector that holds *value* everywhere."""
    anything = ir.Constant(lanes, ir.Undefined)
    places = ir.VectorType(ir.IntType(32), lanes.count)
    one = builder.insert_element(anything, value, ir.IntType(32)(0))
    return builder.shuffle_vector(one, anything, ir.Constant(places, [0] * lanes.count))


@intrinsic
def lanes_less(typing_context, rows, row, begin, target):  # type: ignore[no-untyped-def]
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on are less than *target*.

    One or two instructions compare them all.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _count_lanes(context, builder, signature, args, "<")

    return types.int64(rows, types.intp, types.intp, rows.dtype), emit


@intrinsic
def lanes_greater(typing_context, rows, row, begin, target):  # type: ignore[no-untyped-def]
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on exceed *target*."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _count_lanes(context, builder, signature, args, ">")

    return types.int64(rows, types.intp, types.intp, rows.dtype), emit


LOOKAHEAD = 8
"""Entries that `leading_less` looks at."""


@intrinsic
def leading_less(typing_context, column, begin, target):  # type: ignore[no-untyped-def]
    """Count the integers less than *target* from ``column[begin]`` on, up to one that is not.

    It looks at `LOOKAHEAD` of them, all at once, which must be there.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        entry = builder.gep(array.data, [args[1]])
        lanes = ir.VectorType(entry.type.pointee, LOOKAHEAD)
        address = builder.bitcast(entry, lanes.as_pointer())
        entries = load(builder, address, entry.type.pointee.width // 8)
        others = _compare(builder, entries, ">=", args[2])
        past_all = ir.IntType(64)(1 << LOOKAHEAD)
        return builder.cttz(builder.or_(others, past_all), ir.IntType(1)(0))

    return types.int64(column, types.intp, column.dtype), emit


@intrinsic
def move_lanes(typing_context, rows, row, begin, to):  # type: ignore[no-untyped-def]
    """Copy `LANES` entries within a row; the two places may overlap.

    ``rows[row, to : to + LANES] = rows[row, begin : begin + LANES]``
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind, (matrix, line, begin, to) = signature.args[0], args
        entries = load(builder, *lanes_at(context, builder, kind, matrix, line, begin))
        target, align = lanes_at(context, builder, kind, matrix, line, to)
        builder.store(entries, target, align)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, types.intp), emit


@intrinsic
def widen_lanes(typing_context, rows, row, begin, target, to, more):  # type: ignore[no-untyped-def]
    """Copy `LANES` integers of a matrix to a column of wider ones, and add *more* to each.

    ``target[to : to + LANES] = rows[row, begin : begin + LANES] + more``
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entries = load(builder, *lanes_at(context, builder, signature.args[0], *args[:3]))
        column = make_array(signature.args[3])(context, builder, args[3])
        lanes = ir.VectorType(column.data.type.pointee, LANES)
        address = builder.bitcast(builder.gep(column.data, [args[4]]), lanes.as_pointer())
        sums = builder.add(builder.sext(entries, lanes), repeat(builder, args[5], lanes))
        builder.store(sums, address, lanes.element.width // 8)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, target, types.intp, target.dtype), emit
