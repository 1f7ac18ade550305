"""States survive a trip through memory and disk, whatever plain data they hold."""

from __future__ import annotations

import importlib
import signal
import struct
from collections import Counter, deque
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from actors.protocol import Actor, Context, Message, Payload
from actors.results import Answers, Late, Output
from actors.serialisation import (
    FormatError,
    from_bytes,
    from_columns,
    to_bytes,
    to_columns,
)
from joins.indexes.interval_buffer import IntervalBuffer
from joins.matches import Matches
from joins.state import class_name, plain, revive, storable
from joins.work import NO_WORK, Step, Work

arrays = hnp.arrays(
    st.sampled_from([np.int64, np.float64, np.uint64]),
    hnp.array_shapes(max_dims=2),
    elements=st.just(3),
)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5)
states = st.recursive(
    scalars | arrays,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.integers(0, 9), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@given(state=st.dictionaries(st.text(max_size=3), states, max_size=4))
def test_a_state_comes_back_from_bytes_as_it_was(state: dict[str, Any]) -> None:
    assert same(from_bytes(to_bytes(state)), state)


def test_records_come_back_as_the_records_they_were() -> None:
    matches = Matches(
        stream=1,
        probe_id=np.array([4, 5]),
        count=np.array([1, 0]),
        fingerprint=np.array([9, 0], np.uint64),
        match_id=np.array([2]),
    )
    found = Answers((matches,), (np.array([7, 8]),), (3, 4))
    back = revive(plain({"queue": [found]}))["queue"][0]
    assert isinstance(back, Answers)
    assert back.span == (3, 4)
    assert isinstance(back.matches[0], Matches)
    assert back.matches[0].match_id is not None
    assert back.matches[0].match_id.tolist() == [2]


def test_what_is_not_plain_data_is_refused() -> None:
    with pytest.raises(TypeError, match="a complex is not plain data"):
        to_bytes({"x": [1j]})


def test_classes_of_a_notebook_may_travel_to_a_process_again_and_again() -> None:
    """They travel as values: each time a class without a body is made, which may be dropped."""

    @dataclass(frozen=True, slots=True)
    class Note(Payload):
        number: int
        span: tuple[int, int]

    class Reader(Actor):
        state = ()

        def receive(self, message: Message, context: Context) -> None:
            assert isinstance(message.payload, Note)

    cloudpickle = importlib.import_module("ray.cloudpickle")
    shipped = cloudpickle.dumps([Reader, Note])
    for _ in range(2):
        assert cloudpickle.loads(shipped) == [Reader, Note]
        note = from_bytes(to_bytes(Note(7, (1, 2))))
        assert type(note) is Note
        assert (note.number, note.span) == (7, (1, 2))


def test_a_class_that_is_defined_again_takes_the_place_of_the_first() -> None:
    for names in (["first"], ["first", "second"]):
        # From Python 3.12 on its name changes after it was registered: it is put into this module.
        kind = storable(make_dataclass("Again", names, bases=(Payload,), frozen=True))
        again = kind(*names)
        assert from_bytes(to_bytes(again)) == again


def test_bytes_build_no_object_that_has_a_state_of_its_own() -> None:
    """It would be given memory for whatever its state says, in however few bytes."""
    buffer = IntervalBuffer(0)
    with pytest.raises(TypeError, match="IntervalBuffer has a state of its own"):
        to_bytes(buffer)
    named = msgpack.ExtType(1, class_name(IntervalBuffer).encode())
    state = buffer.snapshot() | {"room": [1 << 10, 1 << 10]}
    with pytest.raises(FormatError, match="IntervalBuffer has a state of its own"):
        from_bytes(to_bytes({named: state}))


VALUES = st.recursive(
    scalars | arrays | st.binary(max_size=4) | st.integers(-(2**140), 2**140),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.tuples(st.integers(), st.text(max_size=2)), inner, max_size=3)
        | st.sets(st.integers(0, 2**63), max_size=3)
        | st.lists(st.booleans(), max_size=3).map(deque)
        | st.builds(np.float64, st.floats(0, 1))
    ),
    max_leaves=8,
)


@given(value=VALUES)
def test_any_value_comes_back_from_its_bytes_with_its_types(value: object) -> None:
    back = from_bytes(to_bytes(value))
    assert repr(back) == repr(value)
    assert type(back) is type(value)


def test_members_of_enumerations_and_other_dicts_come_back_as_what_they_are_equal_to() -> None:
    counted = Counter({signal.SIGTERM: 2})
    back = from_bytes(to_bytes([signal.SIGTERM, counted]))
    assert back == [signal.SIGTERM, counted]
    assert [type(one) for one in back] == [int, dict]


def test_arrays_travel_once_and_can_be_written_to_if_their_bytes_can() -> None:
    array = np.arange(10_000)
    data = to_bytes([array, {"again": array}, array[::2], np.zeros((0, 3)), np.float32(3)])
    assert len(data) < 1.6 * array.nbytes
    for readable, writable in ((data, False), (bytearray(data), True)):
        first, second, half, empty, number = from_bytes(readable)
        assert np.array_equal(first, array)
        assert np.array_equal(second["again"], array)
        assert np.array_equal(half, array[::2])
        assert empty.shape == (0, 3)
        assert type(number) is np.float32
        assert first.flags.writeable is writable


