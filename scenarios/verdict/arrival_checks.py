"""When tuples arrived, by the streams and the trace: checks of who was late, and of latencies.

**Late tuples.** A watermark is at most the latest event time that has arrived, less the lag. A
tuple may be late if it is older than that when it arrives. A joiner's watermark may be further
behind, so it may take a tuple that was late by this rule; it may not drop one that was not. When a
tuple is due is worked out a second time: a feed that delayed tuples by more than was asked for, or
by nothing, would else be compared with itself.

**Latencies.** A tuple's latency ends when a message reaches a sink, or an actor of the user's own
that may hand out results itself; the trace says when. It begins when the tuple came into being. At
a rate that follows from its arrival number; else all tuples of a message came into being when their
source received the timer that made it send them. So birth and latency of each tuple add up to a
time at which a sink was reached. Where that is not known of each tuple, no latency may be longer
than the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.feed import ARRIVAL, Disorder, Recorded, only_times_of_others, open_feed
from actors.protocol import NS_PER_S
from actors.result_files import late_path
from actors.results import Sink
from actors.source import Source
from joins.batch import Batch
from joins.codes import GREATEST, LEAST
from joins.hashing import mix
from joins.sliding_column import values_at
from scenarios.formatting import format_many
from scenarios.plan import Plan
from scenarios.verdict import CheckResult, Offender
from scenarios.verdict.expectation import CHUNK_ROWS

RECOVERING = "results may wait, come again or be lost where actors crash"
"""Why a run that recovers from crashes is not compared."""


class LatenessCheck:
    """Compares every row of a run's ``late.parquet`` with when tuples arrived."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self._plan = plan
        table = pq.read_table(late_path(directory))
        stream, ids, ts, watermark = (
            table[name].to_numpy() for name in ("stream", "id", "ts", "watermark")
        )
        claims, known = [], 0
        for place, file in enumerate(plan.files):
            mine = np.flatnonzero((stream == place) & (ids >= 0) & (ids < file.tuples))
            known += len(mine)
            distinct, first = np.unique(ids[mine], return_index=True)
            claims.append(_Claims(distinct, ts[mine][first], watermark[mine][first]))
        self._behind = self._out_of_turn = 0
        if plan.feeding.disorder or known:
            self._mark_justified(claims)
        self.claimed = len(ids)
        """Rows of the file."""
        self.late = tuple(claim.id[claim.justified] for claim in claims)
        """Per stream the tuples that may have been late, int64, ascending: the rest were lost."""
        tuples = sum(len(claim.id) for claim in claims)
        self._unknown, self._repeated = self.claimed - known, known - tuples
        self._unjustified = tuples - sum(map(len, self.late))

    def check(self, *, answered: int, exact: bool) -> CheckResult:
        """Return what is wrong; *answered* late tuples were also joined.

        Where a run does not claim to be *exact*, a tuple may be late at one replica and joined at
        another, or come again after a crash, and be late then, or late twice.
        """
        if not (self._plan.query.interval or self._plan.feeding.disorder or self.claimed):
            return CheckResult(name="watermarks", passed=None, detail="this run had none")
        wrong = self._unknown or self._unjustified or self._out_of_turn
        if exact:
            wrong = wrong or self._repeated or answered
        return CheckResult(
            name="watermarks",
            passed=not wrong,
            detail=(
                f"{format_many(self._behind, 'tuple')} arrived behind the watermark, "
                f"{self.claimed:,} dropped as late: "
                f"{self._unjustified:,} without cause, {self._repeated:,} twice, "
                f"{self._unknown:,} that do not exist, {answered:,} answered all the same; "
                f"{self._out_of_turn:,} arrived behind others that were due later"
            ),
        )

    def _mark_justified(self, claims: list[_Claims]) -> None:
        """Mark the claims that may be true, and count who arrived behind, and out of turn."""
        feeding, files = self._plan.feeding, self._plan.files
        disorder = feeding.disorder
        feed = open_feed(disorder.opened(files) if disorder else files, disorder)
        latest = latest_due = LEAST
        begin = 0
        while (arrivals := feed.take(CHUNK_ROWS)) is not None:
            ts = np.empty(len(arrivals), np.int64)
            due = np.empty(len(arrivals), np.int64)
            for stream, (part, seq) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True)):
                ts[seq - begin] = part.ts
                due[seq - begin] = _due(disorder, stream, part)
            before = np.maximum.accumulate(np.concatenate([[latest], ts]))
            due_before = np.maximum.accumulate(np.concatenate([[latest_due], due]))
            self._out_of_turn += int((due < due_before[:-1]).sum())
            # A watermark before the beginning of time passes nothing.
            watermark = np.maximum(before, LEAST + feeding.lag_ns) - feeding.lag_ns
            if not feeding.watermarks:
                watermark[:] = LEAST
            for part, seq, claim in zip(arrivals.parts, arrivals.seq, claims, strict=True):
                passed = watermark[seq - begin]
                self._behind += int((part.ts < passed).sum())
                claim.mark(part.id, part.ts, passed)
            latest, latest_due, begin = int(before[-1]), int(due_before[-1]), begin + len(ts)


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


