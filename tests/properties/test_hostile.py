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
