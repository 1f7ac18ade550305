"""Machine instructions that numba's Python subset does not offer, as functions for kernels.

A numba loop that moves entries over signed indices does not become a block move, because it has to
allow for negative indices; and there is no Python spelling of a prefetch or of finding a bit. These
are thin names for LLVM's own: ``memmove``, ``prefetch``, ``cttz`` and ``ctlz``. They check no
bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.types import int64, intp, uint64, void

from joins.machine.compiling import ARRAY, CodeEmitter, instruction


def address(emit: CodeEmitter, array: Any, row: Any, column: Any) -> Any:
    """Emit the address of ``array[row, column]`` of a C-contiguous matrix."""
    builder = emit.builder
    width = builder.extract_value(array.shape, 1)
    return builder.gep(array.data, [builder.add(builder.mul(row, width), column)])


def _move(emit: CodeEmitter, target: Any, source: Any, count: Any) -> None:
    """Emit a block move of *count* eight-byte entries from one address to another."""
    entry_bytes = emit.context.get_constant(intp, 8)
    cgutils.raw_memmove(emit.builder, target, source, count, entry_bytes)


@instruction(void, ARRAY, intp, intp, intp, intp, intp)
def move_entries(
    emit: CodeEmitter, rows: Any, source: Any, begin: Any, target: Any, to: Any, count: Any
) -> Any:
    """Copy *count* eight-byte entries of a matrix; the two places may overlap.

    ``rows[target, to : to + count] = rows[source, begin : begin + count]``
    """
    _move(emit, address(emit, rows, target, to), address(emit, rows, source, begin), count)


@instruction(void, ARRAY, intp, ARRAY, intp, intp)
def copy_entries(
    emit: CodeEmitter, source: Any, begin: Any, target: Any, to: Any, count: Any
) -> Any:
    """Copy *count* eight-byte entries of one column to another; the two places may overlap.

    ``target[to : to + count] = source[begin : begin + count]``
    """
    builder = emit.builder
    _move(emit, builder.gep(target.data, [to]), builder.gep(source.data, [begin]), count)


def _prefetch(emit: CodeEmitter, entry: Any, *, to_write: bool) -> None:
    builder, flag = emit.builder, ir.IntType(32)
    pointer = builder.bitcast(entry, ir.IntType(8).as_pointer())
    prefetch = builder.module.declare_intrinsic(
        "llvm.prefetch.p0",
        (),
        ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag]),
    )
    keep_in_all_levels, data = flag(3), flag(1)
    builder.call(prefetch, [pointer, flag(int(to_write)), keep_in_all_levels, data])


@instruction(void, ARRAY, intp, intp)
def prefetch_entry(emit: CodeEmitter, rows: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of ``rows[row, column]`` without waiting for it."""
    _prefetch(emit, address(emit, rows, row, column), to_write=False)


@instruction(void, ARRAY, intp, intp)
def prefetch_to_write(emit: CodeEmitter, rows: Any, row: Any, column: Any) -> Any:
    """Ask for the cache line of ``rows[row, column]``, and that no other core keeps it."""
    _prefetch(emit, address(emit, rows, row, column), to_write=True)


@instruction(int64, uint64)
def trailing_zeros(emit: CodeEmitter, word: Any) -> Any:
    """Return the place of the lowest bit set in a uint64 *word*, as int64; 64 if none is."""
    return emit.builder.cttz(word, ir.IntType(1)(0))


@instruction(int64, int64)
def leading_zeros(emit: CodeEmitter, word: Any) -> Any:
    """Return how many bits of an int64 *word* are above the highest bit set; 64 if none is."""
    return emit.builder.ctlz(word, ir.IntType(1)(0))
