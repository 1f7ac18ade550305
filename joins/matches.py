"""Matches: what a probe returns, and how kernels list it in memory that grows by chunks.

Three things are here, from the outside in:

- `Matches` is what a join reports: for each probing tuple how many matches it has, their
  fingerprint and, if they are enumerated, their ids. `ProbeResult` is the same for one probe of one
  index, where probing tuples have row numbers rather than ids, with the work that the probe took.
  Both add up over several structures (`sum`).
- `MatchBuffer` is what a kernel writes to: `add_match` counts, fingerprints and lists one match.
  A buffer whose list has no room at all only counts.
- `MatchList` gives a kernel one chunk of a list after the other; `find_matches` is the loop that
  calls a kernel until every row has been probed, with a new chunk whenever the last one is full.

A kernel works through rows of probes and has two ways not to overrun its chunk. Where it knows the
most matches that a row can have, it asks `has_room` before the row. Where it does not, it puts the
row between `begin_row` and `commit_row`, which takes back the row's matches and the work counted
for them if they did not all fit. Either way it returns the row to go on from::

    @kernel
    def _probe(index, probes, row, buffer, counters):
        for row in range(row, len(probes.start)):
            begin_row(buffer, counters)
            ...
            add_match(buffer, row, position)
            ...
            if not commit_row(buffer, row, counters):
                return row
        return len(probes.start)

    def probe(self, probes, *, enumerate):
        step = functools.partial(_probe, self._arrays, probes)
        return find_matches(step, len(probes.start), enumerate=enumerate)

Listed ids are copied once at most, when the chunks are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import inlined, kernel
from joins.machine.memory import own_lines
from joins.state import storable
from joins.work import COUNTERS, MATCHES, NO_WORK, Work, new_counters

_FIRST_CHUNK = 1024  # Ids; every further chunk has room for twice as many.
_LARGEST_CHUNK = 1 << 25  # Ids: 256 MiB of address space, paged in by use.
_NO_IDS = np.empty(0, np.int64)


@storable
@dataclass(frozen=True, kw_only=True)
class Matches:
    """The matches of some probing tuples of one stream, a row per probing tuple.

    Several operators may each report a part of one tuple's matches: counts and fingerprints of the
    parts add up.

    In a join of more than two streams a match is a tuple of each other stream: *match_id* then has
    a column for each, in the order of the query, and the fingerprint sums up
    `joins.hashing.mix_rows` of them.
    """

    stream: int
    """Position in the query of the probing stream."""
    probe_id: np.ndarray
    """int64, the probing tuples."""
    count: np.ndarray
    """int64, how many matches each has."""
    fingerprint: np.ndarray
    """uint64, for each the wrapping sum over its matches of ``splitmix64(match id)``: equal sets of
    matches have equal sums in any order, and a duplicate changes the sum."""
    match_id: np.ndarray | None = None
    """int64, the matches of the first row, then of the second, ...; None when only counted."""

    @classmethod
    def of_pairs(
        cls,
        stream: int,
        probe_id: np.ndarray,
        row: np.ndarray,
        match_id: np.ndarray,
        repeats: np.ndarray | None = None,
        *,
        enumerate: bool,
    ) -> Matches:
        """Group pairs by probe; the ids of a row keep their order.

        Parameters
        ----------
        stream, probe_id
            As of the matches.
        row
            int64, for each pair, in any order, the row of its probe in *probe_id*.
        match_id
            int64, for each pair the match.
        repeats
            int64, how many consecutive pairs each of *match_id* is in. None: one.
        enumerate
            Whether to list the match ids.
        """
        ones = np.ones(len(row), np.int64)
        repeats = ones if repeats is None else repeats
        count, fingerprint = np.zeros(len(probe_id), np.int64), np.zeros(len(probe_id), np.uint64)
        _add_pairs(row, match_id, repeats, count, fingerprint)
        listed = None
        if enumerate:
            listed = order_by_row(np.repeat(match_id, repeats), row, ones, count)
        return cls(
            stream=stream, probe_id=probe_id, count=count, fingerprint=fingerprint, match_id=listed
        )

    def __len__(self) -> int:
        return len(self.probe_id)

    @property
    def total(self) -> int:
        """Number of pairs."""
        return int(self.count.sum())

    @classmethod
    def sum(cls, parts: Sequence[Matches]) -> Matches:
        """Add up the matches that the same probes have in several structures.

        Ids come row by row, within a row in the order of *parts* (at least one).
        """
        first = parts[0]
        count, fingerprint, match_id = _add_rows(parts)
        return replace(first, count=count, fingerprint=fingerprint, match_id=match_id)

    def split(self, rows: Sequence[int]) -> list[Matches]:
        """Return views of the first ``rows[0]`` probes' matches, of the next ``rows[1]``', ..."""
        ends = np.cumsum(rows)
        listed = np.append(0, np.cumsum(self.count))
        return [
            replace(
                self,
                probe_id=self.probe_id[begin:end],
                count=self.count[begin:end],
                fingerprint=self.fingerprint[begin:end],
                match_id=None
                if self.match_id is None
                else self.match_id[listed[begin] : listed[end]],
            )
            for begin, end in zip(ends - rows, ends, strict=True)
        ]

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs as two int64 columns (probe id, match id).

        Raise :exc:`ValueError` when the matches were only counted.
        """
        return np.repeat(self.probe_id, self.count), listed_ids(self)


