"""What re-planning will do with given streams, without running anything: plans by epochs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from actors.context import RecordingContext
from actors.protocol import START, TIMER, Message
from actors.semijoins.payloads import NewTuples
from actors.semijoins.replanning import LEAD, SAMPLE_ROWS, Observed, Replanning
from actors.semijoins.site_source import SiteSource
from joins.batch import Batch
from joins.queries.windows import Window
from joins.semijoins.horizon import Horizon
from joins.semijoins.kept_values import KeptTuples
from topologies.topology import Job


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """An epoch: so many execution intervals under one plan.

    Attributes
    ----------
    begins_ns, ends_ns
        Virtual time.
    plan
        In force, as people write it.
    seen
        What the sites see of their streams in it.
    """

    begins_ns: int
    ends_ns: int
    plan: str
    seen: tuple[Observed, ...]


def foreseen(
    replanning: Replanning, job: Job, interval_ns: int, kept: Sequence[KeptTuples] = ()
) -> Iterator[Epoch]:
    """Give the epochs of *job*'s streams, as sites see them that are told of all within τ.

    Sites that are told later keep what expired a little longer, and may show a few more tuples.
    *kept* is what sites do not shed of their streams; left out, all.
    """
    streams = range(len(job.query.streams))
    shown = [
        _Shown(SiteSource(files=job.files, stream=s, feeding=job.feeding, interval_ns=interval_ns))
        for s in streams
    ]
    windows = [_Window(job.query.windows[s], Batch.empty(job.files[s].schema)) for s in streams]
    planned = [replanning.plan] * LEAD
    begins_ns = number = 0
    while True:
        tuples = [0] * len(shown)
        ends_ns = begins_ns
        for _ in range(replanning.intervals):
            new = [next(one, None) for one in shown]
            if new[0] is None:
                break
            for s, interval in enumerate(new):
                assert interval is not None  # all sources send for the same intervals
                interval = interval.take(kept[s].of(interval.batch)) if kept else interval
                windows[s].insert(interval)
                tuples[s] += len(interval.batch)
                ends_ns = interval.tick
        if ends_ns == begins_ns:
            return
        seen = tuple(
            Observed(
                epoch=number,
                stream=s,
                tuples=tuples[s],
                span_ns=ends_ns - begins_ns,
                sample=windows[s].latest(),
            )
            for s in streams
        )
        yield Epoch(begins_ns=begins_ns, ends_ns=ends_ns, plan=planned[number], seen=seen)
        planned.append(replanning.book.better(planned[-1], seen))
        begins_ns, number = ends_ns, number + 1


class _Shown(Iterator[NewTuples]):
    """The intervals that a source sends."""

    def __init__(self, source: SiteSource) -> None:
        self._source = source
        self._context = RecordingContext("source", {"out": ("site",)}, 0)
        self._timers = self._receive(START)

    def __next__(self) -> NewTuples:
        if not self._timers:
            raise StopIteration
        self._timers = self._receive(f"{TIMER}interval")
        return self._sent

    def _receive(self, port: str) -> bool:
        self._source.receive(Message("source", port, None), self._context)
        reply = self._context.take()
        for sent in reply.sends:
            self._sent: NewTuples = sent.handle
        return bool(reply.timers)


class _Window:
    """What is in a stream's window."""

    def __init__(self, window: Window, held: Batch) -> None:
        self._horizon = Horizon(window)
        self._held = held
        self._tick = -1

    def insert(self, new: NewTuples) -> None:
        self._horizon.insert(new.tick, new.batch.id, new.batch.ts)
        keep_from = self._horizon.passed(self._tick)
        held = Batch.concat([self._held, new.batch])
        self._held = held.slice(int(held.id.searchsorted(keep_from)), len(held))
        self._tick = new.tick

    def latest(self) -> Batch:
        held = self._held
        sample = held.slice(max(0, len(held) - SAMPLE_ROWS), len(held))
        return sample.project(list(sample.fields))
