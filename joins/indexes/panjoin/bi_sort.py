"""BI-Sort: Buffered Indexed Sort (section III-D), and the records it answers with.

The subwindow is one sorted array, the main array. A small insertion buffer spares most insertions
from moving it, and an index array of every so many keys spares most searches from reading it.

Two things differ from the paper. Its buffer is unsorted and scanned by every probe; batches come
sorted, so that merging them into a sorted buffer costs next to nothing, and a probe then searches
the buffer as it does the main array: the buffer may be large, and a range in it is a record too.
And inside a partition the paper goes through tuples and probes in one merging loop; here each probe
counts the keys of its partition that are less, eight in an instruction and without a branch to
predict. The tuples read are the same ones. Where matches are counted, a range's end is not searched
for: it is counted beside the beginning, and if it lies beyond the partition, keys are compared from
there on, sixteen at a time.

In order of appearance: the arrays, the structure, records, and the kernels that search the arrays,
count what is in a range, and list it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.hashing import splitmix64
from joins.indexes.index import Ranges
from joins.indexes.panjoin.lookup import BLOCK, Lookup, match_places, sees_nothing
from joins.indexes.sorted_array import AT_ONCE, SortedRun, merge, nearest_key, rebound, rebound_all
from joins.machine.compiling import inlined, kernel, part_of
from joins.machine.instructions import prefetch_entry
from joins.machine.lanes import LANES, lanes_less
from joins.machine.memory import LINE, aligned
from joins.state import State, Stateful, storable
from joins.work import COMPARISONS, MATCHES, MOVES, Work, new_counters

BUFFER_SHARE = 32
BUFFER_MOST = 32_768
"""The insertion buffer has room for this part of a subwindow, and for no more than so many tuples:
measured with windows of 2^20 tuples (benchmarks/panjoin.py), where merging a batch into the buffer
and the buffer into the main array then cost about the same."""

CHUNK = LANES
"""Keys that a scan compares without a branch in between; partitions are whole numbers of them."""

_NARROW = np.iinfo(np.int32)
_SCANNED = 4 * CHUNK
"""Keys of a partition that are scanned; a wider one is first narrowed down by halving."""
_ENTRIES_A_LINE = 2 * LINE
"""Keys or places of 32 bits in a cache line."""
_AHEAD = 8
"""Probes whose partitions are prefetched: prefetching all at once would lose most requests."""
_LIKELY = 4
"""Tuples that a range is assumed to have when its places are prefetched."""
_FEW = 8
"""Tuples of a range that are looked at without a branch."""
_RARE = 8
"""Fewer than one match in so many probes: most ranges are empty, which a branch then predicts."""


class Arrays(NamedTuple):
    """The sorted arrays of a BI-Sort.

    Behind the last tuple the keys of both runs are the greatest integer, in the main array at least
    one partition of them, so that scans need not look for the end. Keys are int32 while all of them
    fit (`_fit`), which halves what is read, else int64.
    """

    main: SortedRun
    buffer: SortedRun
    """The main array and the insertion buffer."""
    sampled: np.ndarray
    """Shape (1, P), the index array: the key of every *step*-th tuple of the main array."""
    step: int
    """Tuples in a partition, a multiple of `CHUNK`."""
    partitions: int
    """Entries of the index array in use."""


class ProbeSpans(NamedTuple):
    """Where the ranges of probes lie in the arrays, int64 columns; ends are exclusive."""

    main_begin: np.ndarray
    main_end: np.ndarray
    buffer_begin: np.ndarray
    buffer_end: np.ndarray


@storable
@dataclass(frozen=True, slots=True)
class Records:
    """⟨start, end⟩ records: the answer of a BI-Sort without its tuples.

    A record is a run of places in a sorted array, so that its size does not depend on how many
    tuples match. A mirror, which has the same arrays, can turn it back into tuples.
    """

    places: np.ndarray
    """int32, shape (4, probes): the `ProbeSpans` of each probe's range."""
    negated: bool
    """The label *not*: the answer is what lies outside the records."""

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the records, and a bit for the label."""
        return self.places.nbytes + 1

    @property
    def lengths(self) -> int:
        """Tuples in all records together."""
        return int((self.places[1::2] - self.places[::2]).sum(dtype=np.int64))


class BiSort(Stateful):
    """The sorted tuples of a subwindow.

    Parameters
    ----------
    capacity
        N_Sub, the most tuples.
    partitions
        P, the most entries of the index array.
    buffer
        Room of the insertion buffer; None takes a share of the capacity.
    """

    def __init__(self, capacity: int, partitions: int, buffer: int | None = None) -> None:
        if buffer is None:
            buffer = min(max(1, capacity // BUFFER_SHARE), BUFFER_MOST)
        self._made_of = capacity, partitions, buffer
        self._main: SortedRun
        self._buffer: SortedRun
        self._allocate(np.dtype(np.int32))

    def __len__(self) -> int:
        return sum(self.sizes)

    @property
    def sizes(self) -> tuple[int, int]:
        """Tuples in the main array and in the buffer."""
        return self._main.size, self._buffer.size

    @property
    def partitioning(self) -> tuple[int, int]:
        """How many tuples wide a partition of the main array is, and how many there are."""
        return self._step, self._partitions

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Insert a batch in ascending order: into the buffer if it fits, else the main array.

        Both are merges, counted as the keys that they compare and the entries that they move.
        """
        counters = new_counters()
        if not _fit(codes, self._main.keys.dtype):
            self._fill(self.snapshot(), np.dtype(np.int64), counters)
            counters[MOVES] += len(self)
        *_, room = self._made_of
        new = len(codes)
        if self._buffer.size + new > room:
            self._empty_buffer(counters)
        keys = codes.reshape(1, -1).astype(self._main.keys.dtype, copy=False)
        batch = SortedRun(keys, places.reshape(1, -1), new)
        if new > room:
            self._merge_into_main(batch, counters)
        else:
            merge(self._buffer, batch, counters)
            self._buffer = self._buffer._replace(size=self._buffer.size + new)
        return Work.from_counters(counters)

    def seal(self) -> Work:
        """Merge the buffer into the main array."""
        counters = new_counters()
        self._empty_buffer(counters)
        return Work.from_counters(counters)

    def answer(self, lookup: Lookup, begin: int, end: int) -> None:
        """Answer probes *begin* to *end*."""
        spans = ProbeSpans(*np.empty((len(ProbeSpans._fields), BLOCK), np.int64))
        _answer(self._arrays, lookup, spans, begin, end)

    def find_records(self, ranges: Ranges) -> tuple[Records, Work]:
        """Return the records of probes; the work does not depend on how many tuples match."""
        counters = new_counters()
        count = ranges.low.shape[1]
        places = np.empty((len(ProbeSpans._fields), count), np.int64)
        _search(self._arrays, ranges, 0, count, ProbeSpans(*places), counters)
        begin, end = places[::2], places[1::2]
        np.maximum(begin, end, out=end)
        records = Records(places.astype(np.int32), bool(ranges.negated[0]))
        return records, Work.from_counters(counters)

    def read_records(self, records: Records, lookup: Lookup) -> None:
        """Find the tuples that *records* of a BI-Sort with the same arrays mean.

        Windows and further predicates are those of the lookup's probes; their first ranges are not
        looked at.
        """
        negated = lookup.ranges.negated.copy()
        negated[0] = records.negated
        lookup = lookup._replace(ranges=lookup.ranges._replace(negated=negated))
        places = records.places.astype(np.int64)
        _match_spans(self._arrays, lookup, ProbeSpans(*places), 0, 0, places.shape[1])

    def snapshot(self) -> State:
        """Return the state as plain arrays and numbers."""
        runs = {"": self._main, "buffer_": self._buffer}
        return {
            "made_of": list(self._made_of),
            **{f"{name}keys": run.keys[0, : run.size].copy() for name, run in runs.items()},
            **{f"{name}places": run.places[0, : run.size].copy() for name, run in runs.items()},
        }

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned."""
        capacity, partitions, buffer = state["made_of"]
        self._made_of = capacity, partitions, buffer
        self._fill(state, state["keys"].dtype, new_counters())

    @property
    def _arrays(self) -> Arrays:
        return Arrays(self._main, self._buffer, self._sampled, self._step, self._partitions)

    def _allocate(self, dtype: np.dtype) -> None:
        """Replace the arrays by empty ones with keys of *dtype*."""
        capacity, partitions, buffer = self._made_of
        behind, greatest = _widest_partition(capacity, partitions), np.iinfo(dtype).max
        keys = aligned((1, capacity + behind), dtype, greatest)
        self._main = SortedRun(keys, aligned((1, capacity), "int32"), 0)
        keys = aligned((1, buffer + CHUNK), dtype, greatest)
        self._buffer = SortedRun(keys, np.empty((1, buffer), np.int32), 0)
        self._sampled = np.empty((1, partitions), dtype)
        self._step, self._partitions = CHUNK, 0

    def _fill(self, snapshot: State, dtype: np.dtype, counters: np.ndarray) -> None:
        """Replace the arrays by ones with keys of *dtype* that contain a snapshot."""
        self._allocate(dtype)
        self._main = _filled(self._main, snapshot["keys"], snapshot["places"])
        self._buffer = _filled(self._buffer, snapshot["buffer_keys"], snapshot["buffer_places"])
        self._sample(counters)

    def _empty_buffer(self, counters: np.ndarray) -> None:
        buffer = self._buffer
        if buffer.size:
            self._merge_into_main(buffer, counters)
            buffer.keys[:, : buffer.size] = np.iinfo(buffer.keys.dtype).max
            self._buffer = buffer._replace(size=0)

    def _merge_into_main(self, batch: SortedRun, counters: np.ndarray) -> None:
        merge(self._main, batch, counters)
        self._main = self._main._replace(size=self._main.size + batch.size)
        self._sample(counters)

    def _sample(self, counters: np.ndarray) -> None:
        """Fill in the index array."""
        size = self._main.size
        self._step = _widest_partition(size, self._sampled.shape[1])
        self._partitions = -(-size // self._step)
        self._sampled[0, : self._partitions] = self._main.keys[0, : size : self._step]
        counters[MOVES] += self._partitions


def _filled(run: SortedRun, keys: np.ndarray, places: np.ndarray) -> SortedRun:
    run.keys[0, : len(keys)], run.places[0, : len(keys)] = keys, places
    return run._replace(size=len(keys))


def _widest_partition(tuples: int, partitions: int) -> int:
    """Return how wide at most *partitions* partitions of so many tuples are."""
    return max(1, -(-tuples // (partitions * CHUNK))) * CHUNK


def _fit(codes: np.ndarray, dtype: np.dtype) -> bool:
    """Return whether ascending int64 *codes* can be keys of *dtype*.

    The greatest int32 is no key, but represents all codes beyond: none that is stored is as great.
    """
    return (
        dtype == np.int64
        or not len(codes)
        or bool(_NARROW.min <= codes[0] and codes[-1] < _NARROW.max)
    )


# Searching: which places of the arrays the ranges of probes take.


@inlined
def _partition_to_scan(arrays: Arrays, partition: int, target: int) -> tuple[int, int, int]:
    """Return where to scan for *target*, how many keys, and the comparisons of it all.

    So many entries of the index array as *partition* says are less than the target. The paper scans
    the partition; of a wide one a binary search first leaves a few chunks.
    """
    place, size, halvings = max(partition - 1, 0) * arrays.step, arrays.step, 0
    while size > _SCANNED:
        half = size // (2 * CHUNK) * CHUNK
        halvings += 1
        if arrays.main.keys[0, place + half] < target:
            place += half
            size -= half
        else:
            size = half
    # Counting has no branch to predict, and takes several keys in an instruction.
    return place, size, halvings + size // AT_ONCE


@inlined
def _first_place(arrays: Arrays, partition: int, target: int, counters: np.ndarray) -> int:
    """Return the first place with a key of at least *target*; see `_partition_to_scan`."""
    place, size, compared = _partition_to_scan(arrays, partition, target)
    counters[COMPARISONS] += compared
    first = place
    for chunk in range(place, place + size, CHUNK):
        first += lanes_less(arrays.main.keys, 0, chunk, target)
    return first


@inlined
def _prefetch_partition(
    arrays: Arrays, partitions: np.ndarray, column: int | np.int64, count: int
) -> None:
    """Prefetch the keys that `_partition_to_scan` will return `_AHEAD` columns on.

    *partitions* has *count* columns. The first one prefetches those until then as well.
    """
    for ahead in range(column + _AHEAD if column else 0, min(column + _AHEAD + 1, count)):
        place = max(partitions[ahead] - 1, 0) * arrays.step
        for line in range(0, min(arrays.step, _SCANNED), _ENTRIES_A_LINE):
            prefetch_entry(arrays.main.keys, 0, place + line)


@kernel
def _find_begins(
    arrays: Arrays, ranges: Ranges, begin: int, end: int, spans: ProbeSpans, counters: np.ndarray
) -> None:
    """Fill in where the ranges of probes *begin* to *end* (one block) begin.

    Column 0 of *spans* is that of probe *begin*.
    """
    main, buffer, low = arrays.main, arrays.buffer, ranges.low[0]
    begins = spans.main_begin
    rebound_all(arrays.sampled, arrays.partitions, low, begin, end, begins, counters)
    count = end - begin
    for column in range(count):
        _prefetch_partition(arrays, begins, column, count)
        target = nearest_key(main.keys, low[begin + column])
        begins[column] = _first_place(arrays, begins[column], target, counters)
        prefetch_entry(main.places, 0, begins[column])
        prefetch_entry(main.places, 0, begins[column] + _LIKELY)  # It may be in the next line.
    # Without anything in the buffer all of these are 0.
    rebound_all(buffer.keys, buffer.size, low, begin, end, spans.buffer_begin, counters)


@kernel
def _find_ends(
    arrays: Arrays, ranges: Ranges, begin: int, end: int, spans: ProbeSpans, counters: np.ndarray
) -> None:
    """Fill in where the ranges end whose beginnings `_find_begins` has filled in."""
    main, buffer = arrays.main, arrays.buffer
    for row in range(begin, end):
        column, high = row - begin, ranges.high[0, row]
        if ranges.low[0, row] > high:
            spans.main_begin[column] = spans.main_end[column] = 0
            spans.buffer_begin[column] = spans.buffer_end[column] = 0
        elif high == GREATEST:
            spans.main_end[column], spans.buffer_end[column] = main.size, buffer.size
        else:
            past = high + 1
            hint = min(spans.main_begin[column] // arrays.step, arrays.partitions)
            partition = rebound(arrays.sampled, arrays.partitions, hint, past, counters)
            target = nearest_key(main.keys, past)
            spans.main_end[column] = _first_place(arrays, partition, target, counters)
            spans.buffer_end[column] = rebound(
                buffer.keys, buffer.size, spans.buffer_begin[column], past, counters
            )


@part_of
def _spans_from(spans: ProbeSpans, column: int) -> ProbeSpans:
    """Return the columns of *spans* from one on."""
    return ProbeSpans(
        spans.main_begin[column:],
        spans.main_end[column:],
        spans.buffer_begin[column:],
        spans.buffer_end[column:],
    )


@kernel
def _search(
    arrays: Arrays, ranges: Ranges, begin: int, end: int, spans: ProbeSpans, counters: np.ndarray
) -> None:
    """Fill in the spans of probes *begin* to *end*; *begin* is a multiple of `BLOCK`."""
    for block in range(begin, end, BLOCK):
        block_end, columns = min(block + BLOCK, end), _spans_from(spans, block)
        _find_begins(arrays, ranges, block, block_end, columns, counters)
        _find_ends(arrays, ranges, block, block_end, columns, counters)


# Counting, where ranges and windows are all there is. In a batch that is small beside the window
# each probe waits for cache lines that no other reads. So they are prefetched, and none is touched
# but those of a range: both its ends are counted in the keys of one partition, and its places are
# looked at within one line.


@inlined
def _first_above(run: SortedRun, place: int, high: int) -> int:
    """Return the first place, from *place* on, with a key above *high*."""
    if high == GREATEST:
        return run.size
    target = nearest_key(run.keys, high + 1)
    less = LANES
    while less == LANES and place < run.size:
        less = lanes_less(run.keys, 0, place, target)
        place += less
    return min(place, run.size)


@kernel
def _find_in_main(
    arrays: Arrays, ranges: Ranges, begin: int, end: int, spans: ProbeSpans, counters: np.ndarray
) -> None:
    """Fill in the spans of a block of probes in the main array.

    Both ends are counted in the keys of one partition; few ranges reach beyond it.
    """
    main, low = arrays.main, ranges.low[0]
    begins, ends = spans.main_begin, spans.main_end
    rebound_all(arrays.sampled, arrays.partitions, low, begin, end, begins, counters)
    count, compared = end - begin, 0
    for column in range(count):
        _prefetch_partition(arrays, begins, column, count)
        high = ranges.high[0, begin + column]
        first = nearest_key(main.keys, low[begin + column])
        past = nearest_key(main.keys, min(high, GREATEST - 1) + 1)
        scanned, size, steps = _partition_to_scan(arrays, begins[column], first)
        start = stop = chunk = scanned
        while chunk < scanned + size:
            start += lanes_less(main.keys, 0, chunk, first)
            stop += lanes_less(main.keys, 0, chunk, past)
            chunk += CHUNK
        if stop == scanned + size or high == GREATEST:
            stop = _first_above(main, stop, high)
        prefetch_entry(main.places, 0, start)
        prefetch_entry(main.places, 0, max(stop - 1, start))
        begins[column], ends[column] = start, stop
        compared += steps
    counters[COMPARISONS] += compared


@kernel
def _find_in_buffer(
    arrays: Arrays, ranges: Ranges, begin: int, end: int, spans: ProbeSpans, counters: np.ndarray
) -> None:
    """Fill in the spans of a block of probes in the insertion buffer."""
    buffer, begins = arrays.buffer, spans.buffer_begin
    rebound_all(buffer.keys, buffer.size, ranges.low[0], begin, end, begins, counters)
    for column in range(end - begin):
        high = ranges.high[0, begin + column]
        spans.buffer_end[column] = _first_above(buffer, begins[column], high)


@kernel
def _count_span(
    places: np.ndarray, begins: np.ndarray, ends: np.ndarray, lookup: Lookup, begin: int, end: int
) -> None:
    """Count the matches in the ranges of a block of ranges.

    How many tuples are in a short range no branch predicts. So `_FEW` are looked at for each,
    several in an instruction, and those that do not count are masked. They begin where they stay
    within a cache line if the range does. Keys are not compared any more: what this takes is in
    what matches cost.
    """
    ranges, stored, buffer = lookup.ranges, lookup.stored, lookup.buffer
    read = 0
    for column in range(end - begin):
        read += max(ends[column] - begins[column], 0)
    rare = read * _RARE < end - begin
    # A number that the compiler does not know: else it would unroll the loop over it.
    few = min(_FEW, places.shape[1])
    last, total = places.shape[1] - few, np.int64(0)
    for column in range(end - begin):
        first, count = begins[column], max(ends[column] - begins[column], 0)
        if rare and count == 0:
            continue
        row = begin + column
        if count > few:
            match_places(lookup, row, places, 0, first, first + count)
            continue
        line = first & -_ENTRIES_A_LINE
        inside_line = min(first, line + _ENTRIES_A_LINE - _FEW)
        base = min(inside_line if first + count <= line + _ENTRIES_A_LINE else first, last)
        skipped, past = first - base, first - base + count
        start, stop = ranges.start[row], ranges.stop[row]
        matches, fingerprint = np.uint64(0), np.uint64(0)
        for i in range(few):
            position = stored.first + places[0, base + i]
            inside = np.uint64(i >= skipped) & np.uint64(i < past)
            seen = inside & np.uint64(position >= start) & np.uint64(position < stop)
            matches += seen
            fingerprint += splitmix64(position) & (np.uint64(0) - seen)
        buffer.matches[row] += np.int64(matches)
        buffer.fingerprint[row] += fingerprint
        total += np.int64(matches)
    lookup.counters[MATCHES] += total


@kernel
def _count_block(arrays: Arrays, lookup: Lookup, spans: ProbeSpans, begin: int, end: int) -> None:
    """Count the matches of a block of probes without further predicates."""
    main, buffer = arrays.main, arrays.buffer
    _find_in_main(arrays, lookup.ranges, begin, end, spans, lookup.counters)
    _count_span(main.places, spans.main_begin, spans.main_end, lookup, begin, end)
    if buffer.size:
        _find_in_buffer(arrays, lookup.ranges, begin, end, spans, lookup.counters)
        _count_span(buffer.places, spans.buffer_begin, spans.buffer_end, lookup, begin, end)


# Matching tuple by tuple.


@inlined
def _match_run(run: SortedRun, lookup: Lookup, row: int, first: int, last: int) -> None:
    """Add to a probe's matches what lies in a range of places, or outside if that is wanted."""
    if not lookup.ranges.negated[0]:
        match_places(lookup, row, run.places, 0, first, last)
    else:
        match_places(lookup, row, run.places, 0, 0, first)
        match_places(lookup, row, run.places, 0, last, run.size)