@storable
@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """What a batch of probes of one index returns, a row per probe."""

    count: np.ndarray
    """int64, matches of each."""
    fingerprint: np.ndarray
    """uint64, for each the wrapping sum over its matches of ``splitmix64(position)``."""
    match_id: np.ndarray | None
    """int64, positions of the matches of the first row, then of the second, ...; in no particular
    order within a row; None when only counted."""
    work: Work
    """What the probes cost together."""

    def of(self, stream: int, probe_id: np.ndarray) -> Matches:
        """Return the matches, named by the probing *stream* and the ids of its tuples."""
        return Matches(
            stream=stream,
            probe_id=probe_id,
            count=self.count,
            fingerprint=self.fingerprint,
            match_id=self.match_id,
        )

    @classmethod
    def sum(cls, parts: Sequence[ProbeResult]) -> ProbeResult:
        """Add up the results of the same probes in several structures (at least one)."""
        count, fingerprint, match_id = _add_rows(parts)
        work = sum((part.work for part in parts), NO_WORK)
        return cls(count=count, fingerprint=fingerprint, match_id=match_id, work=work)

    @classmethod
    def concat(cls, parts: Sequence[ProbeResult]) -> ProbeResult:
        """Join the results of successive probes of one structure (at least one) end to end."""
        listed = [part.match_id for part in parts if part.match_id is not None]
        return cls(
            count=np.concatenate([part.count for part in parts]),
            fingerprint=np.concatenate([part.fingerprint for part in parts]),
            match_id=np.concatenate(listed) if listed else None,
            work=sum((part.work for part in parts), NO_WORK),
        )


def listed_ids(found: Matches | ProbeResult) -> np.ndarray:
    """Return the ids of matches; raise :exc:`ValueError` when they were only counted."""
    if found.match_id is None:
        raise ValueError(
            "these matches were counted, not enumerated: with enumerate=True a structure lists "
            "their ids, too"
        )
    return found.match_id


class MatchBuffer(NamedTuple):
    """Where a kernel puts matches: totals per row, and the current chunk of the list of ids."""

    matches: np.ndarray
    """int64, a row per probe: how many it has."""
    fingerprint: np.ndarray
    """uint64, a row per probe: see `ProbeResult`."""
    match_id: np.ndarray
    """int64, the chunk; of no length when matches are only counted."""
    listed: np.ndarray
    """int64: first how many ids are in the chunk, which goes on counting where there is no room for
    them; then, where ids are listed, that number and the work counters at `begin_row`."""
    before: int
    """Ids in the chunks before this one."""