_TIMES_MAX = 1 << 22
"""Messages to sinks, or from a source, whose times are kept at the most: memory does not grow with
the streams."""


class LatencyCheck:
    """Takes the trace batch by batch, then latencies by ascending ranges of tuples.

    Attributes
    ----------
    early
        Messages that left a source before their last tuple had come into being.
    """

    def __init__(self, plan: Plan) -> None:
        specs, sources = plan.graph().specs, plan.graph().sources
        self._sources = np.array([name in sources for name in specs])
        self._emitters = np.array(
            [spec.actor is Sink or not spec.is_ours for spec in specs.values()]
        )
        self._rate_tps = plan.feeding.rate_tps
        self._unknown = _why_not(plan, len(sources), bool(self._emitters.any()))
        right_clocks = plan.config.clock == "virtual" and not _has_wrong_clocks(plan)
        self._by_rate = right_clocks and self._rate_tps is not None and _births_known(plan)
        self._bounded = right_clocks and not plan.recovers
        self._reached: list[np.ndarray] = []
        self._sent: list[np.ndarray] = []
        self._timers: list[np.ndarray] = []
        self._kept = self._wrong = self._checked = self.early = 0
        self._end_ns = self._longer = 0
        self._numbers = _ArrivalNumbers(plan)

    def add_rows(self, at: Mapping[str, np.ndarray]) -> None:
        """Take rows of the trace, by column."""
        sender, receiver = at["sender"], at["receiver"]
        self._end_ns = max(self._end_ns, int(at["done_ns"].max(initial=0)))
        sent = self._sources[sender] & (at["first"] >= 0) & (sender != receiver)
        if self._by_rate:
            self.early += int((at["sent_ns"][sent] < self._born_ns(at["last"][sent])).sum())
        if self._unknown:
            return
        reached = np.unique(at["arrived_ns"][self._emitters[receiver]])
        self._reached.append(reached)
        self._kept += len(reached)
        if self._rate_tps is None:
            timers = self._sources[receiver]
            self._sent.append(np.stack([at["first"][sent], at["sent_ns"][sent]]))
            self._timers.append(np.stack([at["done_ns"][timers], at["arrived_ns"][timers]]))
            self._kept += int(sent.sum()) + int(timers.sum())
        if self._kept > _TIMES_MAX:
            self._unknown = "there are too many messages to keep the times of"
            self._reached, self._sent, self._timers = [], [], []

    def add_latencies(self, stream: int, first: int, latency_ns: np.ndarray) -> None:
        """Check the latencies of tuples from *first* on; a negative one is of no report."""
        if self._bounded:
            self._longer += int((latency_ns > self._end_ns).sum())
        if not self._reached:
            self._unknown = self._unknown or "the trace has no rows of this run's actors"
        if self._unknown:
            return
        seq = self._numbers.take(stream, first, len(latency_ns))
        reported = np.flatnonzero(latency_ns >= 0)
        if not len(reported):
            return
        ended_ns = self._born_ns(seq[reported]) + latency_ns[reported]
        self._checked += len(reported)
        place = np.searchsorted(self._ends_ns, ended_ns)
        self._wrong += int((values_at(self._ends_ns, place, -1) != ended_ns).sum())

    def check(self) -> CheckResult:
        """Return what is wrong with the latencies."""
        detail = f"{self._wrong:,} of {self._checked:,} latencies end when no sink was reached"
        if self.early:
            early = format_many(self.early, "message left before its", "messages left before their")
            detail += f"; {early} tuples came into being"
        if self._longer:
            detail += f"; {format_many(self._longer, 'is', 'are')} longer than the run"
        passed: bool | None = not (self._wrong or self.early or self._longer)
        if passed and (self._unknown or not self._checked):
            passed, detail = None, self._unknown or "no tuple was reported"
        return CheckResult(name="latencies", passed=passed, detail=detail)

    @cached_property
    def _ends_ns(self) -> np.ndarray:
        """When sinks were reached."""
        return np.unique(np.concatenate(self._reached))

    @cached_property
    def _births(self) -> tuple[np.ndarray, np.ndarray]:
        """The first tuple of each message of a source, ascending, and when its tuples were born."""
        first, sent_ns = _sorted_columns(self._sent)
        done_ns, arrived_ns = _sorted_columns(self._timers)
        # What is sent leaves when the service of the timer is done.
        timer = np.minimum(np.searchsorted(done_ns, sent_ns), len(done_ns) - 1)
        return first, arrived_ns[timer]

    def _born_ns(self, seq: np.ndarray) -> np.ndarray:
        if rate_tps := self._rate_tps:
            seconds, rest = seq // rate_tps, seq % rate_tps
            at_rate: np.ndarray = seconds * NS_PER_S + rest * NS_PER_S // rate_tps
            return at_rate
        first, born_ns = self._births
        of_message: np.ndarray = born_ns[np.searchsorted(first, seq, "right") - 1]
        return of_message


