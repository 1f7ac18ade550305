"""Machine instructions that numba's Python subset does not offer, as functions for kernels.

A numba loop that moves entries over signed indices does not become a block move, because it has to
allow for negative indices; and there is no Python spelling of a prefetch, of comparing many entries
at once or of finding a bit. These are thin names for LLVM's own: ``memmove``, ``prefetch``, vectors
and ``cttz``. They check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic as numba_intrinsic
from numba.np.arrayobj import make_array

kernel: Any = njit(cache=True, nogil=True, _nrt=False)  # type: ignore[call-overload]
"""Compile a function of arrays that allocates none: its callers own them all.

Without this ``_nrt=False`` numba counts a reference to every array at every call, atomically; with
the many arrays of a tree that made it three times as slow.
"""

inlined: Any = njit(  # type: ignore[call-overload]
    cache=True, nogil=True, _nrt=False, forceinline=True
)
"""Put a function into the kernels that call it.

A call copies every array's structure, some seventy words for the arrays of a tree; in a loop over
tuples that costs several times what a short function does."""

part_of: Any = njit(cache=True, nogil=True, inline="always")
"""The same for a function that returns part of an array: a kernel may take one, not return it."""

# numba's own annotation describes what the decorated function is to the compiler, not its callers.
intrinsic: Any = numba_intrinsic


def _address(builder: Any, array: Any, row: Any, column: Any) -> Any:
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
            _address(builder, array, args[3], args[4]),
            _address(builder, array, args[1], args[2]),
            args[5],
            context.get_constant(types.intp, 8),
        )
        return context.get_dummy_value()

    return types.void(rows, *[types.intp] * 5), emit


@intrinsic
def prefetch_entry(typing_context, rows, row, column):  # type: ignore[no-untyped-def]
    """Ask for the cache line of ``rows[row, column]`` without waiting for it."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        entry = _address(builder, array, args[1], args[2])
        pointer = builder.bitcast(entry, ir.IntType(8).as_pointer())
        flag = ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch.p0",
            (),
            ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag]),
        )
        read, keep_in_all_levels, data = flag(0), flag(3), flag(1)
        builder.call(prefetch, [pointer, read, keep_in_all_levels, data])
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp), emit


LANES = 16
"""Entries that `lanes_less` looks at."""


@intrinsic
def lanes_less(typing_context, rows, row, begin, target):  # type: ignore[no-untyped-def]
    """Count how many of the `LANES` integers from ``rows[row, begin]`` on are less than *target*.

    One or two instructions compare them all.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = make_array(signature.args[0])(context, builder, args[0])
        entry = _address(builder, array, args[1], args[2])
        lanes = ir.VectorType(entry.type.pointee, LANES)
        entries = builder.load(builder.bitcast(entry, lanes.as_pointer()))
        entries.align = entry.type.pointee.width // 8
        anything = ir.Constant(lanes, ir.Undefined)
        places = ir.VectorType(ir.IntType(32), LANES)
        one = builder.insert_element(anything, args[3], ir.IntType(32)(0))
        targets = builder.shuffle_vector(one, anything, ir.Constant(places, [0] * LANES))
        less = builder.bitcast(builder.icmp_signed("<", entries, targets), ir.IntType(LANES))
        return builder.ctpop(builder.zext(less, ir.IntType(64)))

    return types.int64(rows, types.intp, types.intp, rows.dtype), emit


@intrinsic
def trailing_zeros(typing_context, word):  # type: ignore[no-untyped-def]
    """Return the place of the lowest bit set in a uint64 *word*, as int64; 64 if none is."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.int64(types.uint64), emit
