"""Runs that promise less than exactness are held to that, and those that promise nothing to none.

After a crash results may come again, or be lost; an approximate run leaves some out; variants that
their paper shows to be wrong claim nothing.
"""

from __future__ import annotations

from typing import Any

import pytest

from joins.semijoins.value_sample import ValueSample
from scenarios.verdict import Verdict
from tests.scenarios.verdict.broken import (
    Break,
    every,
    first_of_all,
    neighbours,
    on_matches,
    undercounted,
    wrapped,
)
from tests.scenarios.verdict.test_mutants import INTERVAL, LATE, SELF, SMALL, THREE, Ordinary


def crashing(guarantee: str) -> Ordinary:
    """Return a run of which a PE crashes."""
    crash = {"kind": "crash", "actor": "joiner.1", "start": "1 ms", "end": "1200 us"}
    return recovering([crash], guarantee, "reliable")


def recovering(faults: list[dict[str, Any]], guarantee: str, transport: str) -> Ordinary:
    recovery = {"guarantee": guarantee, "interval": "500 us"}
    return Ordinary(
        "split_join",
        feeding=SMALL | {"rate_tps": 100_000},
        parameters={"faults": faults, "recovery": recovery, "network": {"transport": transport}},
    )


UNCLAIMED = {
    "without a hash table": Ordinary(
        "spo_join", SELF, {"batch_rows": 5, "rate_tps": 50_000}, {"hash_table": False}
    ),
    "naive collectors": Ordinary("dp_oij", INTERVAL, LATE, {"collector": "naive"}),
}


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.passed is False]


def detail(verdict: Verdict, name: str) -> str:
    return next(check.detail for check in verdict.checks if check.name == name)


APPROXIMATE = Ordinary(
    "semijoin", THREE.replace("B.x = C.x", "B.k = C.k"), parameters={"kept": {"share": 0.5}}
)


@pytest.mark.parametrize("pairs", [True, False])
def test_at_least_once_may_repeat(pairs: bool) -> None:
    verdict = crashing("at_least_once").run(pairs=pairs).verdict
    assert verdict.duplicate > 100
    assert verdict.passed is True, verdict.checks


@pytest.mark.parametrize("pairs", [True, False])
def test_without_recovery_pairs_that_are_missing_prove_nothing(pairs: bool) -> None:
    verdict = crashing("none").run(pairs=pairs).verdict
    assert verdict.missing > 0
    assert verdict.spurious == verdict.duplicate == 0
    assert verdict.passed is None
    assert "nothing is promised" in detail(verdict, "recovery")


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "none"])
@pytest.mark.parametrize(
    ("breaks", "pairs"),
    [(on_matches(neighbours), True), (on_matches(undercounted), False)],
    ids=["neighbours", "counts"],
)
def test_no_crash_makes_pairs_that_do_not_satisfy_the_query_or_sums_of_other_pairs(
    guarantee: str, breaks: Break, pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    verdict = crashing(guarantee).run(pairs=pairs).verdict
    assert verdict.passed is False, verdict.checks
    assert "recovery" in failed(verdict)
    if not pairs:
        assert verdict.inconsistent == verdict.differing_tuples > 100
        assert "pairs" in failed(verdict)


def test_at_least_once_may_not_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    on_matches(first_of_all(0))(monkeypatch)
    assert failed(crashing("at_least_once").run().verdict) == ["recovery"]


@pytest.mark.parametrize("name", UNCLAIMED)
@pytest.mark.parametrize("breaks", [on_matches(neighbours), on_matches(first_of_all(0))])
def test_what_claims_nothing_and_is_not_exact_is_unknown(
    name: str, breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    verdict = UNCLAIMED[name].run().verdict
    assert not verdict.exact
    assert verdict.passed is None, verdict.checks
    assert "does not claim to be exact" in detail(verdict, "oracle")


def test_what_claims_nothing_and_is_exact_passes() -> None:
    verdict = UNCLAIMED["naive collectors"].run().verdict
    assert verdict.exact
    assert not verdict.claims_exact
    assert verdict.passed is True, verdict.checks


def test_what_claims_nothing_still_reports_the_pairs_that_it_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    on_matches(undercounted)(monkeypatch)
    verdict = UNCLAIMED["without a hash table"].run(pairs=False).verdict
    assert failed(verdict) == ["pairs"]


@pytest.mark.parametrize("pairs", [True, False])
def test_an_approximate_run_passes_with_just_what_it_keeps(pairs: bool) -> None:
    verdict = APPROXIMATE.run(pairs=pairs).verdict
    assert 0 < verdict.produced < verdict.expected
    assert verdict.off_sample == 0
    assert verdict.passed is True, verdict.checks


@pytest.mark.parametrize(
    "breaks",
    [
        on_matches(every(10)),
        on_matches(first_of_all(0)),
        on_matches(every(10**9)),
        wrapped(ValueSample, "contains", lambda original, self, values: original(self, values + 1)),
        wrapped(ValueSample, "contains", lambda original, self, values: values == values),
    ],
    ids=["nine in ten lost", "one lost", "one a message left", "other values kept", "all kept"],
)
def test_an_approximate_run_gives_all_that_it_keeps_and_no_more(
    breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    verdict = APPROXIMATE.run().verdict
    assert verdict.off_sample > 0
    assert failed(verdict) == ["sample"]


def test_the_loss_of_a_marker_that_ends_all_snapshots_is_said() -> None:
    """Without a transport the next snapshot waits for it, and no other is taken."""
    loss = {"kind": "loss", "rate": 0.05}
    lossy = recovering([loss], "exactly_once", "none").run().verdict
    assert "; a marker was lost, and no snapshot came after that" in detail(lossy, "recovery")
    sound = recovering([loss], "exactly_once", "reliable").run().verdict
    assert "marker" not in detail(sound, "recovery")
