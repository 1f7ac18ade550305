"""Put every structure to work as in a join; measure what its operations take, and their work.

A `Workload` is one structure at work as in a join: it has a size in tuples, and takes a batch at a
time. `measure` times each of its steps by processor time. The data are random, uniform, and equal
on every machine; a probe has a few matches whatever the size.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from joins.batch import Batch, Schema
from joins.bit_array import intersect, keep_window, read_matches
from joins.hashing import mix
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.immutable.order_arrays import offset, permutation
from joins.indexes.immutable.segments import SEGMENTS
from joins.indexes.index import Ranges
from joins.indexes.panjoin.subwindow import STRUCTURES, Subwindow, SubwindowShape
from joins.indexes.windows.window_indexes import WINDOW_INDEXES
from joins.interval_join import IntervalJoin
from joins.queries.conditions import COMPARISONS, Condition
from joins.queries.parser import parse_query
from joins.window_join.registry import INDEXES, Making
from joins.work import NO_WORK, Work
from scenarios.calibration.window_joins import band_join, band_of, uniform_keys

SIZES = tuple(1 << bits for bits in range(10, 23, 2))
"""Tuples that a structure has while it is measured."""
BATCHES = (1, 32, 1024)
"""Tuples of a batch."""
MATCHES = (2, 64)
"""Matches of a probe, about."""
_PARTS = 20
"""Sub-indexes of a chain, as in `benchmarks.window_indexes`."""
_SPACE_BITS = 40
"""Values are uniform in 0 to 2^40 - 1."""
_WARM_UP, _SECONDS, _ROUNDS = 2, 0.04, 3
"""Rounds that are not timed; what the others take together at least, and how many they are."""
_FILL_ROWS = 8192

Step = tuple[str, Callable[[], Any]]
"""An operation's name, and what carries it out: it returns its `Work`, or what has it as `work`."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A structure at work.

    Attributes
    ----------
    structure
        Its name.
    rounds
        Takes a size, a batch, and how many matches a probe has, and yields rounds of steps without
        end; the steps of a round are carried out before the next one is asked for.
    most
        Largest size that is measured: where a probe passes all tuples, or filling takes minutes.
    """

    structure: str
    rounds: Callable[[int, int, int], Iterator[Sequence[Step]]]
    most: int = SIZES[-1]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What calls of one operation of a structure took, and counted.

    Attributes
    ----------
    structure, step
        Names, as of ``po_join`` and ``probe``.
    size, batch, matches
        Tuples in the structure, tuples of a call, and matches of a probe.
    calls
        How many calls.
    work, seconds
        Of all of them together; processor time.
    """

    structure: str
    step: str
    size: int
    batch: int
    matches: int
    calls: int
    work: Work
    seconds: float

    @property
    def name(self) -> str:
        """The operation, as a cost profile names it."""
        return f"{self.structure}.{self.step}"

    @property
    def call_seconds(self) -> float:
        """Processor time of a call."""
        return self.seconds / self.calls


def measure(workload: Workload, size: int, batch: int, matches: int) -> list[Sample]:
    """Return a sample of every step of *workload*."""
    taken: dict[str, list[tuple[float, Work]]] = defaultdict(list)
    timed = 0.0
    for number, steps in enumerate(workload.rounds(size, batch, matches), start=-_WARM_UP):
        for name, function in steps:
            started = time.thread_time()
            result = function()
            seconds = time.thread_time() - started
            if number >= 0:
                work = result if isinstance(result, Work) else result.work
                taken[name].append((seconds, work))
                timed += seconds
        if number + 1 >= _ROUNDS and timed >= _SECONDS * len(taken):
            break
    return [
        Sample(
            structure=workload.structure,
            step=name,
            size=size,
            batch=batch,
            matches=matches,
            calls=len(calls),
            work=sum((work for _, work in calls), NO_WORK),
            seconds=sum(seconds for seconds, _ in calls),
        )
        for name, calls in taken.items()
    ]


def measure_all(
    sizes: Sequence[int] = SIZES,
    batches: Sequence[int] = BATCHES,
    matches: Sequence[int] = MATCHES,
    *,
    passes: int = 1,
) -> list[Sample]:
    """Return samples of every structure at every size, batch and number of matches.

    In several *passes* each is measured again, minutes later, and the least time counts: whatever
    else the machine does meanwhile only adds to it.
    """
    least: dict[tuple[str, str, int, int, int], Sample] = {}
    for _, workload, size in product(range(passes), workloads(), sizes):
        for batch, matched in product(batches, matches) if size <= workload.most else ():
            for sample in measure(workload, size, batch, matched):
                case = (sample.structure, sample.step, size, batch, matched)
                if case not in least or sample.call_seconds < least[case].call_seconds:
                    least[case] = sample
    return list(least.values())


