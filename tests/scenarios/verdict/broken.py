"""Operators broken on purpose: in what they send on, and in how they come to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from actors.hosting.inline import RecordingContext
from actors.results import Answers, Late
from joins.hashing import mix, mix_rows
from joins.matches import Matches

Break = Callable[[pytest.MonkeyPatch], None]
"""Breaks an operator, until the test is over."""


def wrapped(owner: type, name: str, broken: Callable[..., Any]) -> Break:
    """Replace a method or property of *owner* by *broken*, called with the original first."""
    static = vars(owner)[name]
    original = static.fget if isinstance(static, property) else static

    def replaced(*args: Any, **options: Any) -> Any:
        return broken(original, *args, **options)

    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            owner, name, property(replaced) if isinstance(static, property) else replaced
        )

    return apply


def sends(kind: type, change: Callable[[Any], list[Any]]) -> Break:
    """Have operators send, in place of each payload of a *kind*, what *change* makes of it."""

    def broken(send: Any, self: Any, port: str, payload: Any, to: int | None = None) -> None:
        for one in change(payload) if isinstance(payload, kind) else [payload]:
            send(self, port, one, to)

    return wrapped(RecordingContext, "send", broken)


def on_matches(change: Callable[[Matches], Matches]) -> Break:
    """Have operators report, in place of some matches, what *change* makes of them."""

    def answers(payload: Answers) -> list[Answers]:
        return [replace(payload, matches=tuple(change(part) for part in payload.matches))]

    return sends(Answers, answers)


def relisted(matches: Matches, keep: np.ndarray) -> Matches:
    """Return *matches* with so many copies of each listed match, sums and all."""
    assert matches.match_id is not None
    listed = matches.match_id
    row = np.repeat(np.repeat(np.arange(len(matches)), matches.count), keep)
    listed = np.repeat(listed, keep, axis=0)
    return with_ids(matches, row, listed)


def with_ids(matches: Matches, row: np.ndarray, listed: np.ndarray) -> Matches:
    """Return *matches* with these listed instead, and counts and fingerprints to go with them."""
    fingerprint = np.zeros(len(matches), np.uint64)
    np.add.at(fingerprint, row, hashes(listed))
    count = np.bincount(row, minlength=len(matches)).astype(np.int64)
    return replace(matches, count=count, fingerprint=fingerprint, match_id=listed)


def hashes(listed: np.ndarray) -> np.ndarray:
    """Return what a fingerprint adds up."""
    return mix(listed) if listed.ndim == 1 else mix_rows(list(listed.T))


def first_of_all(times: int) -> Callable[[Matches], Matches]:
    """Return a change that lists the first match of a message so many times."""

    def change(matches: Matches) -> Matches:
        copies = np.ones(matches.total, np.int64)
        copies[:1] = times
        return relisted(matches, copies)

    return change


def reversed_ids(matches: Matches) -> Matches:
    """List the matches the wrong way round: sums are as they were, pairs are not."""
    assert matches.match_id is not None
    return replace(matches, match_id=matches.match_id[::-1])


def neighbours(matches: Matches) -> Matches:
    """Report each match's successor, sums and all."""
    assert matches.match_id is not None
    row = np.repeat(np.arange(len(matches)), matches.count)
    return with_ids(matches, row, matches.match_id + 1)


def rotated(matches: Matches) -> Matches:
    """Report each tuple's matches under the next tuple of the message."""
    return replace(matches, probe_id=np.roll(matches.probe_id, 1))


def uncounted(matches: Matches) -> Matches:
    """Report one match less than is listed."""
    count = matches.count.copy()
    some = np.flatnonzero(count)[:1]
    # The list is cut by the counts: what is too much comes under the tuple behind.
    count[some] -= 1
    count[some + 1 if some.size and some[0] + 1 < len(count) else some] += 1
    return replace(matches, count=count)


def miscounted(matches: Matches) -> Matches:
    """List a pair that no sum has."""
    assert matches.match_id is not None
    listed = matches.match_id.copy()
    listed[:1] += 3
    return replace(matches, match_id=listed)


def also(change: Callable[[Matches], Matches]) -> Break:
    """Have operators send every answer once more, changed."""

    def answers(payload: Answers) -> list[Answers]:
        return [payload, replace(payload, matches=tuple(change(p) for p in payload.matches))]

    return sends(Answers, answers)


def of_no_tuple(matches: Matches) -> Matches:
    """Report it all of tuples that do not exist."""
    return replace(matches, probe_id=matches.probe_id + 10**7)


def of_other_stream(matches: Matches) -> Matches:
    """Report it all of the other stream's tuples."""
    return replace(matches, stream=1 - matches.stream)


def on_late(change: Callable[[Late], list[Late]]) -> Break:
    """Have operators report other late tuples than they dropped."""
    return sends(Late, change)


def undercounted(matches: Matches) -> Matches:
    """Report one match less of each tuple, where none are listed: the same with a list is right."""
    if matches.match_id is not None:
        return matches
    return replace(matches, count=np.maximum(matches.count - 1, 0))


def doubled(matches: Matches) -> Matches:
    """Report every match twice, sums and all."""
    if matches.match_id is not None:
        return relisted(matches, np.full(matches.total, 2))
    fingerprint = matches.fingerprint * np.uint64(2)
    return replace(matches, count=matches.count * 2, fingerprint=fingerprint)


def every(nth: int) -> Callable[[Matches], Matches]:
    """Return a change that loses all matches of a message but every *nth*."""
    return lambda matches: relisted(matches, (np.arange(matches.total) % nth == 0).astype(np.int64))
