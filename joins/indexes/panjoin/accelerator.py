"""BI-Sort on an FPGA (section IV): the time that its parts take for the same work.

The answers are a BI-Sort's; only the time is the board's. Its units process a tuple a clock, and
work as a pipeline on what the memory streams: a batch takes as long as the slowest of the units,
the memory and the link to the host.

The paper gives the clock (Table I), eight mergers and eight probers, and two channels of DDR3-1066;
eight mergers would need 32 GB/s, which is why it finds that more are of no use. It does not say how
many partitioners there are, nor how fast the link is: assumed are one per prober, and the board's
eight lanes of PCI Express 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.indexes.panjoin.bi_sort import BiSort, Records
from joins.state import storable
from joins.work import Work

TUPLE_BYTES = 8
"""A key and a value of 32 bits each; a record's two ends take as much."""

_BILLION = 10**9


@storable
@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """The parts of the board."""

    mergers: int = 8
    probers: int = 8
    partitioners: int = 8
    """Units of each kind."""
    clock_hz: int = 252_700_000
    """Cycles a second."""
    memory_bytes_per_s: int = 2 * 1066 * 8 * 10**6
    link_bytes_per_s: int = 7_877 * 10**6
    """Bytes a second of all memory channels together, and of the link to the host."""

    def insertion_time(self, tuples: int, work: Work) -> Work:
        """Return the time to insert so many *tuples*, whose insertion cost a BI-Sort *work*.

        A tuple merged is read from one stream and written to another.
        """
        return self._slowest(
            [(self.mergers, work.moves)],
            memory=2 * TUPLE_BYTES * work.moves,
            link=TUPLE_BYTES * tuples,
        )

    def probing_time(self, bi_sort: BiSort, records: Records) -> Work:
        """Return the time to find *records* in a BI-Sort.

        The partitioners go through the index array and the probes, the probers through the ends of
        ranges and the partitions that these fall into: each of them once, as probes are in order.
        """
        width, samples = bi_sort.partitioning
        probes = records.places.shape[1]
        in_main = records.places[:2]
        entered = np.unique(in_main // width) if bi_sort.sizes[0] else in_main[:0]
        read = len(entered) * width + bi_sort.sizes[1]
        ends = 2 * probes
        return self._slowest(
            [(self.partitioners, samples + ends), (self.probers, read + ends)],
            memory=TUPLE_BYTES * (read + probes),
            link=TUPLE_BYTES * 2 * probes,
        )

    def _slowest(self, tuples: list[tuple[int, int]], *, memory: int, link: int) -> Work:
        """Return the time of the slowest of units, memory and link.

        *tuples* has per kind of unit how many there are, and how many tuples they process together.
        """
        spent_ns = [
            memory * _BILLION // self.memory_bytes_per_s,
            link * _BILLION // self.link_bytes_per_s,
            *(count * _BILLION // (units * self.clock_hz) for units, count in tuples),
        ]
        return Work(elapsed_ns=max(spent_ns))
