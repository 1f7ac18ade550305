"""Atomic operations and spin locks on int64 matrices, for kernels that run in several threads.

numba offers no atomics on the CPU; these are thin names for LLVM's own. Loads acquire and stores
release: what a thread wrote before it released is seen by the thread that acquires. They check no
bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.types import boolean, int64, intp, void

from joins.machine.compiling import ARRAY, CodeEmitter, instruction, kernel
from joins.machine.instructions import address

_WORD = 8
_SPINS = 64
"""Tries before a waiting thread offers its core to others: with more threads than cores, the
thread that has the lock may not be running."""


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
