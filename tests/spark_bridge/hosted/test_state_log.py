"""What a shard keeps: rebuilt from it after any trigger, and no more files than that takes."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.serialisation import to_bytes
from joins.errors import DataError
from joins.state import State
from spark_bridge.hosted.shard import (
    ShardLetter,
    StageShard,
    pack_letters,
    unpack_letters,
)
from spark_bridge.hosted.state_log import LogHead, StateLog
from tests.spark_bridge.hosted.triggers import Variable


class Window:
    """A shard whose state is the last few numbers that it received."""

    home = (0, 3)

    def __init__(self, length: int) -> None:
        self._length = length
        self.numbers = np.empty(0, np.int64)

    def deliver(self, letters: list[ShardLetter]) -> None:
        received = [letter.payload for letter in letters]
        self.numbers = np.concatenate([self.numbers, *received])[-self._length :]

    def snapshot(self) -> State:
        return {"numbers": self.numbers}

    def restore(self, state: State) -> None:
        self.numbers = state["numbers"]


def arrivals_parcel(order: int, numbers: list[int]) -> bytes:
    letter = ShardLetter(order, 0, "source", "out", None, ("window",))
    return pack_letters([(letter, to_bytes(np.array(numbers, np.int64)))])


@given(
    length=st.integers(1, 400),
    triggers=st.lists(
        st.lists(st.lists(st.integers(0, 9), max_size=60), min_size=1, max_size=3), max_size=12
    ),
)
def test_a_shard_is_rebuilt_after_any_trigger_whether_it_was_committed(
    tmp_path_factory: pytest.TempPathFactory, length: int, triggers: list[list[list[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("kept")
    variable = Variable()
    kept, head, received = StateLog(variable, folder), LogHead(), np.empty(0, np.int64)
    for trigger in triggers:
        committed = variable.value
        for _ in ("in vain", "committed"):
            variable.value = committed
            window = Window(length)
            shard = cast(StageShard, window)
            kept.rebuild(kept.head, shard)
            assert window.numbers.tolist() == received.tolist()
            parcels = [arrivals_parcel(i, numbers) for i, numbers in enumerate(trigger)]
            window.deliver(unpack_letters(parcels))
            head = kept.store(kept.head, 7, parcels, shard)
        assert kept.head == head
        assert (head.log_bytes == 0) == (head.snapshot == head.trigger)
        received = window.numbers
        # All since the snapshot, and what was needed had the last trigger failed.
        least = head.replaced if head.trigger == head.snapshot else head.snapshot
        names = {f"{number:06d}-0-3" for number in range(max(least, 1), head.trigger + 1)}
        assert {path.name for path in Path(folder).iterdir()} == names


def test_a_damaged_file_is_named_whatever_its_damage(tmp_path: Path) -> None:
    log, shard = StateLog(Variable(), tmp_path), cast(StageShard, Window(900))
    for numbers in ([1] * 900, [2] * 900, [4]):
        parcels = [arrivals_parcel(0, numbers)]
        shard.deliver(unpack_letters(parcels))
        log.store(log.head, 7, parcels, shard)
    names = [f"{trigger:06d}-0-3" for trigger in range(log.head.snapshot, log.head.trigger + 1)]
    needed = [tmp_path / name for name in names]
    assert len(needed) > 1  # a snapshot, and parcels
    for path in needed:
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        another = next(other for other in needed if other != path).read_bytes()
        cut = (b"", whole[:-1], whole[: len(whole) // 2], whole[8:])
        for damaged in (*cut, b"\xff" * 40, flipped, another):
            path.write_bytes(damaged)
            with pytest.raises(DataError, match=rf"{path.name} is damaged .*: put it back"):
                log.rebuild(log.head, cast(StageShard, Window(900)))
        path.write_bytes(whole)
    log.rebuild(log.head, shard)
