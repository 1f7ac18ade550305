"""Snapshots of declared state: whole, plain, apart from the object, and never forgotten."""

from __future__ import annotations

import collections
from abc import ABC
from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from actors.serialisation import from_bytes, to_bytes
from joins.state import Stateful, plain, revive, storable


@storable
class Columns(NamedTuple):
    keys: np.ndarray
    ids: np.ndarray


@storable
@dataclass
class Entry:
    columns: Columns
    tuples: tuple[int, ...]
    seen: int = field(default=0, init=False)


class Counter(Stateful):
    """Has a configuration: it is restored where its owner's constructor put it."""

    state = ("count",)

    def __init__(self, step: int) -> None:
        self._step = step
        self.count = 0

    def add(self) -> None:
        self.count += self._step


class Index(Stateful):
    """Comes and goes: all of its attributes are state."""

    state = ("width", "keys")

    def __init__(self, width: int) -> None:
        self.width = width
        self.keys = np.arange(width)


class Owner(Stateful):
    state = ("counter", "indexes", "_queue", "_by_key", "_groups", "_entry", "_waiting")

    def __init__(self) -> None:
        self.name: Any = "configuration"
        self.counter = Counter(3)
        self.indexes: list[Index] = []
        self._queue: deque[tuple[int, np.ndarray]] = deque()
        self._by_key: dict[tuple[int, str], Entry] = {}
        self._groups: defaultdict[str, set[int]] = defaultdict(set)
        self._entry: Entry | None = None
        self._waiting: list[tuple[int, int]] = []


def busy_owner() -> Owner:
    owner = Owner()
    owner.counter.add()
    owner.indexes = [Index(2), Index(3)]
    owner._queue.append((4, np.array([1.5])))
    entry = Entry(Columns(np.array([3]), np.array([9])), (1, 2))
    entry.seen = 7
    owner._by_key[2, "b"] = owner._entry = entry
    owner._groups["x"] |= {5, 4}
    owner._waiting = [(1, 2)]
    return owner


def through_bytes(state: Any) -> Any:
    return from_bytes(bytearray(to_bytes(state)))


@pytest.mark.parametrize("way", [dict, through_bytes])
def test_a_state_of_any_shape_comes_back(way: Any) -> None:
    owner, copy = busy_owner(), Owner()
    counter = copy.counter
    copy.restore(way(owner.snapshot()))
    assert copy.counter is counter
    assert counter.count == 3
    counter.add()
    assert counter.count == 6
    assert [(type(index), index.keys.tolist()) for index in copy.indexes] == [
        (Index, [0, 1]),
        (Index, [0, 1, 2]),
    ]
    assert type(copy._queue) is deque
    assert copy._queue[0][0] == 4
    assert copy._queue[0][1].tolist() == [1.5]
    entry = copy._by_key[2, "b"]
    assert (type(entry), entry.tuples, entry.seen) == (Entry, (1, 2), 7)
    assert isinstance(entry.columns, Columns)
    assert entry.columns.ids.tolist() == [9]
    assert copy._groups == {"x": {4, 5}}
    assert copy._groups["new"] == set()
    assert copy._waiting == [(1, 2)]


class Recent(Stateful):
    state = ("latest", "seen")

    def __init__(self) -> None:
        self.latest = [deque([1], maxlen=2)]
        self.seen: collections.Counter[str] = collections.Counter()


@pytest.mark.parametrize("way", [dict, through_bytes])
def test_a_bounded_deque_and_a_counter_go_on_as_what_they_are(way: Any) -> None:
    recent, copy = Recent(), Recent()
    recent.latest.append(deque([1, 2, 3], maxlen=3))
    recent.seen["x"] += 2
    copy.restore(way(recent.snapshot()))
    assert copy.latest == [deque([1]), deque([1, 2, 3])]
    assert [each.maxlen for each in copy.latest] == [2, 3]
    copy.seen["y"] += 1
    assert copy.seen == {"x": 2, "y": 1}


