"""A small part of `benchmarks.hostile`: what is read of others is read or refused, never worse."""

from __future__ import annotations

import pytest

from benchmarks import hostile

INPUTS = 60


@pytest.mark.parametrize("target", sorted(hostile.targets()))
def test_whatever_is_read_is_a_value_or_an_error_of_ours(target: str) -> None:
    hostile.run(target, INPUTS)


def test_an_input_that_breaks_something_is_found_and_made_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(data: bytes) -> None:
        if b"b" in data:
            raise KeyError(data)

    broken = hostile.Target(read, [b"aaabaaa"])
    monkeypatch.setattr(hostile, "targets", lambda: {"broken": broken})
    with pytest.raises(hostile.Broken, match=r"^KeyError: b'b'\n"):
        hostile.run("broken", 300)


@pytest.mark.parametrize("taken", [hostile.BYTES_MAX, hostile.BYTES_MAX + 1])
def test_inputs_answer_for_the_memory_that_they_take_themselves(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks = [3 * hostile.BYTES_MAX]  # of the tests before this one

    def read(_: bytes) -> None:
        peaks.append(peaks[0] + taken)

    monkeypatch.setattr(hostile, "targets", lambda: {"large": hostile.Target(read, [b"a"])})
    monkeypatch.setattr(hostile, "peak_bytes", lambda: peaks[-1])
    if taken <= hostile.BYTES_MAX:
        hostile.run("large", 20)
    else:
        with pytest.raises(hostile.Broken, match=r"took 2\.0 GiB"):
            hostile.run("large", 20)
