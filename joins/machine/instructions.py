"""Machine instructions that numba's Python subset does not offer, as functions for kernels.

A loop that moves entries does not become a block move, because its two places may overlap; and
there is no Python spelling of a prefetch, of finding a bit or of an atomic operation. These are
thin names for LLVM's own: ``memmove``, ``prefetch``, ``cttz``, ``ctlz`` and the atomics, with spin
locks made of them. They check no bounds.

Atomic operations are for int64 matrices that several threads read and write. Loads acquire and
stores release: what a thread wrote before it released is seen by the thread that acquires.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.types import boolean, int64, intp, uint64, void

from joins.machine.compiling import ARRAY, CodeEmitter, instruction, kernel

_WORD = 8
_SPINS = 64
"""Tries before a waiting thread offers its core to others: with more threads than cores, the
thread that has the lock may not be running."""


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
        "llvm.prefetch.p0", (), ir.FunctionType(ir.VoidType(), [pointer.type, flag, flag, flag])
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


@instruction(int64, ARRAY, intp, intp)
def load(emit: CodeEmitter, rows: Any, row: Any, column: Any) -> Any:
    """Return ``rows[row, column]``."""
    word = address(emit, rows, row, column)
    return emit.builder.load_atomic(word, "acquire", _WORD, typ=ir.IntType(64))


@instruction(void, ARRAY, intp, intp, int64)
def store(emit: CodeEmitter, rows: Any, row: Any, column: Any, value: Any) -> Any:
    """Set ``rows[row, column] = value``."""
    emit.builder.store_atomic(value, address(emit, rows, row, column), "release", _WORD)


@instruction(int64, ARRAY, intp, intp, int64)
def fetch_add(emit: CodeEmitter, rows: Any, row: Any, column: Any, value: Any) -> Any:
    """Add *value* to ``rows[row, column]`` and return what was there before."""
    return emit.builder.atomic_rmw("add", address(emit, rows, row, column), value, "acq_rel")


@instruction(boolean, ARRAY, intp, intp, int64, int64)
def compare_and_swap(
    emit: CodeEmitter, rows: Any, row: Any, column: Any, old: Any, new: Any
) -> Any:
    """Set ``rows[row, column] = new`` if *old* is there, and return whether it was."""
    word = address(emit, rows, row, column)
    swapped = emit.builder.cmpxchg(word, old, new, "acq_rel", "acquire")
    return emit.builder.extract_value(swapped, 1)


@instruction(boolean, ARRAY, intp, intp)
def try_lock(emit: CodeEmitter, rows: Any, row: Any, column: Any) -> Any:
    """Test and set: take the lock at ``rows[row, column]``, and return whether it was free."""
    free, taken = (ir.Constant(ir.IntType(64), value) for value in (0, 1))
    word = address(emit, rows, row, column)
    return emit.builder.icmp_signed(
        "==", emit.builder.atomic_rmw("xchg", word, taken, "acquire"), free
    )


@instruction(void)
def offer_core(emit: CodeEmitter) -> Any:
    """Let another thread run."""
    module, name = emit.builder.module, "sched_yield"
    function = ir.FunctionType(ir.IntType(32), [])
    emit.builder.call(module.globals.get(name) or ir.Function(module, function, name), [])


@kernel
def lock(rows: np.ndarray, row: int, column: int) -> None:
    """Take the lock at ``rows[row, column]``, waiting until it is free."""
    tries = 0
    while not try_lock(rows, row, column):
        while load(rows, row, column) != 0:
            tries += 1
            if tries % _SPINS == 0:
                offer_core()


@kernel
def unlock(rows: np.ndarray, row: int, column: int) -> None:
    """Release the lock at ``rows[row, column]``."""
    store(rows, row, column, 0)
