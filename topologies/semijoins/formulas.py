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
  join; section 2.2 ships nothing then. A shipment of x < 1 tuples is made x times in τ, unless
  execution is punctuated: then nothing is told, too.
* SM-S2 prints S(m_2 (1 - f_21) P_2) + wp_2 f_21 F_2 per batch: the bracket closes too early, bytes
  would be added to seconds.
* SM-S2's k_2 (1 - f_12) and the m_2 (1 - f_21) of SM-S2 and SM-D1 stand for values that are asked
  for, or told of, anew in every τ. Algorithms 4, 5 and 9 ask and tell once for as long as a value
  stays in W_2, so that it is the values new to W_2 that count; and v_C has a count for every value
  of V_2, which no term covers.
* Probing a set costs c_p for each of its tuples: nested loops (footnote 1). The sites here hash;
  `Prices.nested_loops` says which is meant.

The constant c that S(c) takes for the shipped count k is the header of a message, which every
shipment has. Every figure is a number or an array; formulas are evaluated for many joins at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from joins.one_way_join import OneWayJoin
from topologies.semijoins.statistics import Prices

COUNT_BYTES = 8
"""Size of a count in v_C."""

Figure = Any
"""A number, or an array with one per join."""


class Term(NamedTuple):
    """One term of a formula: processing, or a shipment.

    Attributes
    ----------
    what
        As in the paper, ``probe[W_2]``.
    seconds
        Processing time a second.
    shipments, shipped_bytes
        Shipments a second, and what they hold, bytes a second; None for processing.
    """

    what: str
    seconds: Figure = 0.0
    shipments: Figure = None
    shipped_bytes: Figure = 0.0


@dataclass(frozen=True, kw_only=True)
class Operands:
    """S_1 and S_2 as the formulas see them; rows are per second where not said otherwise.

    Attributes
    ----------
    rate_1, rate_2
        r, tuples a second.
    draws_1
        Tuples a second of S_1 whose values are independent: less than r_1 where one tuple of the
        head was joined with many.
    window_2, held_2
        w_2, and the tuples that W_2 holds: removals are delayed by δ, to the end of an interval.
    held_s
        T_2 and the delay of removals, seconds: how long a tuple of S_2 can be asked for.
    distinct_1, distinct_2
        d, distinct values a stream can have.
    share_12, share_21
        Share of one's values that the other can have, and hit: of S_1's tuples that find a match.
    hit
        f_12, share of S_1's tuples that have a match in W_2.
    full_1, full_2, partial
        F_S1, F_S2 and P, bytes.
    interval_s
        τ.
    punctuated
        Whether a site tells that it has nothing to ship.
    prices
        c_p, c_u, c_h.
    """

    rate_1: Figure
    draws_1: Figure
    rate_2: Figure
    window_2: Figure
    held_2: Figure
    held_s: Figure
    distinct_1: Figure
    distinct_2: Figure
    share_21: Figure
    hit: Figure
    full_1: Figure
    full_2: Figure
    partial: Figure
    interval_s: float
    punctuated: bool
    prices: Prices

    @property
    def keys_1(self) -> Figure:
        """m_1, distinct values in B_1."""
        return distinct_among(self.distinct_1, self.draws_1 * self.interval_s)

    @property
    def keys_2(self) -> Figure:
        """k_2, distinct values in V_2."""
        return distinct_among(self.distinct_2, self.held_2)

    @property
    def new_keys_2(self) -> Figure:
        """Values that come into V_2 in τ: in B_2, and not in W_2 before."""
        in_batch = distinct_among(self.distinct_2, self.rate_2 * self.interval_s)
        return in_batch * (1 - self.keys_2 / self.distinct_2)

    def asked(self, seconds: Figure) -> Figure:
        """Return the share of S_2's values that S_1 asks for within *seconds*."""
        return (
            self.share_21
            * distinct_among(self.distinct_1, self.draws_1 * seconds)
            / self.distinct_1
        )

    @property
    def stay_s(self) -> Figure:
        """How long a value stays in V_2: those there over those new, Little's law."""
        return self.keys_2 * self.interval_s / np.maximum(self.new_keys_2, 1e-12)

    def probe(self, rows: Figure, stored: Figure) -> Figure:
        """Return the time of *rows* probes into *stored* tuples of S_2."""
        if self.prices.nested_loops:
            return rows * stored * self.prices.probe_s
        bucket = stored / self.distinct_2
        return rows * (self.prices.hash_s + bucket * self.prices.probe_s)

    def ship(self, what: str, rows: Figure, width: Figure) -> Term:
        """Return the term that ships *rows* of *width* bytes every τ, if there are any."""
        return self.answer(what, 1.0 if self.punctuated else rows, rows, width)

    def answer(self, what: str, asked: Figure, rows: Figure, width: Figure) -> Term:
        """Return the term that answers every shipment of *asked* rows, if only with nothing."""
        count = np.minimum(asked, 1.0) / self.interval_s
        return Term(f"ship[{what}]", 0.0, count, rows * width / self.interval_s)

    def told(self, what: str, nbytes: Figure) -> Term:
        """Return the shipment of what changed in W_2: once in τ if anything came."""
        rows = 1.0 if self.punctuated else self.rate_2 * self.interval_s
        count = np.minimum(rows, 1.0) / self.interval_s
        return Term(f"ship[{what}]", 0.0, count, nbytes * count)

    def update(self, what: str, rows: Figure) -> Term:
        """Return the term that inserts or removes *rows* a second."""
        return Term(f"update[{what}]", rows * self.prices.update_s)


