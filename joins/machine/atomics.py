"""Atomic operations and spin locks on int64 matrices, for kernels that run in several threads.

numba offers no atomics on the CPU; these are thin names for LLVM's own. Loads acquire and stores
release: what a thread wrote before it released is seen by whoever acquires. They check no bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from joins.machine.compiling import intrinsic, kernel

_WORD = 8
_SPINS = 64
"""Tries before a waiting thread offers its core to others: with more threads than cores, the
thread that has the lock may not be running."""


def _word(context: Any, builder: Any, array_type: Any, array: Any, row: Any, column: Any) -> Any:
    matrix = make_array(array_type)(context, builder, array)
    width = builder.extract_value(matrix.shape, 1)
    return builder.gep(matrix.data, [builder.add(builder.mul(row, width), column)])


@intrinsic
def load(typing_context, rows, row, column):  # type: ignore[no-untyped-def]
    """Return ``rows[row, column]``."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _word(context, builder, signature.args[0], *args)
        return builder.load_atomic(word, "acquire", _WORD, typ=ir.IntType(64))

    return types.int64(rows, types.intp, types.intp), emit


@intrinsic
def store(typing_context, rows, row, column, value):  # type: ignore[no-untyped-def]
    """Set ``rows[row, column] = value``."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _word(context, builder, signature.args[0], *args[:3])
        builder.store_atomic(args[3], word, "release", _WORD)
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, types.int64), emit


@intrinsic
def fetch_add(typing_context, rows, row, column, value):  # type: ignore[no-untyped-def]
    """Add *value* to ``rows[row, column]`` and return what was there before."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _word(context, builder, signature.args[0], *args[:3])
        return builder.atomic_rmw("add", word, args[3], "acq_rel")

    return types.int64(rows, types.intp, types.intp, types.int64), emit


@intrinsic
def compare_and_swap(typing_context, rows, row, column, old, new):  # type: ignore[no-untyped-def]
    """Set ``rows[row, column] = new`` if *old* is there, and tell whether it was."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _word(context, builder, signature.args[0], *args[:3])
        swapped = builder.cmpxchg(word, args[3], args[4], "acq_rel", "acquire")
        return builder.extract_value(swapped, 1)

    return types.boolean(rows, types.intp, types.intp, types.int64, types.int64), emit


@intrinsic
def try_lock(typing_context, rows, row, column):  # type: ignore[no-untyped-def]
    """Test and set: take the lock at ``rows[row, column]`` if it is free; tell whether."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = _word(context, builder, signature.args[0], *args)
        held = builder.atomic_rmw("xchg", word, ir.Constant(ir.IntType(64), 1), "acquire")
        return builder.icmp_signed("==", held, ir.Constant(ir.IntType(64), 0))

    return types.boolean(rows, types.intp, types.intp), emit


@intrinsic
def offer_core(typing_context):  # type: ignore[no-untyped-def]
    """Let another thread run."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function = ir.FunctionType(ir.IntType(32), [])
        name = "sched_yield"
        builder.call(
            builder.module.globals.get(name) or ir.Function(builder.module, function, name), []
        )
        return context.get_dummy_value()

    return types.void(), emit


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
