"""SPO-Join's operators one by one: what meets, what is dealt where, and what has expired."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.serialisation import from_bytes, to_bytes
from actors.source import Probes
from actors.spo_join.logical_pe import Complete, HashTable, Provenance, Slots
from actors.spo_join.permutation_pe import MergedCount, Permutations
from actors.spo_join.po_join_pe import busiest
from actors.spo_join.predicate_pe import PARTITIONINGS, InTurns, Partial
from actors.spo_join.predicate_rows import ROWS, BitRows, IdRows
from actors.spo_join.router import Routed
from actors.spo_join.window_state import Cached, Carried, MergedCounts, OwnSlide, WindowCount
from joins.batch import Batch
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import make_ranges
from joins.queries.windows import Window
from joins.state import plain, revive
from joins.work import Work


def rows_of(ids: list[int], base: int = 0) -> BitRows:
    """Return rows whose only bit says which tuple they belong to, so that mixtures are empty."""
    found = np.zeros((len(ids), 1), np.uint64)
    for row, number in enumerate(ids):
        found[row, 0] = np.uint64(1) << np.uint64(number % 64)
    return BitRows(np.array(ids, np.int64), np.array(ids, np.int64), base, found)


def partial(number: int, predicate: int, ids: list[int], share: int = 0) -> Partial:
    return Partial(number, share, predicate, (rows_of(ids),), (number, number))


def named(complete: list[Complete]) -> list[list[list[int]]]:
    """Return the ids that met: per completion, per predicate."""
    return [[rows.ids.tolist() for rows in parts] for _, parts in complete]


@st.composite
def interleavings(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    """Draw how results of some messages, in order per predicate, reach one logical PE."""
    predicates, messages = draw(st.integers(1, 3)), draw(st.integers(0, 8))
    order = draw(st.permutations([p for p in range(predicates) for _ in range(messages)]))
    sent = [0] * predicates
    arriving = []
    for predicate in order:
        arriving.append((sent[predicate], predicate))
        sent[predicate] += 1
    return predicates, arriving


@given(drawn=interleavings(), replicas=st.integers(1, 3))
def test_the_hash_table_brings_together_what_belongs_together(
    drawn: tuple[int, list[tuple[int, int]]], replicas: int
) -> None:
    predicates, arriving = drawn
    table = HashTable(predicates=predicates, replicas=replicas)
    met = []
    for number, predicate in arriving:
        met += named(table.add(partial(number, predicate, [number])))
    messages = {number for number, _ in arriving}
    assert sorted(met) == [[[number]] * predicates for number in sorted(messages)]
    assert table.snapshot() == {"_waiting": {}}


def test_the_hash_table_forgets_what_its_fellows_went_elsewhere_for() -> None:
    table = HashTable(predicates=2, replicas=1)
    for number in range(100):
        assert not table.add(partial(number, number % 2, [number]))
        assert len(revive(table.snapshot()["_waiting"])) <= 2


def test_without_a_table_a_later_result_takes_the_place_of_a_waiting_one() -> None:
    """The paper's case: t1's quick result is overridden by t2's before t1's slow one comes."""
    slots = Slots(predicates=2, replicas=1)
    assert not slots.add(partial(1, 0, [1]))
    assert not slots.add(partial(2, 0, [2]))
    complete = slots.add(partial(1, 1, [1]))
    assert named(complete) == [[[2], [1]]]
    assert not slots.add(partial(2, 1, [2]))  # t2's own quick result is gone


@given(
    messages=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=12),
    predicates=st.integers(1, 3),
)
def test_slots_take_a_message_of_many_tuples_as_they_would_tuple_by_tuple(
    messages: list[tuple[int, int]], predicates: int
) -> None:
    whole = Slots(predicates=predicates, replicas=1)
    single = Slots(predicates=predicates, replicas=1)
    together, apart, first = [], [], 0
    for number, (predicate, size) in enumerate(messages):
        ids = list(range(first, first + size))
        first += size
        together += named(whole.add(partial(number, predicate % predicates, ids)))
        for one in ids:
            apart += named(single.add(partial(number, predicate % predicates, [one])))
    if predicates == 1:
        together = [[[one]] for [ids] in together for one in ids]
    assert together == apart


@given(drawn=interleavings(), kind=st.sampled_from([HashTable, Slots]), data=st.data())
def test_what_waits_at_a_logical_pe_survives_a_snapshot(
    drawn: tuple[int, list[tuple[int, int]]], kind: type[Provenance], data: st.DataObject
) -> None:
    predicates, arriving = drawn
    arguments = {"predicates": predicates, "replicas": 1}
    kept, moved = kind(**arguments), kind(**arguments)
    for number, predicate in arriving:
        state = moved.snapshot()
        moved = kind(**arguments)
        moved.restore(state)
        result = partial(number, predicate, [number])
        assert named(moved.add(result)) == named(kept.add(result))


@given(
    keys=st.lists(st.integers(-3, 3), min_size=1, max_size=150),
    ranges=st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=1, max_size=4),
    negated=st.booleans(),
    base=st.integers(0, 100),
    data=st.data(),
)
def test_both_forms_find_what_every_predicate_finds_inside_the_window(
    keys: list[int],
    ranges: list[tuple[int, int]],
    negated: bool,
    base: int,
    data: st.DataObject,
) -> None:
    n, m = len(keys), data.draw(st.integers(1, 5))
    position = st.integers(base - 5, base + n + 5)
    start, stop = (
        np.array(data.draw(st.lists(position, min_size=m, max_size=m)), np.int64) for _ in range(2)
    )
    ids = np.arange(m)
    part = Probes(Batch(id=ids, ts=ids, key=ids, fields={}), start, stop, ids)
    tree = BPlusTree()
    tree.insert(np.array(keys), np.arange(base, base + n))
    taken = np.array(data.draw(st.lists(st.integers(0, m - 1), max_size=6)), np.int64)
    expected = [
        sum(
            all((low <= key <= high) != negated for low, high in ranges)
            and start[row] <= base + i < stop[row]
            for i, key in enumerate(keys)
        )
        for row in taken
    ]
    found = {}
    for name, form in ROWS.items():
        parts = []
        for low, high in ranges:
            ends = [np.full(m, low)], [np.full(m, high)]
            within = make_ranges(*ends, negated=[negated], start=start, stop=stop)
            rows, _ = form.probe(tree, base, part, within)
            parts.append(rows.take(taken))
        counted = form.intersect(parts, enumerate=False)
        found[name] = form.intersect(parts, enumerate=True)
        assert counted.count.tolist() == expected
        assert found[name].fingerprint.tolist() == counted.fingerprint.tolist()
    bits, ids_ = found["bits"], found["hash"]
    assert bits.match_id is not None
    assert ids_.match_id is not None
    assert bits.fingerprint.tolist() == ids_.fingerprint.tolist()
    assert sorted(bits.match_id.tolist()) == sorted(ids_.match_id.tolist())


def test_bit_arrays_of_two_epochs_have_nothing_in_common() -> None:
    assert BitRows.intersect([rows_of([3]), rows_of([3], base=8)], enumerate=True).count == [0]


@pytest.mark.parametrize("name", list(PARTITIONINGS))
@given(sizes=st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=2)), pes=st.integers(1, 7))
def test_every_predicate_deals_the_same_shares(name: str, sizes: list[list[int]], pes: int) -> None:
    dealings = [PARTITIONINGS[name](), PARTITIONINGS[name]()]
    generators = [np.random.default_rng(i) for i in range(2)]
    first = 0
    for message in sizes:
        ids = [np.arange(first, first + size) for size in message]
        first += sum(message)
        (one, to_one), (two, to_two) = (
            dealing.split(ids, pes, rng) for dealing, rng in zip(dealings, generators, strict=True)
        )
        for mine, others in zip(one, two, strict=True):
            assert mine.tolist() == others.tolist()
            assert ((mine >= 0) & (mine < pes)).all()
        assert sorted(to_one) == sorted(to_two) == list(range(pes))
        if name == "hash":
            assert list(to_one) == list(to_two)


def test_in_turns_every_pe_gets_its_share_and_orders_differ_between_senders() -> None:
    orders = []
    for seed in range(5):
        dealing, taken = InTurns(), np.zeros(4, np.int64)
        for _ in range(10):
            shares, order = dealing.split(
                [np.arange(3), np.arange(3)], 4, np.random.default_rng(seed)
            )
            taken += np.bincount(np.array(order)[np.concatenate(shares)], minlength=4)
        assert taken.tolist() == [15] * 4
        orders.append(tuple(order))
    assert len(set(orders)) > 1


@given(
    counts=st.lists(st.integers(0, 50), min_size=1, max_size=12),
    threads=st.integers(1, 64),
)
def test_the_busiest_thread_does_no_less_than_its_share_and_no_more_than_algorithm_4_lets_it(
    counts: list[int], threads: int
) -> None:
    spent = sum(work.bits for work in busiest([Work(bits=one) for one in counts], threads))
    assert spent >= max(*counts, -(-sum(counts) // threads), 0)
    # A thread takes its last segment when no other has done less.
    assert spent <= sum(counts) / min(threads, len(counts)) + max(counts)
    if threads == 1:
        assert spent == sum(counts)
    if threads >= len(counts):
        assert spent == max(counts)


WINDOW = Window(kind="count", length=30, slide=10)


def routed(first: int, rows: int, window: Window = WINDOW) -> Routed:
    ids = np.arange(first, first + rows)
    start = np.maximum(window.bound(ids), 0)
    part = Probes(Batch(id=ids, ts=ids, key=ids, fields={}), start, ids, ids)
    return Routed(0, 0, (part,), (first, first + rows - 1), ())


def arrays(epoch: int, rows: int) -> Permutations:
    return Permutations(epoch, 0, 0, 0, np.arange(rows), ())


def context(now: int) -> Any:
    sent: list[tuple[str, Any]] = []
    return SimpleNamespace(now=now, sent=sent, send=lambda port, what: sent.append((port, what)))


def test_carried_bounds_expire_what_no_later_tuple_sees() -> None:
    window = Carried(stored=[0])
    window.after_evaluation(routed(25, 5), context(0))
    assert not window.is_expired(0, 0, stop=10)
    window.after_evaluation(routed(30, 1), context(0))
    assert window.is_expired(0, 0, stop=10)
    assert not window.is_expired(0, 1, stop=11)


def test_tuples_reach_an_epoch_that_the_first_of_them_sees_a_part_of() -> None:
    (part,) = routed(30, 15).parts  # the first sees 10 to 29, the last 20 to 43
    assert Carried(stored=[0]).may_see(part, stop=11)
    assert not Carried(stored=[0]).may_see(part, stop=10)
    assert not Carried(stored=[0]).may_see(part.slice(0, 0), stop=11)
    assert OwnSlide(pes=2, epochs=1).may_see(part, stop=10)  # it knows nothing of what they see


def test_a_pe_of_its_own_slide_waits_for_its_next_epoch() -> None:
    window = OwnSlide(pes=2, epochs=1)
    window.on_permutations(arrays(0, 10))
    window.after_evaluation(routed(0, 1000), context(0))
    assert not window.is_expired(0, 0, stop=10)
    window.on_permutations(arrays(2, 10))
    assert window.is_expired(0, 0, stop=10)
    assert not window.is_expired(0, 2, stop=30)


def test_counts_of_merged_tuples_add_up_whoever_merged_them() -> None:
    window = MergedCounts(windows=(WINDOW,))
    window.on_permutations(arrays(0, 10))
    window.on_count(MergedCount(0, 10, 19))
    window.after_evaluation(routed(0, 1000), context(0))
    assert not window.is_expired(0, 0, stop=10)
    window.on_count(MergedCount(0, 10, 29))
    assert window.is_expired(0, 0, stop=10)
    assert not window.is_expired(0, 1, stop=20)


def test_the_first_pe_publishes_its_count_and_the_others_take_it_over() -> None:
    first, other = (
        Cached(windows=(WINDOW,), pe=pe, interval_ns=interval) for pe, interval in ((0, 5), (1, 7))
    )
    published = []
    for at, rows in ((0, 10), (4, 10), (5, 10)):
        heard = context(at)
        first.before_evaluation(heard)
        first.after_evaluation(routed(0, rows), heard)
        published += heard.sent
    assert published == [("cache", WindowCount((10,), 9)), ("cache", WindowCount((30,), 9))]
    assert first.is_expired(0, 0, stop=10)
    asked = []
    for at in (0, 6, 7):
        heard = context(at)
        other.before_evaluation(heard)
        other.after_evaluation(routed(0, 1000), heard)
        asked.append(len(heard.sent))
    assert asked == [1, 0, 1]
    assert not other.is_expired(0, 0, stop=10)
    other.on_count(published[-1][1])
    assert other.is_expired(0, 0, stop=10)
    assert not other.is_expired(0, 1, stop=20)


def test_lists_of_ids_survive_a_snapshot() -> None:
    rows = IdRows(np.array([7, 8]), np.array([0, 0]), np.array([2, 0]), np.array([1, 5]))
    back = revive(from_bytes(to_bytes(plain(rows))))
    assert back.take(np.array([1, 0])).match_id.tolist() == [1, 5]
    assert back.nbytes == rows.nbytes
