"""What a run says it dropped as late, against when its tuples arrived.

A watermark is at most the latest event time that has arrived, less the lag. A tuple may be late if
it is older than that when it arrives. A joiner's watermark may be further behind, so it may take a
tuple that was late by this rule; it may not drop one that was not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from actors.feed import StreamData, open_feed
from actors.result_files import late_path
from actors.source import Feeding
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
    """

    claimed: int
    late: tuple[np.ndarray, ...]
    unknown: int = 0
    repeated: int = 0
    unjustified: int = 0
    behind: int = 0

    def check(
        self, query: JoinQuery, feeding: Feeding, *, answered: int, exact: bool
    ) -> CheckResult:
        """Return what is wrong; *answered* late tuples were also joined.

        Where a run does not claim to be *exact*, a tuple may be late at one replica and joined at
        another, or come again after a crash, and be late then, or late twice.
        """
        wrong = self.unknown or self.unjustified
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
                f"{self.unknown:,} that do not exist, {answered:,} answered all the same"
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
    behind = 0
    if feeding.disorder or known:
        behind = _mark_justified(files, feeding, claims)
    late = tuple(claim.id[claim.justified] for claim in claims)
    return Lateness(
        claimed=len(ids),
        late=late,
        unknown=len(ids) - known,
        repeated=repeated,
        unjustified=known - repeated - sum(map(len, late)),
        behind=behind,
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


def _mark_justified(files: tuple[StreamData, ...], feeding: Feeding, claims: list[_Claims]) -> int:
    """Mark the claims that may be true; return how many tuples arrived behind the watermark."""
    feed = open_feed(files, feeding.disorder)
    latest, behind, begin = int(_INT64.min), 0, 0
    while (arrivals := feed.take(_CHUNK_ROWS)) is not None:
        ts = np.empty(len(arrivals), np.int64)
        for part, seq in zip(arrivals.parts, arrivals.seq, strict=True):
            ts[seq - begin] = part.ts
        before = np.maximum.accumulate(np.concatenate([[latest], ts]))
        # A watermark before the beginning of time passes nothing.
        watermark = np.maximum(before, _INT64.min + feeding.lag_ns) - feeding.lag_ns
        if not feeding.watermarks:
            watermark[:] = _INT64.min
        for part, seq, claim in zip(arrivals.parts, arrivals.seq, claims, strict=True):
            passed = watermark[seq - begin]
            behind += int((part.ts < passed).sum())
            claim.mark(part.id, part.ts, passed)
        latest, begin = int(before[-1]), begin + len(ts)
    return behind
