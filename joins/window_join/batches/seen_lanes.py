"""Counting what a probe sees among a few entries: vector instructions, as functions for kernels.

How many entries belong to a short range no branch would guess right. So `FEW` are looked at for
each probe, all at once, and those that do not count are masked. Like `joins.machine.instructions`
these functions check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from joins.hashing import FIRST, INCREMENT, SECOND
from joins.machine.compiling import intrinsic
from joins.machine.lanes import lanes_at, load, repeat
from joins.window_join.batches.run_stacks import PLACE

FEW = 8
"""Entries that are looked at; no more than a chunk has."""

_WORDS = ir.VectorType(ir.IntType(64), FEW)
_FOUND = types.UniTuple(types.uint64, 2)


@intrinsic
def seen_in_words(typing_context, words, side, at, high, base, start, places):  # type: ignore[no-untyped-def]
    """Return how many entries from ``words[side, at]`` on a probe sees, and their fingerprint.

    It sees words that are at most *high*, and those of *places* places from *start* on. A word
    holds its place; positions are counted from *base*.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entries = load(
            builder, *lanes_at(context, builder, signature.args[0], *args[:3], count=FEW)
        )
        place = builder.and_(entries, _constant(PLACE))
        return _seen(context, builder, entries, place, *args[3:])

    return _FOUND(words, *[types.intp] * 2, *[types.int64] * 4), emit


@intrinsic
def seen_beside(typing_context, words, beside, side, at, high, base, start, places):  # type: ignore[no-untyped-def]
    """Do the same where ``beside[side, at]`` holds the place of ``words[side, at]``."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entries, place = (
            load(builder, *lanes_at(context, builder, kind, rows, *args[2:4], count=FEW))
            for kind, rows in zip(signature.args[:2], args[:2], strict=True)
        )
        return _seen(context, builder, entries, builder.sext(place, _WORDS), *args[4:])

    return _FOUND(words, beside, *[types.intp] * 2, *[types.int64] * 4), emit


def _seen(
    context: Any,
    builder: Any,
    entries: Any,
    place: Any,
    high: Any,
    base: Any,
    start: Any,
    places: Any,
) -> Any:
    """Emit how many entries are seen, and their fingerprint."""
    high, base, start, places = (
        repeat(builder, value, _WORDS) for value in (high, base, start, places)
    )
    # Seen as unsigned, a place before the first is beyond the last one.
    seen = builder.and_(
        builder.icmp_signed("<=", entries, high),
        builder.icmp_unsigned("<", builder.sub(place, start), places),
    )
    count = builder.zext(builder.ctpop(builder.bitcast(seen, ir.IntType(FEW))), ir.IntType(64))
    mixed = _splitmix64(builder, builder.add(base, place))
    fingerprint = _sum(builder, builder.select(seen, mixed, _constant(0)))
    return context.make_tuple(builder, _FOUND, [count, fingerprint])


def _splitmix64(builder: Any, values: Any) -> Any:
    """Emit what `joins.hashing.splitmix64` returns for each of a vector."""
    mixed = builder.add(values, _constant(int(INCREMENT)))
    for shift, factor in ((30, FIRST), (27, SECOND)):
        mixed = builder.xor(mixed, builder.lshr(mixed, _constant(shift)))
        mixed = builder.mul(mixed, _constant(int(factor)))
    return builder.xor(mixed, builder.lshr(mixed, _constant(31)))


def _sum(builder: Any, values: Any) -> Any:
    """Emit the sum of a vector, half of it added to the other half again and again."""
    half = FEW // 2
    while half:
        places = [(i + half) % FEW for i in range(FEW)]
        swapped = ir.Constant(ir.VectorType(ir.IntType(32), FEW), places)
        values = builder.add(values, builder.shuffle_vector(values, values, swapped))
        half //= 2
    return builder.extract_element(values, ir.IntType(32)(0))


def _constant(value: int) -> Any:
    """Return a vector that holds *value* everywhere."""
    return ir.Constant(_WORDS, [value] * FEW)
