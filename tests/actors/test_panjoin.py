"""PanJoin's manager and workers: who gets which command, and what comes back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from actors.hosting.inline import RecordingContext
from actors.panjoin.chain import LARGE_BATCH, LARGE_SELECTIVITY, Chain, ChainRule, Choice
from actors.panjoin.manager import Manager, Prefilter
from actors.panjoin.messages import Commands, Expire, Feedback
from actors.panjoin.worker import Worker
from actors.protocol import Message
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.indexes.panjoin.subwindow import SubwindowShape
from joins.queries.parser import parse_query

WORKERS = 3
CAPACITY = 8
QUERY = parse_query(
    "SELECT * FROM R, S WHERE ABS(R.v - S.v) <= 1 WINDOW AS (SLIDE INTERVAL '4' ON '16')"
)
SCHEMAS = tuple(Schema(stream=name, fields={"v": "int64"}, width_bytes=40) for name in "RS")
SHAPE = SubwindowShape(predicates=1, capacity=CAPACITY, partitions=2, sigma=1.25)


def fed(first: int, values: tuple[list[int], list[int]], begin: tuple[int, int]) -> Fed:
    """Arrivals from number *first* on: all of R's *values*, then all of S's."""
    parts, numbers = [], []
    for stream, column in enumerate(values):
        ids = np.arange(begin[stream], begin[stream] + len(column))
        numbers.append(np.arange(first, first + len(column)))
        first += len(column)
        parts.append(
            Batch(
                id=ids,
                ts=ids * 10,
                key=np.zeros_like(ids),
                fields={"v": np.array(column, np.int64)},
                width_bytes=40,
            )
        )
    return Fed(Arrivals(tuple(parts), tuple(numbers)), tuple(n * 0 for n in numbers))


@dataclass
class System:
    """A manager and its workers without a network: commands wait until they are delivered."""

    results: Any = "sink"
    structure: Any = "bi_sort"
    batch_count: int = 4
    stretch_ns: int | None = None
    shape: SubwindowShape = SHAPE
    waiting: list[tuple[int, Commands]] = field(default_factory=list)
    commanded: list[tuple[int, Commands]] = field(default_factory=list)
    heard: list[Feedback] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    timers: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        common: dict[str, Any] = {
            "query": QUERY,
            "schemas": SCHEMAS,
            "shapes": (self.shape, self.shape),
            "pairs": True,
        }
        rules = tuple(
            ChainRule(
                capacity=CAPACITY,
                stretch_ns=self.stretch_ns,
                structure=self.structure,
                workers=WORKERS,
                first_worker=stream,
            )
            for stream in (0, 1)
        )
        self.manager = Manager(
            rules=rules,
            batch_count=self.batch_count,
            collecting_ns=1_000,
            results=self.results,
            **common,
        )
        self.workers = [
            Worker(index=i, results=self.results, threads=1, accelerator=None, **common)
            for i in range(WORKERS)
        ]
        names = tuple(f"w{i}" for i in range(WORKERS))
        self.context = RecordingContext("manager", {"worker": names, "sink": ("sink",)}, 0)

    def tell_manager(self, port: str, payload: Any, now: int = 0) -> None:
        self.context.now = now
        self.manager.receive(Message("somebody", port, payload), self.context)
        reply = self.context.take()
        self.timers += reply.timers
        for sent in reply.sends:
            if sent.port == "sink":
                self.answers.append(sent.handle)
            else:
                self.waiting.append((int(sent.receivers[0][1:]), sent.handle))

    def deliver(self) -> None:
        """Let workers do what waits, and the manager hear of it."""
        while self.waiting:
            worker, commands = self.waiting.pop(0)
            self.commanded.append((worker, commands))
            context = RecordingContext(
                f"w{worker}", {"feedback": ("manager",), "sink": ("sink",)}, 0
            )
            self.workers[worker].receive(Message("manager", "worker", commands), context)
            for sent in context.take().sends:
                if sent.port == "sink":
                    self.answers.append(sent.handle)
                else:
                    self.heard.append(sent.handle)
                    self.tell_manager("feedback", sent.handle)

    def pairs(self) -> list[tuple[int, int, int]]:
        return sorted(
            (matches.stream, int(probe), int(match))
            for answers in self.answers
            for matches in answers.matches
            for probe, match in zip(*matches.pairs(), strict=True)
        )


def test_probes_go_only_to_workers_with_tuples_of_the_other_stream() -> None:
    system = System()
    system.tell_manager("out", fed(0, ([1, 2, 3, 4], []), (0, 0)))
    assert [worker for worker, _ in system.waiting] == [0]  # R's first subwindow, nobody probed
    assert all(not len(part) for part in system.waiting[0][1].probe)
    system.deliver()
    system.tell_manager("out", fed(4, ([], [1, 2, 9, 9]), (4, 0)))
    sent = dict(system.waiting)
    assert sorted(sent) == [0, 1]  # probed is R at 0; S's first subwindow begins at 1
    assert len(sent[0].probe[1]) == 4
    assert not sent[0].insert
    assert not len(sent[1].probe[1])
    assert len(sent[1].insert[0].batch) == 4


def test_subwindows_go_round_the_workers_and_expire_as_a_whole() -> None:
    system = System()
    for begin in range(0, 64, 4):
        system.tell_manager("out", fed(begin, ([5, 1, 5, 2], []), (begin, 0)))
        system.deliver()
    created = [(w, i.number) for w, sent in system.commanded for i in sent.insert if i.create]
    assert created == [(number % WORKERS, number) for number in range(8)]
    expired = [e.number for _, sent in system.commanded for e in sent.expire]
    assert expired == [0, 1, 2, 3, 4, 5]  # after 64 tuples the window begins at 48


def test_a_batch_goes_out_when_it_is_full_or_its_time_is_over() -> None:
    system = System()
    system.tell_manager("out", fed(0, ([1, 2, 3], [1, 2]), (0, 0)), now=50)
    assert not system.waiting
    assert system.timers == [(1_050, "batch0")]
    system.tell_manager("out", fed(5, ([4, 5], [3]), (3, 2)), now=60)  # R's fourth fills it
    assert system.waiting[0][1].number == 0
    assert sum(len(i.batch) for _, sent in system.waiting for i in sent.insert) == 6
    assert system.timers[1:] == [(1_060, "batch1")]
    system.waiting.clear()
    system.tell_manager("timer:batch0", None, now=1_050)  # left behind: nothing happens
    assert not system.waiting
    system.tell_manager("timer:batch1", None, now=1_060)
    assert sum(len(i.batch) for _, sent in system.waiting for i in sent.insert) == 2


@pytest.mark.parametrize("structure", ["bi_sort", "rap_table", "wib_tree", None])
@pytest.mark.parametrize("late", [False, True], ids=["one batch at a time", "many in flight"])
def test_results_are_the_same_by_way_of_the_manager_and_straight_on(
    structure: str | None, late: bool
) -> None:
    """With many batches in flight the manager has stored more than a worker had when it probed."""
    rng = np.random.default_rng(2)
    values = rng.integers(0, 12, (2, 60)).tolist()
    found = []
    for results in ("sink", "manager"):
        system = System(results=results, structure=structure)
        for begin in range(0, 60, 6):
            rows = values[0][begin : begin + 6], values[1][begin : begin + 6]
            system.tell_manager("out", fed(2 * begin, rows, (begin, begin)))
            if not late:
                system.deliver()
        system.tell_manager("timer:batch30", None)
        system.deliver()
        found.append(system.pairs())
    assert found[0] == found[1]
    assert found[0]


def test_feedback_with_records_is_as_long_whatever_matches() -> None:
    lengths = []
    for value in (100, 5):
        system = System(results="manager")
        system.tell_manager("out", fed(0, ([5, 5, 5, 5], []), (0, 0)))
        system.deliver()
        system.heard.clear()
        system.tell_manager("out", fed(4, ([], [value] * 4), (4, 0)))
        system.deliver()
        lengths.append((sum(f.nbytes for f in system.heard), len(system.pairs())))
    assert lengths == [(lengths[0][0], 0), (lengths[0][0], 16)]


def test_a_table_gets_the_splitters_of_the_last_one_that_was_filled() -> None:
    system = System(structure="rap_table")
    for begin in range(0, 16, 4):
        system.tell_manager("out", fed(begin, ([1, 2, 3, 40 + begin], []), (begin, 0)))
        system.deliver()
    inserts = (insert for _, sent in system.commanded for insert in sent.insert)
    first, second = (insert.create for insert in inserts if insert.create is not None)
    assert first.splitters is None
    sampled = [f.status[0].splitters for f in system.heard if f.status[0].splitters is not None]
    assert second.splitters is not None
    assert second.splitters.tolist() == sampled[0].tolist()


def test_prefilters_that_overtake_one_another_change_nothing() -> None:
    rows = [fed(3 * i, ([i, i + 1], [i]), (2 * i, i)) for i in range(4)]
    found = []
    for order in ((0, 1, 2, 3), (2, 0, 3, 1)):
        system = System()
        for i in order:
            context = RecordingContext("prefilter", {"manager": ("manager",)}, 0)
            Prefilter(query=QUERY).receive(Message("source", "out", rows[i]), context)
            filtered = context.take().sends[0].handle
            assert filtered.nbytes == rows[i].nbytes - 3 * 40
            system.tell_manager("manager", filtered)
            system.deliver()
        system.tell_manager("timer:batch2", None)
        system.deliver()
        found.append(system.pairs())
    assert found[0] == found[1]
    assert found[0]


def test_windows_of_time_cut_subwindows_at_stretches_of_event_time() -> None:
    rule = ChainRule(capacity=100, stretch_ns=50, structure="bi_sort", workers=2, first_worker=0)
    batch = fed(0, (list(range(12)), []), (0, 0)).arrivals.parts[0]  # ten ns apart
    commands = Chain(0, rule).store(batch, batch.fields["v"])
    assert [len(insert.batch) for _, insert in commands] == [5, 5, 2]
    assert [insert.create is not None for _, insert in commands] == [True, True, True]
    assert [insert.fills for _, insert in commands] == [True, True, False]


def test_a_subwindow_ends_by_time_though_its_end_is_between_two_batches() -> None:
    rule = ChainRule(capacity=100, stretch_ns=50, structure="bi_sort", workers=2, first_worker=0)
    chain, every = Chain(0, rule), fed(0, (list(range(12)), []), (0, 0)).arrivals.parts[0]
    sent = []
    for begin, end in ((0, 5), (5, 7), (7, 12)):  # ten ns apart
        batch = every.slice(begin, end)
        sent.append(
            [
                (worker, insert.number, len(insert), insert.fills)
                for worker, insert in chain.store(batch, batch.fields["v"])
            ]
        )
        again = Chain(0, rule)
        again.restore(chain.snapshot())
        chain = again
    assert sent == [
        [(0, 0, 5, False)],
        [(0, 0, 0, True), (1, 1, 2, False)],
        [(1, 1, 3, True), (0, 2, 2, False)],
    ]


@pytest.mark.parametrize("results", ["sink", "manager"])
def test_the_worker_of_a_subwindow_whose_time_is_over_merges_its_buffer(results: str) -> None:
    system = System(results=results, stretch_ns=40, shape=replace(SHAPE, buffer=CAPACITY))
    for begin in (0, 4):
        system.tell_manager("out", fed(begin, ([3, 1, 4, 1], []), (begin, 0)))
        system.deliver()
    stored = [worker._subwindows.of_stream(0) for worker in system.workers]
    assert stored[0][0].bi_sort.sizes == (4, 0)
    assert stored[1][1].bi_sort.sizes == (0, 4)
    system.tell_manager("out", fed(8, ([], [4, 1, 9, 9]), (8, 0)))
    system.deliver()
    assert len(system.pairs()) == 2 * (2 + 2)  # 4 with 3 and 4, 1 with both of the ones


@pytest.mark.parametrize("structure", ["rap_table", "wib_tree"])
def test_a_table_whose_time_is_over_reports_its_splitters(structure: str) -> None:
    system = System(structure=structure, stretch_ns=40)
    for begin in (0, 4, 8):
        system.tell_manager("out", fed(begin, ([1, 2, 3, 40], []), (begin, 0)))
        system.deliver()
    inserts = (insert for _, sent in system.commanded for insert in sent.insert)
    creations = [insert.create for insert in inserts if insert.create is not None]
    sampled = [create.splitters is not None for create in creations]
    assert sampled == [False, False, structure == "rap_table"]


def test_a_tuple_older_than_a_closed_subwindow_goes_into_its_buffer() -> None:
    """Closed by count, or by time; what is newer than all closed ones fills the newest."""
    for rule in (
        ChainRule(capacity=4, stretch_ns=None, structure="bi_sort", workers=2, first_worker=0),
        ChainRule(capacity=99, stretch_ns=40, structure="bi_sort", workers=2, first_worker=0),
    ):
        chain = Chain(0, rule)
        every = fed(0, (list(range(12)), []), (0, 0)).arrivals.parts[0]  # ten ns apart
        sent = []
        for ids in ([0, 1, 3, 2], [4, 9, 7], [6, 5], [10, 8]):
            batch = every.take(np.array(ids))
            for worker, insert in chain.store(batch, np.sort(batch.fields["v"])):
                sent.append((worker, insert.number, sorted(insert.batch.id), insert.late))
        assert sent[0] == (0, 0, [0, 1, 2, 3], False)
        if rule.stretch_ns is None:
            assert sent[1:] == [
                (1, 1, [4, 7, 9], False),
                (1, 1, [5], False),
                (1, 1, [6], True),
                (1, 1, [8], True),
                (0, 2, [10], False),
            ]
        else:
            assert sent[1:] == [
                (0, 0, [], False),  # its time is over
                (1, 1, [4, 7], False),
                (0, 2, [9], False),
                (1, 1, [5, 6], True),
                (0, 2, [8, 10], False),
            ]
        before, again = chain.snapshot(), Chain(0, rule)
        again.restore(before)
        assert again.expire_older(40) == chain.expire_older(40) == [(0, Expire(0, 0))]


def test_measurements_for_a_choice_that_is_never_made_are_not_stored() -> None:
    rule = ChainRule(capacity=4, stretch_ns=None, structure="bi_sort", workers=2, first_worker=0)
    chain = Chain(0, rule)
    every = fed(0, (list(range(12)), []), (0, 0)).arrivals.parts[0]
    before = chain.choice.nbytes
    for row in range(12):
        batch = every.take(np.array([row]))
        chain.store(batch, batch.fields["v"])
    assert chain.choice.nbytes == before


def test_the_choice_follows_the_papers_strategy() -> None:
    rng = np.random.default_rng(0)

    def chosen(batches: list[np.ndarray], *, matches: int = 0) -> str:
        choice = Choice()
        for batch in batches:
            choice.measure_batch(np.sort(batch))
        choice.choose()  # the subwindow before: its quantiles are now known
        for batch in batches:
            choice.measure_batch(np.sort(batch))
        choice.measure_probes(10, 10 * matches)
        return choice.choose()

    even = [rng.integers(0, 1_000, 512) for _ in range(8)]
    assert chosen(even) == "rap_table"
    assert chosen(even, matches=LARGE_SELECTIVITY) == "bi_sort"
    assert chosen([rng.integers(0, 1_000, LARGE_BATCH)]) == "bi_sort"
    rising = Choice()
    for begin in range(0, 4_096, 512):
        rising.measure_batch(np.arange(begin, begin + 512))
        if begin == 2_048:
            assert rising.choose() == "wib_tree"  # nothing known before the first
    assert rising.choose() == "wib_tree"  # everything lies past the last quantile
