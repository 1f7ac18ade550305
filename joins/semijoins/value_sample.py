"""Which tuples an approximate join keeps: those of some values of the join attribute.

The stream semijoin paper leaves approximations to future work and asks for a measure of quality
that sites can compute. Here a value is kept at every site or at none: what is left out is then
missing, never wrong, and a kept value keeps all of its results, so that each result is kept with a
known chance. The hash of a value is its random number for good and everywhere (permanent random
numbers; Brewer, Early and Joyce, 1972): sites agree without a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Interval

from joins.batch import Batch
from joins.codes import encode
from joins.hashing import mix
from joins.state import storable

_FRACTION_BITS = 53


@storable
@dataclass(frozen=True, kw_only=True)
class ValueSample:
    """A sample of values."""

    share: Annotated[float, Interval(gt=0, le=1)]
    """The chance of each value to be kept."""
    always: tuple[float, ...] = ()
    never: tuple[float, ...] = ()
    """Values that are kept whatever the chance, and that are not."""
    never_results: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    """The share of all results that those never kept would have, as far as is known."""
    squared_results: Annotated[float, Interval(ge=0, le=1)] = 0.0
    """The sum of squares of the shares of all results that the others have, as far as is known: the
    more even they are, the better some of them represent all."""

    def contains(self, values: np.ndarray) -> np.ndarray:
        """Return whether each value (int64 or float64) is kept; equal ones are alike."""
        codes = encode(values.astype(np.float64))
        drawn = (mix(codes) >> np.uint64(64 - _FRACTION_BITS)) * 2.0**-_FRACTION_BITS
        kept = (drawn < self.share) & ~np.isin(values, self.never)
        return kept | np.isin(values, self.always)

    def recall(self, values: np.ndarray, results: np.ndarray) -> tuple[float, float]:
        """Return the estimated share of all results that were kept, and its standard error.

        Results of a value are kept with the chance p of the value, all n of them together: all of
        them are estimated to be the sum of n / p (Horvitz and Thompson, 1952). Its variance, the
        sum of n² (1 - p) / p², is too small where few values with many results were there to be
        drawn and none was: what is known of them is the better estimate then.

        Parameters
        ----------
        values
            Values that were kept, each once.
        results
            How many results each had, of all together one at least.
        """
        chance = self.chance(values)
        drawn = (results / chance).sum()
        seen = (results**2 * (1 - chance) / chance**2).sum() / drawn**2
        known = self.squared_results * (1 - self.share) / self.share / (1 - self.never_results) ** 2
        recall = results.sum() / drawn * (1 - self.never_results)
        return float(recall), float(recall * np.sqrt(max(seen, known)))

    def chance(self, values: np.ndarray) -> np.ndarray:
        """Return how likely each value that is kept was to be, float64."""
        return np.where(np.isin(values, self.always), 1.0, self.share)


@storable
@dataclass(frozen=True, kw_only=True)
class TupleSample:
    """The tuples of one stream whose value of the join attribute, in *field*, is kept."""

    field: str
    values: ValueSample

    def of(self, batch: Batch) -> np.ndarray:
        """Return which tuples are kept, bool."""
        return self.values.contains(batch.fields[self.field])
