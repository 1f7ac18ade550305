"""Join attributes: fields that equalities make one, and which values streams have of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class JoinAttribute(ABC):
    """Fields that equalities make one attribute.

    An output has the values that all of its streams have: which ones depends on the set of its
    streams. *done* below is bool, (outputs, streams): which streams are in each.

    Attributes
    ----------
    distinct
        d_i = 1/f_i, the number of distinct values in each stream; 0 where it has no such field.
    partial_bytes
        P, size of a value.
    """

    distinct: np.ndarray
    partial_bytes: float = 8.0

    @property
    def has(self) -> np.ndarray:
        """Which streams have the attribute, bool."""
        return self.distinct > 0

    @abstractmethod
    def selectivity(self, done: np.ndarray) -> np.ndarray:
        """Return the chance that a tuple of each stream of an output all have the same value."""

    @abstractmethod
    def values(self, done: np.ndarray) -> np.ndarray:
        """Return the number of distinct values of each output; 1 for one without the attribute."""

    @abstractmethod
    def shares(self, done: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return f_12 and f_21 between outputs and *other* ones, (outputs, others).

        They are the share of an output's tuples whose value the other has, and of the other's whose
        value the output has; 1 where either has no such attribute.
        """

    def shared(self, done: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return whether both of two outputs have the attribute, (outputs, others)."""
        return (done & self.has).any(axis=1)[:, None] & (other & self.has).any(axis=1)


@dataclass(frozen=True, kw_only=True)
class NestedAttribute(JoinAttribute):
    """Uniform values, those of one stream a subset of another's: the paper's assumption."""

    def selectivity(self, done: np.ndarray) -> np.ndarray:
        """Return that all are the same one of the fewest values."""
        member = done & self.has
        each = np.where(member, 1 / np.maximum(self.distinct, 1), 1).prod(axis=1)
        return self.values(done) * each

    def values(self, done: np.ndarray) -> np.ndarray:
        """Return the fewest values of any stream."""
        member = done & self.has
        least = np.where(member, self.distinct, np.inf).min(axis=1)
        return np.where(np.isfinite(least), least, 1.0)

    def shares(self, done: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return min(1, f_1/f_2) and min(1, f_2/f_1)."""
        shared = self.shared(done, other)
        ours = np.where(shared, self.values(done)[:, None], 1.0)
        theirs = np.where(shared, self.values(other), 1.0)
        return np.minimum(1, theirs / ours), np.minimum(1, ours / theirs)


@dataclass(frozen=True, kw_only=True)
class MeasuredAttribute(JoinAttribute):
    """Values as they were found, however skewed, whichever streams have them.

    Attributes
    ----------
    frequency
        Of each value in each stream, (streams, values), for values of two streams or more; a row
        adds up to the share of tuples with such values.
    """

    frequency: np.ndarray

    def selectivity(self, done: np.ndarray) -> np.ndarray:
        """Return the sum over values of their frequencies' products."""
        several = (done & self.has).sum(axis=1) > 1
        return np.where(several, self._products(done).sum(axis=1), 1.0)

    def values(self, done: np.ndarray) -> np.ndarray:
        """Return how many values all streams of an output have."""
        member = done & self.has
        alone = np.where(member, self.distinct, 0).sum(axis=1)
        common = (self._products(done) > 0).sum(axis=1)
        return np.maximum(np.where(member.sum(axis=1) > 1, common, alone), 1.0)

    def shares(self, done: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the frequencies of the values that both have, added up on either side."""
        ours, theirs = self._frequencies(done), self._frequencies(other)
        shared = self.shared(done, other)
        there = ours @ (theirs > 0).T
        back = (ours > 0) @ theirs.T
        return np.where(shared, there, 1.0), np.where(shared, back, 1.0)

    def _frequencies(self, done: np.ndarray) -> np.ndarray:
        """Return per output and value the share of the output's tuples that have it."""
        products = self._products(done)
        several = (done & self.has).sum(axis=1) > 1
        whole = np.where(several, products.sum(axis=1), 1.0)
        return products / np.maximum(whole, 1e-300)[:, None]

    def _products(self, done: np.ndarray) -> np.ndarray:
        """Return per output and value the product of its streams' frequencies."""
        member = done & self.has
        products = np.ones((len(done), self.frequency.shape[1]))
        for stream, frequency in enumerate(self.frequency):
            products[member[:, stream]] *= frequency
        return products


def measured_attribute(columns: dict[int, np.ndarray], streams: int) -> MeasuredAttribute:
    """Return the attribute with the values found in *columns*, by stream, of so many streams."""
    found = {stream: np.unique(values, return_counts=True) for stream, values in columns.items()}
    everywhere = np.concatenate([values for values, _ in found.values()])
    values, holders = np.unique(everywhere, return_counts=True)
    common = values[holders > 1]
    frequency = np.zeros((streams, len(common)))
    distinct = np.zeros(streams)
    for stream, (own, counts) in found.items():
        distinct[stream] = len(own)
        known = np.isin(own, common)
        frequency[stream, np.searchsorted(common, own[known])] = counts[known] / counts.sum()
    return MeasuredAttribute(distinct=distinct, frequency=frequency)
