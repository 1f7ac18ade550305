"""What PanJoin's manager and workers send each other (Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.probes import Probes
from actors.protocol import HEADER_BYTES
from joins.batch import Batch
from joins.indexes.panjoin.bi_sort import Records
from joins.indexes.panjoin.lookup import StructureName
from joins.matches import Matches

_COMMAND_BYTES = 16
_PROBE_BYTES = 16
_PAIR_BYTES = 16


@dataclass(frozen=True, slots=True)
class Create:
    """Begin subwindow *number* of *stream* at stream position *first*.

    Attributes
    ----------
    splitters
        For a RaP-Table: codes sampled in an earlier subwindow, if a worker has reported any.
    """

    stream: int
    number: int
    first: int
    structure: StructureName
    splitters: np.ndarray | None

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return _COMMAND_BYTES + _splitter_bytes(self.splitters)


@dataclass(frozen=True, slots=True)
class Insert:
    """Store *batch*, in ascending order of the indexed field, in a subwindow.

    Attributes
    ----------
    fills
        The subwindow is full, or its time is over: nothing else comes.
    late
        It was over before: these tuples of its time go into its buffer.
    """

    stream: int
    number: int
    batch: Batch
    fills: bool
    late: bool = False

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return _COMMAND_BYTES + self.batch.nbytes


@dataclass(frozen=True, slots=True)
class Expire:
    """Drop subwindow *number* of *stream*, once the batch's probes are answered."""

    stream: int
    number: int

    nbytes = _COMMAND_BYTES


@dataclass(frozen=True, slots=True)
class Commands:
    """All that one worker is to do about one batch, in this order.

    Attributes
    ----------
    number
        The batch.
    create, insert
        May be none.
    probe
        Per stream of the query, sorted by the field that probes; empty where the worker has
        nothing to be probed.
    expire
        May be none.
    span
        First and last arrival number of the batch.
    """

    number: int
    create: tuple[Create, ...]
    insert: tuple[Insert, ...]
    probe: tuple[Probes, ...]
    expire: tuple[Expire, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        commands: tuple[Create | Insert | Probes | Expire, ...]
        commands = (*self.create, *self.insert, *self.probe, *self.expire)
        return HEADER_BYTES + sum(command.nbytes for command in commands)

    @property
    def rows(self) -> int:
        """Tuples to insert and to probe with."""
        return sum(len(insert.batch) for insert in self.insert) + sum(map(len, self.probe))


@dataclass(frozen=True, slots=True)
class Status:
    """What only a worker can report of one stream, after one batch.

    That the newest subwindow is full or the oldest one empty the manager computes before the worker
    does: it needs it for the next batch, which it packs while the workers are at this one.

    Attributes
    ----------
    probed
        Probes of the stream's tuples times subwindows they probed.
    matches
        What they found.
    splitters
        Sampled in a RaP-Table of the stream's own that was filled by this batch.
    """

    probed: int
    matches: int
    splitters: np.ndarray | None

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return _COMMAND_BYTES + _splitter_bytes(self.splitters)


@dataclass(frozen=True, slots=True)
class Result:
    """What one worker found for the probes of one stream, on its way back to the manager.

    Attributes
    ----------
    records
        By number of the BI-Sort subwindow.
    matches
        From its other subwindows; None without any.
    """

    records: dict[int, Records]
    matches: Matches | None

    @property
    def probes(self) -> int:
        """Probes that it is for."""
        if self.matches is not None:
            return len(self.matches)
        return max((records.places.shape[2] for records in self.records.values()), default=0)

    @property
    def total(self) -> int:
        """Number of pairs; records count at their lengths."""
        in_records = sum(records.lengths for records in self.records.values())
        return in_records + (0 if self.matches is None else self.matches.total)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        nbytes = sum(_COMMAND_BYTES + records.nbytes for records in self.records.values())
        if self.matches is not None:
            nbytes += _PROBE_BYTES * len(self.matches) + _PAIR_BYTES * self.matches.total
        return nbytes


@dataclass(frozen=True, slots=True)
class Feedback:
    """A worker's answer to `Commands`: its running status, and results if the manager wants them.

    Attributes
    ----------
    number, worker
        Which commands it answers.
    status
        Per stream.
    results
        Per stream that probes; empty when results go straight on.
    """

    number: int
    worker: int
    status: tuple[Status, ...]
    results: tuple[Result, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        parts: tuple[Status | Result, ...] = (*self.status, *self.results)
        return HEADER_BYTES + sum(part.nbytes for part in parts)

    @property
    def rows(self) -> int:
        """Probes that results are for, however many subwindows each probed."""
        return sum(result.probes for result in self.results)


def _splitter_bytes(splitters: np.ndarray | None) -> int:
    return 0 if splitters is None else splitters.nbytes