@kernel
def _match_spans(
    arrays: Arrays, lookup: Lookup, spans: ProbeSpans, base: int, begin: int, end: int
) -> None:
    """Turn the spans of probes *begin* to *end* into matches.

    Column 0 of *spans* is that of probe *base*.
    """
    for row in range(begin, end):
        if sees_nothing(lookup, row):
            continue
        column = row - base
        first, last = spans.main_begin[column], spans.main_end[column]
        _match_run(arrays.main, lookup, row, first, last)
        first, last = spans.buffer_begin[column], spans.buffer_end[column]
        _match_run(arrays.buffer, lookup, row, first, last)


@kernel
def _answer(arrays: Arrays, lookup: Lookup, spans: ProbeSpans, begin: int, end: int) -> None:
    """Answer probes *begin* to *end*; *spans* has room for those of a block."""
    ranges = lookup.ranges
    is_counted = len(ranges.negated) == 1 and not ranges.negated[0]
    for block in range(begin, end, BLOCK):
        block_end = min(block + BLOCK, end)
        if is_counted and len(lookup.next_id) == 0:
            _count_block(arrays, lookup, spans, block, block_end)
        else:
            _find_begins(arrays, ranges, block, block_end, spans, lookup.counters)
            _find_ends(arrays, ranges, block, block_end, spans, lookup.counters)
            _match_spans(arrays, lookup, spans, block, block, block_end)
