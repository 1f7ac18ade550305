"""The manager's mirror of its workers' BI-Sort subwindows: it turns records back into tuples.

The mirror of a worker does what the worker was commanded to do about a batch when the worker's
answer comes, neither sooner nor later: the places that the records name are then the same in both.
"""

from __future__ import annotations

from typing import Any

from actors.panjoin.holdings import Holdings
from actors.panjoin.payloads import Commands, Feedback, Result
from actors.panjoin.sides import Sides
from actors.protocol import Context
from actors.results import Answers
from joins.indexes.panjoin.answering import Probes as EncodedProbes
from joins.indexes.panjoin.answering import listing, new_output
from joins.indexes.panjoin.subwindow import SubwindowShape
from joins.matches import Matches, ProbeResult
from joins.state import State, plain, revive
from joins.work import NO_WORK


class Mirror:
    """Copies of what the workers hold in BI-Sorts, one batch behind the commands in flight."""

    def __init__(
        self, sides: Sides, shapes: tuple[SubwindowShape, ...], workers: int, pairs: bool
    ) -> None:
        self._sides = sides
        self._pairs = pairs
        self._holdings = [Holdings(sides, shapes, ("bi_sort",)) for _ in range(workers)]
        self._sent: dict[tuple[int, int], Commands] = {}

    def expect(self, worker: int, commands: Commands) -> None:
        """Remember what a worker was told until it answers."""
        self._sent[worker, commands.number] = commands

    def translate(self, feedback: Feedback, context: Context) -> Answers | None:
        """Catch up with a worker and return what its answer says; None if nothing was probed."""
        commands = self._sent.pop((feedback.worker, feedback.number))
        held = self._holdings[feedback.worker]
        context.charge(held.take(commands))
        answers = None
        if any(len(part) for part in commands.probe):
            found = tuple(
                self._matches(stream, commands, result, held, context)
                for stream, result in enumerate(feedback.results)
            )
            answers = Answers(found, tuple(p.born_ns for p in commands.probe), commands.span)
        held.expire(commands)
        return answers

    def _matches(
        self, stream: int, commands: Commands, result: Result, held: Holdings, context: Context
    ) -> Matches:
        part = commands.probe[stream]
        found = self._read(stream, self._sides.encode(stream, part), result, held)
        context.charge(found.work)
        read = Matches(
            stream=stream,
            probe_id=part.batch.id,
            count=found.count,
            fingerprint=found.fingerprint,
            match_id=found.match_id,
        )
        return read if result.matches is None else Matches.sum([read, result.matches])

    def _read(
        self, stream: int, probes: EncodedProbes, result: Result, held: Holdings
    ) -> ProbeResult:
        """Read the records: each is a run of places in a subwindow."""
        subwindows = [
            (held.get(self._sides.stored_stream[stream], number), records)
            for number, records in result.records.items()
        ]
        output = new_output(len(probes.low))
        work = NO_WORK
        for subwindow, records in subwindows:
            work += subwindow.read(records, probes, output)
        match_id = None
        if self._pairs:
            listed = listing(output)
            match_id = listed.match_id
            for subwindow, records in subwindows if len(match_id) else []:
                subwindow.read(records, probes, listed)
        return ProbeResult(
            count=output.matches, fingerprint=output.fingerprint, match_id=match_id, work=work
        )

    def snapshot(self) -> State:
        """Return the state as plain data."""
        sent: list[Any] = [[*key, plain(commands)] for key, commands in self._sent.items()]
        return {"holdings": [held.snapshot() for held in self._holdings], "sent": sent}

    def restore(self, state: State) -> None:
        """Take over what `snapshot` returned."""
        for held, snapshot in zip(self._holdings, state["holdings"], strict=True):
            held.restore(snapshot)
        self._sent = {(w, number): revive(commands) for w, number, commands in state["sent"]}
