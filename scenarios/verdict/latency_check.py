"""Whether latencies are those that the trace and the streams allow, tuple by tuple.

A tuple's latency ends when a message reaches a sink, or an actor of the user's own that may hand
out results itself; the trace says when. It begins when the tuple came into being. At a rate that
follows from its arrival number; else all tuples of a message came into being when their source
received the timer that made it send them. So birth and latency of each tuple add up to a time at
which a sink was reached. Where that is not known of each tuple, no latency may be longer than the
run.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from actors.feed import only_times_of_others, open_feed
from actors.protocol import NS_PER_S
from actors.results import Sink
from actors.source import Source
from scenarios.plan import Plan
from scenarios.verdict import CheckResult
from scenarios.verdict.expectation import CHUNK_ROWS

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
        emitting = [spec.actor is Sink or not spec.is_ours for spec in specs.values()]
        self._sources = np.array([name in sources for name in specs])
        self._emitters = np.array(emitting)
        self._rate_tps = plan.feeding.rate_tps
        self._unknown = _why_not(plan, len(sources), any(emitting))
        self._by_rate = (
            _births_known(plan) and plan.config.clock == "virtual" and not _has_wrong_clocks(plan)
        )
        self._reached: list[np.ndarray] = []
        self._sent: list[np.ndarray] = []
        self._timers: list[np.ndarray] = []
        self._ready = False
        self._kept = self._wrong = self._checked = self.early = 0
        self._bounded = plan.config.clock == "virtual" and not (
            plan.recovers or _has_wrong_clocks(plan)
        )
        self._end_ns = self._longer = 0
        self._numbers = _ArrivalNumbers(plan)

    def add_rows(self, at: Mapping[str, np.ndarray]) -> None:
        """Take rows of the trace, by column."""
        sender, receiver = at["sender"], at["receiver"]
        self._end_ns = max(self._end_ns, int(at["done_ns"].max(initial=0)))
        sent = self._sources[sender] & (at["first"] >= 0) & (sender != receiver)
        if self._rate_tps is not None and self._by_rate:
            self.early += int((at["sent_ns"][sent] < self._at_rate(at["last"][sent])).sum())
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
        if not self._ready:
            self._prepare()
        seq = self._numbers.take(stream, first, len(latency_ns))
        reported = np.flatnonzero(latency_ns >= 0)
        if not len(reported):
            return
        born_ns = self._born_ns(seq[reported])
        reached = self._reached[0]
        ended_ns = born_ns + latency_ns[reported]
        place = np.minimum(np.searchsorted(reached, ended_ns), len(reached) - 1)
        self._checked += len(reported)
        self._wrong += int((reached[place] != ended_ns).sum()) if len(reached) else len(reported)

    def check(self) -> CheckResult:
        """Return what is wrong with the latencies."""
        detail = f"{self._wrong:,} of {self._checked:,} latencies end when no sink was reached"
        if self.early:
            detail += f"; {self.early:,} messages left before their tuples came into being"
        if self._longer:
            detail += f"; {self._longer:,} are longer than the run"
        passed: bool | None = not (self._wrong or self.early or self._longer)
        if passed and (self._unknown or not self._checked):
            passed, detail = None, self._unknown or "no tuple was reported"
        return CheckResult(name="latencies", passed=passed, detail=detail)

    def _prepare(self) -> None:
        """Work out when messages were born, and sort what times are looked up in."""
        self._ready = True
        self._reached = [np.unique(np.concatenate(self._reached))]
        if self._rate_tps is not None:
            return
        first, sent_ns = _sorted_columns(self._sent)
        done_ns, arrived_ns = _sorted_columns(self._timers)
        # What is sent leaves when the service of the timer is done.
        timer = np.minimum(np.searchsorted(done_ns, sent_ns), len(done_ns) - 1)
        self._sent, self._timers = [first, arrived_ns[timer]], []

    def _at_rate(self, seq: np.ndarray) -> np.ndarray:
        assert self._rate_tps is not None
        seconds, rest = seq // self._rate_tps, seq % self._rate_tps
        born_ns: np.ndarray = seconds * NS_PER_S + rest * NS_PER_S // self._rate_tps
        return born_ns

    def _born_ns(self, seq: np.ndarray) -> np.ndarray:
        if self._rate_tps is not None:
            return self._at_rate(seq)
        first, born_ns = self._sent
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
        return "results wait for snapshots, or come again"
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
