"""How many worlds it takes to find operators, protocols and transports that are broken on purpose.

    python -m benchmarks.mutants --worlds 1000 --seed 1 [--only WORDS]

The mutants of operators are those of the verdict's tests (`tests.scenarios.verdict.test_mutants`),
those of recovery are in `tests.properties.test_recovery`; those of sources, emitters, channels and
the transport are here. Each is run in worlds drawn from the seed, with faults and crashes, until
one fails by its verdict or by a broken invariant. Where a mutant makes the code raise, anything
would find it: such worlds are counted apart, and find nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from actors.hosting.invariants import InvariantError
from actors.interval_join.emitter import Emitter
from actors.interval_join.replica import Watermarks
from actors.source import Source
from actors.stream_source import END
from netsim.connection import Acknowledgement, Receiving, Sending
from netsim.faulty_kernel import FaultyKernel
from netsim.kernel import Kernel
from scenarios.worlds.fuzzing import EndlessRunError, try_world, world_number
from tests.properties.test_recovery import MUTANTS as RECOVERY
from tests.scenarios.verdict.broken import Break, wrapped
from tests.scenarios.verdict.test_mutants import MUTANTS, RUNS
from topologies import TOPOLOGIES

WORLDS_MAX = 1_000
_FOUND_BY = (InvariantError.__name__, EndlessRunError.__name__)
"""Errors by which a run itself shows that something is broken."""
EMITTERS = ("kp_oij", "dp_oij", "hp_oij")


class Search(NamedTuple):
    """A mutant, and the worlds to look for it in.

    Attributes
    ----------
    breaks
        Breaks it.
    topologies
        The systems to run, in turn.
    pairs
        Whether runs list their pairs.
    """

    breaks: Break
    topologies: Sequence[str]
    pairs: bool = False


def _delivers_duplicates(original: Any, self: Any, number: int, item: Any, left_ns: int) -> Any:
    again = number < self._missing
    ready, answer = original(self, number, item, left_ns)
    return ([item] if again else ready), answer


def _delivers_at_once(original: Any, self: Any, number: int, item: Any, left_ns: int) -> Any:
    new = number >= self._missing and number not in self._early
    _, answer = original(self, number, item, left_ns)
    return ([item] if new else []), answer


def _passes_over_gaps(original: Any, self: Any, number: int, item: Any, left_ns: int) -> Any:
    if number > self._missing:
        self._missing = number
    return original(self, number, item, left_ns)


def _gives_up(original: Any, self: Any, now: int) -> None:
    if self.deadline_ns is not None and now >= self.deadline_ns:
        self.deadline_ns = None


def _acknowledged_too_far(original: Any, self: Any, answer: Acknowledgement, now: int) -> Any:
    return original(self, answer._replace(missing=min(answer.missing + 1, self.next)), now)


def _loses_what_stalls(original: Any, self: Any, letter: Any, now: int) -> None:
    faults = self._of_actor.get(letter.receiver.name)
    if not (faults and letter.sender is letter.receiver and faults.stalled_until(now) > now):
        original(self, letter, now)


def _loses_what_pauses(original: Any, self: Any, letter: Any, now: int) -> None:
    letter.receiver.inbox.popleft()
    letter.receiver.busy = False


def _overtakes(original: Any, self: Any, letter: Any, now: int) -> None:
    if getattr(letter, "channel", None):
        letter.channel.last_first_bit_ns = 0
    original(self, letter, now)


def _without_flush(original: Any, self: Any, share: Any, replicas: int, *, flush: bool) -> Any:
    return original(self, share, replicas, flush=False)


def _drops_the_last(original: Any, self: Any, now: int) -> Any:
    arrivals = original(self, now)
    full = self._feeding.batch_rows or 1
    return arrivals if arrivals is None or len(arrivals) >= full else None


def _one_ahead(original: Any, self: Any, channel: int, watermark: int) -> None:
    original(self, channel, watermark + 1)


PROTOCOLS = {
    "delivers duplicates": wrapped(Receiving, "receive", _delivers_duplicates),
    "delivers frames as they come": wrapped(Receiving, "receive", _delivers_at_once),
    "passes over lost frames": wrapped(Receiving, "receive", _passes_over_gaps),
    "sends nothing again at a timeout": wrapped(Sending, "expire", _gives_up),
    "takes a frame too many for acknowledged": wrapped(
        Sending, "acknowledge", _acknowledged_too_far
    ),
    "loses what waits for a stalled source": wrapped(FaultyKernel, "_arrive", _loses_what_stalls),
    "loses what a pause interrupts": wrapped(FaultyKernel, "_end_pause", _loses_what_pauses),
    "lets messages overtake each other": wrapped(Kernel, "_transmit", _overtakes),
    "a source drops a last message that is not full": wrapped(Source, "_take", _drops_the_last),
}
WATERMARKS = {
    "an emitter keeps its last partial batches": wrapped(Emitter, "_batches", _without_flush),
    "an emitter's watermark passes tuples that wait": wrapped(
        Emitter, "_oldest", lambda original, self, replicas, routes, least: [END] * replicas
    ),
    "a replica is as far as its furthest channel": wrapped(
        Watermarks, "low", lambda original, self: max(self._channels)
    ),
    "a replica reads watermarks one too high": wrapped(Watermarks, "advance", _one_ahead),
}


def searches() -> dict[str, Search]:
    """Return all mutants by name."""
    found = {
        name: Search(mutant.breaks, (RUNS[mutant.run].topology,), mutant.pairs)
        for name, mutant in MUTANTS.items()
    }
    everywhere = PROTOCOLS | {one.__name__.replace("_", " "): one for one in RECOVERY}
    found |= {name: Search(breaks, tuple(TOPOLOGIES)) for name, breaks in everywhere.items()}
    return found | {name: Search(breaks, EMITTERS) for name, breaks in WATERMARKS.items()}


def find(search: Search, worlds: int, seed: int) -> tuple[int | None, str, int]:
    """Return after how many worlds a mutant is found, by what, and how many raised meanwhile."""
    raised = 0
    for number in range(worlds):
        world = world_number(number, seed, search.topologies)
        with pytest.MonkeyPatch.context() as patch:
            search.breaks(patch)
            try:
                trial = try_world(world, pairs=search.pairs)
            except Exception:  # before it runs
                raised += 1
                continue
        if trial.failure is None:
            continue
        if trial.digest is None and trial.kind not in _FOUND_BY:
            raised += 1
            continue
        return number + 1, trial.kind, raised
    return None, "nothing", raised


def main() -> int:
    """Print after how many worlds each mutant is found; return 1 if one is not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=WORLDS_MAX, help="for each mutant, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="mutants with these words in their names")
    options = parser.parse_args()
    missed = 0
    for name, search in searches().items():
        if options.only not in name:
            continue
        worlds, by, raised = find(search, options.worlds, options.seed)
        missed += worlds is None
        shown = "NOT FOUND" if worlds is None else f"{worlds:4} worlds"
        print(f"{shown}  {name}: {by}" + (f" ({raised} raised)" if raised else ""), flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
