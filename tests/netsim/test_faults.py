"""When faults are there, and what they do to links and actors then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netsim.faults import (
    FOREVER_NS,
    ActorFault,
    ActorFaults,
    ActorKind,
    Fault,
    Faults,
    FaultSpans,
    LinkFault,
    LinkState,
)
from netsim.network import NetworkError

PLACEMENT = {"source": "s", "joiner.0": "j0", "joiner.1": "j1"}


def faults(*rows: Fault, seed: int = 1) -> Faults:
    return Faults(rows, placement=PLACEMENT, sources={"source"}, seed=seed)


def actor(*rows: ActorFault) -> ActorFaults:
    found = faults(*rows).on_actor("joiner.0")
    assert found is not None
    return found


@st.composite
def repeated(draw: st.DrawFn, kinds: Sequence[ActorKind] = ("pause",)) -> ActorFault:
    start = draw(st.integers(0, 50))
    length = draw(st.integers(1, 30))
    every = draw(st.none() | st.integers(length + 1, 80))
    random = every is not None and draw(st.booleans())
    kind = draw(st.sampled_from(kinds))
    return ActorFault(
        kind=kind,
        from_ns=start,
        to_ns=start + length,
        every_ns=every,
        random=random,
        factor=draw(st.sampled_from([1.0, 2.0, 3.0])) if kind == "slow" else 1.0,
    )


@given(fault=repeated(), seed=st.integers(0, 5))
def test_spans_by_arithmetic_are_those_listed_one_by_one(fault: ActorFault, seed: int) -> None:
    assert fault.to_ns is not None
    length = fault.to_ns - fault.from_ns
    listed = list(FaultSpans(fault, [seed]).until(400))
    assert all(end - start == length for start, end in listed)
    if fault.every_ns is None:
        assert listed == [(fault.from_ns, fault.to_ns)]
    else:
        for number, (start, end) in enumerate(listed):
            period = fault.from_ns + number * fault.every_ns
            assert period <= start
            assert end <= period + fault.every_ns
            assert fault.random or start == period
    # The same, asked for in any order of times.
    asked = FaultSpans(fault, [seed])
    for now in reversed(range(400)):
        assert asked.active(now) == any(start <= now < end for start, end in listed)


def test_random_moments_differ_from_seed_to_seed() -> None:
    fault = ActorFault(kind="pause", from_ns=0, to_ns=10, every_ns=1_000, random=True)
    listed = [tuple(FaultSpans(fault, [seed]).until(10_000)) for seed in range(5)]
    assert len(set(listed)) == 5


@given(
    rows=st.lists(repeated(("pause", "slow")), max_size=3),
    factors=st.lists(st.sampled_from([1.0, 2.0, 3.0]), max_size=2),
    started=st.integers(0, 60),
    work=st.integers(0, 40) | st.integers(0, 1_000),
)
def test_a_service_ends_when_its_work_is_done_tick_by_tick(
    rows: Sequence[ActorFault], factors: Sequence[float], started: int, work: int
) -> None:
    slows = [
        ActorFault(kind="slow", factor=factor, from_ns=20 * i, to_ns=20 * i + 60)
        for i, factor in enumerate(factors)
    ]
    of_actor = faults(*rows, *slows).on_actor("joiner.0")
    if of_actor is None:
        return
    now, left = started, float(work)
    while left > 1e-9:
        if of_actor.paused_until(now) == now:
            left -= 1 / of_actor.slowed(now)
        now += 1
    assert of_actor.done_ns(started, work) == now


@pytest.mark.parametrize("random", [False, True])
def test_the_end_of_a_service_of_many_periods_is_found_at_once(random: bool) -> None:
    often = ActorFault(kind="pause", to_ns=10, every_ns=100, random=random)
    late = ActorFault(kind="slow", factor=2, from_ns=10**12, to_ns=2 * 10**12)
    # 90 ns of work in each period, then 45, then 90 again, and an end within a period.
    work = 90 * 10**10 + 45 * 10**10 + 90 * 10**10 + 1
    assert 3 * 10**12 < actor(often, late).done_ns(0, work) <= 3 * 10**12 + 100


@pytest.mark.parametrize("number", [6, 7, 60, 400])
def test_service_ends_however_many_faults_slow_it_down(number: int) -> None:
    slows = [ActorFault(kind="slow", factor=10)] * number
    assert actor(*slows).done_ns(5, 1_000) == 5 + 1_000 * 10**6


@pytest.mark.parametrize(
    "row",
    [
        ActorFault(kind="pause", to_ns=10**14 - 1, every_ns=10**14),
        ActorFault(kind="slow", factor=1e6),
    ],
)
def test_a_service_that_outlasts_virtual_time_never_ends(row: ActorFault) -> None:
    assert actor(row).done_ns(5, 10**13) >= FOREVER_NS


def test_faults_of_one_link_add_up_while_they_are_there() -> None:
    link = faults(
        LinkFault(kind="loss", rate=0.5, to_ns=100),
        LinkFault(kind="loss", rate=0.5, sender="s", from_ns=50),
        LinkFault(kind="delay", delay_ns=7, receiver="j*"),
        LinkFault(kind="partition", sender="j1", to_ns=100),
        LinkFault(kind="bandwidth", factor=0.5),
        LinkFault(kind="bandwidth", factor=0.5),
    ).on_link("s", "j0")
    assert link is not None
    assert link.at(0) == LinkState(loss=0.5, delay_ns=7, bandwidth=0.25)
    assert link.at(50).loss == 0.75
    assert link.at(100).loss == 0.5


def test_a_fault_is_of_those_it_names() -> None:
    both = faults(
        LinkFault(kind="loss", rate=0.1, sender="s", receiver="j1"),
        ActorFault(kind="slow", factor=2, actor="joiner.*", site="j1"),
        ActorFault(kind="stall", to_ns=10),
    )
    assert both.on_link("s", "j0") is None
    assert both.on_link("s", "j1") is not None
    assert both.on_link("j1", "s") is None
    assert both.on_actor("joiner.0") is None
    assert both.on_actor("joiner.1") is not None
    source = both.on_actor("source")
    assert source is not None
    assert source.stalled_until(3) == 10
    assert source.slowed(3) == 1


def test_the_next_crash_begins_at_a_time_or_later() -> None:
    crashes = actor(
        ActorFault(kind="crash", from_ns=100, to_ns=150, every_ns=1_000),
        ActorFault(kind="crash", from_ns=300, to_ns=310),
    )
    assert crashes.crash(0) == (100, 150)
    assert crashes.crash(100) == (100, 150)
    assert crashes.crash(101) == (300, 310)
    assert crashes.crash(301) == (1_100, 1_150)
    assert actor(ActorFault(kind="crash", from_ns=1, to_ns=2)).crash(2) is None


def test_an_actor_is_down_until_all_crashes_that_meet_are_over() -> None:
    crashes = actor(
        ActorFault(kind="crash", from_ns=100, to_ns=200),
        ActorFault(kind="crash", from_ns=150, to_ns=300),
        ActorFault(kind="crash", from_ns=100, to_ns=120),
        ActorFault(kind="crash", from_ns=301, to_ns=310),
    )
    assert crashes.crash(0) == (100, 300)
    assert crashes.crash(300) == (301, 310)


def test_faults_after_which_nothing_goes_on_are_refused_where_they_never_end_together() -> None:
    """Each of them does, but one begins before the other is over, again and again."""
    spans: tuple[dict[str, Any], ...] = (
        {"to_ns": 6, "every_ns": 10},
        {"from_ns": 5, "to_ns": 11, "every_ns": 10},
    )
    ask: dict[ActorKind, Callable[[ActorFaults], object]] = {
        "pause": lambda of_actor: of_actor.done_ns(0, 1),
        "stall": lambda of_actor: of_actor.stalled_until(3),
        "crash": lambda of_actor: of_actor.crash(0),
    }
    for kind, asked in ask.items():
        of_source = faults(*(ActorFault(kind=kind, **span) for span in spans)).on_actor("source")
        assert of_source is not None
        with pytest.raises(NetworkError, match=f"kind {kind} follow on each other for ever"):
            asked(of_source)
    link = faults(*(LinkFault(kind="partition", **span) for span in spans)).on_link("s", "j0")
    assert link is not None
    with pytest.raises(NetworkError, match="kind partition follow on each other for ever"):
        link.at(0)


def test_a_clock_is_ahead_by_all_its_skews() -> None:
    skewed = actor(
        ActorFault(kind="skew", offset_ns=50),
        ActorFault(kind="skew", offset_ns=-80, from_ns=10, to_ns=20),
    )
    assert [skewed.offset_ns(now) for now in (9, 10, 20)] == [50, -30, 50]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinkFault(kind="partition"), "needs an end"),
        (lambda: ActorFault(kind="pause", from_ns=5, to_ns=5), "after the start"),
        (lambda: ActorFault(kind="pause", to_ns=5, every_ns=5), "never be over"),
        (lambda: ActorFault(kind="slow", every_ns=5), "needs an end"),
        (lambda: ActorFault(kind="slow", to_ns=5, random=True), "set every"),
    ],
)
def test_a_row_that_means_nothing_is_refused(make, message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        make()
