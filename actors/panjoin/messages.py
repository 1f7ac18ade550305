"""What PanJoin's manager and its workers send each other (Figure 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from actors.protocol import Payload
from actors.source import Probes
from joins.batch import Batch
from joins.indexes.panjoin.bi_sort import Records
from joins.indexes.panjoin.lookup import StructureName
from joins.matches import Matches
from joins.state import storable

_PROBE_BYTES = 16
_PAIR_BYTES = 16


class PayloadPart(Payload):
    """A part of `Commands` or of `Feedback`."""

    __slots__ = ()
    frame_bytes = 16


@dataclass(frozen=True, slots=True)
class Create(PayloadPart):
    """Begin a subwindow at stream position *first*."""

    first: int
    structure: StructureName
    splitters: np.ndarray | None
    """For a RaP-Table: codes sampled in an earlier subwindow, if a worker has reported any."""

    bytes_of = ("splitters",)


@dataclass(frozen=True, slots=True)
class Insert(PayloadPart):
    """Store *batch*, in ascending order of the indexed field, in subwindow *number* of *stream*.

    An empty batch only closes the subwindow: its time ended between two batches of the stream.
    """

    stream: int
    number: int
    batch: Batch
    create: Create | None = None
    """What to create the subwindow by, if it is new."""
    fills: bool = False
    """The subwindow is full, or its time is over: nothing else comes."""
    late: bool = False
    """It was over before: these tuples of its time go into its buffer."""

    bytes_of = ("create", "batch")

    def __len__(self) -> int:
        return len(self.batch)


@dataclass(frozen=True, slots=True)
class Expire(PayloadPart):
    """Drop subwindow *number* of *stream*, once the batch's probes are answered."""

    stream: int
    number: int


@dataclass(frozen=True, slots=True)
class Commands(Payload):
    """All that one worker is to do about one batch, in this order."""

    number: int
    """The batch."""
    insert: tuple[Insert, ...]
    """May be none."""
    probe: tuple[Probes, ...]
    """Per stream of the query, sorted by the field that probes; empty where the worker has nothing
    to be probed."""
    expire: tuple[Expire, ...]
    """May be none."""
    span: tuple[int, int]
    """First and last arrival number of the batch."""

    bytes_of = ("insert", "probe", "expire")
    rows_of = ("insert", "probe")


@dataclass(frozen=True, slots=True)
class Status(PayloadPart):
    """What only a worker can report of one stream, after one batch.

    That the newest subwindow is full or the oldest one empty the manager computes before the worker
    does: it needs it for the next batch, which it packs while the workers are at this one.
    """

    probed: int
    """Probes of the stream's tuples times subwindows they probed."""
    matches: int
    """What they found."""
    splitters: np.ndarray | None
    """Sampled in a RaP-Table of the stream's own that was filled by this batch."""

    bytes_of = ("probed", "matches", "splitters")


@storable
@dataclass(frozen=True, slots=True)
class WorkerResult:
    """What one worker found for the probes of one stream, on its way back to the manager."""

    records: dict[int, Records]
    """By number of the BI-Sort subwindow."""
    matches: Matches | None
    """From its other subwindows; None without any."""

    def __len__(self) -> int:
        """Return how many probes it is for, however many subwindows each probed."""
        if self.matches is not None:
            return len(self.matches)
        return max((records.places.shape[1] for records in self.records.values()), default=0)

    @property
    def total(self) -> int:
        """Number of pairs; records count at their lengths."""
        in_records = sum(records.lengths for records in self.records.values())
        return in_records + (0 if self.matches is None else self.matches.total)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        nbytes = sum(PayloadPart.frame_bytes + records.nbytes for records in self.records.values())
        if self.matches is not None:
            nbytes += _PROBE_BYTES * len(self.matches) + _PAIR_BYTES * self.matches.total
        return nbytes


@dataclass(frozen=True, slots=True)
class Feedback(Payload):
    """A worker's answer to `Commands`: its status, and results if the manager wants them."""

    number: int
    worker: int
    """Which commands it answers."""
    status: tuple[Status, ...]
    """Per stream."""
    results: tuple[WorkerResult, ...]
    """Per stream that probes; empty when results go straight on."""
    span: tuple[int, int]

    bytes_of = ("status", "results")
    rows_of = ("results",)


ResultsTo = Literal["sink", "manager"]
