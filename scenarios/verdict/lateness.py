"""What a run says it dropped as late, against when its tuples arrived.

A watermark is at most the latest event time that has arrived, less the lag. A tuple may be late if
it is older than that when it arrives. A joiner's watermark may be further behind, so it may take a
tuple that was late by this rule; it may not drop one that was not.

When a tuple is due is worked out a second time: a feed that delayed tuples by more than was asked
for, or by nothing, would else be compared with itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from actors.feed import ARRIVAL, Disorder, Recorded, StreamData, open_feed
from actors.result_files import late_path
from actors.source import Feeding
from joins.batch import Batch
from joins.codes import GREATEST
from joins.hashing import mix
from joins.queries.query import JoinQuery
from scenarios.verdict import CheckResult

_CHUNK_ROWS = 8_192
_INT64 = np.iinfo(np.int64)


@dataclass(frozen=True, kw_only=True)
class Lateness:
    """The tuples that a run says were late.

    Attributes
    ----------
    claimed
        Rows of ``late.parquet``.
    late
        Per stream the tuples that may have been late, int64, ascending: the rest were lost.
    unknown, repeated, unjustified
        Rows of tuples that do not exist; that say again what another said; and of tuples that no
        watermark had passed, or with another event time or watermark than there was.
    behind
        Tuples that arrived behind the watermark.
    out_of_turn
        Tuples that arrived behind others which were due later.
    """

    claimed: int
    late: tuple[np.ndarray, ...]
    unknown: int = 0
    repeated: int = 0
    unjustified: int = 0
    behind: int = 0
    out_of_turn: int = 0

    def check(
        self, query: JoinQuery, feeding: Feeding, *, answered: int, exact: bool
    ) -> CheckResult:
        """Return what is wrong; *answered* late tuples were also joined.

        Where a run does not claim to be *exact*, a tuple may be late at one replica and joined at
        another, or come again after a crash, and be late then, or late twice.
        """
        wrong = self.unknown or self.unjustified or self.out_of_turn
        if exact:
            wrong = wrong or self.repeated or answered
        if query.interval is None and not feeding.disorder and not self.claimed:
            return CheckResult(name="watermarks", passed=None, detail="this run had none")
        return CheckResult(
            name="watermarks",
            passed=not wrong,
            detail=(
                f"{self.behind:,} tuples arrived behind the watermark, {self.claimed:,} dropped as "
                f"late: {self.unjustified:,} without cause, {self.repeated:,} twice, "
                f"{self.unknown:,} that do not exist, {answered:,} answered all the same; "
                f"{self.out_of_turn:,} arrived behind others that were due later"
            ),
        )


def check_lateness(files: tuple[StreamData, ...], feeding: Feeding, directory: Path) -> Lateness:
    """Compare every row of the run's ``late.parquet`` with the arrivals."""
    table = pq.read_table(late_path(directory))
    stream, ids, ts, watermark = (
        table[name].to_numpy() for name in ("stream", "id", "ts", "watermark")
    )
    claims = []
    known = repeated = 0
    for place, file in enumerate(files):
        mine = np.flatnonzero((stream == place) & (ids >= 0) & (ids < file.tuples))
        distinct, first = np.unique(ids[mine], return_index=True)
        known += len(mine)
        repeated += len(mine) - len(distinct)
        claims.append(_Claims(distinct, ts[mine][first], watermark[mine][first]))
    behind = out_of_turn = 0
    if feeding.disorder or known:
        behind, out_of_turn = _mark_justified(files, feeding, claims)
    late = tuple(claim.id[claim.justified] for claim in claims)
    return Lateness(
        claimed=len(ids),
        late=late,
        unknown=len(ids) - known,
        repeated=repeated,
        unjustified=known - repeated - sum(map(len, late)),
        behind=behind,
        out_of_turn=out_of_turn,
    )


class _Claims:
    """The tuples of a stream that are said to have been late; *justified* marks those that were."""

    def __init__(self, id_: np.ndarray, ts: np.ndarray, watermark: np.ndarray) -> None:
        self.id, self.ts, self.watermark = id_, ts, watermark
        self.justified = np.zeros(len(id_), np.bool_)

    def mark(self, ids: np.ndarray, ts: np.ndarray, passed: np.ndarray) -> None:
        """Compare claims about *ids* with their event times, and the watermark each came behind."""
        tuples = np.flatnonzero(np.isin(ids, self.id))
        place = np.searchsorted(self.id, ids[tuples])
        claimed = self.watermark[place]
        self.justified[place] = (
            (self.ts[place] == ts[tuples]) & (ts[tuples] < claimed) & (claimed <= passed[tuples])
        )


def _mark_justified(
    files: tuple[StreamData, ...], feeding: Feeding, claims: list[_Claims]
) -> tuple[int, int]:
    """Mark the claims that may be true.

    Return how many tuples arrived behind the watermark, and how many out of turn.
    """
    disorder = feeding.disorder
    feed = open_feed(disorder.opened(files) if disorder else files, disorder)
    latest = latest_due = int(_INT64.min)
    behind = out_of_turn = begin = 0
    while (arrivals := feed.take(_CHUNK_ROWS)) is not None:
        ts = np.empty(len(arrivals), np.int64)
        due = np.empty(len(arrivals), np.int64)
        for stream, (part, seq) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True)):
            ts[seq - begin] = part.ts
            due[seq - begin] = _due(disorder, stream, part)
        before = np.maximum.accumulate(np.concatenate([[latest], ts]))
        due_before = np.maximum.accumulate(np.concatenate([[latest_due], due]))
        out_of_turn += int((due < due_before[:-1]).sum())
        # A watermark before the beginning of time passes nothing.
        watermark = np.maximum(before, _INT64.min + feeding.lag_ns) - feeding.lag_ns
        if not feeding.watermarks:
            watermark[:] = _INT64.min
        for part, seq, claim in zip(arrivals.parts, arrivals.seq, claims, strict=True):
            passed = watermark[seq - begin]
            behind += int((part.ts < passed).sum())
            claim.mark(part.id, part.ts, passed)
        latest, latest_due, begin = int(before[-1]), int(due_before[-1]), begin + len(ts)
    return behind, out_of_turn


def _due(disorder: Disorder | Recorded | None, stream: int, part: Batch) -> np.ndarray:
    """Return when tuples of a stream are due, in nanoseconds."""
    if disorder is None:
        return part.ts
    if isinstance(disorder, Recorded):
        return part.fields.get(ARRIVAL, part.ts)
    of_stream = mix(np.array([2 * disorder.seed + stream]))
    drawn = mix(part.id.astype(np.uint64) ^ of_stream)
    if disorder.bounded:
        delay = drawn % np.uint64(disorder.delay_ns + 1)
    else:
        below_one = np.minimum(drawn * 2.0**-64, 1 - 2.0**-53)
        delay = (-disorder.delay_ns * np.log1p(-below_one)).astype(np.uint64)
    # Nothing is due behind the end of time.
    room = GREATEST - np.maximum(part.ts, 0)
    arrives: np.ndarray = part.ts + np.minimum(delay, room.astype(np.uint64)).astype(np.int64)
    return arrives
