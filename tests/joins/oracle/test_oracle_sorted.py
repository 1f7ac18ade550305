"""Sorted scans find what comparing everything finds, whatever the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.batch import Batch
from joins.oracle import match
from joins.oracle.match import evaluate, match_ranges
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
        (matches,) = match_ranges(query, 0, probes, stored, first, last, enumerate_ids=True)
    assert matches.count.tolist() == (everything & seen).sum(axis=1).tolist()
    assert matches.match_id is not None
    assert matches.match_id.tolist() == np.nonzero(everything & seen)[1].tolist()
