"""Which of a few entries a probe sees: vector instructions, as functions for kernels.

How many entries belong to a short range no branch would guess right. So `FEW` are looked at for
each probe, all at once. Like `joins.machine.instructions` these functions check no bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.np.arrayobj import make_array

from joins.machine.compiling import intrinsic
from joins.machine.lanes import lanes_at, load, repeat
from joins.window_join.batches.run_stacks import PLACE

FEW = 8
"""Entries that are looked at; no more than a chunk has."""

UNSEEN = -1
"""Stands for the place of an entry that is in a probe's range and not in its window."""

_WORDS = ir.VectorType(ir.IntType(64), FEW)
_FOUND = types.UniTuple(types.int64, 2)


@intrinsic
def seen_in_words(typing_context, words, side, at, high, start, places, seen, to):  # type: ignore[no-untyped-def]
    """Return how many entries from ``words[side, at]`` on are in a range, and how many are seen.

    In range are words that are at most *high*; of these a probe sees the ones of *places* places
    from *start* on. ``seen[to : to + FEW]`` becomes the places of entries, or `UNSEEN`; those in
    range come first. A word holds its place.
    """

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entries = load(
            builder, *lanes_at(context, builder, signature.args[0], *args[:3], count=FEW)
        )
        place = builder.and_(entries, _constant(PLACE))
        seen = make_array(signature.args[6])(context, builder, args[6])
        return _list_seen(context, builder, entries, place, args[3:6], seen, args[7])

    return _FOUND(words, *[types.intp] * 2, *[types.int64] * 3, seen, types.intp), emit


@intrinsic
def seen_beside(typing_context, words, beside, side, at, high, start, places, seen, to):  # type: ignore[no-untyped-def]
    """Do the same where ``beside[side, at]`` holds the place of ``words[side, at]``."""

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        entries, place = (
            load(builder, *lanes_at(context, builder, kind, rows, *args[2:4], count=FEW))
            for kind, rows in zip(signature.args[:2], args[:2], strict=True)
        )
        place = builder.sext(place, _WORDS)
        seen = make_array(signature.args[7])(context, builder, args[7])
        return _list_seen(context, builder, entries, place, args[4:7], seen, args[8])

    return _FOUND(words, beside, *[types.intp] * 2, *[types.int64] * 3, seen, types.intp), emit


def _list_seen(
    context: Any, builder: Any, entries: Any, place: Any, bounds: Any, seen: Any, to: Any
) -> Any:
    """Emit how many entries are in range and how many are seen, and write down their places.

    *bounds* are the greatest word, and the first place and the number of those in the window.
    """
    high, start, places = (repeat(builder, value, _WORDS) for value in bounds)
    in_range = builder.icmp_signed("<=", entries, high)
    # Seen as unsigned, a place before the first is beyond the last one.
    in_window = builder.icmp_unsigned("<", builder.sub(place, start), places)
    is_seen = builder.and_(in_range, in_window)
    target = builder.bitcast(builder.gep(seen.data, [to]), _WORDS.as_pointer())
    builder.store(builder.select(is_seen, place, _constant(UNSEEN)), target, 8)
    counts = [
        builder.zext(builder.ctpop(builder.bitcast(bits, ir.IntType(FEW))), ir.IntType(64))
        for bits in (in_range, is_seen)
    ]
    return context.make_tuple(builder, _FOUND, counts)


def _constant(value: int) -> Any:
    """Return a vector that holds *value* everywhere."""
    return ir.Constant(_WORDS, [value] * FEW)
