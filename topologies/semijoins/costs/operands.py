"""The operands of a one-way join as cost formulas see them: what comes, matches, is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from topologies.semijoins.costs.statistics import Prices

COUNT_BYTES = 8
"""Size of a count in v_C."""

Figure = Any
"""A number, or an array with one per join."""

Distinct = Callable[[Figure], Figure]
"""From a number of tuples to a figure of so many."""


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
    equality
        Whether an equality is among the predicates.
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
        return self._distinct_2_among(self.held_2)

    @property
    def new_keys_2(self) -> Figure:
        """Values that come into V_2 in τ: in B_2, and not in W_2 before."""
        in_batch = steady(self._distinct_2_among, self.rate_2 * self.interval_s)
        return in_batch * (1 - self.keys_2 / self.distinct_2)

    def asked(self, seconds: Figure) -> Figure:
        """Return the share of S_2's values that S_1 asks for within *seconds*."""
        return self.share_21 * self._distinct_1_among(self.draws_1 * seconds) / self.distinct_1

    @property
    def asking(self) -> Figure:
        """Rate at which S_1 has one certain of its values, per second."""
        return -self.draws_1 * _log_of_others(self.distinct_1)

    @property
    def unasked(self) -> Figure:
        """Chance that when a tuple of S_2 comes its value was not asked for since it is in V_2.

        Of values that S_1 has. Looking back from a tuple, gaps shorter than what one is held for
        tie those of its value together to one stay; one that comes again in the very interval in
        which it would go stays, too.
        """
        gap_s = self.held_s + np.maximum(self.interval_s - 1 / self.rate_2, 0) / 2
        coming = -self.rate_2 * _log_of_others(self.distinct_2)
        both = self.asking + coming
        stays = self.asking + coming * np.exp(-both * gap_s)
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
        if self.prices.nested_loops:
            return rows * stored * self.prices.probe_s
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

    def told(self, what: str, each: Figure, every_interval: Figure = 0.0) -> Term:
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
        return COUNT_BYTES * self._distinct_2_among(self.held_2 + rows)

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
