"""What a site stores of another's window: distinct values, and full tuples of some."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.batch import Batch, Schema
from joins.queries.parser import parse_query
from joins.semijoins.distinct_values import DistinctValues
from joins.semijoins.one_way_join import JoinAttributes
from joins.semijoins.operand import Operand
from joins.semijoins.stored_tuples import MixedWindow

SCHEMA = Schema(stream="S2", fields={"j": "int64"})
QUERY = parse_query(
    "SELECT * FROM S1, S2 WHERE S1.j = S2.j WINDOW AS (SLIDE INTERVAL '1 ns' ON '9 ns' PRECISE)"
)
ATTRIBUTES = JoinAttributes.between(
    QUERY, [Operand.of_stream(0)], Operand.of_stream(1), [SCHEMA, SCHEMA]
)
A, C, D, E, F = range(5)


def tuples(first: int, *values: int) -> Batch:
    ids = first + np.arange(len(values))
    return Batch(id=ids, ts=ids, key=0 * ids, fields={"j": np.array(values, np.int64)})


def values_of(*values: int) -> tuple[np.ndarray, ...]:
    return (np.array(values, np.int64),)


def test_example_4_to_the_element() -> None:
    """Insert ⟨d,x⟩, ⟨a,z⟩, ⟨f,w⟩ and remove ⟨c,y⟩, ⟨a,x⟩; c and a have been shipped, e has not."""
    at_n2 = DistinctValues(["int64"])
    at_n1 = MixedWindow(stream=1, schema=SCHEMA, attributes=ATTRIBUTES)
    before = tuples(0, C, A, A, E)  # ⟨c,y⟩ ⟨a,x⟩ ⟨a,y⟩ and one of e
    changes, entries, _ = at_n2.update((before.fields["j"],), np.empty(0, np.int64))
    at_n1.update(changes, before.slice(0, 0))
    at_n2.flag[at_n2.find(values_of(C, A))] = True
    at_n1.fetched(values_of(C, A), before.slice(0, 3))

    new = tuples(4, D, A, F)
    changes, _, flagged = at_n2.update((new.fields["j"],), entries[:2])
    s_f = new.take(flagged)
    assert changes.values[0].tolist() == [D, F]
    assert changes.counts.tolist() == [0, 2, 1, 1, 1]
    assert s_f.id.tolist() == [5]
    assert at_n2.values[0].tolist() == [A, E, D, F]
    assert at_n2.count.tolist() == [2, 1, 1, 1]
    assert at_n2.flag.tolist() == [True, False, False, False]

    at_n1.update(changes, s_f)
    assert at_n1.values.values[0].tolist() == [A, E, D, F]
    assert at_n1.values.flag.tolist() == [True, False, False, False]
    assert at_n1.full.tuples.id.tolist() == [2, 5]  # ⟨a,y⟩ ⟨a,z⟩


@given(
    steps=st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), max_size=6),  # arrive
            st.integers(0, 6),  # expire
            st.lists(st.integers(0, 6), max_size=2),  # are asked for
        ),
        max_size=12,
    )
)
def test_the_copy_follows_the_window(
    steps: list[tuple[list[int], int, list[int]]],
) -> None:
    """M_2 has the values of W_2 and, of those asked for, all tuples that are still there."""
    at_n2 = DistinctValues(["int64"])
    at_n1 = MixedWindow(stream=1, schema=SCHEMA, attributes=ATTRIBUTES)
    window: list[tuple[int, int, int]] = []  # id, value, entry
    made = 0
    asked_for: set[int] = set()
    for arrive, expire, asked in steps:
        gone, window = window[:expire], window[expire:]
        new = tuples(made, *arrive)
        changes, entries, flagged = at_n2.update(
            (new.fields["j"],), np.array([entry for _, _, entry in gone], np.int64)
        )
        at_n1.update(changes, new.take(flagged))
        window += zip(new.id.tolist(), arrive, entries.tolist(), strict=True)
        made += len(arrive)
        present = {value for _, value, _ in window}
        asked_for &= present
        wanted = sorted(set(asked) & present)
        fresh = set(wanted) - asked_for
        at_n2.flag[at_n2.find(values_of(*wanted))] = True
        rows = [place for place, (_, value, _) in enumerate(window) if value in fresh]
        everything = tuples(0, *range(made))
        shipped = Batch(
            id=np.array([window[row][0] for row in rows], np.int64),
            ts=np.array([window[row][0] for row in rows], np.int64),
            key=everything.key[: len(rows)],
            fields={"j": np.array([window[row][1] for row in rows], np.int64)},
        )
        at_n1.fetched(values_of(*wanted), shipped)
        asked_for |= fresh
        counts = Counter(value for _, value, _ in window)
        held = dict(zip(at_n1.values.values[0].tolist(), at_n1.values.count.tolist(), strict=True))
        assert held == counts
        assert at_n1.full.tuples.id.tolist() == [
            number for number, value, _ in window if value in asked_for
        ]
