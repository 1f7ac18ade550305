"""Appendix B: what each one-way join S_1 → S_2 costs in a second, term by term.

The terms are the paper's, in its order. What is corrected, and why:

* c_i, which Table 4 does not explain, inserts or removes a tuple as c_u does: one price.
* k_i and m_i are printed as min(1/f_i, w_i/f_i · 100), which is 1/f_i for every window of a
  hundredth of a tuple or more. They are the expected number of distinct values among so many
  uniform ones, d (1 - (1 - 1/d)^n).
* f_12 = min(1, f_1/f_2) is the share of S_1's values that S_2 *can* have. It is the share that W_2
  *has* once it is multiplied with k_2/d_2, and f_21 the share of S_2's tuples that S_1 requests
  while they are in W_2. Both factors are 1 for dense windows.
* 1/τ shipments a second are charged even where less than a tuple comes in τ, as behind a selective
  join; section 2.2 ships nothing then. A shipment is made as often as there is something for it,
  unless execution is punctuated: then an empty interval is announced, too.
* δ delays removals, which leaves W_2 as printed where only probes are late; behind a delayed probe,
  as in SP-S, SM-S2 and SM-D1, it is 2 δ (`actors.semijoins.one_way`), so that W_2 has more.
* SM-S2 prints S(m_2 (1 - f_21) P_2) + wp_2 f_21 F_2 per batch: the bracket closes too early, bytes
  would be added to seconds.
* SM-S2's k_2 (1 - f_12) and the m_2 (1 - f_21) of SM-S2 and SM-D1 stand for values that are
  requested, or announced, anew in every τ. Algorithms 4, 5 and 9 do so once for as long as a value
  stays in W_2, so that it is the values new to W_2 that count; and v_C has a count for every value
  of V_2, the vanishing ones too, which no term covers. A value stays in W_2 until none of its
  tuples has come for as long as one is stored: the busy period of a queue M/D/∞. Whether S_1
  requests it meanwhile depends on how long that is; tuples that went before it did are not shipped.
* Probing a set costs c_p for each of its tuples: nested loops (footnote 1). The sites here hash,
  and compare with the tuples of equal value.

The constant c that S(c) takes for the shipped count k is the header of a message, which every
shipment has. Every figure is a number or an array; formulas are evaluated for many joins at once.

Bloom semijoins are not in the paper, which leaves Bloomjoins to future work: they are its one-step
semijoins with filters for partial tuples. A filter of n values, with s bits and k hashes for each,
lets others through with a probability of (1 - (1 - 1/(s n))^(k n))^k (Bloom, 1970).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from joins.semijoins.bloom_filter import BITS_PER_VALUE, hashes_for
from joins.semijoins.one_way_join import OneWayJoin
from topologies.semijoins.join_statistics import Prices

_COUNT_BYTES = 8
"""Size of a count in v_C."""

Figure = Any
"""A number, or an array with one per join."""

Distinct = Callable[[Figure], Figure]
"""From a number of tuples to a figure of so many."""


class Term(NamedTuple):
    """One term of a formula: processing, or a shipment."""

    what: str
    """As in the paper, ``probe[W_2]``."""
    seconds: Figure = 0.0
    """Processing time a second."""
    shipments: Figure = None
    shipped_bytes: Figure = 0.0
    """Shipments a second, and what they contain, bytes a second; None for processing."""


@dataclass(frozen=True, kw_only=True)
class Operands:
    """S_1 and S_2 as the formulas see them; rows are per second unless stated otherwise.

    Attributes
    ----------
    rate_1, rate_2
        r, tuples a second.
    draws_1
        Tuples a second of S_1 whose values are independent: less than r_1 where one tuple of the
        head was joined with many.
    window_2, stored_2
        w_2, and the tuples stored of W_2: removals are delayed, to the end of an interval.
    stored_s
        T_2 and the delay of removals, seconds: how long a tuple of S_2 can be requested.
    distinct_1, distinct_2
        d, distinct values a stream can have.
    share_21
        Share of S_2's values that S_1 can have.
    hit
        f_12, share of S_1's tuples that have a match in W_2.
    full_1, full_2, partial
        F_S1, F_S2 and P, bytes.
    equality
        Whether an equality is among the predicates.
    interval_s
        τ.
    punctuated
        Whether a site announces that it has nothing to ship.
    prices
        c_p, c_u, c_h.
    """

    rate_1: Figure
    draws_1: Figure
    rate_2: Figure
    window_2: Figure
    stored_2: Figure
    stored_s: Figure
    distinct_1: Figure
    distinct_2: Figure
    share_21: Figure
    hit: Figure
    full_1: Figure
    full_2: Figure
    partial: Figure
    equality: Figure
    interval_s: float
    punctuated: bool
    prices: Prices

    @property
    def keys_1(self) -> Figure:
        """m_1, distinct values in B_1."""
        return steady(self._distinct_1_among, self.draws_1 * self.interval_s)

    @property
    def keys_2(self) -> Figure:
        """k_2, distinct values in V_2."""
        return self._distinct_2_among(self.stored_2)

    @property
    def new_keys_2(self) -> Figure:
        """Values that come into V_2 in τ: in B_2, and not in W_2 before."""
        in_batch = steady(self._distinct_2_among, self.rate_2 * self.interval_s)
        return in_batch * (1 - self.keys_2 / self.distinct_2)

    def requested(self, seconds: Figure) -> Figure:
        """Return the share of S_2's values that S_1 requests within *seconds*."""
        return self.share_21 * self._distinct_1_among(self.draws_1 * seconds) / self.distinct_1

    @property
    def request_rate(self) -> Figure:
        """Rate at which S_1 has one certain of its values, per second."""
        return -self.draws_1 * _log_of_others(self.distinct_1)

    @property
    def unrequested(self) -> Figure:
        """Chance that when a tuple of S_2 comes its value was not requested since it is in V_2.

        Of values that S_1 has. Looking back from a tuple, gaps shorter than what one is stored for
        tie those of its value together to one stay; one that comes again in the very interval in
        which it would go stays, too.
        """
        gap_s = self.stored_s + np.maximum(self.interval_s - 1 / self.rate_2, 0) / 2
        coming = -self.rate_2 * _log_of_others(self.distinct_2)
        both = self.request_rate + coming
        stays = self.request_rate + coming * np.exp(-both * gap_s)
        return both * np.exp(-coming * gap_s) / np.maximum(stays, 1e-300)

    def any_of_1(self, share: Figure) -> Figure:
        """Return the chance that a *share* of S_1's values has any of B_1's."""
        return self._any(self._distinct_1_among, share, self.draws_1)

    def any_of_2(self, share: Figure) -> Figure:
        """Return the chance that a *share* of S_2's values has any of B_2's."""
        return self._any(self._distinct_2_among, share, self.rate_2)

    def _any(self, distinct: Distinct, share: Figure, rate_tps: Figure) -> Figure:
        none = np.clip(1 - share, 0, 1)
        return steady(lambda rows: 1 - none ** distinct(rows), rate_tps * self.interval_s)

    def _distinct_1_among(self, rows: Figure) -> Figure:
        return distinct_among(self.distinct_1, rows)

    def _distinct_2_among(self, rows: Figure) -> Figure:
        return distinct_among(self.distinct_2, rows)

    def probe(self, rows: Figure, stored: Figure) -> Figure:
        """Return the time of *rows* probes into *stored* tuples of S_2."""
        bucket = stored / self.distinct_2
        return rows * (self.prices.hash_s + bucket * self.prices.probe_s)

    def ship(self, what: str, rows: Figure, width: Figure, chance: Figure = None) -> Term:
        """Return the term that ships *rows* of *width* bytes every τ, if there are any.

        *chance* is that there are; where it is None rows come at a steady rate.
        """
        chance = np.minimum(rows, 1.0) if chance is None else chance
        return self.answer(what, 1.0 if self.punctuated else chance, rows, width)

    def answer(self, what: str, chance: Figure, rows: Figure, width: Figure) -> Term:
        """Return the term that ships *rows* every τ in as many messages as there is a *chance*."""
        return Term(f"ship[{what}]", 0.0, chance / self.interval_s, rows * width / self.interval_s)

    def announce(self, what: str, each: Figure, every_interval: Figure = 0.0) -> Term:
        """Return the shipment of what changed in W_2: once in τ if anything came.

        Its bytes are *each* in a shipment, and those of what changed in τ.
        """
        rows = 1.0 if self.punctuated else self.rate_2 * self.interval_s
        count = np.minimum(rows, 1.0) / self.interval_s
        return Term(f"ship[{what}]", 0.0, count, each * count + every_interval / self.interval_s)

    @property
    def counts_bytes(self) -> Figure:
        """Size of v_C: counts of all values of V_2, before those of B_2's time are gone."""
        arriving = self.rate_2 * self.interval_s
        rows = arriving if self.punctuated else np.maximum(arriving, 1.0)
        return _COUNT_BYTES * self._distinct_2_among(self.stored_2 + rows)

    def update(self, what: str, rows: Figure) -> Term:
        """Return the term that inserts or removes *rows* a second."""
        return Term(f"update[{what}]", rows * self.prices.update_s)