def workloads() -> list[Workload]:
    """Return every structure that a system is made of, at work."""
    return [
        *map(_window_index, WINDOW_INDEXES),
        *map(_segment, SEGMENTS),
        *map(_subwindow, STRUCTURES),
        *map(_window_join, INDEXES),
        Workload(structure="predicate_tree", rounds=_predicate_tree, most=1 << 18),
        Workload(structure="order_arrays", rounds=_order_arrays),
        Workload(structure="interval_join", rounds=_interval_join),
    ]


def _column(name: int, first: int, count: int) -> np.ndarray:
    """Return the values, int64, of the tuples from *first* on in one of two columns."""
    mixed = mix(np.arange(first, first + count) ^ (name << 50))
    return (mixed >> np.uint64(64 - _SPACE_BITS)).astype(np.int64)


def _columns(first: int, count: int) -> list[np.ndarray]:
    return [_column(0, first, count), _column(1, first, count)]


def _band(
    columns: Sequence[np.ndarray], size: int, matches: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return ranges that fit *matches* of *size* tuples: a band of x, and any lower y."""
    x, y = columns
    reach = (1 << _SPACE_BITS) * matches // size
    return [x - reach, np.zeros_like(y)], [x + reach, y]


def _window_index(name: str) -> Workload:
    """Slide a window by a batch."""
    hashed = name == "hash"
    symbols = ("=" if hashed else "<", "<")
    conditions = [
        Condition(probe_field=f, stored_field=f, operator=COMPARISONS[symbol], dtype="int64")
        for f, symbol in zip("xy", symbols, strict=True)
    ]

    def columns_of(first: int, count: int, keys: int) -> list[np.ndarray]:
        x, y = _columns(first, count)
        return [x % keys if hashed else x, y]

    def rounds(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
        keys = max(1, size // (2 * matches))
        options = {"length": max(1, size // _PARTS)} if name == "chain_index" else {}
        index = WINDOW_INDEXES[name](conditions, **options)
        step = min(size, _FILL_ROWS)
        for first in range(0, size, step):
            index.insert(columns_of(first, step, keys), np.arange(first, first + step))
        first = size
        while True:
            columns = columns_of(first, batch, keys)
            positions = np.arange(first, first + batch)
            low, high = _band(columns, size, matches)
            if hashed:
                low[0] = high[0] = columns[0]
            ranges = Ranges(low, high, None, positions - size, positions)
            yield [
                ("insert", partial(index.insert, columns, positions)),
                ("probe", partial(index.probe, ranges)),
                ("expire", partial(index.expire, first + batch - size)),
            ]
            first += batch

    scans = name in ("nested_loop", "ie_join")
    return Workload(structure=name, rounds=rounds, most=1 << 16 if scans else SIZES[-1])


def _segment(name: str) -> Workload:
    """Seal and probe an epoch, made of what a merge sends."""

    def rounds(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
        columns = _columns(0, size)
        orders = [np.argsort(column, kind="stable") for column in columns]
        parts = (
            [column[order] for column, order in zip(columns, orders, strict=True)],
            orders[0],
            [permutation(orders[0], orders[1], first=0)[0]],
        )
        segment, first = SEGMENTS[name](*parts, first=0), size
        while True:
            ranges = Ranges(*_band(_columns(first, batch), size, matches))
            yield [
                ("seal", partial(SEGMENTS[name], *parts, first=0)),
                ("probe", partial(segment.probe, ranges)),
            ]
            first += batch

    return Workload(structure=name, rounds=rounds, most=1 << 20)


def _subwindow(name: str) -> Workload:
    """Fill a subwindow from *size* tuples to twice as many, and begin again."""

    def rounds(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
        shape = SubwindowShape(
            dtypes=("int64",),
            capacity=2 * size + 8192,
            partitions=max(16, size // 64),
            sigma=1.25,
        )
        while True:
            subwindow = Subwindow(shape, name, first=0)  # type: ignore[arg-type]
            step = min(size, _FILL_ROWS)
            for first in range(0, size, step):
                _insert_sorted(subwindow, first, step)
            for first in range(size, 2 * size + 1, batch):
                x = np.sort(_column(0, 1 << 30 | first, batch))
                reach = (1 << _SPACE_BITS) * matches // (4 * size)
                yield [
                    ("insert", partial(_insert_sorted, subwindow, first, batch)),
                    ("probe", partial(subwindow.probe, Ranges([x - reach], [x + reach]))),
                ]

    return Workload(structure=name, rounds=rounds, most=1 << 20)


def _insert_sorted(subwindow: Subwindow, first: int, count: int) -> Work:
    values = _column(0, first, count)
    order = np.argsort(values)
    return subwindow.insert([values[order]], first + order)


def _window_join(name: str) -> Workload:
    """PIM-Tree's workload: probe, insert and expire, tuple by tuple or in batches."""

    def rounds(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
        join = Making(index=name).make(self_join=False, unit_ps=None)  # type: ignore[arg-type]
        rows = band_join(uniform_keys(8 * size + (1 << 16)), band_of(size) * matches // 2, size)
        filling = 2 * size
        seen = rows._replace(stop=np.where(np.arange(len(rows.side)) < filling, 0, rows.stop))
        for begin in range(0, filling, _FILL_ROWS):
            join.join(seen.part(begin, min(filling, begin + _FILL_ROWS)))
        for begin in range(filling, len(rows.side) - batch, batch):
            yield [("join", partial(join.join, rows.part(begin, begin + batch)))]

    return Workload(
        structure=f"ibwj_{name}", rounds=rounds, most=1 << 14 if name == "nested_loop" else 1 << 20
    )


def _predicate_tree(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
    """Work as the mutable component of SPO-Join: a tree a predicate, and its bit arrays."""
    tree, first = BPlusTree(), size
    tree.insert(_column(0, 0, size), np.arange(size))
    other = np.full((batch, -(-size // 64)), ~np.uint64(0))
    start, stop = np.zeros(batch, np.int64), np.full(batch, size)
    while True:
        low = _column(0, first, batch)
        high = low + (1 << _SPACE_BITS) * matches // 128
        marked, _ = tree.mark(low, high, base=0, bits=size)
        fresh = np.arange(first, first + batch)
        yield [
            ("insert", partial(tree.insert, low, fresh)),
            ("delete", partial(tree.delete, low, fresh)),
            ("mark", partial(_second, tree.mark, low, high, base=0, bits=size)),
            ("clear", partial(_second, keep_window, marked, start, stop, base=0)),
            ("intersect", partial(_second, intersect, [marked, other])),
            ("read", partial(read_matches, marked, base=0)),
            ("scan", partial(_last, tree.scan)),
        ]
        first += batch


def _order_arrays(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
    """Compute what a merge does from sorted runs."""
    orders = [np.argsort(column, kind="stable") for column in _columns(0, size)]
    runs = [np.sort(_column(0, 0, size)), np.sort(_column(1, 0, size))]
    while True:
        yield [
            ("permutation", partial(_second, permutation, *orders, first=0)),
            ("offset", partial(_second, offset, *runs)),
        ]


def _second(function: Callable[..., Any], *args: Any, **options: Any) -> Work:
    work: Work = function(*args, **options)[1]
    return work


def _last(function: Callable[..., Any]) -> Work:
    work: Work = function()[-1]
    return work


def _interval_join(size: int, batch: int, matches: int) -> Iterator[Sequence[Step]]:
    """Two streams, a tuple a microsecond in each, with as many stored tuples as *size*."""
    reach = size // 2
    query = parse_query(
        "SELECT * FROM A, B WHERE A.key = B.key AND B.ts BETWEEN "
        f"A.ts - INTERVAL '{reach} us' AND A.ts + INTERVAL '{reach} us'"
    )
    schemas = [Schema(stream=name, fields={"key": "int64"}) for name in query.streams]
    join, first = IntervalJoin(query, schemas), 0
    keys = max(1, size // matches)
    while True:
        rows = batch if first >= 2 * size else max(batch, min(size, _FILL_ROWS))
        steps = []
        for stream in (0, 1):
            at = np.arange(first, first + rows)
            key = _column(stream, first, rows) % keys
            part = Batch(id=at, ts=at * 1000, key=key, fields={"key": key})
            own, mark = np.ones(rows, np.bool_), first * 1000
            steps.append((join, stream, part, own, mark))
        first += rows
        todo = [
            ("join", partial(j.join, s, p, o, watermark=w, low_watermark=w))
            for j, s, p, o, w in steps
        ]
        if first <= 2 * size:
            for _, function in todo:
                function()
        else:
            yield todo
