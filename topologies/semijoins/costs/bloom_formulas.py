"""What Bloom semijoins cost: Appendix B's one-step semijoins with filters for partial tuples.

Not in the paper, which leaves Bloomjoins to future work. A filter of n values, with s bits and k
hashes for each, lets others through with a probability of (1 - (1 - 1/(s n))^(k n))^k (Bloom,
1970).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from actors.semijoins.one_way.bloom_s import BITS_PER_VALUE
from joins.semijoins.bloom_filter import hashes_for
from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.costs.formulas import APPENDIX_B, Formula
from topologies.semijoins.costs.operands import Figure, Operands, Term


def _at_source(o: Operands) -> list[Term]:
    """SM-S1 with a filter in place of K_1; a tuple of S_2 may pass one in every τ it is in W_2."""
    chance = np.minimum(o.keys_1, 1.0)
    times = o.held_s / o.interval_s * chance
    asked = o.asked(o.held_s)
    wrongly = -np.expm1(times * np.log1p(-_false_positives(o.keys_1)))
    fetched = asked + (1 - asked) * wrongly
    return [
        _filter(o),
        o.update("W_1", o.rate_1),
        o.ship("filter of K_1", o.keys_1, BITS_PER_VALUE / 8),
        Term("probe[W_2]", chance / o.interval_s * o.window_2 * o.prices.hash_s),
        o.answer("ΔW'_2", chance, o.rate_2 * fetched * o.interval_s, o.full_2),
        o.update("W'_2", o.rate_2 * fetched),
        o.update("W_2", o.rate_2),
        Term("probe[W'_2]", o.probe(o.rate_1, o.window_2 * o.share_21)),
        o.answer("k", o.any_of_2(fetched), 0.0, 0.0),
    ]


def _at_destination(o: Operands) -> list[Term]:
    """SM-D1 with a filter of V_2, whole in every τ, in place of v_C and v_J."""
    passing = o.hit + (1 - o.hit) * _false_positives(o.keys_2)
    terms = APPENDIX_B[OneWayJoin.SM_D1](replace(o, hit=passing))
    return [_filter(o), *terms[:-1], o.told("filter of V_2", o.keys_2 * BITS_PER_VALUE / 8)]


def _filter(o: Operands) -> Term:
    """Return that there is no filter where nothing is compared for equality."""
    return Term("filter", np.where(o.equality, 0.0, np.inf))


def _false_positives(values: Figure) -> Figure:
    """Return the chance that all bits of another value are set."""
    bits = np.maximum(values, 1.0) * BITS_PER_VALUE
    hashes = hashes_for(BITS_PER_VALUE)
    return (-np.expm1(hashes * np.maximum(values, 1.0) * np.log1p(-1 / bits))) ** hashes


BLOOM: dict[OneWayJoin, Formula] = {
    OneWayJoin.BLOOM_S: _at_source,
    OneWayJoin.BLOOM_D: _at_destination,
}
FORMULAS = APPENDIX_B | BLOOM
"""Every algorithm and what it costs."""