def distinct_among(values: Figure, draws: Figure) -> Figure:
    """Return how many distinct of *values* uniform values are expected among *draws* of them."""
    return -np.maximum(values, 1 + 1e-9) * np.expm1(draws * _log_of_others(values))


def steady(figure: Distinct, rows: Figure) -> Figure:
    """Return the mean of a *figure* of batches that at a steady rate have *rows* on average.

    Batches then differ by a tuple at the most.
    """
    least = np.floor(rows)
    return figure(least) + (rows - least) * (figure(least + 1) - figure(least))


def _log_of_others(values: Figure) -> Figure:
    """Return the logarithm of the chance that a draw is not one certain of uniform *values*."""
    return np.log1p(-1 / np.maximum(values, 1 + 1e-9))


def _sp_s(o: Operands) -> list[Term]:
    return [
        o.update("W_1", o.rate_1),
        Term("probe[W_2@N_1]", o.probe(o.rate_1, o.window_2)),
        o.ship("B_2", o.rate_2 * o.interval_s, o.full_2),
        o.update("W_2@N_1", o.rate_2),
    ]


def _sp_d(o: Operands) -> list[Term]:
    return [
        o.update("W_1", o.rate_1),
        o.ship("B_1", o.rate_1 * o.interval_s, o.full_1),
        Term("probe[W_2]", o.probe(o.rate_1, o.window_2)),
        o.update("W_2", o.rate_2),
    ]


