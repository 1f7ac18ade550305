"""Appendix B: what each one-way join S_1 → S_2 costs in a second, term by term.

The terms are the paper's, in its order. What is corrected, and why:

* c_i, which Table 4 does not explain, inserts or removes a tuple as c_u does: one price.
* k_i and m_i are printed as min(1/f_i, w_i/f_i · 100), which is 1/f_i for every window of a
  hundredth of a tuple or more. They are the expected number of distinct values among so many
  uniform ones, d (1 - (1 - 1/d)^n).
* f_12 = min(1, f_1/f_2) is the share of S_1's values that S_2 *can* have. It is the share that W_2
  *holds* once it is multiplied with k_2/d_2, and f_21 the share of S_2's tuples that S_1 asks for
  while they are in W_2. Both factors are 1 for dense windows.
* 1/τ shipments a second are charged even where less than a tuple comes in τ, as behind a selective
  join; section 2.2 ships nothing then. A shipment is made as often as there is something for it,
  unless execution is punctuated: then nothing is told, too.
* δ delays removals, which leaves W_2 as printed where only probes are late; behind a delayed probe,
  as in SP-S, SM-S2 and SM-D1, it is 2 δ (`actors.semijoins.execution`), so that W_2 holds more.
* SM-S2 prints S(m_2 (1 - f_21) P_2) + wp_2 f_21 F_2 per batch: the bracket closes too early, bytes
  would be added to seconds.
* SM-S2's k_2 (1 - f_12) and the m_2 (1 - f_21) of SM-S2 and SM-D1 stand for values that are asked
  for, or told of, anew in every τ. Algorithms 4, 5 and 9 ask and tell once for as long as a value
  stays in W_2, so that it is the values new to W_2 that count; and v_C has a count for every value
  of V_2, the vanishing ones too, which no term covers. A value stays in W_2 until none of its
  tuples has come for as long as one is held: the busy period of a queue M/D/∞. Whether S_1 asks for
  it meanwhile depends on how long that is; tuples that went before it did are not shipped.
* Probing a set costs c_p for each of its tuples: nested loops (footnote 1). The sites here hash;
  `Prices.nested_loops` says which is meant.

The constant c that S(c) takes for the shipped count k is the header of a message, which every
shipment has. Every figure is a number or an array; formulas are evaluated for many joins at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.costs.operands import Figure, Operands, Term


def _simple_at_source(o: Operands) -> list[Term]:
    return [
        o.update("W_1", o.rate_1),
        Term("probe[W_2@N_1]", o.probe(o.rate_1, o.window_2)),
        o.ship("B_2", o.rate_2 * o.interval_s, o.full_2),
        o.update("W_2@N_1", o.rate_2),
    ]


def _simple_at_destination(o: Operands) -> list[Term]:
    return [
        o.update("W_1", o.rate_1),
        o.ship("B_1", o.rate_1 * o.interval_s, o.full_1),
        Term("probe[W_2]", o.probe(o.rate_1, o.window_2)),
        o.update("W_2", o.rate_2),
    ]


def _one_step_at_source(o: Operands) -> list[Term]:
    asked = o.asked(o.held_s)
    fetched = o.rate_2 * asked
    return [
        o.update("W_1", o.rate_1),
        o.ship("K_1", o.keys_1, o.partial),
        Term("probe[W_2]", o.probe(o.keys_1 / o.interval_s, o.window_2)),
        o.answer("ΔW'_2", np.minimum(o.keys_1, 1.0), fetched * o.interval_s, o.full_2),
        o.update("W'_2", fetched),
        o.update("W_2", o.rate_2),
        Term("probe[W'_2]", o.probe(o.rate_1, o.window_2 * o.share_21)),
        o.answer("k", o.any_of_2(asked), 0.0, 0.0),
    ]


def _two_step_at_source(o: Operands) -> list[Term]:
    never = o.unasked * np.exp(-o.asking * o.held_s)
    wanted = o.new_keys_2 * o.share_21 * (1 - never)
    arriving = o.rate_2 * o.interval_s * o.share_21
    at_once = arriving * (o.unasked - never)
    later = arriving * (1 - o.unasked)
    chance = -np.expm1(-wanted)
    return [
        o.update("W_1", o.rate_1),
        Term("probe[M_2]", 2 * o.rate_1 * o.prices.hash_s),
        o.ship("ΔV'_2", wanted, o.partial, chance),
        Term("probe[W_2]", o.probe(wanted / o.interval_s, o.window_2)),
        o.answer("ΔW'_2", chance, at_once, o.full_2),
        Term("probe[V_2]", o.probe(o.rate_2, o.keys_2)),
        o.update("W_2", o.rate_2),
        o.update("V_2", o.new_keys_2 / o.interval_s),
        o.told("{v_C, v_J} ∪ s_F", o.counts_bytes, o.new_keys_2 * o.partial + later * o.full_2),
        o.update("M_2", (o.new_keys_2 + at_once + later) / o.interval_s),
    ]


def _one_step_at_destination(o: Operands) -> list[Term]:
    return [
        o.update("W_1", o.rate_1),
        Term("probe[V_2@N_1]", o.probe(o.rate_1, o.keys_2)),
        o.ship("B'_1", o.rate_1 * o.interval_s * o.hit, o.full_1, o.any_of_1(o.hit)),
        Term("probe[W_2]", o.probe(o.rate_1 * o.hit, o.window_2)),
        Term("probe[V_2]", o.probe(o.rate_2, o.keys_2)),
        o.update("W_2", o.rate_2),
        o.update("V_2, V_2@N_1", 2 * o.new_keys_2 / o.interval_s),
        o.told("{v_C, v_J}", o.counts_bytes, o.new_keys_2 * o.partial),
    ]


def _two_step_at_destination(o: Operands) -> list[Term]:
    found = o.keys_1 * o.hit
    chance = np.minimum(o.keys_1, 1.0)
    reduced = o.rate_1 * o.hit
    return [
        o.update("W_1", o.rate_1),
        o.answer("K_1", chance, o.keys_1, o.partial),  # B'_1 is what tells of nothing
        Term("probe[W_2]", o.probe(o.keys_1 / o.interval_s, o.window_2)),
        o.answer("K'_1", chance, found, o.partial),
        Term("probe[B_1]", found / o.interval_s * _in_batch(o)),
        o.ship("B'_1", reduced * o.interval_s, o.full_1, o.any_of_1(o.hit)),
        Term("probe[Temp]", o.probe(reduced, o.window_2)),
        o.update("W_2", o.rate_2),
    ]


def _in_batch(o: Operands) -> Figure:
    """Return the time of a probe into B_1."""
    rows = o.rate_1 * o.interval_s
    if o.prices.nested_loops:
        return rows * o.prices.probe_s
    return o.prices.hash_s + rows / o.distinct_1 * o.prices.probe_s


Formula = Callable[[Operands], list[Term]]

APPENDIX_B: dict[OneWayJoin, Formula] = {
    OneWayJoin.SP_S: _simple_at_source,
    OneWayJoin.SP_D: _simple_at_destination,
    OneWayJoin.SM_S1: _one_step_at_source,
    OneWayJoin.SM_S2: _two_step_at_source,
    OneWayJoin.SM_D1: _one_step_at_destination,
    OneWayJoin.SM_D2: _two_step_at_destination,
}
"""The six algorithms of the paper, and what each costs."""
