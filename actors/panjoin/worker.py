"""The worker: keeps its subwindows and does as the manager commands (steps 4 and 5)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from actors.panjoin.holdings import Holdings
from actors.panjoin.payloads import Commands, Feedback, Result, Status
from actors.panjoin.sides import Sides
from actors.probes import Probes
from actors.protocol import FEEDBACK, Actor, Context, Message
from actors.results import Answers
from joins.batch import Schema
from joins.indexes.panjoin.accelerator import Accelerator
from joins.indexes.panjoin.answering import Probes as EncodedProbes
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.probing import probe_subwindows
from joins.indexes.panjoin.records import Records
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape
from joins.matches import Matches, ProbeResult
from joins.queries.query import JoinQuery
from joins.state import State

ResultsTo = Literal["sink", "manager"]


class Worker(Actor):
    """Creates, inserts, probes and expires; answers with results and its running status.

    Workers do not talk to each other. Ports: ``feedback`` (the manager), and ``sink`` where results
    go straight on.

    Parameters
    ----------
    index
        Which of the workers this is.
    shapes
        Per stream what its subwindows have in common.
    results
        Where results go. To the manager a BI-Sort's go as records.
    threads
        Threads that share the probes of a batch. In virtual time their work is added up: it is
        done on one core.
    accelerator
        The board that holds its subwindows, all of them BI-Sorts whose results go to the manager;
        None keeps them on the core.
    """

    holdings_type: type[Holdings] = Holdings

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        index: int,
        shapes: tuple[SubwindowShape, ...],
        results: ResultsTo,
        threads: int,
        accelerator: Accelerator | None,
        pairs: bool,
    ) -> None:
        self._sides = Sides(query, schemas)
        self._holdings = self.holdings_type(self._sides, shapes)
        self._index = index
        self._results = results
        self._threads = threads
        self._accelerator = accelerator
        self._pairs = pairs

    def receive(self, message: Message, context: Context) -> None:
        """Do what the manager commands about one batch."""
        commands: Commands = message.payload
        work = self._holdings.take(commands)
        if self._accelerator is not None:
            inserted = sum(len(insert.batch) for insert in commands.insert)
            work = self._accelerator.insertion(inserted, work)
        context.charge(work)
        results: tuple[Result, ...] = ()
        if self._results == "sink":
            found = self._answer(commands, context)
        else:
            results = tuple(self._search(s, p, context) for s, p in enumerate(commands.probe))
            found = [_matches_in(result) for result in results]
        status = tuple(
            Status(len(part) * len(self._probed(s)), matches, self._sampled(s, commands))
            for s, (part, matches) in enumerate(zip(commands.probe, found, strict=True))
        )
        self._holdings.expire(commands)
        context.send(
            FEEDBACK, Feedback(commands.number, self._index, status, results, commands.span)
        )

    def _probed(self, stream: int) -> list[Subwindow]:
        """Return the subwindows that tuples of *stream* probe."""
        return list(self._holdings.of(self._sides.stored_stream[stream]).values())

    def _answer(self, commands: Commands, context: Context) -> list[int]:
        """Send the matches straight on; return how many there are per probing stream."""
        found = [self._probe(s, part, context) for s, part in enumerate(commands.probe)]
        if any(len(part) for part in commands.probe):
            born_ns = tuple(part.born_ns for part in commands.probe)
            context.send("sink", Answers(tuple(found), born_ns, commands.span))
        return [matches.total for matches in found]

    def _probe(self, stream: int, part: Probes, context: Context) -> Matches:
        probes = self._sides.encode(stream, part)
        return self._find(stream, part, probes, self._probed(stream), context)

    def _find(
        self,
        stream: int,
        part: Probes,
        probes: EncodedProbes,
        subwindows: list[Subwindow],
        context: Context,
    ) -> Matches:
        found = probe_subwindows(subwindows, probes, enumerate=self._pairs, threads=self._threads)
        context.charge(found.work)
        return matches_of(stream, part, found)

    def _search(self, stream: int, part: Probes, context: Context) -> Result:
        """Answer with records where the structure is sorted, with matches where it is not."""
        if not len(part):
            return Result({}, None)
        probes = self._sides.encode(stream, part)
        records: dict[int, Records] = {}
        others = []
        stored = self._holdings.of(self._sides.stored_stream[stream])
        for number, subwindow in stored.items():
            if subwindow.kind == "bi_sort":
                records[number], work = subwindow.records(probes)
                if self._accelerator is not None:
                    assert isinstance(subwindow.structure, BiSort)
                    work = self._accelerator.probing(subwindow.structure, records[number])
                context.charge(work)
            else:
                others.append(subwindow)
        matches = self._find(stream, part, probes, others, context) if others else None
        return Result(records, matches)

    def _sampled(self, stream: int, commands: Commands) -> np.ndarray | None:
        """Return the splitters sampled in what was filled last of *stream* by these commands."""
        filled = [i for i in commands.insert if i.stream == stream and i.fills]
        return self._holdings.get(stream, filled[-1].number).sampled if filled else None

    def snapshot(self) -> State:
        """Return the subwindows."""
        return {"holdings": self._holdings.snapshot()}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._holdings.restore(state["holdings"])


def matches_of(stream: int, part: Probes, found: ProbeResult) -> Matches:
    """Return what the tuples *part* of *stream* found."""
    return Matches(
        stream=stream,
        probe_id=part.batch.id,
        count=found.count,
        fingerprint=found.fingerprint,
        match_id=found.match_id,
    )


def _matches_in(result: Result) -> int:
    """Return how many tuples a result speaks of; records are taken at their lengths."""
    lengths = sum(records.lengths for records in result.records.values())
    return lengths + (0 if result.matches is None else result.matches.total)
