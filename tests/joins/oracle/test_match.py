"""Sorted scans find what comparing everything finds, whatever the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.batch import Batch
from joins.matches import Matches
from joins.oracle import match
from joins.oracle.match import Seen, evaluate, mark_ranges, match_ranges
from joins.queries.parser import parse_query

_MOST = float(np.finfo(np.float64).max)
FLOATS = [0.0, -0.0, 0.1, 0.3, 0.30000000000000004, 5e-324]
FLOATS += [1e300, -1e300, _MOST, -_MOST, np.inf, -np.inf, np.nan]
INTEGERS = [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]


def _batch(values: np.ndarray) -> Batch:
    ids = np.arange(len(values))
    return Batch(id=ids, ts=ids, key=np.zeros_like(ids), fields={"x": values})


@pytest.mark.filterwarnings("error")
@given(
    whole=st.booleans(),
    predicate=st.sampled_from(["R.x = S.x", "ABS(R.x - S.x) <= 2", "ABS(S.x - R.x) < 0.3"]),
    near=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_near_values_are_all_that_can_match(
    whole: bool, predicate: str, near: bool, seed: int
) -> None:
    """Whether only near values are compared, or all, the matches are the same."""
    query = parse_query(
        f"SELECT R.x FROM R, S WHERE {predicate} WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    rng = np.random.default_rng(seed)
    odd = np.array(INTEGERS, np.int64) if whole else np.array(FLOATS)
    far = rng.integers(-(10**6), 10**6, 400)
    values = np.concatenate([rng.choice(odd, 8), far if whole else far / 8])
    rng.shuffle(values)
    probes, stored = _batch(values[:100]), _batch(values[100:])
    first = np.sort(rng.integers(0, len(stored), len(probes)))
    last = np.maximum(first, np.sort(rng.integers(0, len(stored) + 1, len(probes))))

    everything = evaluate(
        query.predicates[0], probes.fields["x"][:, np.newaxis], stored.fields["x"][np.newaxis]
    )
    column = np.arange(len(stored))
    seen = (column >= first[:, np.newaxis]) & (column < last[:, np.newaxis])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match, "_PAIRS_PER_CANDIDATE", 0 if near else 1 << 60)
        (matches,) = match_ranges(Seen(query, 0, probes, stored, first, last), enumerate_ids=True)
    assert matches.count.tolist() == (everything & seen).sum(axis=1).tolist()
    assert matches.match_id is not None
    assert matches.match_id.tolist() == np.nonzero(everything & seen)[1].tolist()


def test_neighbours_that_see_tuples_far_apart_are_compared_in_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sorted by key, as in an interval join: each probe sees a few of very many tuples."""
    query = parse_query(
        "SELECT R.x FROM R, S WHERE R.x != S.x WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    rng = np.random.default_rng(3)
    probes, stored = (_batch(rng.integers(0, 3, rows)) for rows in (300, 60_000))
    first = np.arange(300) * 200
    last = first + rng.integers(0, 7, 300)
    cells: list[int] = []

    def count(marked: np.ndarray, *ranges: np.ndarray) -> None:
        cells.append(marked.size)
        mark_ranges(marked, *ranges)

    monkeypatch.setattr(match, "mark_ranges", count)
    found: dict[str, list[Matches]] = {}
    for path, per_pair in (("matrix", 1 << 60), ("pair by pair", 16)):
        monkeypatch.setattr(match, "_CELLS_PER_PAIR", per_pair)
        monkeypatch.setattr(match, "_CELLS_AT_ONCE", 100_000)
        parts = match_ranges(Seen(query, 0, probes, stored, first, last), enumerate_ids=True)
        found[path] = list(parts)
    assert max(cells) <= 100_000
    for column in ("probe_id", "count", "fingerprint", "match_id"):
        one, other = (
            np.concatenate([getattr(part, column) for part in found[path]]).tolist()
            for path in ("matrix", "pair by pair")
        )
        assert one == other
        assert len(one) > 200
