"""Vectors as values of kernels: merging sorted columns several entries at a time.

A merge that takes one entry after the other waits for each comparison before it knows what to
compare next. Two sorted vectors are merged without any decision by a bitonic network (Batcher,
1968): the one against the other reversed, entry by entry, leaves the lesser half in one and the
greater half in the other, and a few exchanges sort each. Like `joins.machine.instructions` these
functions check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model
from numba.types import boolean, intp, void

from joins.machine.compiling import ARRAY, CodeEmitter, instruction
from joins.machine.lanes import LANES, lanes_at, load

_VECTOR = ir.VectorType(ir.IntType(64), LANES)


class LanesType(types.Type):  # type: ignore[misc]
    """The type of a variable that holds `LANES` int64."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = LanesType()
_PAIR = types.UniTuple(_LANES, 2)


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: LanesType) -> None:
        super().__init__(manager, lanes, _VECTOR)


@instruction(_LANES, ARRAY, intp, intp)
def load_lanes(emit: CodeEmitter, rows: Any, row: Any, begin: Any) -> Any:
    """Return the `LANES` int64 from ``rows[row, begin]`` on."""
    return load(emit, *lanes_at(emit, rows, row, begin))


@instruction(void, _LANES, ARRAY, intp, intp)
def store_lanes(emit: CodeEmitter, lanes: Any, rows: Any, row: Any, begin: Any) -> Any:
    """Write *lanes* from ``rows[row, begin]`` on."""
    emit.builder.store(lanes, *lanes_at(emit, rows, row, begin))


@instruction(_LANES, boolean, _LANES, _LANES)
def choose_lanes(emit: CodeEmitter, first: Any, one: Any, other: Any) -> Any:
    """Return *one* when *first* is true and *other* when it is not; no branch."""
    return emit.builder.select(first, one, other)


@instruction(_PAIR, _LANES, _LANES)
def merge_lanes(emit: CodeEmitter, one: Any, other: Any) -> Any:
    """Merge two ascending vectors; return the lesser half of all entries and the greater one."""
    builder = emit.builder
    reverse = _shuffle(builder, other, other, list(reversed(range(LANES))))
    halves = [_sort_bitonic(builder, half) for half in _exchange(builder, one, reverse)]
    return emit.context.make_tuple(builder, _PAIR, halves)


def _shuffle(builder: Any, one: Any, other: Any, places: list[int]) -> Any:
    """Emit a vector of the entries at *places*, those of *other* being counted after *one*'s."""
    kind = ir.VectorType(ir.IntType(32), len(places))
    return builder.shuffle_vector(one, other, ir.Constant(kind, places))


def _exchange(builder: Any, one: Any, other: Any) -> tuple[Any, Any]:
    """Emit the lesser and the greater of two vectors, entry by entry."""
    is_less = builder.icmp_signed("<", one, other)
    return builder.select(is_less, one, other), builder.select(is_less, other, one)


def _sort_bitonic(builder: Any, lanes: Any) -> Any:
    """Emit in ascending order what ascends and then descends, or the reverse."""
    step = LANES // 2
    while step:
        partner = _shuffle(builder, lanes, lanes, [i ^ step for i in range(LANES)])
        is_less = builder.icmp_signed("<", lanes, partner)
        is_upper = ir.Constant(is_less.type, [bool(i & step) for i in range(LANES)])
        lanes = builder.select(builder.xor(is_less, is_upper), lanes, partner)
        step //= 2
    return lanes