@inlined
def add_match(buffer: MatchBuffer, row: int, position: int) -> None:
    """Add the match at *position* to a row."""
    buffer.matches[row] += 1
    buffer.fingerprint[row] += splitmix64(position)
    listed = buffer.listed[0]
    if listed < len(buffer.match_id):
        buffer.match_id[listed] = position
    buffer.listed[0] = listed + 1


@inlined
def add_total(buffer: MatchBuffer, row: int, count: int, fingerprint: np.uint64) -> None:
    """Add *count* matches to a row; their ids, if any are listed, are in the chunk already.

    For loops that count in registers, and write ids from ``match_id[listed[0]]`` on themselves.
    """
    buffer.matches[row] += count
    buffer.fingerprint[row] += fingerprint
    buffer.listed[0] += count


@inlined
def has_room(buffer: MatchBuffer, most: int) -> bool:
    """Return whether *most* more ids are sure to fit into the chunk, or need not be listed."""
    return len(buffer.match_id) == 0 or buffer.listed[0] + most <= len(buffer.match_id)


@inlined
def begin_row(buffer: MatchBuffer, counters: np.ndarray) -> None:
    """Mark where a row begins, so that `commit_row` can roll it back."""
    if len(buffer.match_id) > 0:
        buffer.listed[1] = buffer.listed[0]
        for i in range(len(counters)):
            buffer.listed[2 + i] = counters[i]


@inlined
def commit_row(buffer: MatchBuffer, row: int, counters: np.ndarray) -> bool:
    """Return whether all matches of *row* since `begin_row` fit into the chunk.

    If not, the row is rolled back: it has no matches and has cost nothing, and is to be probed
    again in the next chunk.
    """
    if has_room(buffer, 0):
        return True
    buffer.listed[0] = buffer.listed[1]
    for i in range(len(counters)):
        counters[i] = buffer.listed[2 + i]
    buffer.matches[row] = 0
    buffer.fingerprint[row] = 0
    return False


class MatchList:
    """The totals of some rows of probes and, chunk by chunk, the list of their matches.

    Parameters
    ----------
    rows
        How many.
    enumerate
        List ids; else matches are only counted, and no chunk has any room.
    room
        Ids that the first chunk has room for, at most 2**25; None takes a small one.
    share
        Another list of the same rows whose totals this one adds to: where several threads list
        matches, each row is probed by one of them.
    """

    def __init__(
        self, rows: int, *, enumerate: bool, room: int | None = None, share: MatchList | None = None
    ) -> None:
        self._enumerate = enumerate
        self._full: list[np.ndarray] = []
        chunk, listed = _NO_IDS, 1
        if enumerate:
            size = max(_FIRST_CHUNK, 2 * rows) if room is None else max(1, room)
            chunk, listed = np.empty(min(size, _LARGEST_CHUNK), np.int64), 2 + len(COUNTERS)
        self.buffer: MatchBuffer = MatchBuffer(
            np.zeros(rows, np.int64) if share is None else share.buffer.matches,
            np.zeros(rows, np.uint64) if share is None else share.buffer.fingerprint,
            chunk,
            np.zeros(listed, np.int64) if share is None else own_lines(listed),
            0,
        )
        """What to pass to a kernel; another one after every `add_chunk`."""

    def add_chunk(self) -> None:
        """Begin a chunk twice as long: rows that are probed from here on are listed there.

        A chunk that is still empty was too short for a single row, and may grow beyond any limit.
        """
        chunk, used = self.buffer.match_id, int(self.buffer.listed[0])
        size = 2 * len(chunk) if used == 0 else min(2 * len(chunk), _LARGEST_CHUNK)
        self._full.append(chunk[:used])
        self.buffer.listed[0] = 0
        self.buffer = self.buffer._replace(
            match_id=np.empty(size, np.int64), before=self.buffer.before + used
        )

    def result(self, counters: np.ndarray) -> ProbeResult:
        """Return the matches of all rows; *counters* are of all work but the matches themselves."""
        buffer = self.buffer
        listed = buffer.match_id[: buffer.listed[0]]
        if self._full:
            listed = np.concatenate([*self._full, listed])
        counters[MATCHES] = buffer.before + buffer.listed[0]
        return ProbeResult(
            count=buffer.matches,
            fingerprint=buffer.fingerprint,
            match_id=listed if self._enumerate else None,
            work=Work.from_counters(counters),
        )


