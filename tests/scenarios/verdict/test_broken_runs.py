"""Broken kernels, networks and writers are found by the verdict, however right the answer is."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from actors import source
from actors.result_files import ResultWriter
from actors.results import Answers, Output
from actors.source import Source
from netsim import kernel, trace
from netsim.kernel import Kernel, Letter
from netsim.network import Latency
from netsim.trace import COLUMNS
from scenarios.result_readers import ListedPairs
from tests.scenarios.verdict.broken import Break, wrapped
from tests.scenarios.verdict.test_mutants import RUNS, SELF, THREE, Ordinary

FIRST = Ordinary("split_join", SELF, {"batch_rows": 1, "rate_tps": 100_000})
"""Its first messages have no matches: nobody misses one of them in the answer."""


FREE = RUNS["hash_join"]
RATE = Ordinary("hash_join", feeding={"batch_rows": 20, "rate_tps": 100_000})


APPROXIMATE = Ordinary(
    "semijoin", THREE.replace("B.x = C.x", "B.k = C.k"), parameters={"kept": {"share": 0.5}}
)


class Mutant(NamedTuple):
    """A run broken in one way, and the check that fails."""

    run: Ordinary
    breaks: Break
    check: str
    words: str = ""


def _recorded(change: Callable[[dict[str, int]], Any]) -> Break:
    """Have rows of the trace written otherwise, in what the digest is of too."""

    def packed(*row: int) -> bytes:
        at = dict(zip(COLUMNS, row, strict=True))
        change(at)
        return struct.pack(f"<{len(COLUMNS)}q", *at.values())

    return lambda monkeypatch: monkeypatch.setattr(kernel, "pack_row", packed)


def _earlier(name: str) -> Callable[[dict[str, int]], None]:
    def change(at: dict[str, int]) -> None:
        at[name] -= 10**9

    return change


def _empty_answers(letter: Letter) -> bool:
    return letter.port == "sink" and letter.nbytes == Answers.frame_bytes + 16 * letter.rows


def _swaps(original: Any, self: Kernel, letter: Letter, now: int) -> None:
    """Lose the first answer without matches, and make one up for the next that has another sender.

    As many are served as were sent.
    """
    state = vars(self)
    if not _empty_answers(letter) or "made_up" in state:
        original(self, letter, now)
        return
    lost = state.setdefault("lost", letter)
    if lost is letter:
        letter.receiver.credits += 1
        return
    original(self, letter, now)
    if letter.sender is not lost.sender:
        state["made_up"] = again = Letter(letter.sender, letter.receiver, letter.port, now)
        for name in ("nbytes", "rows", "span", "handle", "channel"):
            setattr(again, name, getattr(letter, name))
        again.receiver.credits -= 1
        original(self, again, now)


def _loses_before_counting(original: Any, self: Kernel, letter: Letter, now: int) -> None:
    if _empty_answers(letter) and "lost" not in vars(self):
        vars(self)["lost"] = letter
        return
    original(self, letter, now)


def _outcome(**changes: Callable[[Any], Any]) -> Break:
    """Have a run say something else of itself."""

    def broken(original: Any, self: Kernel) -> Any:
        found = original(self)
        return replace(found, **{name: change(found) for name, change in changes.items()})

    return wrapped(Kernel, "_outcome", broken)


def _output(change: Callable[[Output], Output]) -> Break:
    """Have a run write down other results than its sinks handed out."""

    def collect(original: Any, self: ResultWriter, results: list[Any]) -> None:
        original(self, [change(one) if isinstance(one, Output) else one for one in results])

    return wrapped(ResultWriter, "collect", collect)


def _latency(change: Callable[[np.ndarray], np.ndarray]) -> Break:
    return _output(lambda output: replace(output, latency_ns=change(output.latency_ns)))


def _other_sender(output: Output) -> Output:
    others = {"joiner.1": "joiner.2", "joiner.2": "joiner.1"}
    return replace(output, sender=others.get(output.sender, output.sender))


def _born(change: Callable[[np.ndarray], np.ndarray]) -> Break:
    original = source.birth_ns
    return lambda monkeypatch: monkeypatch.setattr(
        source, "birth_ns", lambda *tuples: change(original(*tuples))
    )


def _at_once(original: Any, self: Kernel, letter: Letter, now: int) -> None:
    """Transmit as if it had no bytes."""
    nbytes, letter.nbytes = letter.nbytes, 0
    original(self, letter, now)
    letter.nbytes = nbytes


def _counts_twice(original: Any, self: ListedPairs) -> None:
    original(self)
    self.rows *= 2


def _drops_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write less than the digest is of."""
    table = pa.table
    monkeypatch.setattr(
        trace, "pa", type("Arrow", (), {**vars(pa), "table": lambda *a, **k: table(*a, **k)[1:]})
    )


