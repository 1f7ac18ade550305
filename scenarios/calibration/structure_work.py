"""Measure what the steps of every structure take, at work as in a join, and the work they count.

A `Workload` is one structure at work as in a join: filled to a size in tuples, it takes a batch at
a time. `measure` times each of its steps by processor time. The data are random, uniform, and equal
on every machine; a probe has a few matches whatever the size. A structure that has settings on
which its work depends (the width of partitions, the length of a chain, when to merge) is measured
in several variants, which separates what a unit of each kind of work costs from what a call costs.
Calls of a window join cannot separate its steps, as every tuple is both searched for and inserted:
the steps of joins over trees are measured by themselves, too.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import compress, count, product
from math import inf
from typing import Any, NamedTuple

import numpy as np

from joins.batch import Batch, Schema
from joins.bit_array import intersect, keep_window, read_matches
from joins.hashing import mix
from joins.id_sets import intersect_ids
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.immutable.order_arrays import offset, permutation
from joins.indexes.index import make_ranges
from joins.indexes.panjoin.subwindow import STRUCTURES, Subwindow, SubwindowShape, probe_subwindows
from joins.indexes.pim_tree.pim_tree import SHARED_MERGE_RATIO
from joins.indexes.structures import SEGMENTS, WINDOW_INDEXES, make_window_index
from joins.interval_join import IntervalJoin
from joins.queries.conditions import OPERATORS, Condition
from joins.queries.parser import parse_query
from joins.window_join.window_join_spec import INDEXES, SHARED, WindowJoinSpec
from joins.work import ELAPSED_NS, NO_WORK, Step, Work
from scenarios.calibration.window_workload import WindowSteps, WindowWorkload
from scenarios.machine import MachinePace, without_collections

SIZES = tuple(1 << bits for bits in (6, 8, 10, 12, *range(14, 23)))
"""Tuples that a structure has while it is measured: closer where it outgrows a cache."""
BATCHES = (1, 16, 128, 1024, 16_384, 131_072)
"""Tuples of a batch."""
_USUAL_BATCH, _LARGE_BATCH = 1024, BATCHES[-1]
"""Most tuples of a batch that are measured: of most structures, and of those that figures fill in
large batches."""
MATCHES = (2, 64)
"""Matches of a probe, about."""
_SCANNED = 1 << 26
"""Most tuples that a batch passes, where a probe passes all."""
_WIDTH = 64
"""Tuples of a partition of a subwindow."""
_PARTS = 20
"""Sub-indexes of a chain, as in `benchmarks.window_indexes`."""
_SPACE_BITS = 40
"""Values are uniform in 0 to 2^40 - 1."""
VARIANT_SIZES = tuple(1 << bits for bits in (10, 14, 18))
"""Sizes at which variants are measured."""
_STEPS_SIZES = tuple(1 << bits for bits in (14, 16, 18, 20))
"""Sizes at which steps of a window join are measured by themselves: long enough calls for it."""
_INDEXES_IN_STEPS = ("b_plus_tree", "im_tree", "pim_tree")
_WARM_UP, _SECONDS, _ROUNDS = 2, 0.02, 3
"""Rounds that are not timed; what the others take together at least, and how many they are."""
_PATIENCE = 8
"""How many times as long a structure is timed that merges now and then, until it has twice."""
_MORE_PASSES = 3
"""How often what others have disturbed is measured once more, at the most."""
_RARE = 8
"""A call includes a merge if it counted so many times as much work as the median call."""
_FILL_ROWS = 8192

Operation = tuple[str, Callable[[], Any]]
"""An operation's name, and what carries it out: it returns its `Work`, or what has it as `work`."""
Rounds = Callable[[int, int], Sequence[Operation]]
"""Takes a batch, and how many matches a probe has; returns the operations of the next round. They
are carried out before the next one is asked for."""


