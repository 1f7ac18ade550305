"""Machine instructions that numba's Python subset does not offer, as functions for kernels.

A numba loop that moves entries over signed indices does not become a block move, because it has to
allow for negative indices; and there is no Python spelling of a prefetch or of finding a bit. These
are thin names for LLVM's own: ``memmove``, ``prefetch``, ``cttz`` and ``ctlz``. They check no
bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array

from joins.machine.compiling import intrinsic


def address(builder: Any, array: Any, row: Any, column: Any) -> Any:
    """Emit the address of ``array[row, column]`` of a C-contiguous matrix."""
    width = builder.extract_value(array.shape, 1)
    return builder.gep(array.data, [builder.add(builder.mul(row, width), column)])


@intrinsic
def move_entries(  # type: ignore[no-untyped-def]
    typing_context, rows, source, begin, target, to, count
):
    """Copy *count* eight-byte entries of a matrix; the two places may overlap.

    ``rows[target, to : to + count] = rows[source, begin : begin + count]``
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        cgutils.raw_memmove(
            builder,
            address(builder, array, args[3], args[4]),
            address(builder, array, args[1], args[2]),
            args[5],
            context.get_constant(types.intp, 8),
        )
        return context.get_dummy_value()

    return types.void(rows, *[types.intp] * 5), emit


@intrinsic
def copy_entries(  # type: ignore[no-untyped-def]
    typing_context, source, begin, target, to, count
):
    """Copy *count* eight-byte entries of one column to another; the two places may overlap.

    ``target[to : to + count] = source[begin : begin + count]``
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        columns = [make_array(signature.args[i])(context, builder, args[i]) for i in (0, 2)]
        cgutils.raw_memmove(
            builder,
            builder.gep(columns[1].data, [args[3]]),
            builder.gep(columns[0].data, [args[1]]),
            args[4],
            context.get_constant(types.intp, 8),
        )
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp, types.intp), emit


def _prefetch(context: Any, builder: Any, signature: Any, args: Any, to_write: int) -> Any:
    array = make_array(signature.args[0])(context, builder, args[0])
    entry = address(builder, array, args[1], args[2])
    pointer = builder.bitcast(entry, ir.IntType(8).as_pointer())
    flag = ir.IntType(32)
    prefetch = builder.module.declare_intrinsic(
        "llvm.prefetch.p0",
        (),
        ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag]),
    )
    keep_in_all_levels, data = flag(3), flag(1)
    builder.call(prefetch, [pointer, flag(to_write), keep_in_all_levels, data])
    return context.get_dummy_value()


@intrinsic
def prefetch_entry(typing_context, rows, row, column):  # type: ignore[no-untyped-def]
    """Ask for the cache line of ``rows[row, column]`` without waiting for it."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _prefetch(context, builder, signature, args, to_write=0)

    return types.void(rows, types.intp, types.intp), emit


@intrinsic
def prefetch_to_write(typing_context, rows, row, column):  # type: ignore[no-untyped-def]
    """Ask for the cache line of ``rows[row, column]``, and that no other core keeps it."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _prefetch(context, builder, signature, args, to_write=1)

    return types.void(rows, types.intp, types.intp), emit


@intrinsic
def trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Return the place of the lowest bit set in a uint64 *word*, as int64; 64 if none is."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.int64(types.uint64), emit


@intrinsic
def leading_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Return how many bits of an int64 *word* are above the highest bit set; 64 if none is."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctlz(args[0], ir.IntType(1)(0))

    return types.int64(types.int64), emit
