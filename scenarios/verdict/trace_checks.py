"""Checks over the trace that a run wrote, which is read once, a batch of rows at a time.

None of them trusts the kernel's counters: messages and bytes are added up per channel, times are
compared row by row, and the digest is that of the file as it is on disk.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.protocol import HEADER_BYTES, Channel, Wiring
from actors.result_files import COLLECTORS_SCHEMA
from joins.hashing import mix
from netsim.network import link_between
from netsim.outcome import Outcome
from netsim.trace import COLUMNS, READ_ROWS, TIMES, name_codes, trace_names
from scenarios.verdict import CheckResult

_MOST_BYTES = 2**30
"""A longer message is taken to be so long: its bits times a second's nanoseconds fit into int64."""
_MOST_BPS = 2**63 - 1
"""A wider link is taken to be so wide, at which no message takes a nanosecond either."""
_ROW_BYTES, _ID_BYTES = 16, 8
"""A row of a report has a tuple's id and its number of matches, or a late tuple's id and time; then
there are the ids of each result."""
_COLLECTOR_BYTES = 8 * len(COLLECTORS_SCHEMA)


class ReadTrace:
    """Sums over a trace, and how many of its rows are impossible.

    Parameters
    ----------
    path
        The trace.
    wiring, placement
        Those of the system that ran.
    network
        The links between their sites; None of a live run, whose clocks and links are real.
    widest
        The greatest factor by which faults multiply a link's bandwidth.
    watch
        Called with the rows, some thousand at a time: columns by name, actors by their rank.

    Attributes
    ----------
    received, nbytes, rows
        Messages, their bytes and their rows, by sender and receiver.
    crossed
        Bytes of messages between two sites; in a live run, between two actors.
    overtaken
        Messages that were served behind one that their sender had sent later on the same channel.
    misnumbered
        Numbers that a sender gave a message or timer and that no row has, and senders of which a
        number occurs twice.
    unknown
        Rows with a name that is no actor's or no port's; the rows of their batch and those behind
        are not added up.
    untimely
        Rows whose times run backwards, or that were served while their receiver served another.
    too_fast
        Messages that arrived sooner than the least latency of their link, and their transmission,
        allow.
    odd_spans
        Rows with arrival numbers that are negative, or the last one before the first.
    latest
        The greatest arrival number of any row.
    ended_ns
        When the last service was done.
    digest
        Of all rows, as `netsim.trace` has it.
    """

    def __init__(
        self,
        path: Path,
        *,
        wiring: Wiring,
        placement: Mapping[str, str],
        network: nx.Graph | None,
        widest: float = 1,
        watch: Callable[[Mapping[str, np.ndarray]], None] | None = None,
    ) -> None:
        names = trace_names(wiring)
        actors = list(wiring)
        self._actors = {name: code for code, name in enumerate(names[: len(actors)])}
        self._ports = {name: code for code, name in enumerate(names) if code >= len(actors)}
        self.virtual = network is not None
        self._links = _Links(network, [placement[actor] for actor in actors], widest)
        self._watch = watch
        self._last: dict[int, tuple[int, int]] = {}
        self._done_ns = np.zeros(len(actors), np.int64)
        self._counts = np.zeros(len(actors), np.int64)
        self._stops = np.zeros(len(actors), np.int64)
        self._mixed = np.zeros(len(actors), np.uint64)
        """By sender: its rows, their highest number and one, and the sum of their mixed numbers: to
        have the sum of 0, 1, 2 ... they must be those, each once."""
        messages: Counter[int] = Counter()
        nbytes: Counter[int] = Counter()
        rows_of: Counter[int] = Counter()
        self.overtaken = self.unknown = self.untimely = self.too_fast = self.ended_ns = 0
        self.odd_spans, self.latest = 0, -1
        hashed = hashlib.sha256("\n".join(names).encode())
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(READ_ROWS, columns=list(COLUMNS)):
                rows = self._integers(batch)
                hashed.update(rows.T.astype("<i8").tobytes())
                self._add(rows, messages, nbytes, rows_of)
        self.digest = hashed.hexdigest()[:16]

        def by_channel(counted: Mapping[int, int]) -> dict[Channel, int]:
            pairs = ((divmod(code, len(actors)), count) for code, count in counted.items())
            return {(actors[ends[0]], actors[ends[1]]): count for ends, count in pairs}

        self.received, self.nbytes = by_channel(messages), by_channel(nbytes)
        self.rows = by_channel(rows_of)
        self.crossed = sum(
            carried
            for (sender, receiver), carried in self.nbytes.items()
            if not self.virtual or placement[sender] != placement[receiver]
        )
        numbered = zip(
            self._counts.tolist(), self._stops.tolist(), self._mixed.tolist(), strict=True
        )
        self.misnumbered = sum(
            abs(stop - count) or int(mixed != _mixed_below(stop)) for count, stop, mixed in numbered
        )

    @property
    def channels(self) -> int:
        """How many channels messages came on."""
        return len(self.received)

    def _integers(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the rows of *batch* as int64, a column each, names as their codes."""
        columns = np.empty((len(COLUMNS), len(batch)), np.int64)
        unknown = np.zeros(len(batch), np.bool_)
        for place, column in enumerate(batch.columns):
            if not pa.types.is_dictionary(column.type):
                columns[place] = column.to_numpy()
                continue
            codes = self._ports if COLUMNS[place] == "port" else self._actors
            columns[place] = name_codes(column, codes)
            unknown |= columns[place] < 0
        self.unknown += int(unknown.sum())
        return columns

    def _add(
        self,
        rows: np.ndarray,
        messages: Counter[int],
        nbytes: Counter[int],
        rows_of: Counter[int],
    ) -> None:
        if self.unknown:
            return  # such rows belong to no actor
        at = dict(zip(COLUMNS, rows, strict=True))
        if self._watch:
            self._watch(at)
        actors = len(self._actors)
        times = [at[name] for name in TIMES]
        if not self.virtual:  # clocks of machines differ: a message may seem to arrive early
            del times[:2]
        backwards = times[0] < 0
        for before, after in pairwise(times):
            backwards |= after < before
        self.untimely += int(backwards.sum()) + self._overlapping(at)
        self.ended_ns = max(self.ended_ns, int(at["done_ns"].max(initial=0)))
        self._counts += np.bincount(at["sender"], minlength=actors)
        np.maximum.at(self._stops, at["sender"], at["seq"] + 1)
        np.add.at(self._mixed, at["sender"], mix(at["seq"]))

        first, last = at["first"], at["last"]
        about = (first != -1) | (last != -1)
        self.odd_spans += int((about & ((first < 0) | (last < first))).sum())
        self.latest = max(self.latest, int(last.max(initial=-1)))

        sent = np.flatnonzero(at["sender"] != at["receiver"])
        channel = at["sender"][sent] * actors + at["receiver"][sent]
        order = np.argsort(channel, kind="stable")
        sent, channel = sent[order], channel[order]
        if not len(sent):
            return
        seq, arrived, size = (at[name][sent] for name in ("seq", "arrived_ns", "nbytes"))
        same = channel[1:] == channel[:-1]
        self.overtaken += int(np.sum(same & ((np.diff(seq) <= 0) | (np.diff(arrived) < 0))))
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        stops = np.append(starts[1:], len(channel))
        sizes = np.add.reduceat(size, starts)
        spoken = np.add.reduceat(at["rows"][sent], starts)
        on_its_way = arrived - at["left_ns"][sent]
        for start, stop, carried, about_rows in zip(
            starts, stops, sizes.tolist(), spoken.tolist(), strict=True
        ):
            code = int(channel[start])
            before = self._last.get(code)
            if before and (seq[start] <= before[0] or arrived[start] < before[1]):
                self.overtaken += 1
            self._last[code] = int(seq[stop - 1]), int(arrived[stop - 1])
            messages[code] += int(stop - start)
            nbytes[code] += carried
            rows_of[code] += about_rows
            if self.virtual:
                least_ns = self._links.least_ns(code, size[start:stop])
                self.too_fast += int((on_its_way[start:stop] < least_ns).sum())

    def _overlapping(self, at: Mapping[str, np.ndarray]) -> int:
        """Return how many services began before their actor was done with the one before."""
        order = np.argsort(at["receiver"], kind="stable")
        actor, started, done = (at[name][order] for name in ("receiver", "started_ns", "done_ns"))
        free = np.concatenate([[0], done[:-1]])
        first = np.flatnonzero(np.concatenate([[True], actor[1:] != actor[:-1]]))
        free[first] = self._done_ns[actor[first]]
        last = np.append(first[1:], len(actor)) - 1
        self._done_ns[actor[last]] = done[last]
        return int((started < free).sum())


class _Links:
    """Latency and bandwidth of channels, between the *sites* of their ends."""

    def __init__(self, network: nx.Graph | None, sites: Sequence[str], widest: float) -> None:
        self._network, self._sites, self._widest = network, sites, widest
        self._known: dict[int, tuple[int, int] | None] = {}

    def least_ns(self, channel: int, nbytes: np.ndarray) -> np.ndarray:
        """Return the least times (ns) from leaving to arrival on *channel*, by message size."""
        if channel not in self._known:
            here, there = (self._sites[end] for end in divmod(channel, len(self._sites)))
            link = link_between(self._network, here, there)
            if link is None:
                self._known[channel] = None
            else:
                bandwidth_bps = min(int(link.bandwidth_bps * self._widest), _MOST_BPS)
                self._known[channel] = link.latency.least_ns, bandwidth_bps
        link_of = self._known[channel]
        if link_of is None:
            return np.zeros(len(nbytes), np.int64)
        latency_ns, bandwidth_bps = link_of
        transmission: np.ndarray = np.minimum(nbytes, _MOST_BYTES) * 8_000_000_000 // bandwidth_bps
        return latency_ns + transmission


def _mixed_below(stop: int) -> int:
    """Return the sum, modulo 2^64, of the mixed numbers from 0 to *stop* (exclusive)."""
    parts = (np.arange(at, min(stop, at + READ_ROWS)) for at in range(0, stop, READ_ROWS))
    return sum(int(mix(part).sum()) for part in parts) % 2**64


def check_conservation(outcome: Outcome, trace: ReadTrace) -> CheckResult:
    """Check that each message was received once, but for those that faults lost and doubled.

    Channels are compared one by one: a message lost on one and a message made up on another would
    cancel out in the total.
    """
    received = sum(trace.received.values())
    known = received + outcome.in_flight + outcome.lost - outcome.doubled
    detail = f"{outcome.messages:,} sent, {received:,} received, {outcome.in_flight:,} in flight"
    if outcome.lost or outcome.doubled:
        detail += f", {outcome.lost:,} lost, {outcome.doubled:,} received twice"
    if outcome.standstill:
        circle = [*outcome.standstill, outcome.standstill[0]]
        detail += f"; {' waits for room at '.join(circle)}, for ever"
    detail += "".join(f"; {failure}" for failure in outcome.unserved)
    whole = outcome.messages == known and not outcome.in_flight
    for channel in sorted({*outcome.due, *trace.received}):
        due, there = outcome.due.get(channel, 0), trace.received.get(channel, 0)
        if due != there:
            whole = False
            detail += f"; {due:,} were due from {channel[0]} to {channel[1]}, {there:,} came"
            break
    # No row has the number of a message that was lost, or that recovery took back.
    if trace.misnumbered and not (outcome.lost or outcome.doubled or outcome.recovered):
        whole = False
        detail += f"; {trace.misnumbered:,} numbers of messages are missing, or occur twice"
    return CheckResult(
        name="conservation",
        passed=whole if outcome.messages else None,
        detail=detail,
    )


def check_fifo(trace: ReadTrace) -> CheckResult:
    """Check that on no channel a message arrived before one that was sent earlier.

    Timers are no messages: each fires when it was set for.
    """
    return CheckResult(
        name="fifo",
        passed=trace.overtaken == 0 if trace.channels else None,
        detail=f"{trace.overtaken:,} messages overtaken on {trace.channels:,} channels",
    )


def check_trace(outcome: Outcome, trace: ReadTrace, tuples: int, *, own: bool) -> CheckResult:
    """Check that the trace is possible, and is what the run's own figures were counted from.

    *tuples* are those of all streams: sources fed in so many, unless a crash made them skip some,
    or a source is the user's *own*, which may send a tuple more than once.
    """
    wrong = []
    if trace.unknown:
        wrong.append(f"{trace.unknown:,} rows have names that are no actor's or no port's")
    if trace.untimely:
        wrong.append(
            f"{trace.untimely:,} rows have times that run backwards, or began while their actor "
            "served another"
        )
    if trace.too_fast:
        wrong.append(f"{trace.too_fast:,} messages arrived sooner than their links allow")
    if trace.odd_spans or trace.latest >= tuples:
        wrong.append("rows are about tuples that do not exist")
    if trace.virtual and trace.digest != outcome.digest:
        wrong.append(f"its digest is {trace.digest}, not {outcome.digest}")
    recovered = outcome.recovered
    if outcome.tuples != tuples and not (own or (recovered and recovered.weakens)):
        wrong.append(f"{outcome.tuples:,} tuples were fed in, of {tuples:,}")
    ended = outcome.virtual_ns
    # In a live run the clock goes on while the last results are written.
    if trace.ended_ns > ended or (trace.virtual and trace.ended_ns < ended):
        wrong.append(f"the last service was done at {trace.ended_ns:,} ns, not at {ended:,} ns")
    sent = outcome.nbytes - (outcome.injected.overhead_bytes if outcome.injected else 0)
    # The run's bytes include lost messages and markers of snapshots, which have no row; a message
    # that came twice has two.
    whole = not (outcome.lost or outcome.doubled or outcome.recovered)
    if whole and trace.crossed != sent:
        wrong.append(f"its messages have {trace.crossed:,} bytes, not {sent:,}")
    detail = "its times are in order"
    if trace.virtual:
        detail = "its digest and times are the run's, and no message was faster than its link"
    detail += (
        "; its bytes are the run's"
        if whole
        else "; bytes were not compared, since some messages have no row"
    )
    return CheckResult(name="trace", passed=not wrong, detail="; ".join(wrong) or detail)


@dataclass(frozen=True, kw_only=True)
class FileTotals:
    """What a run's files of results add up to.

    Attributes
    ----------
    by_sender
        Rows of reports, by the rank of the actor that sent them; those of no actor are left out.
    pairs
        Pairs that these rows report.
    late, collectors
        Rows of the file of late tuples, and of that of collectors.
    streams
        How many ids a result has.
    ours
        Whether all actors are ours: one of the user's own may send sinks messages of other sizes,
        and emit results itself.
    """

    by_sender: np.ndarray
    pairs: int
    late: int
    collectors: int
    streams: int
    ours: bool


def check_sinks(
    outcome: Outcome,
    trace: ReadTrace,
    sinks: Collection[str],
    ranks: Sequence[str],
    written: FileTotals,
) -> CheckResult:
    """Check that what *sinks* received is what was *written*, in rows by sender and in bytes.

    The files do not say who sent a late tuple, or what a collector did: where tuples were late, a
    sender may have sent more rows than the files have of it.
    """
    to_sinks = [channel for channel in trace.received if channel[1] in sinks]
    messages = sum(trace.received[channel] for channel in to_sinks)
    if outcome.recovered or not messages:
        why = "results wait for snapshots, or come again" if messages else "nothing reached a sink"
        return CheckResult(name="sinks", passed=None, detail=why)
    sent: Counter[str] = Counter()
    for channel in to_sinks:
        sent[channel[0]] += trace.rows[channel]
    in_files = dict(zip(ranks, written.by_sender.tolist(), strict=True))
    wrong = [
        f"{sender} sent {sent[sender]:,} rows, and the files have {count:,} of it"
        for sender, count in in_files.items()
        if (count > sent[sender] and written.ours) or (count < sent[sender] and not written.late)
    ]
    reports = sum(in_files.values()) + written.late
    if not wrong and (sent.total() > reports or (sent.total() < reports and written.ours)):
        wrong.append(f"sinks received {sent.total():,} rows, and the files have {reports:,}")
    nbytes = sum(trace.nbytes[channel] for channel in to_sinks)
    due = messages * HEADER_BYTES + _ROW_BYTES * reports
    due += _ID_BYTES * written.streams * written.pairs + _COLLECTOR_BYTES * written.collectors
    if written.ours and nbytes != due:
        wrong.append(f"sinks received {nbytes:,} bytes, and what the files have takes {due:,}")
    detail = f"the files have what {messages:,} messages brought, by rows of each sender"
    detail += " and by bytes" if written.ours else "; own actors may send messages of other sizes"
    return CheckResult(name="sinks", passed=not wrong, detail="; ".join(wrong[:3]) or detail)


def arrivals_of(seq: int, trace: Path) -> dict[str, float]:
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
