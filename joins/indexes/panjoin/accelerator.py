"""BI-Sort on an FPGA (section IV): what its parts take for what a BI-Sort does.

The answers are a BI-Sort's; only the time is the board's. Its units take a tuple a clock, and work
as a pipeline on what the memory streams: the slowest of them, of the memory and of the link to the
host is what a batch takes.

The paper gives the clock (Table I), eight mergers and eight probers, and two channels of DDR3-1066;
eight mergers would need 32 GB/s, which is why it finds that more are of no use. It does not say how
many partitioners there are, nor how fast the link is: taken are one per prober, and the board's
eight lanes of PCI Express 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.records import Records
from joins.work import Work

TUPLE_BYTES = 8
"""A key and a value of 32 bits each; a record's two ends take as much."""

_BILLION = 10**9


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """The parts of the board.

    Attributes
    ----------
    mergers, probers, partitioners
        Units of each kind.
    clock_hz
        Cycles a second.
    memory_bps, link_bps
        Bytes a second of all memory channels together, and of the link to the host.
    """

    mergers: int = 8
    probers: int = 8
    partitioners: int = 8
    clock_hz: int = 252_700_000
    memory_bps: int = 2 * 1066 * 8 * 10**6
    link_bps: int = 7_877 * 10**6

    def insertion(self, tuples: int, work: Work) -> Work:
        """Return what the board takes to insert so many *tuples*, which cost a BI-Sort *work*.

        A tuple merged is read from one stream and written to another.
        """
        return self._slowest(
            [(self.mergers, work.moves)],
            memory=2 * TUPLE_BYTES * work.moves,
            link=TUPLE_BYTES * tuples,
        )

    def probing(self, held: BiSort, records: Records) -> Work:
        """Return what the board takes to find *records* in a BI-Sort.

        The partitioners go through the index array and the probes, the probers through the ends of
        ranges and the partitions that these fall into: each of them once, as probes are in order.
        """
        width, samples = held.partitioning
        ranges = records.ranges
        bands, _, probes = ranges.shape
        entered = np.unique(ranges[:, :2] // width) if held.sizes[0] else ranges[:0]
        read = len(entered) * width + held.sizes[1]
        ends = 2 * bands * probes
        return self._slowest(
            [(self.partitioners, samples + ends), (self.probers, read + ends)],
            memory=TUPLE_BYTES * (read + bands * probes),
            link=TUPLE_BYTES * (1 + bands) * probes,
        )

    def _slowest(self, tuples: list[tuple[int, int]], *, memory: int, link: int) -> Work:
        """Return the time of the slowest of units, memory and link.

        *tuples* has per kind of unit how many there are, and how many tuples they take together.
        """
        spent_ns = [
            memory * _BILLION // self.memory_bps,
            link * _BILLION // self.link_bps,
            *(count * _BILLION // (units * self.clock_hz) for units, count in tuples),
        ]
        return Work(elapsed_ns=max(spent_ns))