def test_a_snapshot_shares_no_array_with_the_object_or_with_what_is_restored() -> None:
    owner, first, second = busy_owner(), Owner(), Owner()
    state = owner.snapshot()
    owner.indexes[1].keys[:] = -1
    assert owner._entry is not None
    owner._entry.columns.keys[:] = -1
    first.restore(state)
    first.indexes[1].keys[:] = -2
    first._waiting.append((9, 9))
    second.restore(state)
    assert second.indexes[1].keys.tolist() == [0, 1, 2]
    assert second._entry is not None
    assert second._entry.columns.keys.tolist() == [3]
    assert second._waiting == [(1, 2)]


def test_plain_data_is_left_as_it_is() -> None:
    state = busy_owner().snapshot()
    assert repr(plain(state)) == repr(state)


def test_structured_arrays_survive_bytes() -> None:
    table = np.array([(1, 2.5)], np.dtype([("id", np.int64), ("weight", np.float64)]))
    back = through_bytes({"table": table})["table"]
    assert back.dtype == table.dtype
    assert back["weight"].tolist() == [2.5]


def test_a_subclass_adds_to_the_state_of_its_base() -> None:
    class Pair(Counter):
        state = ("other",)

        def __init__(self) -> None:
            super().__init__(1)
            self.other = 5

    assert Pair().snapshot() == {"count": 0, "other": 5}


def test_a_class_that_does_not_declare_its_state_is_refused() -> None:
    with pytest.raises(TypeError, match="Forgetful does not declare its state"):

        class Forgetful(Counter):
            def __init__(self) -> None:
                super().__init__(1)

    with pytest.raises(TypeError, match="Undeclared does not declare its state"):

        class Undeclared(Stateful):
            def size(self) -> int:
                return 3

    with pytest.raises(TypeError, match=r"Comma\.state is a string"):

        class Comma(Stateful):
            state: ClassVar[Any] = "count"

    class Base(Stateful, ABC):
        pass

    class Same(Counter):
        pass

    assert Same(1).snapshot() == {"count": 0}


def test_a_declared_attribute_that_is_not_there_is_refused() -> None:
    class Misspelt(Counter):
        state = ("cuont",)

    with pytest.raises(AttributeError, match="'Misspelt' object has no attribute 'cuont'"):
        Misspelt(1).snapshot()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1j, "a complex is not plain data: a state has None, numbers, "),
        (np.array([1j, None]), "an array of objects, or with a mask, is not plain data: "),
        (np.ma.masked_equal([1, 2], 2), "an array of objects, or with a mask, is not plain data: "),
        ({1, "x"}, "'<' not supported"),
    ],
)
def test_what_may_not_be_in_a_state_is_refused_with_its_attribute(value: Any, message: str) -> None:
    owner = busy_owner()
    owner.counter.count = value
    with pytest.raises(TypeError, match=rf"^Owner\.counter: Counter\.count: {message}"):
        owner.snapshot()


@pytest.mark.parametrize(
    "name", ["subprocess:Popen", "nowhere:Class", "joins.state:plain", "joins.work:COUNTERS"]
)
def test_a_snapshot_cannot_name_just_any_class(name: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' in a snapshot is not a record"):
        revive({"$kind": "record", "class": name, "content": {}})


def test_bytes_count_each_array_once_and_views_as_what_they_are_views_of() -> None:
    index = Index(100)
    owner = Owner()
    owner.indexes = [index, index]
    owner._queue.append((0, index.keys[:10]))
    owner.name = np.zeros(9)
    assert owner.nbytes == 800 + 72


def test_a_mapping_may_have_any_key() -> None:
    saved = plain({"$kind": np.arange(3), "other": 1})
    revived = revive(saved)
    assert revived["$kind"].tolist() == [0, 1, 2]
    assert revived["other"] == 1
