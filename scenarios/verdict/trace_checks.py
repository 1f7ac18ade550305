"""Checks over the trace that a run wrote, which is read once, a batch of rows at a time.

None of them trusts the kernel's counters: messages and bytes are added up per channel, times are
compared row by row, and the digest is that of the file as it is on disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import compress, pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.protocol import Wiring, channels
from joins.codes import LEAST
from joins.hashing import mix
from joins.sliding_column import values_at
from netsim.network import link_between
from netsim.outcome import Outcome
from netsim.trace import COLUMNS, READ_ROWS, TIMES, name_codes, trace_names
from scenarios.formatting import format_many
from scenarios.verdict import CheckResult

_MOST_BYTES = 2**30
"""A longer message is taken to be so long: its bits times a second's nanoseconds fit into int64."""
_MOST_BPS = 2**63 - 1
"""A wider link is taken to be so wide, at which no message takes a nanosecond either."""


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
        Rows with a name that is no actor's or no port's, or of a sender that sends the receiver
        nothing; the rows of their batch and those behind are not added up.
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
        names, actors = trace_names(wiring), list(wiring)
        of_actors = {name: code for code, name in enumerate(actors)}
        of_ports = {name: code for code, name in enumerate(names[len(actors) :], len(actors))}
        self._names = {"sender": of_actors, "receiver": of_actors, "port": of_ports}
        places = {
            of_actors[sender] * len(actors) + of_actors[receiver]: (sender, receiver)
            for sender, receiver in channels(wiring)
        }
        self._codes = np.array(sorted(places), np.int64)
        wired = [places[code] for code in sorted(places)]
        self.virtual = network is not None
        link_of = cache(partial(link_between, network))
        links = [link_of(*(placement[end] for end in one)) for one in wired if self.virtual]
        # Within a site there is no link, and what is sent takes no time.
        least_ns = [link.latency.least_ns if link else 0 for link in links]
        widths = [int(link.bandwidth_bps * widest) if link else _MOST_BPS for link in links]
        self._least_ns = np.array(least_ns, np.int64)
        self._bps = np.array([min(width, _MOST_BPS) for width in widths], np.int64)
        self._watch = watch
        self._done_ns = np.zeros(len(actors), np.int64)
        self._counts = np.zeros(len(actors), np.int64)
        self._stops = np.zeros(len(actors), np.int64)
        self._mixed = np.zeros(len(actors), np.uint64)
        """By sender: its rows, their highest number and one, and the sum of their mixed numbers: to
        have the sum of 0, 1, 2 ... they must be those, each once."""
        self._last_seq, self._last_ns = np.full((2, len(wired)), LEAST)
        """By channel the number of its last message, and when that arrived."""
        self._sums = np.zeros((3, len(wired)), np.int64)
        self.overtaken = self.unknown = self.untimely = self.too_fast = self.ended_ns = 0
        self.odd_spans, self.latest = 0, -1
        hashed = hashlib.sha256("\n".join(names).encode())
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(READ_ROWS, columns=list(COLUMNS)):
                rows = self._integers(batch)
                hashed.update(rows.T.astype("<i8").tobytes())
                if not self.unknown:  # such rows belong to no actor
                    self._add(dict(zip(COLUMNS, rows, strict=True)))
        self.digest = hashed.hexdigest()[:16]
        self.received, self.nbytes, self.rows = (
            dict(compress(zip(wired, column, strict=True), self._sums[0]))
            for column in self._sums.tolist()
        )
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

    def _integers(self, batch: pa.RecordBatch) -> np.ndarray:
        """Return the rows of *batch* as int64, a column each, names as their codes."""
        columns = np.empty((len(COLUMNS), len(batch)), np.int64)
        for place, name in enumerate(COLUMNS):
            codes, column = self._names.get(name), batch.column(place)
            columns[place] = column.to_numpy() if codes is None else name_codes(column, codes)
        self.unknown += int((columns[: len(self._names)] < 0).any(axis=0).sum())
        return columns

    def _add(self, at: Mapping[str, np.ndarray]) -> None:
        sent = np.flatnonzero(at["sender"] != at["receiver"])
        code = at["sender"][sent] * len(self._counts) + at["receiver"][sent]
        channel = np.searchsorted(self._codes, code)
        if strangers := int((values_at(self._codes, channel, -1) != code).sum()):
            self.unknown += strangers
            return
        if self._watch:
            self._watch(at)
        times = [at[name] for name in TIMES]
        if not self.virtual:  # clocks of machines differ: a message may seem to arrive early
            del times[:2]
        backwards = times[0] < 0
        for before, after in pairwise(times):
            backwards |= after < before
        done_before = _value_before(at["receiver"], at["done_ns"], self._done_ns)
        self.untimely += int(backwards.sum()) + int((at["started_ns"] < done_before).sum())
        self.ended_ns = max(self.ended_ns, int(at["done_ns"].max(initial=0)))
        self._counts += np.bincount(at["sender"], minlength=len(self._counts))
        np.maximum.at(self._stops, at["sender"], at["seq"] + 1)
        np.add.at(self._mixed, at["sender"], mix(at["seq"]))

        first, last = at["first"], at["last"]
        about = (first != -1) | (last != -1)
        self.odd_spans += int((about & ((first < 0) | (last < first))).sum())
        self.latest = max(self.latest, int(last.max(initial=-1)))

        seq, arrived_ns, nbytes = (at[name][sent] for name in ("seq", "arrived_ns", "nbytes"))
        overtaken = seq <= _value_before(channel, seq, self._last_seq)
        overtaken |= arrived_ns < _value_before(channel, arrived_ns, self._last_ns)
        self.overtaken += int(overtaken.sum())
        counts = (np.ones_like(channel), nbytes, at["rows"][sent])
        for column, count in zip(self._sums, counts, strict=True):
            np.add.at(column, channel, count)
        if self.virtual:
            transmission = np.minimum(nbytes, _MOST_BYTES) * 8_000_000_000 // self._bps[channel]
            least_ns = self._least_ns[channel] + transmission
            self.too_fast += int((arrived_ns - at["left_ns"][sent] < least_ns).sum())