def _sm_s1(o: Operands) -> list[Term]:
    requested = o.requested(o.stored_s)
    fetched = o.rate_2 * requested
    return [
        o.update("W_1", o.rate_1),
        o.ship("K_1", o.keys_1, o.partial),
        Term("probe[W_2]", o.probe(o.keys_1 / o.interval_s, o.window_2)),
        o.answer("ΔW'_2", np.minimum(o.keys_1, 1.0), fetched * o.interval_s, o.full_2),
        o.update("W'_2", fetched),
        o.update("W_2", o.rate_2),
        Term("probe[W'_2]", o.probe(o.rate_1, o.window_2 * o.share_21)),
        o.answer("k", o.any_of_2(requested), 0.0, 0.0),
    ]


def _sm_s2(o: Operands) -> list[Term]:
    never = o.unrequested * np.exp(-o.request_rate * o.stored_s)
    wanted = o.new_keys_2 * o.share_21 * (1 - never)
    arriving = o.rate_2 * o.interval_s * o.share_21
    at_once = arriving * (o.unrequested - never)
    later = arriving * (1 - o.unrequested)
    chance = -np.expm1(-wanted)
    changes = o.new_keys_2 * o.partial + later * o.full_2
    return [
        o.update("W_1", o.rate_1),
        Term("probe[M_2]", 2 * o.rate_1 * o.prices.hash_s),
        o.ship("ΔV'_2", wanted, o.partial, chance),
        Term("probe[W_2]", o.probe(wanted / o.interval_s, o.window_2)),
        o.answer("ΔW'_2", chance, at_once, o.full_2),
        Term("probe[V_2]", o.probe(o.rate_2, o.keys_2)),
        o.update("W_2", o.rate_2),
        o.update("V_2", o.new_keys_2 / o.interval_s),
        o.announce("{v_C, v_J} ∪ s_F", o.counts_bytes, changes),
        o.update("M_2", (o.new_keys_2 + at_once + later) / o.interval_s),
    ]