def test_arrays_of_any_order_and_type_but_objects_come_back() -> None:
    for odd in (
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(["2026-01-02"], "M8[ns]"),
        np.array([(1, 2.5)], [("a", "<i8"), ("b", "<f8")]),
        np.array(["ab", "c"]),
    ):
        back = from_bytes(to_bytes(odd))
        assert back.dtype == odd.dtype
        assert back.tolist() == odd.tolist()


@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    with suppress(FormatError):
        from_bytes(data)


WRITTEN = to_bytes([Answers((), (np.array([7, 8]),), (3, 4)), {"a": (1, 2.5), "b": {3}}, 2**90])


@given(
    at=st.integers(0, len(WRITTEN) - 1), byte=st.integers(0, 255), cut=st.integers(0, len(WRITTEN))
)
def test_damaged_bytes_are_a_value_or_an_error(at: int, byte: int, cut: int) -> None:
    data = bytearray(WRITTEN)
    data[at] = byte
    for damaged in (data, data[:cut]):
        with suppress(FormatError):
            from_bytes(damaged)


def _framed(head: bytes, shapes: object = (), *arrays: bytes) -> bytes:
    """Return bytes as `to_bytes` lays them out, of parts that it would not write."""
    parts = [msgpack.packb(shapes), head, *arrays]
    data = struct.pack(f"<{len(parts) + 1}Q", len(parts), *map(len, parts))
    for part in parts:
        data += bytes(-len(data) % 64) + part
    return data + bytes(-len(data) % 64)


CLASS = {msgpack.ExtType(1, b"subprocess:Popen"): [["true"]]}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "0 bytes are too few"),
        (struct.pack("<QQ", 2**61, 5), "parts do not fit"),
        (struct.pack("<QQQ", 2, 2**62, 2**62), "a part of 4611686018427387904 bytes"),
        (_framed(msgpack.packb(CLASS)), "'subprocess:Popen' in a snapshot is not a record"),
        (_framed(b"\x91" * 100_000 + b"\x01"), "not a value"),
        (_framed(b"\xdd\xff\xff\xff\xff"), "not a value"),
        (_framed(b"\x01", [["|O", [1]]], bytes(8)), "arrays of object are not plain data"),
        (_framed(b"\x01", [["<i8", [2**40, 2**40]]], bytes(8)), "an array of"),
        (_framed(b"\x01", [["<i8", [-1, -1]]], bytes(8)), "an array of"),
        (_framed(b"\x01", [["|V0", [2**60]]], b""), "are not plain data"),
    ],
)
def test_hostile_bytes_are_refused_with_a_reason(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_bytes(data)


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def matches(stream: int, *probes: int) -> Matches:
    count = np.ones(len(probes), np.int64)
    return Matches(
        stream=stream, probe_id=ids(*probes), count=count, fingerprint=count.view(np.uint64)
    )


def alike(left: Any, right: Any) -> bool:
    """Whether two values have the same types and content, arrays too."""
    return type(left) is type(right) and bool(to_bytes(left) == to_bytes(right))


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1, 2, -(2**63)],
        ["a", None, 3, True, 2.5],
        [(), ()],
        [(1, "a"), (2, "b")],
        [(1,), (2, 3), ()],
        [[], [(1, "next")], [(2, "a"), (3, "b")]],
        [2**80, 1],
        [np.int64(3), np.float64(0.5)],
        [{"a": ids(1)}, {}],
        [deque([1]), {2}],
        [ids(1, 2), ids(), ids(3)],
        [ids(1, 2), np.array([0.5])],
        [ids(1, 2).reshape(1, 2), ids(1, 2, 3).reshape(1, 3)],
        [ids(1, 2, 3, 4).reshape(2, 2).T, ids(5, 6).reshape(1, 2)],
        [np.array(5), np.array(6)],
        [NO_WORK, Work(comparisons=3)],
        [[(Step("hash.probe", 3, 4), Work(matches=2))], ()],
        [[Output(matches(0, 1, 2), ids(5, 6), "a"), Output(matches(1), ids(), "b")]],
        [Output(matches(0, 1), ids(5), "a"), Late(0, ids(1), ids(2), 3, (4, 5))],
    ],
)
def test_values_come_back_from_their_columns(values: list[Any]) -> None:
    written = to_bytes(to_columns(values))
    found = from_columns(from_bytes(written))
    assert len(found) == len(values)
    assert all(map(alike, found, values))


def test_many_small_arrays_are_a_few_large_ones() -> None:
    outputs = [Output(matches(0, i, i + 1), ids(i, i), "a") for i in range(100)]
    assert len(to_bytes(to_columns(outputs))) < len(to_bytes(outputs)) / 3
