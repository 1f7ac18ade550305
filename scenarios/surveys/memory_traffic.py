"""What threads that share a PIM-Tree read and write (PIM-Tree, Figure 11d)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from joins.indexes.pim_tree.pim_tree import SHARED_MERGE_RATIO
from joins.matches import ProbeResult
from joins.window_join.registry import Making
from joins.window_join.rows import Rows
from joins.work import Work
from netsim.cost import CostProfile
from scenarios.calibration.window_joins import band_join, band_of, uniform_keys
from scenarios.surveys.survey import Survey, Surveyed

_KEY_BYTES = 8
_ENTRY_BYTES = 16


class MemoryTrafficSurvey(Survey):
    """What the work of a join over full windows comes to in bytes, two matches a tuple.

    ``gb_s`` are gigabytes per virtual second: ``read``, ``written`` and ``total``;
    ``written_percent`` is the second's share of the last. A comparison reads a key, an insert
    writes a key and a position, a move does both, a copy as much as it copies.

    Attributes
    ----------
    threads, cores
        That share the index.
    window_bits
        The windows hold 2^*window_bits* tuples each.
    """

    of: Literal["memory traffic"] = "memory traffic"
    threads: Annotated[int, Field(ge=1, le=1000)] = 16
    cores: Annotated[int, Field(ge=1)] = 8
    window_bits: Annotated[int, Field(ge=6, le=26)] = 14

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Join both windows' length of tuples, and compare the matches with one thread's."""
        window = 1 << self.window_bits
        rows = band_join(uniform_keys(4 * window), band_of(window), window)
        filling, measured = rows.part(0, 2 * window), rows.part(2 * window, None)
        found, alone = (
            self._join(threads, profile, filling, measured) for threads in (self.threads, 0)
        )
        return Surveyed(
            record=_traffic(found.work),
            checked="every tuple has the matches that one thread finds",
            passed=np.array_equal(found.count, alone.count),
        )

    def _join(
        self, threads: int, profile: CostProfile, filling: Rows, measured: Rows
    ) -> ProbeResult:
        making = Making(threads=threads, cores=self.cores, merge_ratio=SHARED_MERGE_RATIO)
        join = making.make(self_join=False, unit_ps=profile.unit_ps)
        join.join(filling)
        return join.join(measured)


def _traffic(work: Work) -> dict[str, object]:
    moved = _ENTRY_BYTES * work.moves + work.bytes_copied
    read = _KEY_BYTES * work.comparisons + moved
    written = _ENTRY_BYTES * work.inserts + moved
    return {
        "gb_s": {
            "read": read / work.elapsed_ns,
            "written": written / work.elapsed_ns,
            "total": (read + written) / work.elapsed_ns,
        },
        "written_percent": 100 * written / (read + written),
    }
