"""BLOOM-S: SM-S1 with a Bloom filter of the new tuples' values in place of the values.

False positives ship tuples for nothing; the join at N_1 compares the values themselves, so that its
results are the same. One of the stream semijoin paper's four future works.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.semijoins.one_way.sm_s1 import SmS1Destination, SmS1Source
from actors.semijoins.part import Desk
from actors.semijoins.payloads import Filter, Shipment
from joins.semijoins.attributes import JoinAttributes
from joins.semijoins.bloom_filter import BloomFilter

BITS_PER_VALUE = 16
"""A false positive in 2,000: a tuple is looked for in every interval that it is in a window."""


class BloomSSource(SmS1Source):
    """Asks with a filter."""

    def question(self, values: tuple[np.ndarray, ...], tick: int, final: bool) -> Shipment:
        """Return a filter of the values that equalities compare."""
        keys = probe_keys(self.step.attributes, values)
        bloom = BloomFilter.of(keys, BITS_PER_VALUE) if len(keys[0]) else None
        return Filter(
            step=self.step.number, tick=tick, final=final, bloom=bloom, values=len(keys[0])
        )


class BloomSDestination(SmS1Destination):
    """Ships what the filter lets through and has not been shipped."""

    def matches(self, payload: Any, desk: Desk) -> np.ndarray:
        """Return the rows of W_2 that may match."""
        attributes = self.step.attributes
        stored = stored_keys(attributes, attributes.of_stored(self.window.tuples))
        return np.flatnonzero(payload.bloom.may_hold(stored))


def probe_keys(
    attributes: JoinAttributes, columns: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """Return what equalities compare on the side of N_1, from its join attributes."""
    return _keys(attributes, columns, side=0)


def stored_keys(
    attributes: JoinAttributes, columns: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """Return what equalities compare on the side of N_2, from its join attributes."""
    return _keys(attributes, columns, side=1)


def _keys(
    attributes: JoinAttributes, columns: tuple[np.ndarray, ...], side: int
) -> tuple[np.ndarray, ...]:
    return tuple(
        columns[attributes.places[i][side]].astype(attributes.conditions[i].dtype, copy=False)
        for i in attributes.equalities
    )