class _ArrivalNumbers:
    """The arrival numbers of tuples, by stream and position, taken by ascending ranges."""

    def __init__(self, plan: Plan) -> None:
        self._alone = len(plan.files) == 1
        self._feed = open_feed(only_times_of_others(plan.files, -1), None)
        self._waiting = [np.empty(0, np.int64) for _ in plan.files]
        """Those that have been read and not taken."""

    def take(self, stream: int, first: int, tuples: int) -> np.ndarray:
        """Return the numbers of so many tuples from *first* on, which follow those taken before."""
        if self._alone:
            return np.arange(first, first + tuples)
        while len(self._waiting[stream]) < tuples:
            arrivals = self._feed.take(CHUNK_ROWS)
            assert arrivals is not None  # the oracle has read as many
            pairs = zip(self._waiting, arrivals.seq, strict=True)
            self._waiting = [np.concatenate(pair) for pair in pairs]
        taken, self._waiting[stream] = np.split(self._waiting[stream], [tuples])
        return taken


def _sorted_columns(parts: list[np.ndarray]) -> np.ndarray:
    """Join arrays of two rows each, in the order of the first row."""
    joined = np.concatenate(parts, axis=1)
    return joined[:, np.argsort(joined[0], kind="stable")]


def _why_not(plan: Plan, sources: int, emitters: bool) -> str:
    """Return why latencies cannot be checked; nothing where they can be."""
    if plan.config.clock != "virtual":
        return "the clock was live"
    if not emitters:
        return "there is no sink"
    if not _births_known(plan):
        return "its sources say themselves when a tuple came into being"
    if plan.feeding.rate_tps is None and sources > 1:
        return "several sources feed without a rate"
    if plan.recovers:
        return RECOVERING
    if _has_wrong_clocks(plan):
        return "clocks are wrong"
    if plan.query.interval or plan.feeding.disorder:
        return "a latency may begin with either tuple of a pair: with the one that came later"
    return ""


def _births_known(plan: Plan) -> bool:
    """Whether tuples come into being when `Source` says, at every source."""
    graph = plan.graph()
    sources = [graph.specs[name] for name in graph.sources]
    return all(spec.is_ours and issubclass(spec.actor, Source) for spec in sources)


def _has_wrong_clocks(plan: Plan) -> bool:
    return any(fault.kind == "skew" for fault in plan.config.faults)


def with_arrivals(offenders: Sequence[Offender], plan: Plan, trace: Path) -> list[Offender]:
    """Return *offenders*, each with when its probing tuple first reached each actor."""
    wanted = {(one.probe_stream, one.probe_id) for one in offenders}
    numbers: dict[tuple[int, int], int] = {}
    feed = open_feed(plan.files, plan.feeding.disorder)
    while len(numbers) < len(wanted) and (chunk := feed.take(CHUNK_ROWS)) is not None:
        for stream, probe_id in wanted - numbers.keys():
            place = np.flatnonzero(chunk.parts[stream].id == probe_id)
            if len(place):
                numbers[stream, probe_id] = int(chunk.seq[stream][place[0]])
    return [
        replace(one, arrivals_ms=_arrivals_ms(numbers[one.probe_stream, one.probe_id], trace))
        for one in offenders
    ]


def _arrivals_ms(seq: int, trace: Path) -> dict[str, float]:
    """Return when the tuple of arrival number *seq* first reached each actor, in virtual ms."""
    first_ns: dict[str, int] = {}
    with pq.ParquetFile(trace) as file:
        for rows in file.iter_batches(columns=["receiver", "first", "last", "arrived_ns"]):
            about = pc.and_(pc.less_equal(rows["first"], seq), pc.greater_equal(rows["last"], seq))
            rows = rows.filter(about)
            receivers = rows["receiver"].dictionary_decode().to_pylist()
            for actor, arrived_ns in zip(receivers, rows["arrived_ns"].to_pylist(), strict=True):
                first_ns[actor] = min(arrived_ns, first_ns.get(actor, arrived_ns))
    return {actor: arrived_ns / 1e6 for actor, arrived_ns in first_ns.items()}