def _value_before(group: np.ndarray, values: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the value of the row before each in its group.

    *last* has by group the value of the last row before all of these, and then of these.
    """
    order = np.argsort(group, kind="stable")
    group, values = group[order], values[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    before, found = np.append(0, values[:-1]), np.empty_like(values)
    before[first] = last[group[first]]
    last[group] = values  # of equal places the last counts
    found[order] = before
    return found


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
        detail += f"; numbers of messages that are missing, or occur twice: {trace.misnumbered:,}"
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
        passed=trace.overtaken == 0 if trace.received else None,
        detail=f"{format_many(trace.overtaken, 'message')} overtaken on "
        f"{format_many(len(trace.received), 'channel')}",
    )


def check_trace(outcome: Outcome, trace: ReadTrace, tuples: int, *, own: bool) -> CheckResult:
    """Check that the trace is possible, and is what the run's own figures were counted from.

    *tuples* are those of all streams: sources fed in so many, unless a crash made them skip some,
    or a source is the user's *own*, which may send a tuple more than once.
    """
    wrong = []
    if trace.unknown:
        wrong.append(
            f"{format_many(trace.unknown, 'row has', 'rows have')} names that are no actor's or no "
            "port's, or between which nothing is sent"
        )
    if trace.untimely:
        wrong.append(
            f"{format_many(trace.untimely, 'row has', 'rows have')} times that run backwards, or "
            "that begin while the actor served another"
        )
    if trace.too_fast:
        messages = format_many(trace.too_fast, "message")
        wrong.append(f"{messages} arrived sooner than links allow")
    if trace.odd_spans or trace.latest >= tuples:
        wrong.append("rows are about tuples that do not exist")
    if trace.virtual and trace.digest != outcome.digest:
        wrong.append(f"its digest is {trace.digest}, not {outcome.digest}")
    recovered = outcome.recovered
    if outcome.tuples != tuples and not (own or (recovered and recovered.weakens)):
        fed_in = format_many(outcome.tuples, "tuple was", "tuples were")
        wrong.append(f"{fed_in} fed in, of {tuples:,}")
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