def distinct_among(values: Figure, draws: Figure) -> Figure:
    """Return how many distinct of *values* uniform values are expected among *draws* of them."""
    some = np.maximum(values, 1 + 1e-9)
    return -some * np.expm1(draws * np.log1p(-1 / some))


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
    fetched = o.rate_2 * o.asked(o.held_s)
    return [
        o.update("W_1", o.rate_1),
        o.ship("K_1", o.keys_1, o.partial),
        Term("probe[W_2]", o.probe(o.keys_1 / o.interval_s, o.window_2)),
        o.answer("ΔW'_2", o.keys_1, fetched * o.interval_s, o.full_2),
        o.update("W'_2", fetched),
        o.update("W_2", o.rate_2),
        Term("probe[W'_2]", o.probe(o.rate_1, o.window_2 * o.share_21)),
        o.answer("k", fetched * o.interval_s, 0.0, 0.0),
    ]


def _two_step_at_source(o: Operands) -> list[Term]:
    share = o.asked(o.stay_s)
    wanted = o.new_keys_2 * share
    arriving = o.rate_2 * o.interval_s * share
    at_once = np.minimum(wanted, arriving)
    partials = o.new_keys_2 * o.partial + (o.keys_2 + o.new_keys_2) * COUNT_BYTES
    full = (arriving - at_once) * o.full_2
    return [
        o.update("W_1", o.rate_1),
        Term("probe[M_2]", 2 * o.rate_1 * o.prices.hash_s),
        o.ship("ΔV'_2", wanted, o.partial),
        Term("probe[W_2]", o.probe(wanted / o.interval_s, o.window_2)),
        o.answer("ΔW'_2", wanted, at_once, o.full_2),
        Term("probe[V_2]", o.probe(o.rate_2, o.keys_2)),
        o.update("W_2", o.rate_2),
        o.update("V_2", o.new_keys_2 / o.interval_s),
        o.told("{v_C, v_J} ∪ s_F", partials + full),
        o.update("M_2", (o.new_keys_2 + arriving) / o.interval_s),
    ]


def _one_step_at_destination(o: Operands) -> list[Term]:
    partials = o.new_keys_2 * o.partial + (o.keys_2 + o.new_keys_2) * COUNT_BYTES
    return [
        o.update("W_1", o.rate_1),
        Term("probe[V_2@N_1]", o.probe(o.rate_1, o.keys_2)),
        o.ship("B'_1", o.rate_1 * o.interval_s * o.hit, o.full_1),
        Term("probe[W_2]", o.probe(o.rate_1 * o.hit, o.window_2)),
        Term("probe[V_2]", o.probe(o.rate_2, o.keys_2)),
        o.update("W_2", o.rate_2),
        o.update("V_2, V_2@N_1", 2 * o.new_keys_2 / o.interval_s),
        o.told("{v_C, v_J}", partials),
    ]


def _two_step_at_destination(o: Operands) -> list[Term]:
    found = o.keys_1 * o.hit
    reduced = o.rate_1 * o.hit
    return [
        o.update("W_1", o.rate_1),
        o.answer("K_1", o.keys_1, o.keys_1, o.partial),  # B'_1 is what tells of nothing
        Term("probe[W_2]", o.probe(o.keys_1 / o.interval_s, o.window_2)),
        o.answer("K'_1", o.keys_1, found, o.partial),
        Term("probe[B_1]", found / o.interval_s * _in_batch(o)),
        o.ship("B'_1", reduced * o.interval_s, o.full_1),
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