def _sm_d1(o: Operands) -> list[Term]:
    return [
        *_ship_hits(o),
        o.announce("{v_C, v_J}", o.counts_bytes, o.new_keys_2 * o.partial),
    ]


def _ship_hits(o: Operands) -> list[Term]:
    """Return what a one-step semijoin at the destination costs but for announcing V_2."""
    return [
        o.update("W_1", o.rate_1),
        Term("probe[V_2@N_1]", o.probe(o.rate_1, o.keys_2)),
        o.ship("B'_1", o.rate_1 * o.interval_s * o.hit, o.full_1, o.any_of_1(o.hit)),
        Term("probe[W_2]", o.probe(o.rate_1 * o.hit, o.window_2)),
        Term("probe[V_2]", o.probe(o.rate_2, o.keys_2)),
        o.update("W_2", o.rate_2),
        o.update("V_2, V_2@N_1", 2 * o.new_keys_2 / o.interval_s),
    ]


def _sm_d2(o: Operands) -> list[Term]:
    matching = o.keys_1 * o.hit
    chance = np.minimum(o.keys_1, 1.0)
    bucket = o.rate_1 * o.interval_s / o.distinct_1
    reduced = o.rate_1 * o.hit
    return [
        o.update("W_1", o.rate_1),
        o.answer("K_1", chance, o.keys_1, o.partial),  # B'_1 announces an empty interval
        Term("probe[W_2]", o.probe(o.keys_1 / o.interval_s, o.window_2)),
        o.answer("K'_1", chance, matching, o.partial),
        Term("probe[B_1]", matching / o.interval_s * (o.prices.hash_s + bucket * o.prices.probe_s)),
        o.ship("B'_1", reduced * o.interval_s, o.full_1, o.any_of_1(o.hit)),
        Term("probe[Temp]", o.probe(reduced, o.window_2)),
        o.update("W_2", o.rate_2),
    ]


def _bloom_s(o: Operands) -> list[Term]:
    """SM-S1 with a filter in place of K_1; a tuple of S_2 may pass one in every τ it is in W_2."""
    chance = np.minimum(o.keys_1, 1.0)
    times = o.stored_s / o.interval_s * chance
    requested = o.requested(o.stored_s)
    wrongly = -np.expm1(times * np.log1p(-_false_positives(o.keys_1)))
    fetched = requested + (1 - requested) * wrongly
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


def _bloom_d(o: Operands) -> list[Term]:
    """SM-D1 with a filter of V_2, whole in every τ, in place of v_C and v_J."""
    passing = o.hit + (1 - o.hit) * _false_positives(o.keys_2)
    return [
        _filter(o),
        *_ship_hits(replace(o, hit=passing)),
        o.announce("filter of V_2", o.keys_2 * BITS_PER_VALUE / 8),
    ]


def _filter(o: Operands) -> Term:
    """Return that there is no filter where nothing is compared for equality."""
    return Term("filter", np.where(o.equality, 0.0, np.inf))


def _false_positives(values: Figure) -> Figure:
    """Return the chance that all bits of another value are set."""
    bits = np.maximum(values, 1.0) * BITS_PER_VALUE
    hashes = hashes_for(BITS_PER_VALUE)
    return (-np.expm1(hashes * np.maximum(values, 1.0) * np.log1p(-1 / bits))) ** hashes


FORMULAS: dict[OneWayJoin, Callable[[Operands], list[Term]]] = {
    OneWayJoin.SP_S: _sp_s,
    OneWayJoin.SP_D: _sp_d,
    OneWayJoin.SM_S1: _sm_s1,
    OneWayJoin.SM_S2: _sm_s2,
    OneWayJoin.SM_D1: _sm_d1,
    OneWayJoin.SM_D2: _sm_d2,
    OneWayJoin.BLOOM_S: _bloom_s,
    OneWayJoin.BLOOM_D: _bloom_d,
}
"""Every algorithm and what it costs."""