class Filled(NamedTuple):
    """A structure that has its tuples: what it does round by round, and how many bytes it is."""

    rounds: Rounds
    nbytes: int


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A structure at work."""

    structure: str
    """Its name."""
    fill: Callable[[int], Filled]
    """Takes a size; returns a structure that has as many tuples, ready to work."""
    variant: str = ""
    """In what it differs from the structure as it usually is; empty if in nothing."""
    most: int = SIZES[-1] * _LARGE_BATCH
    """Largest size times batch that is measured: where a probe passes all tuples."""
    longest: int = _USUAL_BATCH
    """Largest batch that is measured. One above the usual is no larger than the structure, which
    else would grow by more than it was said to hold."""
    whole: bool = False
    """Its operations take all tuples, whatever the batch."""
    merges: bool = False
    """It merges now and then: calls in which it does are samples of their own."""

    def cases(
        self, size: int, batches: Sequence[int], matches: Sequence[int]
    ) -> list[tuple[int, int]]:
        """Return the batches, and the matches of a probe, that are measured at a *size*."""
        if self.whole:
            return [(size, matches[0])]
        longest = min(self.longest, max(size, _USUAL_BATCH), self.most // size)
        return [one for one in product(batches, matches) if one[0] <= longest]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What calls of one operation of a structure took, and counted."""

    step: Step
    """The operation, with its tuples and the structure's size."""
    variant: str = ""
    """In what it differed from the structure as it usually is."""
    matches: int
    """Of a probe, about."""
    nbytes: int
    """Of the structure, at its size."""
    rare: bool = False
    """Whether these are the calls with a merge."""
    is_part: bool = False
    """Whether these are steps of longer calls, to which neither the price of a call nor that of a
    tuple belongs."""
    calls: int
    """How many calls."""
    work: Work
    seconds: float
    """Of all of them together; processor time."""

    @property
    def call_seconds(self) -> float:
        """Processor time of a call."""
        return self.seconds / self.calls

    @property
    def case(self) -> tuple[Step, str, int, bool]:
        """What identifies it, however long it took."""
        return self.step, self.variant, self.matches, self.rare


def measure(
    workload: Workload, filled: Filled, size: int, batch: int, matches: int
) -> list[Sample]:
    """Return a sample of every operation of *workload*, which is *filled* to that *size*."""
    with without_collections():
        taken = _timed(workload, filled, size, batch, matches)
    samples = []
    for step, calls in taken.items():
        are_rare = _are_rare(calls) if workload.merges else np.zeros(len(calls), np.bool_)
        # The first merge is given memory that nothing has touched yet, which takes up to fifteen
        # times as long; all later ones in a run are given what earlier ones left.
        merging = list(compress(calls, are_rare))[1:]
        for rare, some in ((False, list(compress(calls, ~are_rare))), (True, merging)):
            if some:
                sample = Sample(
                    step=step,
                    variant=workload.variant,
                    matches=matches,
                    nbytes=filled.nbytes,
                    rare=rare,
                    calls=len(some),
                    work=sum((work for _, work in some), NO_WORK),
                    seconds=sum(seconds for seconds, _ in some),
                )
                samples.append(sample)
    return samples


def _timed(
    workload: Workload, filled: Filled, size: int, batch: int, matches: int
) -> dict[Step, list[tuple[float, Work]]]:
    """Return what each call of every operation took and counted, in turn."""
    taken: dict[Step, list[tuple[float, Work]]] = defaultdict(list)
    rows = size if workload.whole else batch
    timed, enough = 0.0, _SECONDS
    for number in count(-_WARM_UP):
        for name, function in filled.rounds(batch, matches):
            started = time.thread_time()
            result = function()
            seconds = time.thread_time() - started
            if number >= 0:
                work = result if isinstance(result, Work) else result.work
                step = Step(f"{workload.structure}.{name}", rows, size)
                taken[step].append((seconds, work))
                timed += seconds
        if number + 1 < _ROUNDS or timed < enough * len(taken):
            continue
        merged = not workload.merges or any(_are_rare(calls).sum() > 1 for calls in taken.values())
        if merged or enough >= _PATIENCE * _SECONDS:
            break
        enough *= 2
    return taken


def _are_rare(calls: Sequence[tuple[float, Work]]) -> np.ndarray:
    """Return for each call whether it counted far more work than the median call: a merge."""
    counted = np.array([sum(work[:ELAPSED_NS]) for _, work in calls])
    return np.asarray(counted > _RARE * np.median(counted))


