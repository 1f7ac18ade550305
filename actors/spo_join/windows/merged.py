"""Section 4.2's second way: the partitioner's counts of merged tuples, sent in turns."""

from __future__ import annotations

from actors.spo_join.payloads import MergedCount, Permutations, WindowCount
from actors.spo_join.windows.counted import Counted


class MergedCounts(Counted):
    """Counts the tuples merged so far: its own arrays, and what the permutation PEs say of others'.

    The count is behind the stream by what has not been merged, and by the time that a merge takes;
    a slide that expires meanwhile is found until then.
    """

    def assigned(self, arrays: Permutations) -> None:
        """Add the tuples of an array of this PE."""
        self._counts[arrays.stream] += arrays.rows

    def told(self, count: MergedCount | WindowCount) -> None:
        """Add the tuples of an array of another PE."""
        assert isinstance(count, MergedCount)
        self._counts[count.stream] += count.tuples
