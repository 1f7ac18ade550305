"""Matches of several structures add up to those of one, and kernels list them chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.hashing import mix, splitmix64
from joins.machine.compiling import kernel
from joins.matches import (
    MatchBuffer,
    Matches,
    ProbeResult,
    add_match,
    add_total,
    begin_row,
    commit_row,
    find_matches,
    has_room,
)
from joins.work import COMPARISONS, Work


def matches(rows: list[list[int]]) -> Matches:
    return Matches(
        stream=0,
        probe_id=np.arange(len(rows)),
        count=np.array([len(row) for row in rows], np.int64),
        fingerprint=np.array(
            [mix(np.array(row, np.int64)).sum(dtype=np.uint64) for row in rows], np.uint64
        ),
        match_id=np.array([i for row in rows for i in row], np.int64),
    )


@given(data=st.data(), probes=st.integers(0, 5), parts=st.integers(1, 4))
def test_a_sum_has_every_row_of_every_part(data: st.DataObject, probes: int, parts: int) -> None:
    row = st.lists(st.integers(0, 99), max_size=4)
    found = [
        data.draw(st.lists(row, min_size=probes, max_size=probes), label=f"part {part}")
        for part in range(parts)
    ]
    total = Matches.sum([matches(rows) for rows in found])
    whole = [[i for rows in found for i in rows[probe]] for probe in range(probes)]
    assert total.match_id is not None
    assert total.match_id.tolist() == [i for row in whole for i in row]
    assert total.count.tolist() == [len(row) for row in whole]
    assert total.fingerprint.tolist() == matches(whole).fingerprint.tolist()


@given(rows=st.lists(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=3), max_size=5))
def test_what_is_split_has_each_probes_own(rows: list[list[list[int]]]) -> None:
    whole = matches([row for part in rows for row in part])
    parts = whole.split([len(part) for part in rows])
    assert len(parts) == len(rows)
    for found, part in zip(parts, map(matches, rows), strict=True):
        assert found.match_id is not None
        assert part.match_id is not None
        assert found.match_id.tolist() == part.match_id.tolist()
        assert found.fingerprint.tolist() == part.fingerprint.tolist()
        assert found.count.tolist() == part.count.tolist()
    assert [i for found in parts for i in found.probe_id.tolist()] == whole.probe_id.tolist()


@pytest.mark.parametrize("enumerate", [True, False])
@given(pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**62))))
def test_pairs_are_added_up_and_listed_by_row(
    enumerate: bool, pairs: list[tuple[int, int]]
) -> None:
    """Within a row they stay in the order in which they came; rows may be without any."""
    columns = np.array(pairs, np.int64).reshape(-1, 2).T
    found = Matches.of_pairs(0, np.arange(5), *columns, enumerate=enumerate)
    wanted = matches([[match for row, match in pairs if row == i] for i in range(5)])
    assert found.count.tolist() == wanted.count.tolist()
    assert found.fingerprint.tolist() == wanted.fingerprint.tolist()
    assert (found.match_id is None) == (not enumerate)
    if found.match_id is not None:
        assert wanted.match_id is not None
        assert found.match_id.tolist() == wanted.match_id.tolist()


@given(rows=st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=5))
def test_a_match_of_several_pairs_in_turn_is_that_of_each(rows: list[list[int]]) -> None:
    """As when what each probe found becomes what found each match."""
    probes, repeats = np.arange(90, 90 + len(rows)), np.array([len(row) for row in rows], np.int64)
    row = np.array([one for row in rows for one in row], np.int64)
    found = Matches.of_pairs(0, np.arange(5), row, probes, repeats, enumerate=True)
    wanted = Matches.of_pairs(0, np.arange(5), row, np.repeat(probes, repeats), enumerate=True)
    for one, other in zip(vars(found).values(), vars(wanted).values(), strict=True):
        assert np.array_equal(one, other)


def test_counted_matches_have_no_pairs() -> None:
    counted = Matches(
        stream=0, probe_id=np.arange(1), count=np.ones(1, int), fingerprint=np.ones(1, np.uint64)
    )
    with pytest.raises(ValueError, match="counted, not enumerated"):
        counted.pairs()


@kernel
def _multiples(
    numbers: np.ndarray, most: int, row: int, buffer: MatchBuffer, counters: np.ndarray
) -> int:
    """Match every number with its multiples up to *most*, comparing it with all numbers."""
    for i in range(row, len(numbers)):
        begin_row(buffer, counters)
        for candidate in range(1, most + 1):
            counters[COMPARISONS] += 1
            if candidate % numbers[i] == 0:
                add_match(buffer, i, candidate)
        if not commit_row(buffer, i, counters):
            return i
    return len(numbers)


@kernel
def _multiples_bounded(
    numbers: np.ndarray, most: int, row: int, buffer: MatchBuffer, counters: np.ndarray
) -> int:
    for i in range(row, len(numbers)):
        if not has_room(buffer, most):
            return i
        total = np.uint64(0)
        count = 0
        listed = buffer.listed[0]
        for candidate in range(1, most + 1):
            counters[COMPARISONS] += 1
            if candidate % numbers[i] == 0:
                total += splitmix64(candidate)
                if len(buffer.match_id) > 0:
                    buffer.match_id[listed + count] = candidate
                count += 1
        add_total(buffer, i, count, total)
    return len(numbers)


@pytest.mark.parametrize("find", [_multiples, _multiples_bounded])
@pytest.mark.parametrize("room", [None, 1, 3, 7, 1000])
def test_a_kernel_gets_as_many_chunks_as_it_needs(
    find: Callable[..., int], room: int | None
) -> None:
    numbers, most = np.array([3, 1, 50, 2, 1, 7]), 40
    rows = [[c for c in range(1, most + 1) if c % number == 0] for number in numbers]

    def step(row: int, buffer: MatchBuffer, counters: np.ndarray) -> int:
        return find(numbers, most, row, buffer, counters)

    at_most = None if room is None else np.array([room])
    listed = find_matches(step, len(numbers), enumerate=True, most=at_most)
    counted = find_matches(step, len(numbers), enumerate=False, most=at_most)
    expected = matches(rows)
    assert listed.match_id is not None
    assert expected.match_id is not None
    assert listed.match_id.tolist() == expected.match_id.tolist()
    assert counted.match_id is None
    for result in (listed, counted):
        assert result.count.tolist() == expected.count.tolist()
        assert result.fingerprint.tolist() == expected.fingerprint.tolist()
        # A row that is probed again costs what it cost once.
        assert result.work == Work(comparisons=len(numbers) * most, matches=expected.total)


def test_a_step_without_rows_finds_nothing() -> None:
    def step(row: int, buffer: MatchBuffer, counters: np.ndarray) -> int:
        return _multiples(np.empty(0, np.int64), 9, row, buffer, counters)

    nothing = find_matches(step, 0, enumerate=True)
    assert nothing.match_id is not None
    assert len(nothing.match_id) == len(nothing.count) == 0


@given(data=st.data(), probes=st.integers(0, 5), parts=st.integers(1, 4))
def test_successive_results_are_joined_end_to_end(
    data: st.DataObject, probes: int, parts: int
) -> None:
    row = st.lists(st.integers(0, 99), max_size=4)
    found = [
        data.draw(st.lists(row, min_size=probes, max_size=probes), label=f"part {part}")
        for part in range(parts)
    ]
    results = []
    for rows in found:
        part = matches(rows)
        results.append(
            ProbeResult(
                count=part.count,
                fingerprint=part.fingerprint,
                match_id=part.match_id,
                work=Work(matches=part.total),
            )
        )
    whole = matches([row for rows in found for row in rows])
    joined = ProbeResult.concat(results)
    assert joined.match_id is not None
    assert whole.match_id is not None
    assert joined.match_id.tolist() == whole.match_id.tolist()
    assert joined.count.tolist() == whole.count.tolist()
    assert joined.fingerprint.tolist() == whole.fingerprint.tolist()
    assert joined.work == Work(matches=whole.total)
    added = ProbeResult.sum(results)
    assert added.work == joined.work
    assert added.of(0, np.arange(probes)).total == whole.total