def measure_all(
    sizes: Sequence[int] = SIZES,
    batches: Sequence[int] = BATCHES,
    matches: Sequence[int] = MATCHES,
    *,
    passes: int = 1,
    note: Callable[[str], None] = lambda line: None,
) -> list[Sample]:
    """Return samples of every structure at every size, batch and number of matches.

    In several *passes* each is measured again, minutes later, and the least time counts: whatever
    else the machine does meanwhile only adds to it. What was never measured while the machine was
    as fast as usual is measured some more times. *note* is called with what is next.
    """
    todo = [
        (workload, size, cases)
        for workload in workloads()
        for size in (sorted(set(sizes) & set(VARIANT_SIZES)) if workload.variant else sizes)
        if (cases := workload.cases(size, batches, matches))
    ]
    least: dict[tuple[Step, str, int, bool], Sample] = {}
    pace = MachinePace()
    paces_s = [inf] * len(todo)  # in the best of its passes
    noted = ""
    for number in range(1, passes + _MORE_PASSES + 1):
        for place, (workload, size, cases) in enumerate(todo):
            if number > passes and not pace.is_disturbed(paces_s[place]):
                continue
            what = f"{workload.structure}, pass {number} of {max(number, passes)}"
            if what != noted:
                noted = what
                note(what)
            filled = workload.fill(size)
            for sample in (one for case in cases for one in measure(workload, filled, size, *case)):
                before = least.get(sample.case, sample)
                least[sample.case] = min(before, sample, key=lambda one: one.call_seconds)
            paces_s[place] = min(paces_s[place], pace.after_work())
    steps = [
        sample
        for index in _INDEXES_IN_STEPS
        for size in sorted(set(sizes) & set(_STEPS_SIZES))
        for sample in steps_of_join(index, size)
    ]
    return [*least.values(), *steps]


def steps_of_join(index: str, size: int) -> list[Sample]:
    """Return what each step of a window join takes by itself, a batch at a time.

    Raise :exc:`AssertionError` when its matches are wrong: then its times are of no use.
    """
    steps = WindowSteps(index, size)
    assert steps.run(), f"{index}: wrong matches in a window of {size:,}"
    step = Step(f"ibwj_{index}.join", _USUAL_BATCH, size)
    return [
        Sample(
            step=step,
            variant=f"{name} by itself",
            matches=MATCHES[0],
            nbytes=0,  # whole calls have it
            is_part=True,
            calls=1,
            work=steps.work[name],
            seconds=seconds,
        )
        for name, seconds in steps.seconds.items()
    ]


def workloads() -> list[Workload]:
    """Return every structure that a system is made of, at work."""
    return [
        *map(_window_index, WINDOW_INDEXES),
        *map(_segment, SEGMENTS),
        *map(_sealing, SEGMENTS),
        *map(_subwindow, STRUCTURES),
        *(_subwindow(name, width) for name in STRUCTURES for width in (16, 256)),
        Workload(structure="bi_sort", fill=_sealing_bi_sort, whole=True),
        *(_window_join(f"ibwj_{index}", WindowJoinSpec(index=index)) for index in INDEXES),
        *(_window_join(f"ibwj_shared_{index}", replace(_SHARED, index=index)) for index in SHARED),
        *(
            _window_join(f"ibwj_{spec.index}", spec, f"{setting} {getattr(spec, setting)}")
            for setting, specs in _SETTINGS.items()
            for spec in specs
        ),
        Workload(structure="predicate_tree", fill=_predicate_tree, most=1 << 28),
        Workload(structure="predicate_tree", fill=_scan, whole=True),
        Workload(structure="bit_rows", fill=_bit_rows, most=1 << 28),
        Workload(structure="id_rows", fill=_id_rows, most=1 << 22),
        Workload(structure="order_arrays", fill=_order_arrays, whole=True),
        Workload(structure="interval_join", fill=_interval_join),
    ]


