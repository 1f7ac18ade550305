"""What Bloom semijoins cost: Appendix B's one-step semijoins with filters for partial tuples.

Not in the paper, which leaves Bloomjoins to future work. A filter with s bits for each of its
values lets others through with a probability of 2^(-s ln 2) (Bloom, 1970).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from actors.semijoins.bloom_s import BITS_PER_VALUE
from joins.one_way_join import OneWayJoin
from topologies.semijoins.formulas import APPENDIX_B, Figure, Formula, Operands, Term

_LEAST_BITS = 8


def _at_source(o: Operands) -> list[Term]:
    """SM-S1 with a filter in place of K_1; a tuple of S_2 may pass one in every τ it is in W_2."""
    asks = np.minimum(o.keys_1, 1.0)
    times = o.held_s / o.interval_s * asks
    asked = o.asked(o.held_s)
    wrongly = -np.expm1(times * np.log1p(-_false_positives(o.keys_1)))
    fetched = o.rate_2 * (asked + (1 - asked) * wrongly)
    return [
        o.update("W_1", o.rate_1),
        o.ship("filter of K_1", asks, _size(o.keys_1)),
        Term("probe[W_2]", asks / o.interval_s * o.window_2 * o.prices.hash_s),
        o.answer("ΔW'_2", o.keys_1, fetched * o.interval_s, o.full_2),
        o.update("W'_2", fetched),
        o.update("W_2", o.rate_2),
        Term("probe[W'_2]", o.probe(o.rate_1, o.window_2 * o.share_21)),
        o.answer("k", fetched * o.interval_s, 0.0, 0.0),
    ]


def _at_destination(o: Operands) -> list[Term]:
    """SM-D1 with a filter of V_2, whole in every τ, in place of v_C and v_J."""
    passing = o.hit + (1 - o.hit) * _false_positives(o.keys_2)
    terms = APPENDIX_B[OneWayJoin.SM_D1](replace(o, hit=passing))
    return [*terms[:-1], o.told("filter of V_2", _size(o.keys_2))]


def _size(values: Figure) -> Figure:
    """Return the bytes of a filter of so many values: a power of two."""
    return _bits(values) / 8


def _bits(values: Figure) -> Figure:
    wanted = np.maximum(values * BITS_PER_VALUE, _LEAST_BITS)
    return 2.0 ** np.ceil(np.log2(wanted))


def _false_positives(values: Figure) -> Figure:
    return 2.0 ** (-np.log(2) * _bits(values) / np.maximum(values, 1.0))


BLOOM: dict[OneWayJoin, Formula] = {
    OneWayJoin.BLOOM_S: _at_source,
    OneWayJoin.BLOOM_D: _at_destination,
}
FORMULAS = APPENDIX_B | BLOOM
"""Every algorithm and what it costs."""