BROKEN = {
    "a message is lost at one sender, and another's comes twice": Mutant(
        FIRST, wrapped(Kernel, "_transmit", _swaps), "conservation", "were due from"
    ),
    "a message is lost before it is counted": Mutant(
        FIRST, wrapped(Kernel, "_post", _loses_before_counting), "conservation", "numbers"
    ),
    "bytes within a site are the network's": Mutant(
        FREE, _outcome(nbytes=lambda found: found.nbytes + 1), "trace", "bytes"
    ),
    "the trace has other sizes": Mutant(
        FREE,
        _recorded(lambda at: at.update(nbytes=at["nbytes"] // 2)),
        "trace",
        "bytes",
    ),
    "the run is over before its last service is": Mutant(
        FREE,
        _outcome(virtual_ns=lambda found: found.virtual_ns // 2),
        "trace",
        "last service",
    ),
    "the digest is another run's": Mutant(
        FREE, _outcome(digest=lambda found: "0" * 16), "trace", "digest"
    ),
    "the disk gets a row less than the digest": Mutant(FREE, _drops_on_disk, "trace", "digest"),
    "messages take no latency": Mutant(
        FREE,
        wrapped(Latency, "sampler", lambda original, self, seed: lambda: 0),
        "trace",
        "sooner",
    ),
}
BROKEN |= {
    "messages take no bandwidth": Mutant(
        FREE, wrapped(Kernel, "_transmit", _at_once), "trace", "sooner"
    ),
    "tuples count twice": Mutant(
        FREE, _outcome(tuples=lambda found: 2 * found.tuples), "trace", "tuples were fed in"
    ),
    "messages are about tuples that do not exist": Mutant(
        FREE, _recorded(lambda at: at.update(last=at["last"] + 10**6)), "trace", "do not exist"
    ),
    "messages are about a span the wrong way round": Mutant(
        FREE, _recorded(lambda at: at.update(last=-5)), "trace", "do not exist"
    ),
    "messages go to actors that are sent nothing": Mutant(
        FREE, _recorded(lambda at: at.update(receiver=0)), "trace", "nothing is sent"
    ),
    "a message has another number": Mutant(
        FREE, _recorded(lambda at: at.update(seq=at["seq"] + 1)), "conservation", "numbers"
    ),
    "messages have the numbers of others, of the same sum": Mutant(
        FREE,
        _recorded(lambda at: at.update(seq={1: 0, 2: 3}.get(at["seq"], at["seq"]))),
        "conservation",
        "numbers",
    ),
    "two messages are served at once": Mutant(
        FREE,
        _recorded(lambda at: at.update(started_ns=max(at["arrived_ns"], at["started_ns"] - 5))),
        "trace",
        "times",
    ),
    "the trace has other rows": Mutant(
        FREE, _recorded(lambda at: at.update(rows=2 * at["rows"])), "sinks", "rows"
    ),
    "answers are smaller than their pairs": Mutant(
        FREE,
        wrapped(Answers, "nbytes", lambda original, self: original(self) // 2),
        "sinks",
        "bytes",
    ),
    "results have another sender": Mutant(FREE, _output(_other_sender), "sinks", "rows"),
    "latencies are halved": Mutant(FREE, _latency(lambda ns: ns // 2), "latencies"),
    "latencies are halved at a rate": Mutant(RATE, _latency(lambda ns: ns // 2), "latencies"),
    "latencies are a nanosecond too long": Mutant(
        RUNS["spo_join"], _latency(lambda ns: ns + 1), "latencies"
    ),
    "latencies of pairs are longer than the run": Mutant(
        RUNS["kp_oij"], _latency(lambda ns: ns + 10**12), "latencies"
    ),
    "tuples are born later": Mutant(FREE, _born(lambda ns: ns + 5), "latencies"),
    "tuples are born later at a rate": Mutant(RATE, _born(lambda ns: ns + 5), "latencies"),
    "tuples are born with the last of their message": Mutant(
        RATE, _born(lambda ns: np.full_like(ns, ns.max(initial=0))), "latencies"
    ),
    "a source does not wait for its tuples": Mutant(
        RATE,
        wrapped(Source, "_due_ns", lambda original, self, arrivals, now: now),
        "latencies",
        "left before",
    ),
    "more pairs are counted than there are, so that recall is wrong": Mutant(
        APPROXIMATE,
        wrapped(ListedPairs, "finish", _counts_twice),
        "sample",
        "add up",
    ),
    "more pairs are counted than there are": Mutant(
        FREE,
        wrapped(ListedPairs, "finish", _counts_twice),
        "oracle",
        "add up",
    ),
}
for _name in ("sent_ns", "arrived_ns", "started_ns", "done_ns"):
    BROKEN[f"{_name} is too early"] = Mutant(FREE, _recorded(_earlier(_name)), "trace", "times")


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_run_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant = BROKEN[name]
    mutant.breaks(monkeypatch)
    verdict = mutant.run.run().verdict
    assert verdict.exact or verdict.as_promised or mutant.check == "sample"
    assert verdict.passed is False
    (check,) = (check for check in verdict.checks if check.name == mutant.check)
    assert check.passed is False
    assert mutant.words in check.detail
    for each in verdict.checks:  # counts are words of it: "1 tuple", not "1 tuples"
        assert not re.search(r"\b1 (tuple|row|message|pair|number|latencie)s\b", each.detail)


@pytest.mark.parametrize("run", [FIRST, RATE])
def test_what_is_not_broken_passes(run: Ordinary) -> None:
    verdict = run.run().verdict
    assert verdict.passed is True, verdict.checks
    passed = {check.name for check in verdict.checks if check.passed}
    assert {"conservation", "fifo", "trace", "sinks", "latencies"} <= passed


WIDER = [
    {"faults": [{"kind": "bandwidth", "factor": 2.0}]},
    {"network": {"bandwidth": 10**13}, "faults": [{"kind": "bandwidth", "factor": 1e6}]},
    {"network": {"bandwidth": 10**20}},
]
"""Two of these are wider than int64 has bits a second."""


@pytest.mark.parametrize("parameters", WIDER)
def test_wide_links_are_not_too_fast(parameters: dict[str, Any]) -> None:
    verdict = replace(FREE, parameters=parameters).run().verdict
    assert verdict.passed is True, verdict.checks