_SHARED = WindowJoinSpec(threads=1, merge_ratio=SHARED_MERGE_RATIO)
_SETTINGS: dict[str, list[WindowJoinSpec]] = {
    "merge_ratio": [
        WindowJoinSpec(index=index, merge_ratio=ratio)
        for index in ("pim_tree", "im_tree")
        for ratio in (1 / 32, 1 / 2)
    ],
    "insertion_depth": [WindowJoinSpec(insertion_depth=depth) for depth in (1, 3)],
    "chain_length": [
        WindowJoinSpec(index=index, chain_length=length)
        for index in ("ib_chain", "b_chain")
        for length in (4, 8)
    ],
}
"""Settings of window joins on which their work depends, beside the usual ones."""


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
    half_width = (1 << _SPACE_BITS) * matches // size
    return [x - half_width, np.zeros_like(y)], [x + half_width, y]


def _window_index(name: str) -> Workload:
    """Slide a window by a batch."""
    hashed = name == "hash"
    symbols = ("=" if hashed else "<", "<")
    conditions = [
        Condition(probe_field=f, stored_field=f, operator=OPERATORS[symbol], dtype="int64")
        for f, symbol in zip("xy", symbols, strict=True)
    ]

    def fill(size: int) -> Filled:
        keys = max(1, size // _OF_A_KEY)

        def columns_of(first: int, count: int) -> list[np.ndarray]:
            x, y = _columns(first, count)
            return [x % keys if hashed else x, y]

        options = {"length": max(1, size // _PARTS)} if name == "chain_index" else {}
        index = make_window_index(name, conditions, **options)
        step = min(size, _FILL_ROWS)
        for first in range(0, size, step):
            index.insert(columns_of(first, step), np.arange(first, first + step))
        positions_from = count(size)

        def rounds(batch: int, matches: int) -> Sequence[Operation]:
            positions = np.fromiter(positions_from, np.int64, batch)
            first = int(positions[0])
            columns = columns_of(first, batch)
            low, high = _band(columns, size, matches)
            if hashed:
                low[0] = high[0] = columns[0]
                high[1] = low[1] + (1 << _SPACE_BITS) * min(matches, _OF_A_KEY) // _OF_A_KEY
            ranges = make_ranges(low, high, start=positions - size, stop=positions)
            return [
                ("insert", partial(index.insert, columns, positions)),
                ("probe", partial(index.probe, ranges)),
                ("expire", partial(index.expire, first + batch - size)),
            ]

        return Filled(rounds, index.nbytes)

    scans = name in ("nested_loop", "b_plus_tree", "ie_join")
    return Workload(
        structure=name,
        fill=fill,
        most=_SCANNED if scans else Workload.most,
        merges=name == "chain_index",
    )


_OF_A_KEY = 64
"""Tuples of one key in a hash table."""


def _epoch(size: int) -> list[Any]:
    """Return what a merge sends of an epoch: sorted keys, order and permutation."""
    columns = _columns(0, size)
    orders = [np.argsort(column, kind="stable") for column in columns]
    return [
        [column[order] for column, order in zip(columns, orders, strict=True)],
        orders[0],
        [permutation(orders[0], orders[1], first=0)[0]],
    ]


def _segment(name: str) -> Workload:
    """Probe an epoch."""

    def fill(size: int) -> Filled:
        segment, firsts = SEGMENTS[name](*_epoch(size), first=0), count(size, 1 << 11)

        def rounds(batch: int, matches: int) -> Sequence[Operation]:
            ranges = make_ranges(*_band(_columns(next(firsts), batch), size, matches))
            return [("probe", partial(segment.probe, ranges))]

        return Filled(rounds, segment.nbytes)

    most = _SCANNED if name == "css_hash" else Workload.most
    return Workload(structure=name, fill=fill, most=most)


def _sealing(name: str) -> Workload:
    """Seal an epoch."""

    def fill(size: int) -> Filled:
        parts = _epoch(size)
        nbytes = SEGMENTS[name](*parts, first=0).nbytes

        def rounds(batch: int, matches: int) -> Sequence[Operation]:
            return [("seal", partial(SEGMENTS[name], *parts, first=0))]

        return Filled(rounds, nbytes)

    return Workload(structure=name, fill=fill, whole=True)


def _filled_subwindow(name: str, size: int, width: int = _WIDTH) -> Subwindow:
    """Return a subwindow of *size* tuples, with room for twice as many."""
    shape = SubwindowShape(
        predicates=1,
        capacity=2 * size + _FILL_ROWS,
        partitions=max(4, size // width),
        sigma=1.25,
    )
    subwindow = Subwindow(shape, name, first=0)  # type: ignore[arg-type]
    step = min(size, _FILL_ROWS)
    for first in range(0, size, step):
        subwindow.insert(*_sorted(first, step))
    return subwindow


def _subwindow(name: str, width: int = _WIDTH) -> Workload:
    """Fill a subwindow from *size* tuples to twice as many, and begin again."""

    def fill(size: int) -> Filled:
        filled = partial(_filled_subwindow, name, size, width)
        subwindow = filled()

        def rounds(batch: int, matches: int) -> Sequence[Operation]:
            nonlocal subwindow
            if len(subwindow) + batch > max(2 * size, size + batch):
                subwindow = filled()
            first = len(subwindow)
            x = np.sort(_column(0, 1 << 30 | first, batch))
            half_width = (1 << _SPACE_BITS) * matches // (4 * size)
            ranges = make_ranges([x - half_width], [x + half_width])
            todo: list[Operation] = [
                ("insert", partial(subwindow.insert, *_sorted(first, batch))),
                ("probe", partial(probe_subwindows, [subwindow], ranges)),
            ]
            if name == "bi_sort":
                todo.append(("find", lambda: subwindow.bi_sort.find_records(ranges)[1]))
            return todo

        return Filled(rounds, subwindow.nbytes // 2)

    return Workload(
        structure=name,
        fill=fill,
        variant="" if width == _WIDTH else f"{width} a partition",
        longest=_LARGE_BATCH,
        merges=name == "bi_sort",
    )


def _sealing_bi_sort(size: int) -> Filled:
    """Seal a subwindow soon after a batch was inserted; other structures have nothing to seal."""
    filled = partial(_filled_subwindow, "bi_sort", size)
    subwindow = filled()

    def rounds(batch: int, matches: int) -> Sequence[Operation]:
        nonlocal subwindow
        if len(subwindow) + size // _WIDTH > 2 * size:
            subwindow = filled()
        subwindow.insert(*_sorted(len(subwindow), size // _WIDTH))
        return [("seal", subwindow.seal)]

    return Filled(rounds, subwindow.nbytes // 2)


def _sorted(first: int, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the values of a batch and its positions as a manager sorts them for its workers."""
    values = _column(0, first, count)
    order = np.argsort(values)
    return [values[order]], first + order


def _window_join(name: str, spec: WindowJoinSpec, variant: str = "") -> Workload:
    """PIM-Tree's workload: probe, insert and expire, tuple by tuple or in batches."""

    def fill(size: int) -> Filled:
        join = spec.make(self_join=False, unit_ps=None)

        workload = WindowWorkload(windows=(size, size))
        for first in range(0, 2 * size, _FILL_ROWS):
            rows = workload.rows(first, min(first + _FILL_ROWS, 2 * size))
            join.join(rows._replace(stop=np.zeros_like(rows.stop)))
        tuples = 2 * size

        def rounds(batch: int, matches: int) -> Sequence[Operation]:
            nonlocal tuples
            rows = replace(workload, match_rate=matches).rows(tuples, tuples + batch)
            tuples += batch
            return [("join", partial(join.join, rows))]

        return Filled(rounds, join.nbytes)

    scans = spec.index == "nested_loop"
    return Workload(
        structure=name,
        fill=fill,
        variant=variant,
        most=_SCANNED if scans else Workload.most,
        merges=spec.index not in ("nested_loop", "b_plus_tree", "bw_tree"),
    )


def _predicate_tree(size: int) -> Filled:
    """Work as a predicate PE of SPO-Join does: a tree, bit arrays or lists of what it finds."""
    tree, first = BPlusTree(), size
    tree.insert(_column(0, 0, size), np.arange(size))
    latest: list[np.ndarray] = []

    def rounds(batch: int, matches: int) -> Sequence[Operation]:
        nonlocal first
        if latest:
            tree.delete(*latest)
        low, fresh = _column(0, first, batch), np.arange(first, first + batch)
        latest[:] = low, fresh
        first += batch
        start, stop = np.zeros(batch, np.int64), np.full(batch, size)
        wide = low + (1 << _SPACE_BITS) * matches // 128
        narrow = low + (1 << _SPACE_BITS) * matches // size

        def mark() -> Work:
            marked, marking = tree.mark(low, wide, base=0, bits=size)
            return marking + keep_window(marked, start, stop, base=0)[1]

        ranges = make_ranges([low], [narrow], start=start, stop=stop)
        listing = partial(tree.probe, ranges, enumerate=True)
        return [
            ("mark", mark),
            ("list", listing),
            ("insert", partial(tree.insert, low, fresh)),
        ]

    return Filled(rounds, tree.nbytes)


def _scan(size: int) -> Filled:
    tree = BPlusTree()
    tree.insert(_column(0, 0, size), np.arange(size))
    return Filled(lambda batch, matches: [("scan", lambda: tree.scan()[-1])], tree.nbytes)


def _bit_rows(size: int) -> Filled:
    """Intersect the bit arrays of two predicates, and read what is left."""
    rng = np.random.default_rng(1)
    words = -(-size // 64)

    def rounds(batch: int, matches: int) -> Sequence[Operation]:
        marked = rng.random((batch, words)) < matches / 64
        rows = np.where(marked, np.uint64(1 << 17), np.uint64(0))
        other = np.full_like(rows, ~np.uint64(0))

        def run() -> Work:
            common, work = intersect([rows, other])
            return work + read_matches(common, base=0).work

        return [("intersect", run)]

    return Filled(rounds, 8 * words)


def _id_rows(size: int) -> Filled:
    """Intersect two lists of ids a row, through a hash table."""

    def rounds(batch: int, matches: int) -> Sequence[Operation]:
        counts = np.full(batch, size)
        ids = np.tile(np.arange(size), batch)
        others = ids * (64 // matches)
        return [("intersect", partial(intersect_ids, [counts, counts], [ids, others]))]

    return Filled(rounds, 8 * size)


def _order_arrays(size: int) -> Filled:
    """Compute what a merge does from sorted runs."""
    orders = [np.argsort(column, kind="stable") for column in _columns(0, size)]
    runs = [np.sort(_column(name, 0, size // 2)) for name in (0, 1)]
    todo: list[Operation] = [
        ("permutation", lambda: permutation(*orders, first=0)[1]),
        ("offset", lambda: offset(*runs)[1]),
    ]
    return Filled(lambda batch, matches: todo, sum(order.nbytes for order in orders))


def _interval_join(size: int) -> Filled:
    """Two streams, a tuple a microsecond in each, with as many stored tuples as *size*."""
    half_us = max(1, size // 2)
    query = parse_query(
        "SELECT * FROM A, B WHERE A.key = B.key AND B.ts BETWEEN "
        f"A.ts - INTERVAL '{half_us} us' AND A.ts + INTERVAL '{half_us} us'"
    )
    schemas = [Schema(stream=name, fields={"key": "int64"}) for name in query.streams]

    @cache
    def filled_join(matches: int) -> Callable[[int], Sequence[Operation]]:
        join, first, keys = IntervalJoin(query, schemas), 0, max(1, size // matches)

        def calls(batch: int) -> Sequence[Operation]:
            nonlocal first
            at, mark = np.arange(first, first + batch), first * 1000
            first += batch
            todo: list[Operation] = []
            for stream in (0, 1):
                key = _column(stream, first, batch) % keys
                part = Batch(id=at, ts=at * 1000, key=key, fields={"key": key})
                own = np.ones(batch, np.bool_)
                call = partial(join.join, stream, part, own, watermark=mark, low_watermark=mark)
                todo.append(("join", call))
            return todo

        while first < 2 * size:
            for _, call in calls(min(size, _FILL_ROWS)):
                call()
        return calls

    def rounds(batch: int, matches: int) -> Sequence[Operation]:
        return filled_join(matches)(batch)

    return Filled(rounds, size * 4 * 8)  # id, time, key and field