ProbeStep = Callable[[int, MatchBuffer, np.ndarray], int]
"""Probes from a row on until the buffer is full, counting its work in the array (`COUNTERS`).
Returns the row that it came to; ``matches`` need not be counted."""


def find_matches(
    step: ProbeStep,
    rows: int,
    *,
    enumerate: bool,
    most: np.ndarray | None = None,
    counters: np.ndarray | None = None,
) -> ProbeResult:
    """Return the matches of all *rows* of probes, calling *step* until it has come to their end.

    *most* is how many matches each row has at the most; None starts with a short list. *counters*
    are what was counted before, and go on counting; None begins at zero.
    """
    room = int(most.sum()) if enumerate and most is not None else None
    matches = MatchList(rows, enumerate=enumerate, room=room)
    if counters is None:
        counters = new_counters()
    row = step(0, matches.buffer, counters)
    while row < rows:
        matches.add_chunk()
        row = step(row, matches.buffer, counters)
    return matches.result(counters)


def order_by_row(
    match_id: np.ndarray, rows: np.ndarray, counts: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Bring listed ids into the order of rows.

    *match_id* has counts[0] ids of row rows[0], then counts[1] of row rows[1] and so on; *count*
    is how many each row has in all.
    """
    ordered = np.empty_like(match_id)
    _place_rows(match_id, rows, counts, np.cumsum(count) - count, ordered)
    return ordered


def _add_rows(
    parts: Sequence[Matches | ProbeResult],
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return count, fingerprint and ids of each row over all parts; within a row in their order."""
    if len(parts) == 1:
        return parts[0].count, parts[0].fingerprint, parts[0].match_id
    count = np.sum([part.count for part in parts], axis=0)
    fingerprint = np.add.reduce([part.fingerprint for part in parts])
    listed = [part.match_id for part in parts if part.match_id is not None]
    if len(listed) < len(parts):
        return count, fingerprint, None
    rows, ends = np.arange(len(count)), np.cumsum(count)
    cursor = ends - count
    ordered = np.empty(ends[-1] if len(ends) else 0, np.int64)
    for part, ids in zip(parts, listed, strict=True):
        _place_rows(ids, rows, part.count, cursor, ordered)
    return count, fingerprint, ordered


@kernel
def _add_pairs(
    row: np.ndarray,
    match_id: np.ndarray,
    repeats: np.ndarray,
    count: np.ndarray,
    fingerprint: np.ndarray,
) -> None:
    at = 0
    for i in range(len(match_id)):
        mixed = splitmix64(match_id[i])
        for _ in range(repeats[i]):
            count[row[at]] += 1
            fingerprint[row[at]] += mixed
            at += 1


@kernel
def _place_rows(
    match_id: np.ndarray,
    rows: np.ndarray,
    counts: np.ndarray,
    cursor: np.ndarray,
    ordered: np.ndarray,
) -> None:
    """Copy the ids of each row to where its cursor is, and move the cursor past them."""
    taken = 0
    for i in range(len(rows)):
        to = cursor[rows[i]]
        for k in range(counts[i]):
            ordered[to + k] = match_id[taken + k]
        cursor[rows[i]] += counts[i]
        taken += counts[i]
